"""A launched target: its streams, its phase marks, and how it ended."""

from __future__ import annotations

import time
from typing import Any, Literal

import anyio
import anyio.abc
import anyio.to_thread

from harness.model.errors import EngineError
from harness.model.recording import ImageFact
from harness.sandbox.base import ExitReport, NetworkRecording
from harness.sandbox.cgroup import MemoryCounters, find_cgroup, read_counters
from harness.sandbox.containers import background, kill_container
from harness.sandbox.engine import Engine, EngineNotFound
from harness.sandbox.gated import Gated
from harness.sandbox.warden import Warden

SAMPLE_SECONDS = 0.5
#: How long after the warden's own deadline the engine is asked to kill instead.
DEADLINE_GRACE_SECONDS = 3.0
#: How long a target may outlive its warden before the engine is asked to kill it.
ORPHAN_SECONDS = 1.0
#: How long the warden's kill may take to show, and then the engine's.
WARDEN_SECONDS = 2.0
KILL_SECONDS = 10.0
SIGKILL = 9
LAST_SIGNAL = 64

EndedBy = Literal["target", "harness", "deadline", "engine"]


class DockerProcess:
    """Implements `harness.sandbox.base.SandboxedProcess`.

    `stderr` holds at most its bound for a slow reader; `stderr_dropped` counts what was lost beyond that. The end of
    `stdout` may be the process's or the engine's: `wait` tells which.
    """

    def __init__(
        self, engine: Engine, gated: Gated, warden: Warden, image: ImageFact, *, began: float, deadline: float
    ) -> None:
        self.network: NetworkRecording | None = None
        self._engine = engine
        self._gated = gated
        self._warden = warden
        self._image = image
        self._deadline = deadline
        self._began = began  # when the warden's clock had not started yet
        self._ended = anyio.Event()
        self._report: ExitReport | None = None
        self._error: EngineError | None = None
        self._killed_by: EndedBy | None = None
        self._memory = MemoryCounters()
        self._cgroup: Any = None
        self._stop_lock = anyio.Lock()

    @property
    def stdin(self) -> anyio.abc.ByteSendStream:
        return self._gated.streams.stdin

    @property
    def stdout(self) -> anyio.abc.ByteReceiveStream:
        return self._gated.streams.stdout

    @property
    def stderr(self) -> anyio.abc.ByteReceiveStream:
        return self._gated.streams.stderr

    @property
    def stderr_dropped(self) -> int:
        """Bytes of stderr that found no room and were lost."""
        return self._gated.streams.stderr.dropped

    @property
    def image(self) -> ImageFact:
        return self._image

    @property
    def container(self) -> str:
        """The engine's id of the target's container."""
        return self._gated.container

    @property
    def report(self) -> ExitReport | None:
        """How it ended, once it did."""
        return self._report

    async def mark(self, phase: str, nonce: str) -> None:
        await self._warden.mark(phase, nonce)

    async def peak_memory(self) -> int | None:
        await self._sample()
        return self._memory.peak_bytes

    async def wait(self) -> ExitReport:
        await self._ended.wait()
        if self._report is None:
            raise self._error or EngineError("the sandbox was closed while its process ran")
        return self._report

    async def stop(self, grace_seconds: float) -> ExitReport:
        async with self._stop_lock:
            self._gated.streams.stdout.stop_waiting()  # the engine ends no container whose output is not taken
            if not self._ended.is_set() and self._killed_by is None and await self._is_running():
                self._killed_by = "harness"
            await self.stdin.aclose()
            with anyio.move_on_after(grace_seconds):
                return await self.wait()
            await self._sample()
            async with background() as tasks:
                tasks.start_soon(self._end_all)
                with anyio.move_on_after(WARDEN_SECONDS):
                    return await self.wait()
            await kill_container(self._engine, self.container)
            with anyio.move_on_after(KILL_SECONDS):
                return await self.wait()
            raise EngineError("the target could not be ended", remedy="look at the Docker engine's log")

    async def _end_all(self) -> None:
        """Kill everything that runs in the target's pid namespace."""
        await self._warden.kill()

    def watch(self, tasks: anyio.abc.TaskGroup) -> None:
        """Start what runs beside the process; none of it raises."""
        for helper in (self._watch_exit, self._watch_deadline, self._watch_warden, self._watch_memory):
            tasks.start_soon(helper)

    def close(self) -> None:
        """Let go of those who still wait."""
        self._ended.set()

    async def _watch_exit(self) -> None:
        try:
            code = await self._engine.wait(self.container)
            self._report = await self._make_report(code)
        except EngineNotFound:
            self._report = ExitReport(code=None, signal=None, oom_killed=False, ended_by="engine")
        except EngineError as error:
            self._error = error
        self._ended.set()

    async def _make_report(self, code: int) -> ExitReport:
        killed = SIGKILL if code == 128 + SIGKILL else None
        ended_by = self._killed_by
        late = time.monotonic() - self._began >= self._deadline
        if ended_by is None and killed and (late or self._warden.deadline_passed):
            ended_by = "deadline"
        state = (await self._engine.ask(self._engine.api.inspect_container, self.container))["State"]
        oom_killed = bool(state["OOMKilled"] or self._memory.oom_kills)
        if killed and not oom_killed and ended_by is None:
            oom_killed = await self._oom_event()
            if not oom_killed and self._warden.ended.is_set():
                ended_by = "engine"  # somebody ended the warden, and the kernel all that was in its namespace
        signal = code - 128 if 0 < code - 128 <= LAST_SIGNAL else None
        return ExitReport(
            code=None if signal else code,
            signal=signal,
            oom_killed=oom_killed,
            ended_by=ended_by or "target",
            memory_peak_bytes=self._memory.peak_bytes,
        )

    async def _oom_event(self) -> bool:
        """Did the engine tell of an OOM kill after it told of the exit? It happens: both come on ways of their own."""
        wanted = {"container": self.container, "event": "oom"}
        now = time.time()
        since, until = (
            int(now - (time.monotonic() - self._began)) - 1,
            int(now) + 1,
        )  # waits for `until`, a second at most

        def ask() -> bool:
            return any(True for _ in self._engine.api.events(since=since, until=until, filters=wanted, decode=True))

        return await self._engine.ask(ask)

    async def _watch_deadline(self) -> None:
        left = self._deadline + DEADLINE_GRACE_SECONDS - (time.monotonic() - self._began)
        with anyio.move_on_after(max(0.0, left)):
            await self._ended.wait()
            return
        await self._kill("deadline")

    async def _watch_warden(self) -> None:
        await self._warden.ended.wait()
        with anyio.move_on_after(ORPHAN_SECONDS):
            await self._ended.wait()
            return
        await self._kill("engine")

    async def _kill(self, why: EndedBy) -> None:
        self._killed_by = self._killed_by or why
        self._gated.streams.stdout.stop_waiting()
        try:
            await kill_container(self._engine, self.container)
        except EngineError as error:
            self._error = self._error or error

    async def _is_running(self) -> bool:
        try:
            found = await self._engine.ask(self._engine.api.inspect_container, self.container)
        except EngineNotFound:
            return False
        pid = int(found["State"]["Pid"])
        if self._cgroup is None and pid:
            self._cgroup = await anyio.to_thread.run_sync(find_cgroup, pid, self.container)
        return bool(found["State"]["Running"])

    async def _watch_memory(self) -> None:
        try:
            await self._is_running()
        except EngineError:
            return  # `_watch_exit` tells
        while self._cgroup is not None and not self._ended.is_set():
            await self._sample()
            await anyio.sleep(SAMPLE_SECONDS)

    async def _sample(self) -> None:
        if self._cgroup is not None:
            self._memory = self._memory.merged(await anyio.to_thread.run_sync(read_counters, self._cgroup))
