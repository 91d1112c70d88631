"""Executes the planner's actions against the sandbox and appends what came of them to the recording.

It judges nothing: an action's observation says only whether the session can go on.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import anyio.abc

from harness.model.options import RunOptions
from harness.model.plan import Action, ActionKind, Observation
from harness.model.recording import Phase, StockClientEvent
from harness.model.surface import Surface
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.progress import Progress
from harness.pipeline.session import Session, open_session
from harness.probing.planner import Planner
from harness.protocol.observe import observe
from harness.protocol.stock_client import StockClient
from harness.sandbox.base import LaunchSpec, Sandbox

#: Added to the harness' own deadline before the warden's strikes: the harness' is the one that gets recorded.
WARDEN_MARGIN_SECONDS = 15.0

#: How much longer than the main session the background work may take.
BACKGROUND_SECONDS = 10.0


class Driver:
    """Drives one target. `stock_client`: the prestarted SDK client, or None when it is not to be tried."""

    def __init__(
        self,
        sandbox: Sandbox,
        spec: LaunchSpec,
        bundle: BundleWriter,
        entropy: Entropy,
        options: RunOptions,
        progress: Progress,
        stock_client: StockClient | None,
    ) -> None:
        self._sandbox = sandbox
        self._spec = spec
        self._bundle = bundle
        self._entropy = entropy
        self._options = options
        self._progress = progress
        self._stock_client = stock_client
        self._session: Session | None = None
        self._surface: Surface | None = None
        self._looked = anyio.Event()

    async def run(self, planner: Planner, seconds: float) -> None:
        """Follow the plan for at most `seconds`. Raises EngineError; the target's doings are recorded instead."""
        deadline = anyio.current_time() + seconds
        self._spec = self._spec.model_copy(update={"deadline_seconds": seconds + WARDEN_MARGIN_SECONDS})
        async with anyio.create_task_group() as background, AsyncExitStack() as session:
            observation: Observation | None = None
            while (action := planner.next(observation)) is not None:
                self._bundle.plan(action)
                if action.background:
                    background.start_soon(self._background, action, deadline)
                    observation = Observation(number=action.number, usable=True)
                    continue
                observation = await self._execute(action, session, deadline, seconds)
            self._looked.set()
            background.cancel_scope.deadline = anyio.current_time() + BACKGROUND_SECONDS

    async def _execute(self, action: Action, stack: AsyncExitStack, deadline: float, seconds: float) -> Observation:
        match action.kind:
            case ActionKind.START:
                self._progress.phase(Phase.START)
                self._session = await stack.enter_async_context(
                    open_session("main", self._sandbox, self._spec, self._bundle, self._entropy, self._options)
                )
                return Observation(number=action.number, usable=True)
            case ActionKind.DISCOVER if self._session is not None:
                await self._discover(self._session, deadline, seconds)
                self._looked.set()
                return Observation(number=action.number, usable=self._surface is not None)
            case ActionKind.STOP:
                self._progress.phase(Phase.STOP)
                await stack.aclose()
                self._session = None
                return Observation(number=action.number, usable=False)
            case _:
                raise AssertionError(f"the driver has no way to do {action.kind}")

    async def _discover(self, session: Session, deadline: float, seconds: float) -> None:
        async def enter(phase: str) -> None:
            self._progress.phase(phase)
            await session.enter(phase)

        with anyio.move_on_at(deadline) as scope:
            self._surface = await observe(
                session.process.stdin,
                session.process.stdout,
                self._bundle,
                options=self._options,
                phase_hook=enter,
                session=session.name,
            )
            self._bundle.surface(self._surface)
            self._progress.note(f"{len(self._surface.items)} items declared")
        if scope.cancelled_caught:
            session.deadline("run", seconds)

    async def _background(self, action: Action, deadline: float) -> None:
        """The stock client's try, in a life of the target of its own."""
        if self._stock_client is None:
            return
        event = StockClientEvent(phase=Phase.DISCOVER, works=None, error="not finished in time")
        try:
            with anyio.move_on_at(deadline):
                event = await self._stock_session(self._stock_client, action.session)
        finally:
            self._bundle.record(event.model_copy(update={"session": action.session, "phase": Phase.DISCOVER}))

    async def _stock_session(self, client: StockClient, name: str) -> StockClientEvent:
        """Start at once, and let the client in when it is known how the server wants to be greeted.

        Left to itself, the SDK waits ten seconds for an answer to `server/discover` before it tries `initialize`.
        """
        async with open_session(name, self._sandbox, self._spec, self._bundle, self._entropy, self._options) as session:
            await self._looked.wait()
            if self._surface is None or self._surface.era is None:
                return StockClientEvent(phase=Phase.DISCOVER, works=None, error="not tried: the server never answered")
            await session.enter(Phase.DISCOVER)
            return await client.check(
                session.process.stdin,
                session.process.stdout,
                timeout=self._options.start_timeout,
                era=self._surface.era,
                sink=self._bundle,
                session=name,
            )
