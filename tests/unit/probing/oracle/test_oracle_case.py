"""A case as a conversation: what it needs next, how it ends, and how a payload becomes smaller."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.call import Call, OpenedFile, Outcome, Purpose
from harness.model.payload import Boundary, BoundaryKind, Effect, EffectKind, PayloadClass
from harness.probing.oracle.case import CONFIRMATIONS, MINIMISATIONS, Case, Stage, at
from harness.probing.oracle.minimise import Minimiser
from tests.unit.probing.oracle.tape import DATA, INNER, NONCES, OUTSIDE, call, created, world

WORLDS = [world(f"w{number}") for number in range(6)]


def path(nonce: str) -> str:
    return f"{OUTSIDE}/made-{nonce}"


def made(
    number: int,
    purpose: Purpose,
    *,
    where: int = 0,
    about: str = "c0",
    value: str = "",
    boundary: Boundary | None = DATA,
    effect: Effect | None = None,
    kind: PayloadClass = PayloadClass.COMMAND_INJECTION,
) -> Call:
    nonce = NONCES[number % 5] if number < 5 else f"{number:016}"
    return call(
        f"c{number}",
        purpose,
        {"name": value or f"x y; touch {path(nonce)} # z"},
        effect or created(path(nonce)),
        nonce=nonce,
        here=WORLDS[where],
        about=about if number else "",
        boundary=boundary,
        kind=kind,
    )


def came(call: Call, *, works: bool, state: str = "answered", complete: bool = True) -> Outcome:
    files = tuple(OpenedFile(path=e.path, how="create", seq=9) for e in call.effects if works and e.path)
    return Outcome.model_validate({"call": call.id, "state": state, "files": files, "complete": complete})


def opened(**more: object) -> Case:
    first = made(0, Purpose.PAYLOAD, **more)  # type: ignore[arg-type]
    case = Case.open(first, came(first, works=True), WORLDS[0])
    assert case is not None
    return case


def take(case: Case, number: int, *, works: bool, where: int = 0, **more: object) -> None:
    need = case.next()
    assert need is not None and need.about == "c0"
    one = made(number, need.purpose, where=where, value=(need.value or "").replace(NONCES[0], f"{number:016}"))
    case.take(one, came(one, works=works, **more), WORLDS[where])  # type: ignore[arg-type]


def purpose(case: Case) -> tuple[Purpose, bool]:
    need = case.next()
    assert need is not None and need == case.next()
    return need.purpose, need.clean


def test_a_proof_takes_two_controls_and_two_clean_starts() -> None:
    case = opened()
    assert purpose(case) == (Purpose.CONTROL, False)
    take(case, 1, works=False)
    assert purpose(case) == (Purpose.DOCUMENTED, False)
    take(case, 2, works=False)
    for number in range(CONFIRMATIONS):
        assert purpose(case) == (Purpose.CONFIRM, True)
        take(case, 3 + number, works=True, where=1 + number)
    assert purpose(case) == (Purpose.MINIMISE, False)
    assert (case.seen, case.tried) == (3, 3)
    case.cannot()
    assert case.stage is Stage.CONFIRMED and case.next() is None


def test_it_costs_less_than_it_is_worth() -> None:
    case, calls = opened(), 0
    while (need := case.next()) is not None:
        calls += 1
        quiet = need.purpose in (Purpose.CONTROL, Purpose.DOCUMENTED)
        where = min(calls, 5) if need.clean else 0
        take(case, 10 + calls, works=not quiet and need.purpose is not Purpose.MINIMISE, where=where)
    assert case.stage is Stage.CONFIRMED
    assert calls <= 2 + CONFIRMATIONS + MINIMISATIONS


def test_a_smaller_payload_is_asked_for_with_the_opening_call_s_nonce() -> None:
    case = opened()
    for number in (1, 2):
        take(case, number, works=False)
    for number in (3, 4):
        take(case, number, works=True, where=number)
    before = case.value
    assert before is not None and NONCES[0] in before
    while (need := case.next()) is not None:
        assert need.value is not None and path(NONCES[0]) in need.value and len(need.value) < len(before)
        take(case, 20, works="touch" in need.value and ";" in need.value)
    assert case.value is not None and len(case.value) < len(before) and "; touch" in case.value


@pytest.mark.parametrize(
    ("works", "state", "stage"),
    [
        ((True,), "answered", Stage.UNCONTROLLED),
        ((False, True), "answered", Stage.GRANTED),
        ((False, False, False), "answered", Stage.SEEN),
        ((False, False, True, False), "answered", Stage.SEEN),
    ],
)
def test_it_ends_where_something_does_not_hold(works: tuple[bool, ...], state: str, stage: Stage) -> None:
    case = opened()
    for number, shows in enumerate(works, 1):
        take(case, number, works=shows, where=number if number > 2 else 0, state=state)
    assert case.stage is stage and case.over


def test_a_control_without_a_clear_end_is_made_once_more() -> None:
    case = opened()
    take(case, 1, works=False, state="timeout")
    assert purpose(case) == (Purpose.CONTROL, False)
    take(case, 2, works=False, complete=False)
    assert case.stage is Stage.UNCONTROLLED


@pytest.mark.parametrize(("where", "number"), [(0, 3), (1, 0)])
def test_the_same_world_or_nonce_confirms_nothing(where: int, number: int) -> None:
    case = opened()
    take(case, 1, works=False)
    take(case, 2, works=False)
    one = made(number, Purpose.CONFIRM, where=where).model_copy(update={"id": "c9", "about": "c0"})
    case.take(one, came(one, works=True), WORLDS[where])
    assert case.stage is Stage.SEEN


def test_what_cannot_be_proven_costs_no_clean_start() -> None:
    weak = opened(effect=Effect(kind=EffectKind.OPENED, path=path("x")))
    take(weak, 1, works=False)
    assert weak.stage in (Stage.DOCUMENTED, Stage.SEEN)
    if not weak.over:
        take(weak, 2, works=False)
    assert weak.stage is Stage.SEEN
    assert opened(boundary=None).stage is Stage.CAPABILITY
    assert opened(boundary=INNER).stage is Stage.CAPABILITY
    assert opened(boundary=Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="")).stage is Stage.SEEN
    assert opened(boundary=None, kind=PayloadClass.EXHAUSTION).stage is Stage.SEEN


def test_only_payloads_with_an_effect_open_a_case() -> None:
    first = made(0, Purpose.PAYLOAD)
    assert Case.open(first, came(first, works=False), WORLDS[0]) is None
    control = made(1, Purpose.CONTROL)
    assert Case.open(control, came(control, works=True), WORLDS[0]) is None


def test_calls_of_others_are_refused() -> None:
    case = opened()
    for stray in (made(1, Purpose.CONFIRM), made(1, Purpose.CONTROL, about="c7")):
        with pytest.raises(ValueError, match="did not ask"):
            case.take(stray, came(stray, works=False), WORLDS[0])


def test_without_means_it_ends() -> None:
    case = opened()
    case.cannot()
    assert case.stage is Stage.UNCONTROLLED
    later = opened()
    take(later, 1, works=False)
    take(later, 2, works=False)
    later.cannot()
    assert later.stage is Stage.SEEN


@given(st.text("ab;| $\n", max_size=30), st.text("ab;| $\n", max_size=30))
def test_making_smaller_ends_with_something_that_works_and_keeps_what_must_stay(before: str, after: str) -> None:
    value = f"{before};KEEP{after}"
    minimiser = Minimiser(value, ["KEEP"], 200)
    asked = 0
    while (smaller := minimiser.next()) is not None:
        asked += 1
        assert "KEEP" in smaller and len(smaller) < len(value)
        minimiser.take(seen=";KEEP" in smaller)
    assert asked <= 200 and ";KEEP" in minimiser.best
    with pytest.raises(ValueError, match="nothing was asked"):
        minimiser.take(seen=True)


def test_pointers() -> None:
    value = {"a/b": [{"c~d": "x"}]}
    assert at(value, "/a~1b/0/c~0d") == "x" and at(value, "") == value
    assert at(value, "/a~1b/7") is None and at(None, "/a") is None
