"""The warden: a small root process, first in the target's pid namespace, that marks phases and ends everything.

Its stdin is held by this process: when the harness dies, however hard, the kernel closes it, the warden kills
everything in the namespace and ends, and its end makes the kernel kill whatever could have been left.
"""

from __future__ import annotations

import math
from contextlib import suppress

import anyio
import anyio.abc

from harness.model.errors import EngineError
from harness.sandbox.containers import Doomed
from harness.sandbox.engine import Engine
from harness.sandbox.gate import mark_line, parse_ready
from harness.sandbox.streams import ContainerStreams, attach

READY_SECONDS = 30.0
#: The program itself gives up killing after five seconds.
ANSWER_SECONDS = 7.0
STDERR_BYTES = 4096
LINE_BYTES = 256


class Warden:
    """One warden, made by `create_warden`. Its container is removed by whoever collects it."""

    def __init__(self, engine: Engine, name: str, container: str, streams: ContainerStreams) -> None:
        self.name = name
        self.deadline_passed = False
        self.ended = anyio.Event()
        self._engine = engine
        self._container = container
        self._streams = streams
        self._started = anyio.Event()
        self._ready = anyio.Event()
        self._inode = 0
        self._error: EngineError | None = None
        self._lock = anyio.Lock()
        self._send, self._answers = anyio.create_memory_object_stream[bytes](16)

    async def started(self) -> None:
        """Return when the container runs, so that others can join its namespace. Raises `EngineError`."""
        await self._started.wait()
        if self._error is not None:
            raise self._error

    async def ready(self) -> int:
        """Return the inode of the pid namespace once the warden watches it. Raises `EngineError`."""
        with anyio.move_on_after(READY_SECONDS):
            await self._ready.wait()
        if self._error is not None:
            raise self._error
        if not self._inode:
            raise EngineError("the warden did not start in time", remedy="the machine may be overloaded; try again")
        return self._inode

    async def mark(self, phase: str, nonce: str) -> None:
        """Make the mark of a phase inside the namespace.

        Does nothing when the deadline has passed: there is nothing left to be marked. Raises `EngineError` when the
        warden is gone without that reason.
        """
        marked = await self._command(mark_line(phase, nonce), b"marked " + nonce.encode("ascii"))
        if not marked and not self.deadline_passed:
            raise EngineError("the warden is gone", remedy="look at the Docker engine's log")

    async def kill(self) -> bool:
        """Kill everything in the namespace but the warden; False when the warden can't any more."""
        return await self._command(b"KILL\n", b"killed")

    def close(self) -> None:
        """Hang up: the warden kills what is left and ends."""
        self._streams.close()

    async def run(self) -> None:
        """Start the container and listen to it until it ends; errors are kept for those who wait."""
        try:
            try:
                await self._engine.call(self._engine.api.start, self._container)
            except EngineError as error:
                self._error = error
                return
            self._started.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._streams.pump)
                await self._listen()
                tasks.cancel_scope.cancel()
        finally:
            self._streams.close()
            self._started.set()
            self._ready.set()
            self._send.close()
            self._answers.close()
            self.ended.set()

    async def _listen(self) -> None:
        try:
            while True:
                line = await self._streams.stdout.receive_line(LINE_BYTES)
                if not self._inode:
                    self._inode = parse_ready(line)
                    self._ready.set()
                elif line == b"deadline":
                    self.deadline_passed = True
                else:
                    with suppress(anyio.WouldBlock):
                        self._send.send_nowait(line)
        except EngineError as error:
            self._error = error
        except anyio.EndOfStream:
            if not self._inode:
                self._error = EngineError("the warden ended before it was ready", remedy="run `harness images build`")

    async def _command(self, line: bytes, expected: bytes) -> bool:
        async with self._lock:
            try:
                with anyio.fail_after(ANSWER_SECONDS):
                    await self._streams.stdin.send(line)
                    while (answer := await self._answers.receive()) != expected:
                        if answer == b"refused":
                            raise EngineError("the warden refused a command", remedy="run `harness images build`")
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError):
                return False
        return True


async def create_warden(
    engine: Engine, tasks: anyio.abc.TaskGroup, collected: Doomed, name: str, config: dict[str, object]
) -> Warden:
    """Create a warden and begin to start it in `tasks`; wait for `started` or `ready` before relying on it."""
    container = await collected.create(name, config)
    warden = Warden(engine, name, container, await attach(engine, container, STDERR_BYTES))
    tasks.start_soon(warden.run)
    return warden


def whole_seconds(seconds: float) -> int:
    """A deadline as the warden takes it: whole seconds from 1 to a week."""
    return min(max(1, math.ceil(seconds)), 7 * 24 * 3600)
