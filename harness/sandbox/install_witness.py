"""Watching an install: a recorder pointed at its pid namespace, and the keeper that makes a small record of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import anyio
import anyio.abc

from harness.model.recording import Phase
from harness.sandbox.containers import Doomed
from harness.sandbox.install_record import InstallKeeper, InstallRecord
from harness.sandbox.recorder import Recorder

#: Makes a recorder for one use, in containers that are removed with `Doomed`.
Recorders = Callable[[Doomed], AbstractAsyncContextManager[Recorder | None]]

#: How long the last events may take to be read once the recorder has ended.
READ_SECONDS = 5.0


class InstallWitness:
    """A recorder at work on an install, or nothing at all where none was asked for."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._keeper = InstallKeeper()
        self._gated = False
        self.read = anyio.Event()

    def expect(self, nonce: str) -> None:
        """A heartbeat with this nonce is about to be made."""
        if self._recorder is not None:
            self._recorder.expect(nonce)

    def expect_gate(self, nonce: str) -> None:
        """A step's gate is about to make its heartbeat. Only the first one's is believed: any later process of the
        namespace could be a step's own child that plays a gate.
        """
        if not self._gated:
            self._gated = True
            self.expect(nonce)

    async def watch(self) -> None:
        """Take the events until the recording ends. Run as a task."""
        if self._recorder is not None:
            async for events in self._recorder.batches():
                self._keeper.take(events)
        self.read.set()

    async def finish(self) -> InstallRecord | None:
        """End the recording and return it; None without a recorder."""
        if self._recorder is None:
            return None
        end = await self._recorder.stop()
        with anyio.move_on_after(READ_SECONDS):
            await self.read.wait()
        return self._keeper.record(end.model_copy(update={"phase": Phase.INSTALL}))


@asynccontextmanager
async def recorded(
    recorders: Recorders | None, collected: Doomed, tasks: anyio.abc.TaskGroup, inode: int, seconds: int
) -> AsyncIterator[InstallWitness]:
    """A witness of what happens in the pid namespace `inode`, for at most `seconds`; it reads in one of `tasks`."""
    async with AsyncExitStack() as stack:
        recorder = None
        if recorders is not None:
            recorder = await stack.enter_async_context(recorders(collected))
            assert recorder is not None
            await recorder.ready()
            await recorder.record(inode, seconds=seconds, session="install", epoch=time.monotonic_ns())
        witness = InstallWitness(recorder)
        tasks.start_soon(witness.watch)
        yield witness
