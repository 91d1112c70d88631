"""Clean lives of a target that take the place of the one at hand: each in a task of its own, and one begun ahead.

A start takes seconds, nearly all of them the target's own. A plan that asked for one clean life mostly asks for more,
so the next one is started and greeted while this one is used, and what is over comes to its end while the plan goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import anyio
import anyio.abc

from harness.model.errors import HarnessError, TargetError
from harness.model.options import RunOptions
from harness.model.plan import Action
from harness.model.world import World
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.session import Session, open_session
from harness.pipeline.wire import spoken_to
from harness.pipeline.worlds import Worlds
from harness.protocol.handshake import Greeting, greet
from harness.protocol.session import RawSession
from harness.sandbox.base import LaunchSpec, Sandbox


class Life:
    """One life. `greeted` is set once it was greeted or came to nothing; `gone` once nothing of it runs."""

    def __init__(self, name: str, spec: LaunchSpec, world: World | None) -> None:
        self.name, self.spec, self.world = name, spec, world
        self.session: Session | None = None
        self.raw: RawSession | None = None
        self.greeting = Greeting()
        self.greeted = anyio.Event()
        self.gone = anyio.Event()
        self._taken = False
        self._over = anyio.Event()
        self._error: Exception | None = None

    @property
    def usable(self) -> bool:
        """It was greeted, and goes on."""
        said = self.greeting.failure is None and self.greeting.era is not None
        return said and self.raw is not None and self.raw.closed is None and not self.gone.is_set()

    async def take(self) -> None:
        """It is used from now on, once it was greeted. Raises what its start raised."""
        await self.greeted.wait()
        self._taken = True
        if self._error is not None:
            raise self._error

    def leave(self) -> None:
        """It is not needed any more: it comes to its end by itself, its greeting first."""
        self._over.set()

    async def end(self) -> None:
        """The same, and wait for it."""
        self.leave()
        await self.gone.wait()

    async def run(
        self,
        sandbox: Sandbox,
        bundle: BundleWriter,
        entropy: Entropy,
        options: RunOptions,
        start: Action,
        deadline: float,
    ) -> None:
        """Live, until `leave`. Raises EngineError and TargetError where it was taken, else `take` does."""
        try:
            async with AsyncExitStack() as stack:
                self.session = await stack.enter_async_context(
                    open_session(
                        self.name,
                        sandbox,
                        self.spec,
                        bundle,
                        entropy,
                        options,
                        number=start.attempt,
                        why=start.why,
                        guess=start.guess,
                    )
                )
                self.raw = await stack.enter_async_context(spoken_to(self.session, options, start.adjustment))
                with anyio.move_on_at(deadline):
                    self.greeting = await greet(
                        self.raw, start_timeout=options.start_timeout, call_timeout=options.call_timeout
                    )
                self.greeted.set()
                await self._over.wait()
        except (HarnessError, ExceptionGroup) as error:
            if self._taken:
                raise
            self._error = error
        finally:
            self.greeted.set()
            self.gone.set()


class Lives:
    """Made for one run."""

    def __init__(
        self, sandbox: Sandbox, bundle: BundleWriter, entropy: Entropy, options: RunOptions, worlds: Worlds
    ) -> None:
        self._sandbox, self._bundle, self._entropy, self._options = sandbox, bundle, entropy, options
        self._worlds = worlds
        self._begun = 0
        self._spare: Life | None = None

    def begin(self, tasks: anyio.abc.TaskGroup, start: Action, spec: LaunchSpec, deadline: float) -> Life:
        """Start a life in `tasks` as `start` says, without waiting for it."""
        self._begun += 1
        name = f"again-{self._begun}"
        world, spec = self._worlds.into(name, spec)
        life = Life(name, spec, world)
        tasks.start_soon(life.run, self._sandbox, self._bundle, self._entropy, self._options, start, deadline)
        return life

    def fresh(
        self, tasks: anyio.abc.TaskGroup, start: Action, spec: LaunchSpec, deadline: float
    ) -> Callable[[], Awaitable[Life]]:
        """Begin a life, or choose the one begun ahead; returns what waits until it was greeted, well or not.

        That raises EngineError and TargetError. From the second on, the next one is begun then.
        """
        spare, self._spare = self._spare, None
        if spare is not None and (not _alike(spare.spec, spec) or spare.gone.is_set()):
            spare.leave()
            spare = None
        more = self._begun > 0 and not spec.days_ahead  # one with a later clock is the last
        begun = spare or self.begin(tasks, start, spec, deadline)

        async def greeted() -> Life:
            life = begun
            try:
                await life.take()
            except TargetError:
                if not spec.unsealed:
                    raise
                return life  # its installation may be too large to be copied: the planner knows another way
            if spare is not None and not life.usable:  # it may have come to harm while it waited
                life.leave()
                life = self.begin(tasks, start, spec, deadline)
                await life.take()
            if more and life.usable:
                self._spare = self.begin(tasks, start, spec, deadline)
            return life

        return greeted

    def drop(self) -> None:
        """The one begun ahead is not needed."""
        if self._spare is not None:
            self._spare.leave()
            self._spare = None


def _alike(one: LaunchSpec, other: LaunchSpec) -> bool:
    """Whether a life serves in place of another: where its network, its clock and its installation are the same."""
    told = {(spec.network, spec.days_ahead, spec.unsealed) for spec in (one, other)}
    return len(told) == 1
