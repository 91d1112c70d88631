"""A finding is CONFIRMED only with every one of its conditions: the whole proof, and each way to lack a piece of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.call import Purpose
from harness.model.finding import EvidenceLevel, Finding, Severity
from harness.model.payload import Boundary, BoundaryKind
from harness.model.recording import Grade
from tests.unit.probing.oracle.scripts import Part, Script
from tests.unit.probing.oracle.tape import DATA, INNER, NONCES, ROOTED


def only(script: Script) -> Finding:
    (finding,) = script.tape().judge().findings
    return finding


def test_the_whole_proof_is_confirmed_and_points_to_its_events() -> None:
    tape = Script().tape()
    (finding,) = tape.judge().findings
    assert finding.evidence_level is EvidenceLevel.CONFIRMED
    assert (finding.rule_id, finding.cwe, finding.severity) == ("injection.command", 78, Severity.CRITICAL)
    assert finding.confirmation is not None
    assert finding.confirmation.nonces == NONCES[3:5]
    kinds = {evidence.kind: tape.events[(evidence.seq or 0) - 1].kind for evidence in finding.evidence}
    assert kinds == {
        "boundary": "boundaries",
        "call": "call",
        "syscall": "syscall",
        "state": "world",
        "control": "call",
        "documented": "call",
    }


def test_a_control_that_timed_out_and_was_made_once_more_does_not_spoil_the_proof() -> None:
    hung = Script().change(2, state="timeout")
    first = hung.parts[1]
    again = replace(first, id="c2b", nonce="5" * 20, state="answered")
    retried = replace(hung, parts=(*hung.parts[:2], again, *hung.parts[2:]))
    assert only(hung).evidence_level is EvidenceLevel.DYNAMIC
    assert only(retried).evidence_level is EvidenceLevel.CONFIRMED


SPOILT: dict[str, tuple[Script, str]] = {
    "no boundary told": (replace(Script(), boundaries=()), "boundary was not recorded"),
    "boundary told after the calls": (replace(Script(), boundaries_late=True), "boundary was not recorded"),
    "another boundary told": (replace(Script(), boundaries=(ROOTED,)), "boundary was not recorded"),
    "boundary without a source": (
        replace(
            Script(boundaries=(bare := Boundary(kind=BoundaryKind.DATA_NOT_CODE, source=""),)),
            parts=tuple(replace(part, boundary=bare) for part in Script().parts),
        ),
        "is not one that",
    ),
    "a boundary of another tool": (
        replace(
            Script(boundaries=(foreign := Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="s", tool="other"),)),
            parts=tuple(replace(part, boundary=foreign) for part in Script().parts),
        ),
        "is not one that",
    ),
    "a list from nowhere": (
        replace(
            Script(boundaries=(loose := Boundary(kind=BoundaryKind.ALLOWLIST, source="", value="ls"),)),
            parts=tuple(replace(part, boundary=loose) for part in Script().parts),
        ),
        "is not one that",
    ),
    "confirmed over another boundary": (
        replace(
            Script(boundaries=(DATA, listed := Boundary(kind=BoundaryKind.ALLOWLIST, source="s", value="ls"))),
            parts=tuple(
                replace(part, boundary=listed) if part.purpose is Purpose.CONFIRM else part for part in Script().parts
            ),
        ),
        "crosses another boundary",
    ),
    "no control": (Script().without(2), "no control was tried"),
    "no documented use": (Script().without(3), "no documented use was tried"),
    "a control that timed out": (Script().change(2, state="timeout"), "control came to no clear end"),
    "a control that was never sent": (Script().change(2, state="unsent"), "control came to no clear end"),
    "a control without marks": (Script().change(2, marked=False), "control came to no clear end"),
    "a control that predicts nothing": (Script().change(2, predicted=False), "says nothing about this effect"),
    "a control of another tool": (Script().change(2, item="other"), "is a call of something else"),
    "a control in another network": (
        Script().change(2, session="again-0", world="w0", network="refuse"),
        "another network mode",
    ),
    "documented use that crashed": (Script().change(3, state="closed"), "documented use came to no clear end"),
    "documented use that predicts nothing": (Script().change(3, predicted=False), "says nothing about this effect"),
    "a lossy record under the controls": (replace(Script(), lost=frozenset({"main"})), "came to no clear end"),
    "only one confirmation": (Script().without(5), "not seen again in 2 clean starts"),
    "no confirmation": (Script().without(5).without(4), "not seen again in 2 clean starts"),
    "the second confirmation fails": (Script().change(5, works=False), "did not show again"),
    "the first confirmation fails": (Script().change(4, works=False), "did not show again"),
    "one nonce twice": (Script().change(5, nonce=NONCES[3]), "share a nonce or a start"),
    "one world twice": (Script().change(5, world="w2"), "share a nonce or a start"),
    "one session for both": (Script().change(5, session="", world=""), "from a clean start"),
    "a start that is not clean": (Script().change(5, dirty=True), "clean start"),
    "confirmed in the dirty session": (Script().change(4, session=""), "clean start"),
    "another payload": (Script().change(5, payload="command-injection/pipe"), "another payload"),
    "another tool": (Script().change(5, item="other"), "another payload"),
    "another network for one try": (Script().change(5, network="refuse"), "network mode"),
    "an unplanned prediction": (Script().change(5, planned=False), "not in the plan"),
    "a claimed path": (Script().change(5, claimed=True), "told by the target's memory"),
    "a confirmation without a prediction": (Script().change(5, predicted=False), "did not show again"),
    "a record that can be tampered with": (replace(Script(), grade=Grade.TAMPERABLE), "were not recorded"),
    "no record": (replace(Script(), grade=Grade.NONE), "were not recorded"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_without_one_condition_it_stays_dynamic_and_says_why(name: str) -> None:
    script, why = SPOILT[name]
    for finding in script.tape().judge().findings:
        assert finding.evidence_level is not EvidenceLevel.CONFIRMED
    (finding, *_) = script.tape().judge().findings
    assert finding.evidence_level is EvidenceLevel.DYNAMIC
    assert why in finding.description
    assert finding.confirmation is None


def test_without_worlds_there_is_no_effect_at_all() -> None:
    assert replace(Script(), worlds=False).tape().judge().findings == ()


def test_a_control_with_the_effect_makes_it_unspecific() -> None:
    finding = only(Script().change(2, works=True))
    assert (finding.evidence_level, finding.severity) == (EvidenceLevel.DYNAMIC, Severity.LOW)
    assert "an inert control" in finding.description


def test_documented_use_with_the_effect_makes_it_a_capability() -> None:
    finding = only(Script().change(3, works=True))
    assert (finding.rule_id, finding.severity) == ("capability.commands", Severity.INFO)


@pytest.mark.parametrize("boundary", [None, Boundary(kind=BoundaryKind.NONE, source="none"), INNER])
def test_without_a_boundary_it_is_a_capability(boundary: Boundary | None) -> None:
    parts = tuple(replace(part, boundary=boundary) for part in Script().parts)
    finding = only(replace(Script(), parts=parts))
    assert (finding.rule_id, finding.severity) == ("capability.commands", Severity.INFO)


def test_seen_once_says_so() -> None:
    script = Script().change(4, works=False).without(5)
    assert "Seen once of 2 times" in only(script).description
    assert "Seen 2 of 3 times" in only(Script().change(5, works=False)).description
    assert "Seen once;" in only(replace(Script(), parts=Script().parts[:1])).description


def test_a_failed_confirmation_never_erases_what_was_seen() -> None:
    finding = only(Script().change(4, works=False).change(5, works=False))
    assert finding.evidence_level is EvidenceLevel.DYNAMIC
    assert finding.severity is Severity.CRITICAL


def test_the_finding_is_the_same_whatever_the_nonces() -> None:
    other = Script()
    for number, nonce in enumerate(("9" * 16, "8" * 16, "7" * 16, "6" * 16, "5" * 16), 1):
        other = other.change(number, nonce=nonce)
    assert only(other).fingerprint == only(Script()).fingerprint
    assert only(Script().without(2)).fingerprint == only(Script()).fingerprint


parts = st.lists(st.sampled_from(range(1, 6)), unique=True)


@given(st.permutations(Script().parts), parts)
def test_a_recording_that_lacks_a_piece_is_never_confirmed(order: list[Part], gone: list[int]) -> None:
    """Any order of any part of the calls: only whole proofs whose clean starts are whole may be CONFIRMED."""
    kept = tuple(part for n, part in enumerate(order, 1) if n not in gone)
    confirmed = [
        finding
        for finding in replace(Script(), parts=kept).tape().judge().findings
        if finding.evidence_level is EvidenceLevel.CONFIRMED
    ]
    purposes = [part.purpose for part in kept]
    whole = len(kept) == 5 and purposes.count(Purpose.CONFIRM) == 2
    assert not confirmed or whole


@given(
    st.integers(1, 5),
    st.sampled_from(
        [
            {"works": None},
            {"nonce": NONCES[0]},
            {"planned": False},
            {"boundary": ROOTED},
            {"state": "unsent"},
            {"about": "c99"},
            {"predicted": False},
        ]
    ),
)
def test_spoiling_any_part_in_any_way_unproves_it(number: int, change: dict[str, object]) -> None:
    part = Script().parts[number - 1]
    if change.get("works", 1) is None:
        change = {"works": not part.works}
    harmless = {
        # The finding call's own words count no more than that it was seen; what proves comes after it.
        1: ({"nonce": NONCES[0]}, {"planned": False}, {"about": "c99"}, {"state": "unsent"}),
        # Of controls what counts is that they were made, could have shown it, and did not.
        2: ({"nonce": NONCES[0]}, {"planned": False}, {"boundary": ROOTED}),
        3: ({"nonce": NONCES[0]}, {"planned": False}, {"boundary": ROOTED}),
        # A nonce that only the finding call had: the two confirmations still have one each.
        4: ({"nonce": NONCES[0]},),
        5: ({"nonce": NONCES[0]},),
    }[number]
    if change in harmless:
        return
    for finding in Script().change(number, **change).tape().judge().findings:
        assert finding.evidence_level is not EvidenceLevel.CONFIRMED


def test_data_is_what_the_script_crosses() -> None:
    assert Script().boundaries == (DATA,)
