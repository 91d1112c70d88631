"""Which lives get a world of their own, and that one prepared ahead is the one that is lived in."""

from __future__ import annotations

from typing import Any, cast

import pytest

from harness.model.call import WorldEvent
from harness.model.options import ActiveLevel, RunOptions
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.workspace import WORKSPACE, planted_files
from harness.pipeline.worlds import Worlds
from harness.sandbox.base import LaunchSpec


class Told:
    """A bundle that keeps what is recorded."""

    def __init__(self) -> None:
        self.events: list[WorldEvent] = []

    def record(self, event: WorldEvent) -> int:
        self.events.append(event)
        return len(self.events)


def worlds(active: ActiveLevel) -> tuple[Worlds, Told]:
    told = Told()
    allow: dict[str, Any] = {"allow": ("*",)} if active is ActiveLevel.TOOL_CALLS else {}
    return Worlds(cast("BundleWriter", told), Entropy(), RunOptions(active=active, **allow)), told


def started(*argv: str, **more: Any) -> LaunchSpec:
    return LaunchSpec(image="base", volume=None, argv=("server", *argv), seed=planted_files(), **more)


def test_each_life_has_its_own_where_calls_are_made() -> None:
    made, told = worlds(ActiveLevel.TOOL_CALLS)
    one, spec = made.into("main", started())
    other, _ = made.into("stock-client", started())
    assert one is not None and other is not None and one.nonce != other.nonce
    assert "workspace/project/.git/HEAD" in spec.seed
    assert [event.session for event in told.events] == ["main", "stock-client"]


def test_one_that_was_prepared_is_the_one_that_is_lived_in_once() -> None:
    made, told = worlds(ActiveLevel.TOOL_CALLS)
    prepared = made.ahead("second", started())
    assert told.events == []  # a life that never begins has none
    _, spec = made.into("second", started())
    assert spec == prepared
    assert made.into("second", started())[1] != prepared


@pytest.mark.parametrize("place", ["project", "project/", "project/plan.txt", "data/garden.db", "vault", "vault/deep"])
def test_a_start_that_names_what_only_a_world_has_gets_one_at_any_level(place: str) -> None:
    made, told = worlds(ActiveLevel.SAFE)
    world, spec = made.into("main", started(f"--place={WORKSPACE}/{place}"))
    named = f"workspace/{place.rstrip('/')}"
    assert any(path == named or path.startswith(f"{named}/") for path in spec.seed)
    assert world is not None and len(told.events) == 1
    assert made.into("main", started(environment={"PLACE": f"{WORKSPACE}/{place}"}))[0] is not None


@pytest.mark.parametrize("place", ["", "/", "/new.db", "/todo.txt", "/data", "/data/sales.csv", "_backup"])
def test_any_other_start_gets_none_where_nothing_is_called(place: str) -> None:
    made, told = worlds(ActiveLevel.SAFE)
    spec = started(f"{WORKSPACE}{place}")
    assert made.into("main", spec) == (None, spec)
    assert made.ahead("main", spec) == spec and told.events == []


def test_what_the_operator_planted_there_is_the_operators() -> None:
    made, _ = worlds(ActiveLevel.SAFE)
    spec = started(f"{WORKSPACE}/project").model_copy(update={"seed": {"workspace/project/mine": b"mine"}})
    assert made.into("main", spec)[0] is None
