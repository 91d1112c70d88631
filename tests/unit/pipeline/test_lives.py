"""Which life takes the place of the one at hand, and when one is begun ahead; real lives are lived in tests/e2e."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.abc
import pytest

from harness.model.errors import EngineError
from harness.model.options import NetworkChoice, RunOptions
from harness.model.plan import Action, ActionKind
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.lives import Life, Lives
from harness.pipeline.worlds import Worlds
from harness.protocol.handshake import Greeting
from harness.sandbox.base import LaunchSpec, Sandbox

pytestmark = pytest.mark.anyio
SPEC = LaunchSpec(image="python313", volume=None, argv=("server",), network=NetworkChoice.ANSWER)
START = Action(number=1, kind=ActionKind.START, session="again", prediction="it starts")
NOTHING = cast("anyio.abc.TaskGroup", None)


class Begun(Lives):
    """Lives that are greeted at once, without a target; `ill` are the numbers of those that are not."""

    def __init__(self, *ill: int, error: Exception | None = None) -> None:
        bundle, entropy, options = cast("BundleWriter", None), Entropy(), RunOptions()
        super().__init__(cast("Sandbox", None), bundle, entropy, options, Worlds(bundle, entropy, options))
        self.ill, self.error = ill, error
        self.all: list[Life] = []

    def begin(self, tasks: anyio.abc.TaskGroup, start: Action, spec: LaunchSpec, deadline: float) -> Life:
        self._begun += 1
        life = Life(f"again-{self._begun}", spec, None)
        if self._begun not in self.ill:
            life.greeting = cast("Greeting", SimpleNamespace(failure=None, era="2025-11-25"))
            life.raw = cast("Any", SimpleNamespace(closed=None))
        life._error = self.error
        life.greeted.set()
        self.all.append(life)
        return life

    async def take(self, spec: LaunchSpec = SPEC) -> str:
        return (await self.fresh(NOTHING, START, spec, 0.0)()).name

    def left(self) -> list[str]:
        return [life.name for life in self.all if life._over.is_set()]


async def test_from_the_second_on_the_next_one_is_begun_ahead() -> None:
    lives = Begun()
    assert await lives.take() == "again-1" and len(lives.all) == 1
    assert await lives.take() == "again-2" and len(lives.all) == 3
    assert await lives.take() == "again-3" and len(lives.all) == 4, "the one begun ahead"
    assert lives.left() == []
    lives.drop()
    lives.drop()
    assert lives.left() == ["again-4"]


@pytest.mark.parametrize("other", [{"network": NetworkChoice.REFUSE}, {"days_ahead": 400}])
async def test_one_that_was_begun_for_another_network_or_clock_is_left(other: dict[str, Any]) -> None:
    lives = Begun()
    await lives.take()
    await lives.take()
    assert await lives.take(SPEC.model_copy(update=other)) == "again-4"
    assert lives.left() == ["again-3"]
    assert len(lives.all) == (4 if "days_ahead" in other else 5), "one with a later clock is the last"


async def test_one_that_came_to_harm_while_it_waited_is_replaced() -> None:
    lives = Begun(3)
    await lives.take()
    await lives.take()
    assert await lives.take() == "again-4"
    assert lives.left() == ["again-3"]


async def test_one_that_is_gone_is_not_taken() -> None:
    lives = Begun()
    await lives.take()
    await lives.take()
    lives.all[-1].gone.set()
    assert await lives.take() == "again-4"


async def test_a_target_that_is_not_greeted_any_more_gets_no_life_ahead() -> None:
    lives = Begun(2, 3)
    await lives.take()
    assert await lives.take() == "again-2" and len(lives.all) == 2
    assert await lives.take() == "again-3" and len(lives.all) == 3


async def test_what_a_start_raised_is_raised_where_it_is_taken() -> None:
    lives = Begun(error=EngineError("no more containers"))
    with pytest.raises(EngineError, match="no more containers"):
        await lives.take()
