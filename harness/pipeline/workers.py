"""Running analyzers in processes of their own, by way of the nursery (see `worker`), started ahead of the judging.

A child that hangs is killed, one that dies is counted; what either means is `analyzers.engine`'s to say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from signal import SIGXCPU
from subprocess import DEVNULL  # noqa: TID251 - the constant only

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import ValidationError

from harness.analyzers import registry
from harness.analyzers.base import AnalysisFacts, DeclarationInput, RecordingInput
from harness.analyzers.engine import failed_result, list_analyzers, run_one
from harness.model.base import Record
from harness.model.options import Limits
from harness.model.result import AnalyzerResult, AnalyzerStatus
from harness.pipeline.adopted import adopt
from harness.pipeline.early import WORKER
from harness.pipeline.worker import READY, RESULTS, Job, Outcome, Stop

#: How long the nursery may take to say that a killed child is gone.
STOP_SECONDS = 5.0
#: Its imports took 0.3 s where it was measured; a loaded machine takes longer. Not counted as an analyzer's time.
START_SECONDS = 60.0
_HEADER_BYTES = 4096
#: A recording up to this size (of system calls some 100,000) is read once for all light analyzers.
SMALL_BYTES = 4 << 20
EVENTS, MESSAGES = "events.jsonl.zst", "messages.jsonl"


class _Waiting:
    """A job under way: set when its outcome is there; both stay None when the nursery died."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.outcome: Outcome | None = None
        self.result = b""


class WorkerPool:
    """At most `jobs` analyzers at a time. `executor` gives what `analyzers.engine.run_selected` wants."""

    def __init__(self, process: anyio.abc.Process, jobs: int, limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._places = anyio.CapacityLimiter(jobs)
        self._waiting: dict[int, _Waiting] = {}
        self._number = 0
        self._ready = anyio.Event()
        self._dead = False

    def executor(
        self, bundle: Path, *, trust_unsealed: bool, declarations: bool = False, facts: AnalysisFacts | None = None
    ) -> _Executor:
        """An `Executor` over one bundle, or with `declarations` over one saved tool list.

        With the bundle's `facts`, analyzers that pass by them alone need no process.
        """
        return _Executor(self, bundle.absolute(), trust_unsealed, declarations, facts)

    async def run(
        self, name: str, bundle: Path, trust_unsealed: bool, declarations: bool = False, *, brief: bool = False
    ) -> AnalyzerResult:
        """Run one analyzer. Never raises for what it does: its end becomes a failed result.

        `brief`: over messages and flows only, which may still be written.
        """
        async with self._places:
            started = anyio.current_time()
            job = self._job((name,), bundle, trust_unsealed, declarations).model_copy(update={"brief": brief})
            waiting = await self._await(job)
            return _timed(self._overdue(name) if waiting is None else _read(name, waiting), started)

    async def run_together(
        self, names: Sequence[str], bundle: Path, trust_unsealed: bool
    ) -> tuple[AnalyzerResult, ...] | None:
        """Run several in one process; None when that gave no results, for whichever's fault: run each by itself."""
        async with self._places:
            started = anyio.current_time()
            waiting = await self._await(self._job(names, bundle, trust_unsealed, False))
            if waiting is None or waiting.outcome is None or waiting.outcome.code or waiting.outcome.overflow:
                return None
            try:
                results = RESULTS.validate_json(waiting.result)
            except ValidationError:
                return None
            if tuple(result.name for result in results) != tuple(names):
                return None
            return tuple(_timed(result, started) for result in results)

    def _job(self, names: Sequence[str], bundle: Path, trust_unsealed: bool, declarations: bool) -> Job:
        self._number += 1
        return Job(
            number=self._number,
            analyzer=names[0],
            others=tuple(names[1:]),
            bundle=str(bundle),
            trust_unsealed=trust_unsealed,
            declarations=declarations,
            seconds=max(1, int(self._limits.analyzer_seconds)),
            memory_bytes=self._limits.analyzer_memory_bytes,
        )

    def _overdue(self, name: str) -> AnalyzerResult:
        return failed_result(name, AnalyzerStatus.TIMEOUT, f"no result after {self._limits.analyzer_seconds:g} s")

    async def listen(self) -> None:
        """Hand each outcome to whoever waits for it, until the nursery ends. Run as a task."""
        assert self._process.stdout is not None
        stream = BufferedByteReceiveStream(self._process.stdout)
        with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, *_LOST, ValidationError):
            if await stream.receive_exactly(len(READY)) == READY:
                self._ready.set()
            while True:
                outcome = Outcome.model_validate_json(await stream.receive_until(b"\n", _HEADER_BYTES))
                result = await stream.receive_exactly(outcome.size) if outcome.size else b""
                waiting = self._waiting.pop(outcome.number, None)
                if waiting is not None:
                    waiting.outcome, waiting.result = outcome, result
                    waiting.done.set()
        self._dead = True
        self._ready.set()
        for waiting in self._waiting.values():
            waiting.done.set()

    async def _await(self, job: Job) -> _Waiting | None:
        """How a job ended; None when its time was over."""
        waiting = self._waiting[job.number] = _Waiting()
        with anyio.move_on_after(START_SECONDS):
            await self._ready.wait()
        await self._order(job)
        with anyio.move_on_after(self._limits.analyzer_seconds) as scope:
            if not self._dead:
                await waiting.done.wait()
        if scope.cancelled_caught:
            await self._order(Stop(stop=job.number))
            with anyio.move_on_after(STOP_SECONDS):
                await waiting.done.wait()
            return None
        return waiting

    async def _order(self, order: Record) -> None:
        assert self._process.stdin is not None
        with suppress(*_LOST):
            await self._process.stdin.send(order.model_dump_json().encode() + b"\n")


_LOST = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


def _timed(result: AnalyzerResult, started: float) -> AnalyzerResult:
    return result.model_copy(update={"duration_ms": int((anyio.current_time() - started) * 1000)})


def _read(name: str, waiting: _Waiting) -> AnalyzerResult:
    outcome = waiting.outcome
    if outcome is None:
        return failed_result(name, AnalyzerStatus.CRASHED, "the process that starts analyzers ended")
    if outcome.overflow:
        return failed_result(name, AnalyzerStatus.ERROR, "its result is too large")
    if outcome.code < 0:
        kind = AnalyzerStatus.TIMEOUT if -outcome.code == SIGXCPU else AnalyzerStatus.CRASHED
        return failed_result(name, kind, f"its process was ended by signal {-outcome.code}")
    if outcome.code != 0:
        return failed_result(name, AnalyzerStatus.CRASHED, f"its process ended with code {outcome.code}")
    try:
        return AnalyzerResult.model_validate_json(waiting.result)
    except ValidationError:
        return failed_result(name, AnalyzerStatus.ERROR, "its result can't be read")


class _Executor:
    """Runs analyzers over one bundle, side by side."""

    def __init__(
        self,
        pool: WorkerPool,
        bundle: Path,
        trust_unsealed: bool,
        declarations: bool,
        facts: AnalysisFacts | None,
    ) -> None:
        self._facts = facts
        self._pool = pool
        self._bundle = bundle
        self._trust_unsealed = trust_unsealed
        self._declarations = declarations

    async def __call__(self, names: Sequence[str]) -> Mapping[str, AnalyzerResult]:
        results: dict[str, AnalyzerResult] = {}
        unavailable = {info.name for info in list_analyzers() if info.unavailable is not None}

        async def one(name: str) -> None:
            if name in unavailable:  # says so without a child
                results[name] = run_one(name, DeclarationInput(servers=()))
            elif self._facts is not None and (found := registry.find(name)) is not None and found.passes(self._facts):
                results[name] = run_one(name, RecordingInput(facts=self._facts, events=()))
            else:
                results[name] = await self._pool.run(name, self._bundle, self._trust_unsealed, self._declarations)

        async def together(group: list[str]) -> None:
            made = await self._pool.run_together(group, self._bundle, self._trust_unsealed)
            if made is not None:
                results.update(zip(group, made, strict=True))
                return
            async with anyio.create_task_group() as singly:
                for name in group:
                    singly.start_soon(one, name)

        group = [name for name in names if name not in unavailable and self._light(name)] if self._small() else []
        async with anyio.create_task_group() as tasks:
            if len(group) > 1:
                tasks.start_soon(together, group)
            for name in names:
                if len(group) < 2 or name not in group:
                    tasks.start_soon(one, name)
        return results

    def _light(self, name: str) -> bool:
        found = registry.find(name)
        return found is not None and found.light and not (self._facts is not None and found.passes(self._facts))

    def _small(self) -> bool:
        """Is it quicker to read the events once than to share the work among processors?"""
        try:
            size = sum((self._bundle / name).stat().st_size for name in (EVENTS, MESSAGES))
            return not self._declarations and size <= SMALL_BYTES
        except OSError:
            return False


@asynccontextmanager
async def worker_pool(jobs: int, limits: Limits, command: tuple[str, ...] = WORKER) -> AsyncIterator[WorkerPool]:
    """A pool whose processes are gone at exit. `command` starts the nursery (another one in tests)."""
    # A session of its own: a Ctrl-C at the terminal reaches it only through us.
    process: anyio.abc.Process | None = await adopt(command)
    if process is None:
        process = await anyio.open_process(command, stderr=DEVNULL, start_new_session=True)
    try:
        pool = WorkerPool(process, jobs, limits)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.listen)
            yield pool
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            if process.stdin is not None:
                await process.stdin.aclose()  # it kills its children and ends
            with anyio.move_on_after(STOP_SECONDS):
                await process.wait()
            with suppress(ProcessLookupError):
                process.kill()
            await process.aclose()
