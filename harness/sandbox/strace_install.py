"""Watching an install with strace: a tracer for each step, and the keeper that makes one small record of them all."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.abc

from harness.model.recording import Phase, RecorderEndEvent
from harness.sandbox.containers import Doomed
from harness.sandbox.install_record import InstallKeeper, InstallRecord
from harness.sandbox.strace import Tracer
from harness.sandbox.strace_filter import watched_profile
from harness.sandbox.strace_launch import start_tracer
from harness.sandbox.warden import Warden
from harness.sandbox.workshop import Workshop

#: How long the last events of a step may take to be read.
READ_SECONDS = 5.0


@dataclass(frozen=True)
class ByStrace:
    """Asks for an install that is watched by strace. `image`: the engine's id of strace's image."""

    image: str


class TracedInstall:
    """As `InstallWitness`, for strace: it attends each step instead of the whole namespace."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._keeper = InstallKeeper()
        self._ends: list[RecorderEndEvent] = []
        self._tracer: Tracer | None = None
        self._epoch = time.monotonic_ns()

    def profile(self, seccomp: str) -> str:
        """The seccomp profile of the steps."""
        return watched_profile(seccomp)

    def expect(self, nonce: str) -> None:
        """Marks of the warden are not in this trace; each step has marks of its own."""

    def expect_gate(self, nonce: str) -> None:
        """A step's gate is about to make its heartbeat."""
        if self._tracer is not None:
            self._tracer.expect(nonce)

    async def watch(self) -> None:
        """Nothing to do: what a step does is read while it is attended."""

    @asynccontextmanager
    async def attending(
        self, shop: Workshop, tasks: anyio.abc.TaskGroup, collected: Doomed, warden: Warden
    ) -> AsyncIterator[None]:
        """Watch the step that waits at its gate, from before it is opened until it has ended."""
        tracer = await start_tracer(
            shop,
            tasks,
            collected,
            warden,
            self._image,
            session="install",
            phase=Phase.INSTALL,
            epoch=self._epoch,
        )
        self._tracer = tracer
        read = anyio.Event()

        async def take() -> None:
            async for events in tracer.batches():
                self._keeper.take(events)
            read.set()

        tasks.start_soon(take)
        try:
            await self._mark(shop, tracer)
            yield
            await self._mark(shop, tracer)
        finally:
            with anyio.CancelScope(shield=True):
                self._ends.append(await tracer.stop())
                with anyio.move_on_after(READ_SECONDS):
                    await read.wait()
                tracer.close()

    async def _mark(self, shop: Workshop, tracer: Tracer) -> None:
        nonce = shop.nonce()
        tracer.expect(nonce)
        await tracer.mark(Phase.INSTALL, nonce)

    async def finish(self) -> InstallRecord | None:
        """What was recorded of all steps."""
        if not self._ends:
            return None
        return self._keeper.record(joined(self._ends))


def joined(ends: list[RecorderEndEvent]) -> RecorderEndEvent:
    """What several recorders say of themselves as one: whole only if each of them is."""
    lost: dict[str, int] = {}
    for end in ends:
        for name, number in end.lost.items():
            lost[name] = lost.get(name, 0) + number
    calls = {call for end in ends for call in end.calls}
    return ends[0].model_copy(
        update={
            "phase": Phase.INSTALL,
            "loaded": all(end.loaded for end in ends),
            "early": any(end.early for end in ends),
            "reason": next((end.reason for end in ends if end.early), ends[0].reason),
            "matched": sum(end.matched for end in ends),
            "received": sum(end.received for end in ends),
            "lost": lost,
            "marks_seen": sum(end.marks_seen for end in ends),
            "marks_missing": tuple(nonce for end in ends for nonce in end.marks_missing),
            "calls": tuple(sorted(calls)),
            "denied": tuple(sorted({call for end in ends for call in end.denied} - calls)),
            "compat": tuple(sorted({call for end in ends for call in end.compat})),
        }
    )
