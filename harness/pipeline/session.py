"""One life of the target: launched behind the gate, its phases marked, its end and its standard error recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc

from harness.model.errors import EngineError
from harness.model.options import RunOptions
from harness.model.recording import (
    AttemptEvent,
    DeadlineEvent,
    ExitEvent,
    Phase,
    PhaseEvent,
    RecorderEndEvent,
    StderrEvent,
)
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.flows import FlowWatch, without_ours
from harness.pipeline.launching import launched
from harness.pipeline.stderr import StderrKeeper
from harness.pipeline.witness import Witness, readable_stderr
from harness.probing.access import own_credentials
from harness.sandbox.base import HOME, ExitReport, LaunchSpec, Sandbox, SandboxedProcess

#: How long the rest of a dead process's standard error may take to arrive.
DRAIN_SECONDS = 1.0
#: How long a server that listens on a port gets to end by itself: few of them watch their standard input.
LISTENER_GRACE_SECONDS = 0.3


class Session:
    """A running target. `enter` begins a phase: recorded here and marked inside the sandbox by the warden.

    `witness` records what passes and remembers what the planner needs of it; `report`: how it ended, once it did.
    `credentials`: those that it was started with to ask others for.
    """

    def __init__(
        self, name: str, process: SandboxedProcess, bundle: BundleWriter, entropy: Entropy, keeper: StderrKeeper
    ) -> None:
        self.name = name
        self.process = process
        self.phase: str = Phase.START
        self.witness = Witness(bundle)
        self.report: ExitReport | None = None
        self.flows: FlowWatch | None = None
        self.grace: float | None = None
        self.credentials: tuple[str, ...] = ()
        self._keeper = keeper
        self._bundle = bundle
        self._entropy = entropy
        self._tasks: anyio.abc.TaskGroup | None = None

    def serves_elsewhere(self, ended: Callable[[], None]) -> None:
        """Its standard output is no protocol: kept with its standard error. `ended` is called when the process ends."""
        assert self._tasks is not None
        self.grace = LISTENER_GRACE_SECONDS
        self._tasks.start_soon(self._keeper.drain, self.process.stdout)
        self._tasks.start_soon(self._tell_end, ended)

    async def _tell_end(self, ended: Callable[[], None]) -> None:
        with suppress(EngineError):  # whoever stops the session is told
            await self.process.wait()
        ended()

    @property
    def stderr(self) -> str:
        """What it wrote on its standard error so far: head and tail."""
        return readable_stderr(self._keeper.kept)

    async def enter(self, phase: str) -> None:
        """Begin `phase`. Raises EngineError when the engine is gone."""
        if phase == self.phase:
            return
        self.phase = phase
        nonce = self._entropy.nonce()
        self._bundle.record(PhaseEvent(phase=phase, session=self.name, nonce=nonce))
        if self.flows is not None:
            self.flows.enter(phase)
        await self.process.mark(phase, nonce)

    def deadline(self, what: str, seconds: float) -> None:
        """Record that the time for `what` was over."""
        self._bundle.record(DeadlineEvent(phase=self.phase, session=self.name, what=what, seconds=seconds))


@asynccontextmanager
async def open_session(
    name: str,
    sandbox: Sandbox,
    spec: LaunchSpec,
    bundle: BundleWriter,
    entropy: Entropy,
    options: RunOptions,
    *,
    number: int = 1,
    why: str = "",
    guess: bool = False,
    files: Iterable[str] = (),
) -> AsyncIterator[Session]:
    """Start the target as `spec` says; at exit it is stopped, and how it ended is recorded.

    `files`: those below the home directory that were planted because it looks for them.
    Raises EngineError when the sandbox breaks, TargetError when it breaks of this target only; whatever else the target
    does is recorded, not raised.
    """
    bundle.record(
        AttemptEvent(
            phase=Phase.START,
            session=name,
            number=number,
            argv=spec.argv,
            environment=tuple(sorted(spec.environment)),
            why=why,
            guess=guess,
            files=tuple(f"{HOME}/{path}" for path in sorted(files)),
            days=spec.days_ahead,
        )
    )
    bundle.record(PhaseEvent(phase=Phase.START, session=name, nonce=entropy.nonce()))
    keeper = StderrKeeper(options.limits.stderr_bytes)
    spec = spec.model_copy(update={"session": name, "epoch": bundle.epoch})
    async with launched(sandbox, spec) as process, anyio.create_task_group() as tasks:
        finished = anyio.Event()

        async def keep() -> None:
            await keeper.drain(process.stderr)
            finished.set()

        tasks.start_soon(keep)
        record = process.recording
        seen = anyio.Event()

        async def watch() -> None:
            if record is not None:
                async for events in record.batches():
                    bundle.record_kernel(without_ours(events, process.network))
            seen.set()

        tasks.start_soon(watch)
        session = Session(name, process, bundle, entropy, keeper)
        session._tasks = tasks
        session.credentials = own_credentials(spec.argv, spec.environment)
        if process.network is not None:
            session.flows = FlowWatch(process.network, bundle, name, Phase.START)
            tasks.start_soon(session.flows.run)
        yield session
        await session.enter(Phase.STOP)
        session.report = report = await process.stop(session.grace or options.stop_grace)
        with anyio.move_on_after(DRAIN_SECONDS):
            await finished.wait()
        if record is not None:
            await process.mark(Phase.STOP, entropy.nonce())  # the last heartbeat: the record reaches to the end
            ended = await record.stop()
            with anyio.move_on_after(DRAIN_SECONDS):
                await seen.wait()
            bundle.record(_whole(ended, bundle.dropped_kernel_events))
        if session.flows is not None:
            await session.flows.stop()
        tasks.cancel_scope.cancel()
        _record_end(session, bundle, report, keeper, number)


def _whole(ended: RecorderEndEvent, dropped: int) -> RecorderEndEvent:
    """What the recorder says of itself, and what the bundle's bound cost."""
    return ended.model_copy(update={"lost": {**ended.lost, "bundle": dropped}}) if dropped else ended


def _record_end(session: Session, bundle: BundleWriter, report: ExitReport, keeper: StderrKeeper, number: int) -> None:
    bundle.record(
        ExitEvent(
            phase=session.phase,
            session=session.name,
            code=report.code,
            signal=report.signal,
            oom_killed=report.oom_killed,
            ended_by=report.ended_by,
        )
    )
    if keeper.size:
        bundle.stderr(session.name if number == 1 else f"{session.name}, attempt {number}", keeper.kept)
    bundle.record(
        StderrEvent(
            phase=session.phase,
            session=session.name,
            size=keeper.size,
            kept=min(keeper.size, len(keeper.kept)),
            sha256=keeper.sha256,
            tail=keeper.last_text,
        )
    )
