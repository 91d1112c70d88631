"""Stages in turn: what follows a start, on which ground, and when the session is stopped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.model.options import ActiveLevel, RunOptions
from harness.model.plan import Action, ActionKind, Observation
from harness.model.surface import Surface
from harness.probing.chain import Chain, Ground, Stage
from harness.probing.plan_of_run import plan_of_run
from harness.probing.planner import Planner
from harness.probing.starting import StartPlanner
from tests.unit.probing.conversations import facts

FIRST, LATER = Surface(look="start"), Surface(look="after-calls", instructions="new")


class Script:
    """A stage's plan that does these things whatever comes of them."""

    def __init__(self, *kinds: ActionKind, session: str = "main") -> None:
        self.seen: list[Observation | None] = []
        self._actions = [Action(number=99, kind=kind, session=session) for kind in kinds]

    def next(self, observation: Observation | None) -> Action | None:
        self.seen.append(observation)
        return self._actions.pop(0) if self._actions else None


Answers = dict[ActionKind, dict[str, object]]
GOOD: Answers = {
    ActionKind.START: {"usable": True},
    ActionKind.DISCOVER: {"usable": True, "tools": 2, "surface": FIRST},
    ActionKind.PROBE: {"usable": True},
    ActionKind.RESTART: {"usable": True},
}


def hold(planner: Planner, answers: Answers) -> list[Action]:
    said: list[Action] = []
    seen: Observation | None = None
    while (action := planner.next(seen)) is not None:
        said.append(action)
        assert len(said) < 50
        seen = Observation.model_validate(
            {"number": action.number, "usable": False} | answers.get(action.kind, {}) | {"number": action.number}
        )
    return said


def chain(*stages: Stage) -> Chain:
    return Chain(StartPlanner(RunOptions(stock_client=False), facts(), hold=True), stages)


def always(script: Script, grounds: list[Ground]) -> Callable[[Ground], Planner]:
    def stage(ground: Ground) -> Planner:
        grounds.append(ground)
        return script

    return stage


def kinds(actions: list[Action]) -> list[str]:
    return [action.kind.value for action in actions]


def test_stages_follow_the_start_and_the_session_is_stopped_last() -> None:
    grounds: list[Ground] = []
    first, second = Script(ActionKind.PROBE, ActionKind.PROBE), Script(ActionKind.RESTART)
    said = hold(chain(always(first, grounds), always(second, grounds)), GOOD)
    assert kinds(said) == ["start", "discover", "probe", "probe", "restart", "stop"]
    assert [action.number for action in said] == [1, 2, 3, 4, 5, 6]
    assert grounds[0] == Ground(open=True, usable=True, surface=FIRST, first=FIRST)
    assert first.seen[0] is None and [seen and seen.number for seen in first.seen[1:]] == [3, 4]
    assert second.seen[0] is None


def test_a_stage_with_nothing_to_do_is_left_out() -> None:
    assert kinds(hold(chain(lambda ground: None), GOOD)) == ["start", "discover", "stop"]


def test_a_stage_learns_that_the_session_is_over() -> None:
    grounds: list[Ground] = []
    dead = GOOD | {ActionKind.PROBE: {"usable": False}}
    said = hold(chain(always(Script(ActionKind.PROBE), grounds), always(Script(), grounds)), dead)
    assert grounds[1].open and not grounds[1].usable
    assert kinds(said)[-1] == "stop"


def test_another_look_is_the_newest_surface_and_the_first_is_kept() -> None:
    grounds: list[Ground] = []
    looked = GOOD | {ActionKind.LOOK: {"usable": True, "surface": LATER}}
    hold(chain(always(Script(ActionKind.LOOK), grounds), always(Script(), grounds)), looked)
    assert (grounds[1].surface, grounds[1].first) == (LATER, FIRST)


def test_a_look_in_another_session_leaves_the_ground_alone() -> None:
    grounds: list[Ground] = []
    looked = GOOD | {ActionKind.LOOK: {"usable": False, "surface": LATER}}
    hold(chain(always(Script(ActionKind.LOOK, session="second"), grounds), always(Script(), grounds)), looked)
    assert grounds[0] == grounds[1]


def test_nothing_follows_a_server_that_never_answered() -> None:
    silent: Answers = {ActionKind.START: {"usable": True}, ActionKind.STOP: {"silent": True}}
    grounds: list[Ground] = []
    said = hold(chain(always(Script(ActionKind.PROBE), grounds)), silent)
    assert grounds == [] and "probe" not in kinds(said)


def test_a_server_without_tools_is_started_again_when_the_attempts_are_over() -> None:
    grounds: list[Ground] = []
    bare = GOOD | {ActionKind.DISCOVER: {"usable": True, "tools": 0, "surface": FIRST}}
    said = hold(chain(always(Script(ActionKind.PROBE), grounds)), bare)
    assert kinds(said)[-4:] == ["start", "discover", "probe", "stop"]
    assert kinds(said).count("stop") == kinds(said).count("start")
    assert grounds[0].usable


@pytest.mark.parametrize("answers", [GOOD, {ActionKind.START: {"usable": True}}])
def test_at_level_none_the_plan_is_that_of_the_start(answers: Answers) -> None:
    options = RunOptions(active=ActiveLevel.NONE)
    assert hold(plan_of_run(options, facts()), answers) == hold(StartPlanner(options, facts()), answers)
