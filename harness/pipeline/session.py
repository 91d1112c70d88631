"""One life of the target: launched behind the gate, its phases marked, its end and its standard error recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from harness.model.options import RunOptions
from harness.model.recording import AttemptEvent, DeadlineEvent, ExitEvent, Phase, PhaseEvent, StderrEvent
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.stderr import StderrKeeper
from harness.sandbox.base import ExitReport, LaunchSpec, Sandbox, SandboxedProcess

#: How long the rest of a dead process's standard error may take to arrive.
DRAIN_SECONDS = 1.0


class Session:
    """A running target. `enter` begins a phase: recorded here and marked inside the sandbox by the warden."""

    def __init__(self, name: str, process: SandboxedProcess, bundle: BundleWriter, entropy: Entropy) -> None:
        self.name = name
        self.process = process
        self.phase: str = Phase.START
        self._bundle = bundle
        self._entropy = entropy

    async def enter(self, phase: str) -> None:
        """Begin `phase`. Raises EngineError when the engine is gone."""
        if phase == self.phase:
            return
        self.phase = phase
        nonce = self._entropy.nonce()
        self._bundle.record(PhaseEvent(phase=phase, session=self.name, nonce=nonce))
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
) -> AsyncIterator[Session]:
    """Start the target as `spec` says; at exit it is stopped, and how it ended is recorded.

    Raises EngineError when the sandbox breaks; whatever the target does is recorded, not raised.
    """
    bundle.record(
        AttemptEvent(
            phase=Phase.START,
            session=name,
            number=number,
            argv=spec.argv,
            environment=tuple(sorted(spec.environment)),
            why=why,
        )
    )
    bundle.record(PhaseEvent(phase=Phase.START, session=name, nonce=entropy.nonce()))
    keeper = StderrKeeper(options.limits.stderr_bytes)
    async with sandbox.launch(spec) as process, anyio.create_task_group() as tasks:
        finished = anyio.Event()

        async def keep() -> None:
            await keeper.drain(process.stderr)
            finished.set()

        tasks.start_soon(keep)
        session = Session(name, process, bundle, entropy)
        yield session
        await session.enter(Phase.STOP)
        report = await process.stop(options.stop_grace)
        with anyio.move_on_after(DRAIN_SECONDS):
            await finished.wait()
        tasks.cancel_scope.cancel()
        _record_end(session, bundle, report, keeper)


def _record_end(session: Session, bundle: BundleWriter, report: ExitReport, keeper: StderrKeeper) -> None:
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
        bundle.stderr(session.name, keeper.kept)
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
