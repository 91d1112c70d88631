"""Reproduction as a conversation: a clean start, the steps anew, the control, and what each answer means."""

from __future__ import annotations

import pytest

from harness.model.call import Call, OpenedFile, Outcome
from harness.model.plan import Action, ActionKind, Adjustment, Observation
from harness.probing.oracle.again import Recorded, ReproductionPlanner, recorded_of
from tests.unit.probing.oracle.scripts import Script
from tests.unit.probing.oracle.tape import NONCES, OUTSIDE, world

WORLDS = {ActionKind.START: world("fresh"), ActionKind.RESTART: world("anew")}


def recorded() -> Recorded:
    fold = Script().tape().fold()
    fold.finish()
    (judgement,) = fold.confirmed().values()
    found = recorded_of(judgement, fold, {"c4": "told"})
    assert found is not None
    return found


def came(call: Call, *, works: bool, state: str = "answered") -> Outcome:
    files = tuple(OpenedFile(path=effect.path, how="create", seq=5) for effect in call.effects if works)
    return Outcome.model_validate({"call": call.id, "state": state, "files": files})


def converse(planner: ReproductionPlanner, *works: bool, state: str = "answered", dies: bool = False) -> list[Action]:
    """Play the driver: each call shows its effect or not, in turn."""
    actions: list[Action] = []
    shows = list(works)
    seen: Observation | None = None
    while (action := planner.next(seen)) is not None:
        actions.append(action)
        outcome = came(action.call, works=shows.pop(0), state=state) if action.call is not None else None
        usable = action.kind is not ActionKind.CONCLUDE and not (dies and outcome is not None)
        here = WORLDS.get(action.kind)
        seen = Observation(number=action.number, usable=usable, world=here, outcome=outcome)
    return actions


def test_a_bundle_tells_what_to_do() -> None:
    found = recorded()
    assert [call.id for call in found.steps] == ["c4"] and [call.id for call in found.control] == ["c2"]
    assert found.answers == ("told",) and found.boundaries and found.world.nonce == "w2"


def test_the_same_steps_with_everything_fresh() -> None:
    planner = ReproductionPlanner(recorded(), Adjustment(subcommand=("serve",)), "seed")
    actions = converse(planner, True, False)
    kinds = ["start", "discover", "conclude", "call", "restart", "call", "stop"]
    assert [action.kind for action in actions] == kinds
    assert actions[0].adjustment.subcommand == ("serve",) and actions[2].boundaries
    first = actions[3].call
    assert first is not None and first.world == "fresh" and first.nonce not in NONCES
    assert first.effects[0].path == f"{OUTSIDE}/made-{first.nonce}"
    assert first.params["arguments"]["name"] == f"x; touch {OUTSIDE}/made-{first.nonce}"
    control = actions[5].call
    assert control is not None and control.world == "anew", "what the payload left behind is no effect of the control"
    assert planner.reproduced and not planner.problem


@pytest.mark.parametrize("works", [(False, False), (True, True)])
def test_without_the_effect_or_with_it_in_the_control_it_is_not_reproduced(works: tuple[bool, bool]) -> None:
    planner = ReproductionPlanner(recorded(), Adjustment(), "seed")
    converse(planner, *works)
    assert not planner.reproduced and not planner.problem


def test_a_payload_that_ends_the_session_has_its_control_all_the_same() -> None:
    planner = ReproductionPlanner(recorded(), Adjustment(), "seed")
    assert len([a for a in converse(planner, True, False, dies=True) if a.kind is ActionKind.CALL]) == 2
    assert planner.reproduced
    planner = ReproductionPlanner(recorded(), Adjustment(), "seed")
    converse(planner, True, True, dies=True)
    assert planner.controlled and not planner.reproduced


def test_what_was_not_tried_is_said() -> None:
    planner = ReproductionPlanner(recorded(), Adjustment(), "seed")
    converse(planner, False, state="unsent")
    assert planner.problem == "the call could not be made"
    planner = ReproductionPlanner(recorded(), Adjustment(), "seed")
    assert planner.next(None) is not None
    assert planner.next(Observation(number=1, usable=False)) is None
    assert "could not be started" in planner.problem


def test_the_same_seed_gives_the_same_calls() -> None:
    one, two = (converse(ReproductionPlanner(recorded(), Adjustment(), "s"), True, False) for _ in range(2))
    assert one == two
    other = converse(ReproductionPlanner(recorded(), Adjustment(), "t"), True, False)
    assert other != one
