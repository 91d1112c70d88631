"""Placeholders in arguments, and the planner's conversation at level none."""

from __future__ import annotations

from itertools import count

from harness.model.options import RunOptions
from harness.model.plan import ActionKind, Observation
from harness.pipeline.workspace import WORKSPACE, fill, planted_files
from harness.probing.planner import DiscoveryPlanner


def test_placeholders_are_filled_each_canary_afresh() -> None:
    numbers = count()
    token = lambda: f"t{next(numbers)}"  # noqa: E731
    assert fill("{workspace}/a:{canary}:{canary}", token) == f"{WORKSPACE}/a:t0:t1"
    assert fill("{other} {}", token) == "{other} {}"


def test_planted_files_lie_below_the_workspace() -> None:
    assert all(path.startswith("workspace/") for path in planted_files())


def test_the_plan_starts_discovers_and_stops() -> None:
    planner = DiscoveryPlanner(RunOptions())
    first = planner.next(None)
    assert first is not None and first.kind is ActionKind.STOCK_CLIENT and first.background
    seen = []
    action = planner.next(Observation(number=first.number, usable=True))
    while action is not None:
        seen.append((action.number, action.kind))
        action = planner.next(Observation(number=action.number, usable=True))
    assert seen == [(2, ActionKind.START), (3, ActionKind.DISCOVER), (4, ActionKind.STOP)]


def test_a_target_that_did_not_start_is_stopped_without_discovery() -> None:
    planner = DiscoveryPlanner(RunOptions(stock_client=False))
    start = planner.next(None)
    assert start is not None and start.kind is ActionKind.START
    stop = planner.next(Observation(number=start.number, usable=False, detail="exited"))
    assert stop is not None and stop.kind is ActionKind.STOP
    assert planner.next(Observation(number=stop.number, usable=False)) is None
