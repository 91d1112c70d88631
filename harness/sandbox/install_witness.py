"""Watching an install: a recorder pointed at its pid namespace, and the keeper that makes a small record of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from harness.model.recording import Phase
from harness.sandbox.containers import Doomed
from harness.sandbox.install_record import InstallKeeper, InstallRecord
from harness.sandbox.recorder import Recorder
from harness.sandbox.recording import Recording
from harness.sandbox.strace_install import ByStrace, TracedInstall
from harness.sandbox.warden import Warden
from harness.sandbox.workshop import Workshop

#: Gives a recorder that is ready, or raises `EngineError`.
Recorders = Callable[[], Awaitable[Recorder]]

#: How long the last events may take to be read once the recorder has ended.
READ_SECONDS = 5.0


class InstallWitness:
    """A recorder at work on an install, or nothing at all where none was asked for."""

    def __init__(self, recording: Recording | None) -> None:
        self._recording = recording
        self._keeper = InstallKeeper()
        self._gated = False
        self.read = anyio.Event()

    def expect(self, nonce: str) -> None:
        """A heartbeat with this nonce is about to be made."""
        if self._recording is not None:
            self._recording.expect(nonce)

    def expect_gate(self, nonce: str) -> None:
        """A step's gate is about to make its heartbeat. Only the first one's is believed: any later process of the
        namespace could be a step's own child that plays a gate.
        """
        if not self._gated:
            self._gated = True
            self.expect(nonce)

    def profile(self, seccomp: str) -> str:
        """The seccomp profile of the steps."""
        return seccomp

    @asynccontextmanager
    async def attending(
        self, shop: Workshop, tasks: anyio.abc.TaskGroup, collected: Doomed, warden: Warden
    ) -> AsyncIterator[None]:
        """Watch one step: nothing to do, the whole namespace is recorded."""
        yield

    async def watch(self) -> None:
        """Take the events until the recording ends. Run as a task."""
        if self._recording is not None:
            async for events in self._recording.batches():
                self._keeper.take(events)
        self.read.set()

    async def finish(self) -> InstallRecord | None:
        """End the recording and return it; None without a recorder."""
        if self._recording is None:
            return None
        end = await self._recording.stop()
        with anyio.move_on_after(READ_SECONDS):
            await self.read.wait()
        if not self.read.is_set():  # how many are missing is not known: those that are held, and no more
            end = end.model_copy(update={"lost": {**end.lost, "unread": end.lost.get("unread", 0) + 1}})
        return self._keeper.record(end.model_copy(update={"phase": Phase.INSTALL}))


@asynccontextmanager
async def recorded(
    recorders: Recorders | ByStrace | None, tasks: anyio.abc.TaskGroup, inode: int, seconds: int
) -> AsyncIterator[InstallWitness | TracedInstall]:
    """A witness of what happens in the pid namespace `inode`, for at most `seconds`; it reads in one of `tasks`."""
    if isinstance(recorders, ByStrace):
        yield TracedInstall(recorders.image)
        return
    recording = None
    if recorders is not None:
        recorder = await recorders()
        recording = await recorder.record(inode, seconds=seconds, session="install", epoch=time.monotonic_ns())
    witness = InstallWitness(recording)
    tasks.start_soon(witness.watch)
    try:
        yield witness
    finally:
        if recording is not None:
            recording.close()
