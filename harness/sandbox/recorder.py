"""The recorder in its container: started, pointed at a pid namespace, read, and asked at the end what it lost.

Reading is bounded from end to end: when nobody takes the events, the stream stops, the recorder's rings fill, and
what finds no room there is counted by the kernel part. What it all says is decoded in `harness.sandbox.records`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel

from harness.model.errors import EngineError, HarnessError
from harness.model.recording import Event, Phase, RecorderEndEvent
from harness.sandbox import records_frames as frames
from harness.sandbox.containers import Doomed, background, doomed
from harness.sandbox.engine import Engine
from harness.sandbox.hardening import recorder_config
from harness.sandbox.records import RecordDecoder
from harness.sandbox.streams import ContainerStreams, attach

RECORDER_IMAGE = "recorder"
READY_SECONDS = 30.0
ANSWER_SECONDS = 15.0
STDERR_BYTES = 4096
#: Holds 0.1 s of the fastest flood that was measured.
RING_KIB = 16 << 10
#: How many events are decoded at a time, and how many such batches are held for a slow reader.
BATCH_EVENTS = 512
BATCHES = 8


class RecorderUnavailable(EngineError):
    """This machine, its kernel or its engine does not let the recorder work; the message says why."""


class Recorder:
    """One recorder, made by `start_recorder` or `open_recorder`. Its container is removed by whoever collects it.

    `batches` must be read for the recording to go on; it ends after the last event.
    """

    def __init__(self, engine: Engine, collected: Doomed, name: str, config: dict[str, Any]) -> None:
        self.ended = anyio.Event()
        self.name = name
        self.container = ""
        self._engine = engine
        self._collected = collected
        self._config = config
        self._streams: ContainerStreams | None = None
        self._session = ""
        self._ready = anyio.Event()
        self._armed = anyio.Event()
        self._counted = anyio.Event()
        self._error: EngineError | None = None
        self._stopping = False
        self._reason: str | None = None
        self._counters: dict[str, str] = {}
        self._names = frames.CallNames()
        self._decoder = RecordDecoder(self._names, session="", phase=Phase.START, epoch=0)
        self._expected: list[str] = []
        self._out, self._in = anyio.create_memory_object_stream[list[Event]](BATCHES)

    async def ready(self) -> None:
        """Return when the kernel part is attached. Raises `RecorderUnavailable`, `EngineError`."""
        await self._await(self._ready, READY_SECONDS)

    async def record(self, inode: int, *, seconds: int, session: str = "main", epoch: int = 0) -> None:
        """Record the pid namespace with that inode, which must be alive, and those inside it; once only.

        It ends by itself after `seconds`. The events carry `session`, and times in nanoseconds since `epoch`
        (CLOCK_MONOTONIC). Call it after `ready`. Raises `EngineError` when the recorder is gone.
        """
        self._session = session
        self._decoder = RecordDecoder(self._names, session=session, phase=Phase.START, epoch=epoch)
        await self._tell(b"RECORD %d %d\n" % (inode, seconds))
        await self._await(self._armed, ANSWER_SECONDS)

    def expect(self, nonce: str) -> None:
        """A heartbeat with this nonce was asked for: it must be among the events, else the record is not whole."""
        self._expected.append(nonce)

    async def batches(self) -> AsyncIterator[list[Event]]:
        """The events in order, some at a time, until the recording ends or is closed; for one reader."""
        with suppress(anyio.ClosedResourceError):
            async for events in self._in:
                yield events

    async def count(self) -> Mapping[str, str]:
        """The recorder's counters by name, as of now. Raises `EngineError` when the recorder is gone."""
        self._counted = anyio.Event()
        await self._tell(b"COUNT\n")
        await self._await(self._counted, ANSWER_SECONDS)
        return dict(self._counters)

    async def stop(self) -> RecorderEndEvent:
        """Have the recorder read its rings to their end and finish; returns what it says about itself.

        Somebody must read `batches` meanwhile. Never raises for a recorder that is gone: the answer says so.
        """
        self._stopping = True
        with suppress(EngineError):
            await self._tell(b"STOP\n")
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
            loaded=self._armed.is_set(),
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
        """Hang up: the recorder ends, and what was not read of its events is thrown away."""
        if self._streams is not None:
            self._streams.close()
        self._in.close()
        self._out.close()

    async def run(self) -> None:
        """Make and start the container and listen to it until it ends; errors are kept for those who wait."""
        try:
            self.container = await self._collected.create(self.name, self._config)
            self._streams = streams = await attach(self._engine, self.container, STDERR_BYTES)
            await self._engine.call(self._engine.api.start, self.container)
            async with background() as tasks:
                tasks.start_soon(streams.pump)
                await self._listen(streams)
        except HarnessError as error:
            self._error = error if isinstance(error, EngineError) else EngineError(error.message, remedy=error.remedy)
            if not self._armed.is_set():
                self._in.close()  # it never worked: there is nothing to read
        except anyio.get_cancelled_exc_class():
            self._in.close()  # the launch is given up: nobody will read
            raise
        finally:
            if self._streams is not None:
                self._streams.close()
            self._out.close()
            if self._error is None and not self._stopping:
                self._error = EngineError("the recorder ended before it was told to")
            self.ended.set()

    async def _listen(self, streams: ContainerStreams) -> None:
        reader = frames.FrameReader()
        with suppress(anyio.EndOfStream):
            while self._reason is None:
                for kind, payload in reader.feed(await streams.stdout.receive()):
                    await self._frame(kind, payload)
        await self._pass_on(self._decoder.finish())

    async def _frame(self, kind: int, payload: bytes) -> None:
        if kind == frames.RECORDS:
            await self._pass_on(self._decoder.add(payload))
        elif kind == frames.READ and len(payload) == 8:
            upper = int.from_bytes(payload, "little")
            while events := self._decoder.read_up_to(upper, BATCH_EVENTS):
                await self._pass_on(events)
        elif kind == frames.READY:
            self._names = frames.CallNames(payload)
            self._ready.set()
        elif kind == frames.ARMED:
            self._armed.set()
        elif kind == frames.COUNTERS:
            self._counters = frames.parse_counters(payload)
            self._counted.set()
        elif kind == frames.END:
            self._reason = payload.decode("ascii", "replace")
        elif kind == frames.FAILED:
            raise RecorderUnavailable(_reason(payload), remedy="`harness doctor` says what can be used instead")

    async def _pass_on(self, events: list[Event]) -> None:
        if events:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads any more
                await self._out.send(events)
        await anyio.lowlevel.checkpoint()

    async def _tell(self, line: bytes) -> None:
        try:
            if self._streams is None:
                raise self._error or EngineError("the recorder was not started")
            with anyio.fail_after(ANSWER_SECONDS):
                await self._streams.stdin.send(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError):
            raise self._error or EngineError("the recorder does not listen") from None

    async def _await(self, event: anyio.Event, seconds: float) -> None:
        async def until_ended() -> None:
            await self.ended.wait()
            tasks.cancel_scope.cancel()

        with anyio.move_on_after(seconds):
            async with background() as tasks:
                tasks.start_soon(until_ended)
                await event.wait()
        if not event.is_set():
            raise self._error or EngineError(
                "the recorder did not answer in time", remedy="the machine may be overloaded; try again"
            )

    def _called(self, bitmap: str) -> tuple[str, ...]:
        return self._names.set_in(self._counters.get(bitmap, ""), compat=bitmap.endswith("32"))


def _reason(payload: bytes) -> str:
    lines = [line.strip() for line in payload.decode("utf-8", "replace").splitlines() if line.strip()]
    if any("BTF" in line and ("find" in line or "vmlinux" in line) for line in lines):
        return "this kernel does not describe its types (no BTF), so the recorder can't work"
    words = " ".join(lines[:1] + lines[-1:] if len(lines) > 1 else lines)
    return f"the recorder can't work here: {words[:300]}"


def start_recorder(
    engine: Engine, tasks: anyio.abc.TaskGroup, collected: Doomed, name: str, config: dict[str, Any]
) -> Recorder:
    """Begin to make and start a recorder in `tasks`; wait for `ready` before relying on it.

    Nothing is waited for here, so that it starts while other things go on: that takes half a second, of which the
    kernel spends a fifth on checking the program.
    """
    recorder = Recorder(engine, collected, name, config)
    tasks.start_soon(recorder.run)
    return recorder


@asynccontextmanager
async def open_recorder(
    engine: Engine,
    image: str,
    name: str,
    *,
    labels: Mapping[str, str],
    deadline_seconds: int,
    ring_kib: int = RING_KIB,
) -> AsyncIterator[Recorder]:
    """Yield a recorder that is being started; its container is gone at exit. `image` is the engine's id of it.

    Raises `EngineError` when the container can't be made; that it can't work is raised by `Recorder.ready`.
    """
    config = recorder_config(image=image, deadline_seconds=deadline_seconds, ring_kib=ring_kib, labels=labels)
    async with doomed(engine) as collected, background() as tasks:
        recorder = start_recorder(engine, tasks, collected, name, config)
        try:
            yield recorder
        finally:
            recorder.close()


async def recorder_available(engine: Engine, image: str, name: str, labels: Mapping[str, str]) -> str | None:
    """Why the recorder can't be used on this engine, in one line; None when it can. Starts one and ends it again."""
    try:
        async with open_recorder(engine, image, name, labels=labels, deadline_seconds=60, ring_kib=64) as recorder:
            await recorder.ready()
    except EngineError as error:
        return error.message
    return None
