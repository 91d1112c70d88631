"""Executes the planner's actions against the sandbox and appends what came of them to the recording.

It judges nothing: an action's observation says whether the session can go on, and what an attempt showed.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import anyio.abc

from harness.model.call import Outcome
from harness.model.options import NetworkChoice, RunOptions
from harness.model.plan import Action, ActionKind, Adjustment, Observation
from harness.model.probe import Probed
from harness.model.recording import NoteEvent, Phase
from harness.model.surface import ItemKind, ListEnd, Surface
from harness.model.world import World
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.calls import Caller
from harness.pipeline.concluding import conclude
from harness.pipeline.entropy import Entropy
from harness.pipeline.lives import Life, Lives
from harness.pipeline.looks import Looker, beside, later
from harness.pipeline.probes import Prober
from harness.pipeline.progress import Progress
from harness.pipeline.schema_facts import SchemaFacts
from harness.pipeline.second_look import Foresight
from harness.pipeline.session import Session, open_session
from harness.pipeline.stock import StockTry
from harness.pipeline.supply import Supply
from harness.pipeline.wire import credential_of, is_older, place_of, spoken_to
from harness.pipeline.worlds import Worlds
from harness.probing.drift import DAYS, SECOND_SESSION
from harness.probing.planner import Planner
from harness.probing.starting.signs import serves_http
from harness.protocol.discovery import discover
from harness.protocol.handshake import Greeting, greeting_of
from harness.protocol.observe import look
from harness.protocol.session import RawSession
from harness.protocol.stock_client import StockClient
from harness.sandbox.base import LaunchSpec, Sandbox

#: Added to the harness' own deadline before the warden's strikes: the harness' is the one that gets recorded.
WARDEN_MARGIN_SECONDS = 15.0
#: How much longer than the main session the background work may take.
BACKGROUND_SECONDS = 10.0
#: From when on, and how often, a server that has not answered yet is looked at for signs of another transport, and
#: how long after such a sign it is still waited for: some announce a port and then speak on their standard streams too.
SIGNS_AFTER_SECONDS = 3.0
SIGNS_EVERY_SECONDS = 0.5
SIGNS_GRACE_SECONDS = 4.0

MAIN = "main"
OUT_OF_TIME = "the time of the run is over"


class Driver:
    """Drives one target. `stock_client`: a prestarted one, or None; `foresight`: asked while the last life ends."""

    def __init__(
        self,
        sandbox: Sandbox,
        supply: Supply,
        bundle: BundleWriter,
        entropy: Entropy,
        options: RunOptions,
        progress: Progress,
        stock_client: StockClient | None,
        foresight: Foresight | None = None,
    ) -> None:
        self._sandbox, self._supply, self._bundle = sandbox, supply, bundle
        self._entropy, self._options, self._progress = entropy, options, progress
        self._prestarted = stock_client
        self._foresight = foresight
        self._session: Session | None = None
        self._raw: RawSession | None = None
        self._surface: Surface | None = None
        self._look: Surface | None = None
        self._stock: StockTry | None = None
        self._caller = Caller(bundle, options, supply.typed)
        self._prober = Prober(bundle, options)
        self._looker = Looker(sandbox, bundle, entropy, options, self._prober)
        self._started: Action | None = None
        self._greeting = Greeting()
        self._worlds = Worlds(bundle, entropy, options)
        self._lives = Lives(sandbox, bundle, entropy, options, self._worlds)
        self._life: Life | None = None
        #: How the server was started when it answered last, and the number of the last action.
        self.answered: Adjustment | None = None
        self.actions = 0
        #: What is known of the declared schemas, learnt before the first call.
        self.facts = SchemaFacts()
        self._world: World | None = None
        self._ahead = False
        self._patience = 0.0

    _background: anyio.abc.TaskGroup  # set by `run`

    @property
    def surface(self) -> Surface | None:
        """What it declared at first; None when it was never seen."""
        return self._surface

    async def run(self, planner: Planner, seconds: float) -> None:
        """Follow the plan for at most `seconds`. Raises EngineError; the target's doings are recorded instead."""
        deadline = anyio.current_time() + seconds
        async with anyio.create_task_group() as background, AsyncExitStack() as session:
            self._background = background
            observation: Observation | None = None
            while (action := planner.next(observation)) is not None:
                if action.kind is ActionKind.START and action.attempt > 1 and anyio.current_time() >= deadline:
                    self._bundle.record(NoteEvent(phase=Phase.START, text="no time was left for another attempt"))
                    break
                self._bundle.plan(action)
                self.actions = action.number
                if action.background:
                    observation = await self._in_background(action, background, deadline)
                    continue
                observation = await self._execute(action, session, deadline, seconds)
                observation = observation.model_copy(update={"left": max(0.0, deadline - anyio.current_time())})
            self._lives.drop()
            if self._stock is not None:
                self._stock.no_more(self._surface)
            background.cancel_scope.deadline = anyio.current_time() + BACKGROUND_SECONDS

    async def _execute(self, action: Action, stack: AsyncExitStack, deadline: float, seconds: float) -> Observation:
        match action.kind:
            case ActionKind.START:
                return await self._start(action, stack, deadline)
            case ActionKind.DISCOVER if self._session is not None:
                return await self._discover(action, self._session, deadline, seconds)
            case ActionKind.CALL if self._session is not None:
                return await self._call(action, self._session, deadline, seconds)
            case ActionKind.PROBE if self._session is not None:
                return await self._probe(action, self._session, deadline, seconds)
            case ActionKind.LOOK if action.look is not None:
                return await self._take_look(action, stack, deadline)
            case ActionKind.LOOK if self._session is not None:
                return await self._look_again(action, self._session, deadline, seconds)
            case ActionKind.RESTART:
                return await self._restart(action, stack, deadline)
            case ActionKind.STOP:
                return await self._stop(action, stack)
            case ActionKind.READ_SOURCE:
                return await self._supply.read_source(action)
            case ActionKind.CONCLUDE:
                conclude(self._bundle, action)
                return Observation(number=action.number, usable=False)
            case _:
                raise AssertionError(f"the driver has no way to do {action.kind}")

    async def _start(self, action: Action, stack: AsyncExitStack, deadline: float) -> Observation:
        spec = await self._spec(action, deadline)
        if spec is None:
            return Observation(number=action.number, usable=False, detail="this can't be made")
        self._progress.phase(Phase.START)
        if action.attempt > 1:
            self._progress.note(f"attempt {action.attempt}: {action.why}")
        self._patience = min(self._options.start_timeout, action.adjustment.patience or self._options.start_timeout)
        self._started = action
        world, spec = self._worlds.into(MAIN, spec)
        self._world = world or self._world
        await self._open(MAIN, action, spec, stack)
        return self._opened(action, spec, world, usable=True)

    def _opened(self, action: Action, spec: LaunchSpec, world: World | None, *, usable: bool) -> Observation:
        return Observation(
            number=action.number, usable=usable, world=world, arguments=spec.argv[1:], environment=spec.environment
        )

    async def _open(self, name: str, action: Action, spec: LaunchSpec, stack: AsyncExitStack) -> None:
        session = self._session = await stack.enter_async_context(
            open_session(
                name,
                self._sandbox,
                spec,
                self._bundle,
                self._entropy,
                self._options,
                number=action.attempt,
                why=action.why,
                guess=action.guess,
                files=action.adjustment.files,
            )
        )
        raw = self._raw = await stack.enter_async_context(spoken_to(session, self._options, action.adjustment))
        self._caller.equip(raw)

    async def _restart(self, action: Action, stack: AsyncExitStack, deadline: float) -> Observation:
        """A clean life in place of the one at hand, greeted; started as the last START was."""
        assert self._started is not None
        self._session = self._raw = None
        late = anyio.current_time() >= deadline
        spec = await self._spec(self._started, deadline) if not late else None
        if spec is None:
            await self._put_aside(stack)
            return Observation(number=action.number, usable=False, detail=OUT_OF_TIME if late else "this can't be made")
        spec = self._supply.unsealed(later(spec, action.days), action.adjustment)
        if action.network is not None and spec.network is not NetworkChoice.NONE:
            spec = spec.model_copy(update={"network": action.network})
        fresh = self._lives.fresh(self._background, self._started, spec, deadline)
        await self._put_aside(stack)
        life = self._life = await fresh()
        self._session, self._raw, self._greeting = life.session, life.raw, life.greeting
        stack.push_async_callback(life.end)
        self._world = life.world or self._world
        return self._opened(action, life.spec, life.world, usable=life.usable)

    async def _put_aside(self, stack: AsyncExitStack) -> None:
        """The life at hand is over; one with a task of its own comes to its end there."""
        life, self._life = self._life, None
        if life is None:
            await stack.aclose()
            return
        stack.pop_all()
        life.leave()

    async def _call(self, action: Action, session: Session, deadline: float, seconds: float) -> Observation:
        assert action.call is not None and self._raw is not None
        call = action.call
        self._progress.phase(f"call {call.item}"[:60])
        with anyio.move_on_at(deadline):
            outcome = await self._caller.call(call, session, self._raw, self._greeting.era, action.patience)
            usable = outcome.state not in ("timeout", "closed", "unsent") and self._raw.closed is None
            return Observation(number=action.number, usable=usable, outcome=outcome)
        session.deadline("run", seconds)
        outcome = Outcome(call=call.id, state="unsent")
        return Observation(number=action.number, usable=False, outcome=outcome, detail=OUT_OF_TIME)

    async def _probe(self, action: Action, session: Session, deadline: float, seconds: float) -> Observation:
        assert action.probe is not None and self._raw is not None
        self._progress.phase(f"probe {action.probe.id}"[:60])
        if not self._ahead and self._started is not None:
            self._ahead = True  # the look that comes after the probes is in another life, with a later clock
            if (spec := await self._spec(self._started, deadline)) is not None:
                await self._sandbox.prepare(later(self._worlds.ahead(SECOND_SESSION, spec), DAYS))
        with anyio.move_on_at(deadline):
            probed = await self._prober.probe(action.probe, session, self._raw)
            return Observation(number=action.number, usable=probed.state == "alive", probed=probed)
        session.deadline("run", seconds)
        probed = Probed(probe=action.probe.id, state="unsent")
        return Observation(number=action.number, usable=False, probed=probed, detail=OUT_OF_TIME)

    async def _take_look(self, action: Action, stack: AsyncExitStack, deadline: float) -> Observation:
        """Look at the session at hand; or at another life, while that one, of which no more is asked, is ended."""
        assert action.look is not None
        self._progress.phase(f"look again: {action.look.name}")

        async def take() -> Surface | None:
            start = self._started or action
            with anyio.move_on_at(deadline):
                if (spec := await self._spec(start, deadline)) is not None:
                    _, spec = self._worlds.into(action.session, spec)
                    return await self._looker.anew(action, spec, self._surface, start.adjustment, self._ending)
            return None

        seen = None
        if action.session != MAIN:
            self._lives.drop()
            taking = beside(self._background, take)
            await self._leave(stack)
            seen = await taking()
        elif self._session is not None and self._raw is not None:
            with anyio.move_on_at(deadline):
                seen = await self._looker.again(action.look, self._session, self._raw, self._greeting, self._surface)
        return Observation(number=action.number, usable=seen is not None, surface=seen)

    def _ending(self) -> None:
        if self._foresight is not None:
            self._background.start_soon(self._foresight)

    async def _look_again(self, action: Action, session: Session, deadline: float, seconds: float) -> Observation:
        """Read the lists again, on a session that was greeted."""
        assert self._raw is not None
        await session.enter(Phase.DISCOVER)
        self._raw.phase = Phase.DISCOVER
        with anyio.move_on_at(deadline):
            seen = await discover(
                self._raw,
                self._greeting,
                session.witness,
                limits=self._options.limits,
                call_timeout=self._options.call_timeout,
                look=action.what,
            )
            self._bundle.surface(seen)
            return Observation(number=action.number, usable=self._raw.closed is None, surface=seen)
        session.deadline("run", seconds)
        return Observation(number=action.number, usable=False, detail=OUT_OF_TIME)

    async def _spec(self, action: Action, deadline: float) -> LaunchSpec | None:
        spec = await self._supply.spec(action.adjustment)
        if spec is None:
            return None
        left = max(1.0, deadline - anyio.current_time())
        return spec.model_copy(update={"deadline_seconds": left + WARDEN_MARGIN_SECONDS})

    async def _discover(self, action: Action, session: Session, deadline: float, seconds: float) -> Observation:
        seen = self._look = await self._observe(session, deadline, seconds)
        answered = seen is not None and seen.era is not None
        if seen is not None and answered:
            self.answered = self._started.adjustment if self._started is not None else None
            self._greeting = greeting_of(seen, self._raw)
        if seen is not None and (answered or self._surface is None or self._surface.era is None):
            self._surface = seen
            self._bundle.surface(seen, again=True)
            self._progress.note(f"{len(seen.items)} items declared")
        if self._stock is not None:
            self._stock.decide(seen, older=is_older(self._raw))
        if seen is not None and answered and self._world is not None:
            with anyio.move_on_at(deadline):
                await self.facts.learn(seen, self._world, allow=self._options.allow, seed=self._options.seed)
        tools = len(seen.of(ItemKind.TOOL)) if seen is not None and answered else None
        failed = sum(outcome.end is ListEnd.ERROR for outcome in seen.lists) if seen is not None and answered else 0
        told = Observation(number=action.number, usable=answered, tools=tools, failed_lists=failed, surface=seen)
        return told.model_copy(update={"credential": credential_of(self._raw)})

    async def _observe(self, session: Session, deadline: float, seconds: float) -> Surface | None:
        """Look at the server until it is seen, gives up, or says that it speaks elsewhere (None)."""
        seen: Surface | None = None
        raw = self._raw
        assert raw is not None

        async def enter(phase: str) -> None:
            self._progress.phase(phase)
            await session.enter(phase)

        async def watch() -> None:
            await anyio.sleep(SIGNS_AFTER_SECONDS)
            while session.phase == Phase.START:
                if serves_http("\n".join((session.stderr, *session.witness.output))):
                    await anyio.sleep(SIGNS_GRACE_SECONDS)
                    if session.phase == Phase.START:
                        text = "it says that it listens on a port, and it is silent on its standard streams"
                        self._bundle.record(NoteEvent(phase=Phase.START, session=session.name, text=text))
                        tasks.cancel_scope.cancel()
                    return
                await anyio.sleep(SIGNS_EVERY_SECONDS)

        options = self._options.model_copy(update={"start_timeout": self._patience})
        with anyio.move_on_at(deadline) as scope:
            async with anyio.create_task_group() as tasks:
                if self._started is None or place_of(options, self._started.adjustment) is None:
                    tasks.start_soon(watch)
                seen = await look(raw, session.witness, options=options, phase_hook=enter)
                tasks.cancel_scope.cancel()
        if scope.cancelled_caught:
            session.deadline("run", seconds)
        return seen

    async def _leave(self, stack: AsyncExitStack) -> Session | None:
        """End the life at hand, watched for a while first if it was called; returns it."""
        if self._session is not None:
            if self._caller.calls:
                await self._idle(self._session)
            self._progress.phase(Phase.STOP)
        session, self._session, self._raw = self._session, None, None
        await stack.aclose()
        return session

    async def _stop(self, action: Action, stack: AsyncExitStack) -> Observation:
        if (session := await self._leave(stack)) is None or session.report is None:
            return Observation(number=action.number, usable=False)
        report, by_itself = session.report, session.report.ended_by == "target"
        refusal = "\n".join(session.witness.refusals)
        return Observation(
            number=action.number,
            usable=False,
            stderr=session.stderr,
            output=tuple(session.witness.output),
            refusal=refusal,
            silent=not by_itself and not refusal and (self._look is None or self._look.era is None),
            exit_code=report.code if by_itself else None,
            exit_signal=report.signal if by_itself else None,
        )

    async def _idle(self, session: Session) -> None:
        """Watch for a while what it does when nobody asks for anything any more."""
        await session.enter(Phase.IDLE)
        with anyio.move_on_after(self._options.idle):
            await session.process.wait()

    async def _in_background(self, action: Action, background: anyio.abc.TaskGroup, deadline: float) -> Observation:
        """The stock client's try, in a life of the target of its own."""
        spec = await self._spec(action, deadline) if self._prestarted is not None else None
        if spec is None:
            return Observation(number=action.number, usable=False)
        _, spec = self._worlds.into(action.session, spec)
        earlier = self._stock
        client = self._prestarted if earlier is None or not earlier.used else None
        self._stock = StockTry(
            action, spec, self._sandbox, self._bundle, self._entropy, self._options, client, after=earlier
        )
        if earlier is not None:
            earlier.retire()
            self._stock.decide(self._surface)
        background.start_soon(self._stock.run, deadline)
        return Observation(number=action.number, usable=True)
