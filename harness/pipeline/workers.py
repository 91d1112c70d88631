"""Children that run one analyzer each, started ahead so that their imports overlap with the recording.

A child that hangs is killed, one that dies is counted; what either means is `analyzers.engine`'s to say.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from signal import SIGXCPU
from subprocess import DEVNULL  # noqa: TID251 - the constant only

import anyio
import anyio.abc
from pydantic import ValidationError

from harness.analyzers.base import DeclarationInput
from harness.analyzers.engine import Selected, failed_result, list_analyzers, run_one
from harness.model.options import Limits
from harness.model.result import AnalyzerResult, AnalyzerStatus
from harness.pipeline.worker import Job

#: A result holds findings and coverage, all bounded; more than this is a runaway.
MAX_RESULT_BYTES = 64 << 20

#: Added to an analyzer's time for the child's start and its imports.
START_SECONDS = 10.0


#: -I: neither the working directory nor the environment may add modules.
COMMAND = (sys.executable, "-I", "-m", "harness.pipeline.worker")


class WorkerPool:
    """At most `jobs` children at a time. `executor` gives what `analyzers.engine.run_selected` wants.

    `command` starts a child (another one in tests, to see what becomes of children that misbehave).
    """

    def __init__(self, jobs: int, limits: Limits, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._limits = limits
        self._places = anyio.CapacityLimiter(jobs)
        self._ready: list[anyio.abc.Process] = []

    async def prestart(self, count: int) -> None:
        """Start children that wait for their job."""
        for _ in range(count):
            self._ready.append(await self._start())

    async def close(self) -> None:
        """End the children that were not needed."""
        for process in self._ready:
            with suppress(ProcessLookupError):
                process.kill()
            await process.aclose()
        self._ready.clear()

    def executor(self, bundle: Path, *, trust_unsealed: bool, declarations: bool = False) -> _Executor:
        """An `Executor` over one bundle, or with `declarations` over one saved tool list."""
        return _Executor(self, bundle.absolute(), trust_unsealed, declarations)

    async def run(self, name: str, bundle: Path, trust_unsealed: bool, declarations: bool = False) -> AnalyzerResult:
        """Run one analyzer. Never raises for what it does: its end becomes a failed result."""
        async with self._places:
            started = anyio.current_time()
            process = self._ready.pop() if self._ready else await self._start()
            job = Job(
                analyzer=name,
                bundle=str(bundle),
                trust_unsealed=trust_unsealed,
                declarations=declarations,
                seconds=max(1, int(self._limits.analyzer_seconds)),
                memory_bytes=self._limits.analyzer_memory_bytes,
            )
            try:
                result = await self._converse(process, job)
            finally:
                with anyio.CancelScope(shield=True):
                    with suppress(ProcessLookupError):
                        process.kill()
                    await process.aclose()
            spent = int((anyio.current_time() - started) * 1000)
            return result.model_copy(update={"duration_ms": spent})

    async def _start(self) -> anyio.abc.Process:
        """A child in a session of its own, so that a Ctrl-C at the terminal reaches it only through us."""
        return await anyio.open_process(self._command, stderr=DEVNULL, start_new_session=True)

    async def _converse(self, process: anyio.abc.Process, job: Job) -> AnalyzerResult:
        assert process.stdin is not None and process.stdout is not None
        output = bytearray()
        with anyio.move_on_after(self._limits.analyzer_seconds + START_SECONDS) as scope:
            try:
                await process.stdin.send(job.model_dump_json().encode() + b"\n")
                await process.stdin.aclose()
                async for chunk in process.stdout:
                    output += chunk
                    if len(output) > MAX_RESULT_BYTES:
                        return failed_result(job.analyzer, AnalyzerStatus.ERROR, "its result is too large")
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # it died: its exit code says how
            code = await process.wait()
        if scope.cancelled_caught:
            limit = f"no result after {self._limits.analyzer_seconds:g} s"
            return failed_result(job.analyzer, AnalyzerStatus.TIMEOUT, limit)
        if code < 0:
            kind = AnalyzerStatus.TIMEOUT if -code == SIGXCPU else AnalyzerStatus.CRASHED
            return failed_result(job.analyzer, kind, f"its process was ended by signal {-code}")
        if code != 0:
            return failed_result(job.analyzer, AnalyzerStatus.CRASHED, f"its process ended with code {code}")
        try:
            return AnalyzerResult.model_validate_json(bytes(output))
        except ValidationError:
            return failed_result(job.analyzer, AnalyzerStatus.ERROR, "its result can't be read")


class _Executor:
    """Runs analyzers over one bundle, side by side."""

    def __init__(self, pool: WorkerPool, bundle: Path, trust_unsealed: bool, declarations: bool) -> None:
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
            else:
                results[name] = await self._pool.run(name, self._bundle, self._trust_unsealed, self._declarations)

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(one, name)
        return results


@asynccontextmanager
async def worker_pool(jobs: int, limits: Limits, selected: Sequence[Selected]) -> AsyncIterator[WorkerPool]:
    """A pool whose children are gone at exit; as many as `selected` will need are started at once."""
    pool = WorkerPool(jobs, limits)
    available = {info.name for info in list_analyzers() if info.unavailable is None}
    try:
        await pool.prestart(min(jobs, sum(1 for choice in selected if choice.name in available)))
        yield pool
    finally:
        with anyio.CancelScope(shield=True):
            await pool.close()
