"""The record of one pid namespace, made by a `Recorder`: its events, its heartbeats, and what was lost of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress

import anyio
import anyio.lowlevel

from harness.model.errors import EngineError
from harness.model.recording import Event, Phase, RecorderEndEvent
from harness.sandbox.records import RecordDecoder
from harness.sandbox.records_frames import CallNames

#: How long the recorder may take to answer.
ANSWER_SECONDS = 15.0
#: How many events are decoded at a time, and how many such batches are held for a slow reader.
BATCH_EVENTS = 512
BATCHES = 8

#: Tells the recorder a line. Raises `EngineError` when it is gone.
Tell = Callable[[bytes], Awaitable[None]]


class Recording:
    """Implements `harness.sandbox.base.KernelRecording`; made by `Recorder.record`.

    `batches` must be read for the recording to go on, and for others of the same recorder; it ends after the last
    event. `take_…`, `reach`, `end` and `lose` are the recorder's.
    """

    def __init__(self, tell: Tell, names: CallNames, space: int, session: str, epoch: int) -> None:
        self.ended = anyio.Event()
        self._tell = tell
        self._names = names
        self._space = space
        self._session = session
        self._decoder = RecordDecoder(names, session=session, phase=Phase.START, epoch=epoch, space=space)
        self._counted = anyio.Event()
        self._counters: dict[str, str] = {}
        self._stopping = False
        self._reason: str | None = None
        self._error: EngineError | None = None
        self._expected: list[str] = []
        self._out, self._in = anyio.create_memory_object_stream[list[Event]](BATCHES)

    def expect(self, nonce: str) -> None:
        """A heartbeat with this nonce was asked for: it must be among the events, else the record is not whole."""
        self._expected.append(nonce)

    async def batches(self) -> AsyncIterator[list[Event]]:
        """The events in order, some at a time, until the recording ends or is closed; for one reader."""
        with suppress(anyio.ClosedResourceError):
            async for events in self._in:
                yield events

    async def count(self) -> Mapping[str, str]:
        """Its counters by name, as of now. Raises `EngineError` when the recorder is gone."""
        self._counted = anyio.Event()
        await self._tell(b"COUNT %d\n" % self._space)
        with anyio.move_on_after(ANSWER_SECONDS):
            await self._counted.wait()
        if not self._counted.is_set() or self._error is not None:
            raise self._error or EngineError(
                "the recorder did not answer in time", remedy="the machine may be overloaded; try again"
            )
        return dict(self._counters)

    async def stop(self) -> RecorderEndEvent:
        """Have the recorder tell what it still holds of it; returns what it says about the whole.

        Somebody must read `batches` meanwhile. Never raises for a recorder that is gone: the answer says so.
        """
        self._stopping = True
        with suppress(EngineError):
            await self._tell(b"STOP %d\n" % self._space)
        with anyio.move_on_after(ANSWER_SECONDS):
            await self.ended.wait()
        return self.outcome()

    def outcome(self) -> RecorderEndEvent:
        """What is known about the recording; whole only after `stop`."""
        lost = {name[8:]: int(value) for name, value in self._counters.items() if name.startswith("dropped_")}
        matched = int(self._counters.get("matched", 0))
        received = self._decoder.received
        lost["damaged"] = self._decoder.damaged
        lost["stream"] = max(0, matched - received - sum(lost.values()))
        lost["missed"] = max(0, int(self._counters.get("missed", 0)))
        lost["transfers"] = int(self._counters.get("transfers_missed", 0))
        seen = set(self._decoder.marks)
        entered = set(self._called("entered"))
        return RecorderEndEvent(
            phase=Phase.STOP,
            session=self._session,
            early=not self._stopping or self._reason != "stopped",
            reason=self._reason if self._reason is not None else str(self._error or "the recorder is gone"),
            matched=matched,
            received=received,
            lost={name: number for name, number in lost.items() if number},
            marks_seen=len(seen),
            marks_missing=tuple(nonce for nonce in self._expected if nonce not in seen),
            calls=tuple(sorted(entered)),
            denied=tuple(name for name in self._called("returned") if name not in entered),
            compat=tuple(sorted({*self._called("entered32"), *self._called("returned32")})),
        )

    def close(self) -> None:
        """What was not read of its events is thrown away, and nobody waits for the reader any more."""
        self._in.close()
        self._out.close()

    async def take_records(self, batch: bytes) -> None:
        """Take those records of a batch that are its own."""
        await self._pass_on(self._decoder.add(batch))

    async def reach(self, sequence: int) -> None:
        """No record with a lower number will come."""
        while events := self._decoder.read_up_to(sequence, BATCH_EVENTS):
            await self._pass_on(events)

    def take_counters(self, counters: dict[str, str]) -> None:
        """Keep what was counted."""
        self._counters = counters
        self._counted.set()

    async def end(self, reason: str) -> None:
        """It ended for that reason: pass on what is still held."""
        self._reason = reason
        await self._pass_on(self._decoder.finish())
        self.lose(None)

    def lose(self, error: EngineError | None) -> None:
        """Nothing more will come, for want of a recorder if there is an error."""
        self._error = error
        self._out.close()
        self._counted.set()
        self.ended.set()

    async def _pass_on(self, events: list[Event]) -> None:
        if events:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads any more
                await self._out.send(events)
        await anyio.lowlevel.checkpoint()

    def _called(self, bitmap: str) -> tuple[str, ...]:
        return self._names.set_in(self._counters.get(bitmap, ""), compat=bitmap.endswith("32"))
