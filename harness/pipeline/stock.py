"""The stock client's try: a second life of the target, started beside the first and greeted when that one was."""

from __future__ import annotations

from functools import partial

import anyio

from harness.model.errors import HarnessError, TargetError
from harness.model.options import ActiveLevel, RunOptions
from harness.model.plan import Action
from harness.model.recording import Phase, StockClientEvent
from harness.model.surface import Surface
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.session import Session, open_session
from harness.pipeline.wire import place_of
from harness.probing.access import ways_to_show
from harness.protocol.stock_client import StockClient, Streams, prestart
from harness.protocol.stock_http import HttpPlace
from harness.sandbox.base import LaunchSpec, Sandbox

_UNANSWERED = "not tried: the server never answered"


class StockTry:
    """One try with one launch. `client`: a prestarted one, or None to start another.

    A try whose main session was not answered ends at once, without an event: a later one may follow with what made
    the server start. `after`: the earlier try, which is over first.
    """

    def __init__(
        self,
        action: Action,
        spec: LaunchSpec,
        sandbox: Sandbox,
        bundle: BundleWriter,
        entropy: Entropy,
        options: RunOptions,
        client: StockClient | None,
        *,
        after: StockTry | None = None,
    ) -> None:
        self._action = action
        self._spec = spec
        self._sandbox = sandbox
        self._bundle = bundle
        self._entropy = entropy
        self._options = options
        self._client = client
        self._after = after
        self._first: Surface | None = None
        self._decided = anyio.Event()
        self._last = anyio.Event()
        self._over = anyio.Event()
        self._retired = False
        self._older = False
        self._gone = anyio.Event()
        #: True once the client was let in: a client is good for one check.
        self.used = False

    def decide(self, first: Surface | None, *, older: bool = False) -> None:
        """The main session's look is over: `first` says how the server wants to be greeted, if it is known.

        `older`: it speaks HTTP as the first revision has it.
        """
        self._older = self._older or older
        if not self._decided.is_set():
            self._first = first if first is not None and first.era is not None else None
            self.used = self._first is not None
            self._decided.set()

    def retire(self) -> None:
        """Another try follows: one that was not let in has nothing to tell."""
        self._retired = True
        self._last.set()

    def no_more(self, first: Surface | None) -> None:
        """The plan is at its end: this try is the last."""
        self.decide(first)
        self._last.set()

    async def run(self, deadline: float) -> None:
        """Try, and record what came of it. Raises EngineError."""
        event: StockClientEvent | None = StockClientEvent(
            phase=Phase.DISCOVER, works=None, error="not finished in time"
        )
        try:
            if self._after is not None:
                await self._after._over.wait()
            with anyio.move_on_at(deadline):
                try:
                    event = await self._session()
                except TargetError as error:
                    event = StockClientEvent(phase=Phase.DISCOVER, works=None, error=error.message[:300])
            if event is None:
                self._over.set()  # a later try may begin
                with anyio.move_on_at(deadline):
                    await self._last.wait()
        finally:
            if event is not None or (self._last.is_set() and not self._retired):
                event = event or StockClientEvent(phase=Phase.DISCOVER, works=None, error=_UNANSWERED)
                self._bundle.record(event.model_copy(update={"session": self._action.session, "phase": Phase.DISCOVER}))
            self._over.set()

    async def _session(self) -> StockClientEvent | None:
        """Start at once, and let the client in when it is known how the server wants to be greeted.

        Left to itself, the SDK waits ten seconds for an answer to `server/discover` before it tries `initialize`.
        """
        name = self._action.session
        async with open_session(
            name,
            self._sandbox,
            self._spec,
            self._bundle,
            self._entropy,
            self._options,
            number=self._action.attempt,
            why=self._action.why,
        ) as session:
            place = place_of(self._options, self._action.adjustment)
            if place is not None:
                session.serves_elsewhere(self._gone.set)
            await self._decided.wait()
            if self._first is None:
                return None
            await session.enter(Phase.DISCOVER)
            if self._client is not None:
                return await self._check(self._client, session, place)
            async with prestart(self._options.limits) as client:
                return await self._check(client, session, place)

    async def _check(self, client: StockClient, session: Session, place: tuple[int, str] | None) -> StockClientEvent:
        assert self._first is not None
        server: Streams | HttpPlace = (session.process.stdin, session.process.stdout)
        if place is not None:
            network = session.process.network
            if network is None:
                raise HarnessError("a server that listens on a port is reached through the gateway, and there is none")
            port, path = place
            ways = ways_to_show(session.credentials)
            standing = self._action.adjustment.headers
            server = HttpPlace(partial(network.connect, port), port, path, ways, standing, older=self._older)
        event = await client.check(
            server,
            timeout=self._options.start_timeout,
            era=self._first.era,
            sink=self._bundle,
            session=self._action.session,
            first=self._first,
            offers=self._options.active is ActiveLevel.TOOL_CALLS,
        )
        if client.changed is not None and not self._retired:
            self._bundle.surface(client.changed)
        return event
