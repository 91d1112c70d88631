"""Policies as text: what they change, and how mistakes are told."""

from __future__ import annotations

import datetime

import pytest
from assessment_sample import finding, result

from harness.assessment.aggregate import aggregate
from harness.assessment.policy import PRESETS, parse_policy, preset
from harness.model.errors import UsageError
from harness.model.finding import EvidenceLevel, Severity
from harness.model.result import Verdict

TODAY = datetime.date(2026, 6, 1)
BAD = finding()


def suppression(**changes: str) -> str:
    lines = {
        "rule": f'"{BAD.rule_id}"',
        "fingerprint": f'"{BAD.fingerprint}"',
        "location": '{tool = "search"}',
        "reason": '"read on review"',
        "expires": "2026-06-01",
    } | changes
    return "[[suppress]]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items() if value)


def decide(text: str, *findings: object, today: datetime.date | None = TODAY):  # type: ignore[no-untyped-def]
    return aggregate([result(*(findings or (BAD,)))], parse_policy(text, name="p.toml"), today=today)  # type: ignore[arg-type]


def test_an_empty_text_is_the_default_preset_under_another_name() -> None:
    policy = parse_policy("", name="p.toml")
    assert policy.sha256 == PRESETS["balanced"].sha256
    assert policy.facts.name == "p.toml"


def test_the_digest_follows_every_effect() -> None:
    texts = ["", 'preset = "strict"', 'disabled = ["x"]', 'required = ["x"]', '[severity]\nx = "LOW"', suppression()]
    assert len({parse_policy(text, name="p").sha256 for text in texts}) == len(texts)


def test_a_text_changes_what_blocks() -> None:
    assert decide('[blocking]\nseverity = "critical"').verdict is Verdict.SAFE
    assert decide('preset = "permissive"').verdict is Verdict.SAFE
    assert decide('[blocking]\nevidence = "CONFIRMED"').verdict is Verdict.SAFE


def test_a_disabled_rule_leaves_its_findings_out_and_says_so() -> None:
    decision = decide(f'disabled = ["{BAD.rule_id}"]')
    assert (decision.verdict, decision.findings) == (Verdict.SAFE, ())
    assert decision.warnings == (f"rule {BAD.rule_id} is disabled by the policy: 1 left out",)


def test_a_severity_is_overridden_both_ways() -> None:
    assert decide(f'[severity]\n"{BAD.rule_id}" = "low"').findings[0].severity is Severity.LOW
    low = finding(Severity.LOW)
    assert decide(f'[severity]\n"{BAD.rule_id}" = "HIGH"', low).verdict is Verdict.UNSAFE


def test_a_suppressed_finding_stays_and_does_not_block() -> None:
    decision = decide(suppression())
    assert decision.verdict is Verdict.SAFE
    assert decision.findings[0].suppressed_by == "read on review"
    assert decision.warnings == ()


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({"expires": "2026-05-31"}, "expired"),
        ({"location": '{tool = "other"}'}, "matches nothing"),
        ({"rule": '"other.rule"'}, "matches nothing"),
        ({"fingerprint": '"' + "0" * 64 + '"'}, "matches nothing"),
    ],
)
def test_a_suppression_that_does_not_hold_is_reported(changes: dict[str, str], warned: str) -> None:
    decision = decide(suppression(**changes))
    assert decision.verdict is Verdict.UNSAFE
    assert warned in decision.warnings[0]


def test_without_a_clock_no_suppression_holds() -> None:
    assert decide(suppression(), today=None).verdict is Verdict.UNSAFE


def test_proof_found_later_is_not_swallowed() -> None:
    proven = finding(level=EvidenceLevel.CONFIRMED)
    assert proven.fingerprint == BAD.fingerprint
    decision = decide(suppression(), proven)
    assert decision.verdict is Verdict.UNSAFE
    assert "confirmed now" in decision.warnings[0]
    assert decide(suppression(confirmed="true"), proven).verdict is Verdict.SAFE


def test_an_analyzer_cannot_suppress_its_own_finding() -> None:
    claimed = BAD.model_copy(update={"suppressed_by": "me"})
    assert decide("", claimed).verdict is Verdict.UNSAFE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("preset = ", "not TOML"),
        ('preset = "strickt"', "did you mean strict"),
        ("preset = 3", "'preset' is not a text"),
        ('blokcing = {severity = "LOW"}', "unknown key 'blokcing'; did you mean blocking"),
        ('[blocking]\nsevertiy = "LOW"', "unknown key 'blocking.severtiy'; did you mean severity"),
        ('[blocking]\nseverity = "BAD"', "'blocking.severity' is 'BAD'; it is one of INFO, LOW"),
        ("blocking = 3", "'blocking' is not a table"),
        ('[severity]\n"protocol.crash" = "x"', "'severity.protocol.crash' is 'x'"),
        ('disabled = "x"', "'disabled' is not a list of names"),
        ('disabled = ["protocol.crush"]', "unknown rule 'protocol.crush'; did you mean protocol.crash"),
        ('required = ["protocl"]', "unknown analyzer 'protocl'; did you mean protocol"),
        ("suppress = 3", "'suppress' is not a list of tables"),
        (suppression(reason=""), r"'suppress\[0\].reason' is missing"),
        (suppression(reason='" "'), r"'suppress\[0\].reason' is not a text"),
        (suppression(expires='"2026-01-01"'), "is not a date"),
        (suppression(expires="2026-01-01T00:00:00"), "is not a date"),
        (suppression(fingerprint='"F-12"'), "is not 64 hex digits"),
        (suppression(location="{}"), "is not a table"),
        (suppression(location='{tol = "x"}'), "unknown key 'suppress.*tol'; did you mean tool"),
        (suppression(location="{tool = 3}"), "has the wrong type"),
        (suppression(confirmed='"yes"'), "is not true or false"),
        (suppression(ruel='"x"'), "unknown key 'suppress.*ruel'; did you mean rule"),
        ("a = " + "[" * 5000, "not TOML"),
    ],
)
def test_mistakes_name_the_key_and_the_nearest_one(text: str, said: str) -> None:
    rules, analyzers = ["protocol.crash", BAD.rule_id], ["protocol"]
    with pytest.raises(UsageError, match=said) as caught:
        parse_policy(text, name="p.toml", rules=rules, analyzers=analyzers)
    assert "\n" not in str(caught.value)


def test_presets_by_name() -> None:
    assert preset("strict").name == "strict"
    with pytest.raises(UsageError, match="balanced"):
        preset("balnced")
