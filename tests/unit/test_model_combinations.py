"""What the model refuses to build: impossible combinations, books that don't add up, claims without proof."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from harness.model.coverage import Coverage, Failure, Floor, Skip, SkipReason, Tally
from harness.model.finding import Confirmation, EvidenceLevel, Finding, Location, Severity, Threat
from harness.model.options import ActiveLevel
from harness.model.result import (
    COMBINATIONS,
    ActiveFacts,
    AnalyzerResult,
    AnalyzerStatus,
    ExitCode,
    PolicyFacts,
    ScanResult,
    ScanStatus,
    TargetFacts,
    Verdict,
)


def _finding(**more: object) -> Finding:
    fields: dict[str, object] = {
        "rule_id": "r",
        "title": "t",
        "severity": Severity.HIGH,
        "evidence_level": EvidenceLevel.STATIC,
        "threat": Threat.UNCATEGORIZED,
        "location": Location(tool="t"),
        "fact": "f",
        "analyzer": "a",
        "description": "d",
    }
    return Finding.make(**(fields | more))  # type: ignore[arg-type]


@pytest.mark.parametrize("status", list(ScanStatus))
@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_five_combinations_of_status_and_verdict_exist(status: ScanStatus, verdict: Verdict) -> None:
    def build() -> ScanResult:
        return ScanResult(
            harness_version="0",
            target=TargetFacts(ref="pypi:x", kind="pypi"),
            status=status,
            verdict=verdict,
            exit_code=ExitCode.UNKNOWN,
            headline="h",
            active=ActiveFacts(level=ActiveLevel.NONE),
            policy=PolicyFacts(
                name="p", sha256="", blocking_severity=Severity.HIGH, blocking_evidence=EvidenceLevel.STATIC
            ),
        )

    if (status, verdict) in COMBINATIONS:
        assert build().verdict is verdict
    else:
        with pytest.raises(ValidationError):
            build()
    assert len(COMBINATIONS) == 5


@pytest.mark.parametrize(("discovered", "analyzed"), [(3, 1), (1, 1), (0, 0)])
def test_books_that_do_not_add_up_cannot_be_built(discovered: int, analyzed: int) -> None:
    skip = Skip(item="x", reason=SkipReason.TARGET)
    with pytest.raises(ValidationError):
        Tally(discovered=discovered, analyzed=analyzed, skipped=(skip,), failed=())


def test_what_is_a_gap_and_what_is_not() -> None:
    def gaps(*skips: Skip, failed: int = 0, analyzed: int = 1) -> tuple[str, ...]:
        tally = Tally(
            discovered=analyzed + sum(s.count for s in skips) + failed,
            analyzed=analyzed,
            skipped=skips,
            failed=tuple(Failure(item=str(n)) for n in range(failed)),
        )
        return Coverage(subjects={"tools": tally}, floors=(Floor(what="any", subjects=("tools", "absent")),)).gaps()

    assert gaps() == ()
    assert gaps(Skip(item="x", reason=SkipReason.OPERATOR)) == ()
    assert len(gaps(Skip(item="x", reason=SkipReason.TARGET), Skip(item="y", reason=SkipReason.LIMIT, count=2))) == 2
    assert len(gaps(failed=2)) == 2
    assert gaps(analyzed=0) == ("any: 0 analyzed, at least 1 needed",)


def test_confirmed_needs_its_confirmation_with_two_nonces() -> None:
    with pytest.raises(ValidationError):
        _finding(evidence_level=EvidenceLevel.CONFIRMED)
    with pytest.raises(ValidationError):
        Confirmation(payload="p", nonces=("one",), control="c")
    proof = Confirmation(payload="p", nonces=("one", "two"), control="c")
    with pytest.raises(ValidationError):
        _finding(confirmation=proof)
    assert _finding(evidence_level=EvidenceLevel.CONFIRMED, confirmation=proof).confirmation == proof


def test_the_identity_of_a_finding_holds_no_call_and_no_line() -> None:
    one = _finding(location=Location(tool="t", call="c1", line=3), severity=Severity.LOW)
    other = _finding(location=Location(tool="t", call="c2", line=9))
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint != _finding(fact="g").fingerprint
    with pytest.raises(ValidationError):
        Finding.model_validate(one.model_dump() | {"id": "F-0000000000000000"})


def test_an_analyzer_that_did_not_run_has_no_findings_and_every_other_status_a_reason() -> None:
    with pytest.raises(ValidationError):
        AnalyzerResult(name="a", version="1", status=AnalyzerStatus.SKIPPED, reason="r", findings=(_finding(),))
    with pytest.raises(ValidationError):
        AnalyzerResult(name="a", version="1", status=AnalyzerStatus.PARTIAL)
