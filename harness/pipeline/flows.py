"""One session's network flows on their way into the bundle: each with the phase in which it began."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread

from harness.model.flow import GatewayEndEvent
from harness.model.recording import Event, LimitEvent, SyscallEvent
from harness.pipeline.blobs import MOST_CAPTURE_BYTES
from harness.pipeline.bundle import BundleWriter
from harness.sandbox.base import NetworkRecording
from harness.sandbox.capture import check_capture

#: How long the last flows may take to be stored once the gateway has ended.
DRAIN_SECONDS = 5.0
#: Told flows that are remembered for the check; the gateway tells of fewer.
MOST_TOLD = 50_000


class FlowWatch:
    """Watches one session. `enter` is told of its phases; `run` stores flows until there are no more."""

    def __init__(self, network: NetworkRecording, bundle: BundleWriter, session: str, phase: str) -> None:
        self._network, self._bundle, self._session = network, bundle, session
        self._times, self._phases = [0], [phase]
        self._done = anyio.Event()
        self._told: set[tuple[str, str, str]] = set()

    def enter(self, phase: str) -> None:
        """A phase begins now."""
        self._times.append(self._bundle.now)
        self._phases.append(phase)

    def phase_at(self, began: int) -> str:
        """The phase at a time in nanoseconds since the run's start."""
        return self._phases[max(0, bisect_right(self._times, began) - 1)]

    async def run(self) -> None:
        """Store the flows as they end."""
        async for seen in self._network.flows():
            event = seen.event.model_copy(update={"phase": self.phase_at(seen.event.began)})
            self._bundle.record_flow(event, seen.blobs)
            if len(self._told) < MOST_TOLD:
                self._told.add((event.protocol, event.local, event.remote))
            await anyio.lowlevel.checkpoint()
        self._done.set()

    async def stop(self) -> None:
        """End it, and record what the gateway says of itself; its packets join the bundle's."""
        folder = self._bundle.folder
        path = folder / f"egress-{self._session}.part"
        await anyio.to_thread.run_sync(_make_room, path)
        ended: GatewayEndEvent = await self._network.stop(path)
        with anyio.move_on_after(DRAIN_SECONDS):
            await self._done.wait()
        if ended.packets:
            ended = await self._checked(ended, path)
        over = await anyio.to_thread.run_sync(self._bundle.join_capture, path)
        if over:
            limit = LimitEvent(phase=self._phases[-1], what="bundle-packets", bound=MOST_CAPTURE_BYTES, seen=over)
            self._bundle.record(limit.model_copy(update={"session": self._session}))
        self._bundle.record(ended.model_copy(update={"phase": self._phases[-1], "session": self._session}))

    async def _checked(self, ended: GatewayEndEvent, path: Path) -> GatewayEndEvent:
        """Every captured flow must have an event; one that has none is named."""
        found = await check_capture(path, self._told | self._network.relayed)
        if found is None:
            return ended.model_copy(update={"lost": {**ended.lost, "unchecked-packets": ended.packets}})
        return ended.model_copy(update={"unmatched": found.unmatched, "dissected": found.dissected})


def _make_room(path: Path) -> None:
    path.unlink(missing_ok=True)


def without_ours(events: list[Event], network: NetworkRecording | None) -> list[Event]:
    """Kernel events as they count: what is written to a connection of ours is an answer, and leads nowhere."""
    if network is None or not network.relayed:
        return events
    ends = network.relayed
    return [
        event.model_copy(update={"local": "", "remote": "", "notes": (*event.notes, "relayed")})
        if isinstance(event, SyscallEvent) and event.remote and ("tcp", event.remote, event.local) in ends
        else event
        for event in events
    ]
