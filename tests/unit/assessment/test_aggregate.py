"""The seven rules in order, the one extension, what is required, merging and the headline."""

from __future__ import annotations

import pytest
from assessment_sample import FULL, GAP, NOT_ASKED, finding, result

from harness.assessment.aggregate import Decision, Scope, aggregate
from harness.assessment.policy import PRESETS, Policy
from harness.model.coverage import Coverage
from harness.model.finding import EvidenceLevel, Severity
from harness.model.options import ActiveLevel
from harness.model.result import AnalyzerStatus, ExitCode, ScanStatus, Selection, Verdict

BALANCED = PRESETS["balanced"]
BAD = finding()
PROOF = finding(level=EvidenceLevel.CONFIRMED)
A = AnalyzerStatus
S = Selection


def ends(decision: Decision) -> tuple[str, str, int]:
    return decision.status.value, decision.verdict.value, int(decision.exit_code)


SAFE = ("COMPLETED", "SAFE", 0)
UNSAFE = ("COMPLETED", "UNSAFE", 1)
PARTIAL = ("PARTIAL", "UNKNOWN", 3)
ERROR = ("ERROR", "UNKNOWN", 3)
SKIPPED = ("SKIPPED", "UNKNOWN", 3)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], SKIPPED),
        ([result(status=A.SKIPPED), result(status=A.UNAVAILABLE, name="yara")], SKIPPED),
        ([result(status=A.ERROR), result(BAD, name="protocol")], ERROR),
        ([result(status=A.CRASHED)], ERROR),
        ([result(status=A.TIMEOUT), result(status=A.PARTIAL, name="protocol")], ERROR),
        ([result(status=A.PARTIAL), result(BAD, name="protocol")], PARTIAL),
        ([result(coverage=GAP), result(BAD, name="protocol")], PARTIAL),
        ([result(coverage=Coverage())], PARTIAL),
        ([result(status=A.CRASHED, selection=S.BEST_EFFORT)], SKIPPED),
        ([result(status=A.PARTIAL, selection=S.BEST_EFFORT)], SKIPPED),
        ([result(coverage=GAP, selection=S.BEST_EFFORT)], SKIPPED),
        ([result(BAD)], UNSAFE),
        ([result(BAD, selection=S.BEST_EFFORT)], UNSAFE),
        ([result(finding(Severity.MEDIUM)), result(name="protocol")], SAFE),
        ([result(coverage=NOT_ASKED)], SAFE),
        # A default one that can't run excuses itself; a named one does not.
        ([result(), result(name="yara", status=A.UNAVAILABLE)], SAFE),
        ([result(), result(name="yara", status=A.SKIPPED)], SAFE),
        ([result(), result(name="yara", status=A.UNAVAILABLE, selection=S.NAMED)], PARTIAL),
        ([result(), result(name="yara", status=A.CRASHED)], ERROR),
        ([result(), result(name="yara", status=A.CRASHED, selection=S.BEST_EFFORT)], SAFE),
    ],
)
def test_the_rules_in_their_order(results: list[object], expected: tuple[str, str, int]) -> None:
    assert ends(aggregate(results, BALANCED)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("broken", "status"),
    [
        (result(status=A.CRASHED, name="protocol"), "ERROR"),
        (result(status=A.PARTIAL, name="protocol"), "PARTIAL"),
        (result(coverage=GAP, name="protocol"), "PARTIAL"),
    ],
)
def test_incomplete_and_already_confirmed(broken: object, status: str) -> None:
    decision = aggregate([result(PROOF), broken], BALANCED)  # type: ignore[list-item]
    assert ends(decision) == (status, "UNKNOWN", 1)
    assert decision.headline.startswith("incomplete, and already confirmed unsafe")
    low = finding(Severity.LOW, EvidenceLevel.CONFIRMED)
    assert ends(aggregate([result(low), broken], BALANCED)) == (status, "UNKNOWN", 3)  # type: ignore[list-item]
    assert ends(aggregate([result(BAD), broken], BALANCED)) == (status, "UNKNOWN", 3)  # type: ignore[list-item]


def test_confirmed_does_not_save_a_scan_in_which_nothing_was_usable() -> None:
    only = result(PROOF, status=A.PARTIAL, selection=S.BEST_EFFORT)
    assert ends(aggregate([only], BALANCED)) == SKIPPED


@pytest.mark.parametrize(
    ("preset", "severity", "level", "blocks"),
    [
        ("strict", Severity.MEDIUM, EvidenceLevel.HEURISTIC, True),
        ("strict", Severity.LOW, EvidenceLevel.CONFIRMED, False),
        ("balanced", Severity.HIGH, EvidenceLevel.STATIC, True),
        ("balanced", Severity.CRITICAL, EvidenceLevel.HEURISTIC, False),
        ("balanced", Severity.MEDIUM, EvidenceLevel.CONFIRMED, False),
        ("permissive", Severity.CRITICAL, EvidenceLevel.DYNAMIC, True),
        ("permissive", Severity.CRITICAL, EvidenceLevel.PROTOCOL, False),
        ("permissive", Severity.HIGH, EvidenceLevel.CONFIRMED, False),
    ],
)
def test_presets(preset: str, severity: Severity, level: EvidenceLevel, blocks: bool) -> None:
    decision = aggregate([result(finding(severity, level))], PRESETS[preset])
    assert decision.verdict is (Verdict.UNSAFE if blocks else Verdict.SAFE)


def test_a_safe_says_its_level() -> None:
    scope = Scope(level=ActiveLevel.NONE, declared=14)
    assert aggregate([result()], BALANCED, scope=scope).headline == "SAFE at level none: 14 tools declared, none called"
    scope = Scope(level=ActiveLevel.TOOL_CALLS, declared=1, called=1)
    assert (
        aggregate([result()], BALANCED, scope=scope).headline == "SAFE at level tool-calls: 1 tool declared, 1 called"
    )


def test_an_unsafe_names_what_blocks() -> None:
    decision = aggregate([result(finding(), finding(Severity.CRITICAL, fact="b"))], BALANCED)
    assert decision.headline == "UNSAFE: 2 blocking findings, the worst CRITICAL phrase.injection"
    assert len(decision.reasons) == 2


def test_one_finding_of_two_analyzers_is_merged_and_upgraded() -> None:
    static = finding(Severity.CRITICAL, EvidenceLevel.STATIC, analyzer="source", confidence=0.5)
    proven = finding(Severity.HIGH, EvidenceLevel.CONFIRMED, analyzer="confirmation", confidence=0.9)
    decision = aggregate([result(static, name="source"), result(proven, name="confirmation")], BALANCED)
    (merged,) = decision.findings
    assert merged.analyzers == ("confirmation", "source")
    assert (merged.severity, merged.evidence_level, merged.confidence) == (
        Severity.CRITICAL,
        EvidenceLevel.CONFIRMED,
        0.9,
    )
    assert merged.confirmation == proven.confirmation


def test_what_the_policy_requires_must_be_there_and_complete() -> None:
    policy = BALANCED.model_copy(update={"required": ("protocol",)})
    assert ends(aggregate([result()], policy)) == PARTIAL
    assert ends(aggregate([result(), result(name="protocol", status=A.SKIPPED)], policy)) == PARTIAL
    assert (
        ends(aggregate([result(), result(name="protocol", selection=S.BEST_EFFORT, coverage=GAP)], policy)) == PARTIAL
    )
    assert ends(aggregate([result(), result(name="protocol")], policy)) == SAFE


def test_what_is_excused_is_said() -> None:
    decision = aggregate([result(), result(name="yara", status=A.TIMEOUT, selection=S.BEST_EFFORT)], BALANCED)
    assert decision.warnings == ("best-effort analyzer yara: because",)
    decision = aggregate([result(), result(name="x", selection=S.BEST_EFFORT, coverage=GAP)], BALANCED)
    assert "not analyzed" in decision.warnings[0]


def test_the_table_says_who_was_required() -> None:
    rows = aggregate([result(), result(name="yara", status=A.UNAVAILABLE)], BALANCED).analyzers
    assert [(row.name, row.required) for row in rows] == [("definitions", True), ("yara", False)]


def test_reasons_are_bounded() -> None:
    many = [result(name=f"a{n}", coverage=GAP) for n in range(200)]
    assert len(aggregate(many, BALANCED).reasons) == 51


def test_the_worst_books_of_a_subject_are_shown() -> None:
    decision = aggregate([result(coverage=FULL), result(name="b", coverage=NOT_ASKED)], BALANCED)
    assert decision.coverage == NOT_ASKED.subjects


@pytest.mark.parametrize("status", list(ScanStatus))
@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("code", list(ExitCode))
def test_forbidden_decisions_cannot_be_made(status: ScanStatus, verdict: Verdict, code: ExitCode) -> None:
    allowed = {
        (ScanStatus.COMPLETED, Verdict.SAFE, ExitCode.SAFE),
        (ScanStatus.COMPLETED, Verdict.UNSAFE, ExitCode.UNSAFE),
    } | {
        (one, Verdict.UNKNOWN, out)
        for one in (ScanStatus.PARTIAL, ScanStatus.ERROR, ScanStatus.SKIPPED)
        for out in (ExitCode.UNKNOWN, ExitCode.UNSAFE)
    }
    if (status, verdict, code) in allowed:
        assert Decision(status=status, verdict=verdict, exit_code=code, headline="x").status is status
    else:
        with pytest.raises(ValueError, match="combination|exit code"):
            Decision(status=status, verdict=verdict, exit_code=code, headline="x")


def test_findings_are_sorted_and_suppressed_ones_last() -> None:
    assert isinstance(BALANCED, Policy)
    low, high = finding(Severity.LOW, fact="l"), finding(Severity.HIGH, fact="h")
    assert aggregate([result(low, high)], BALANCED).findings == (high, low)
