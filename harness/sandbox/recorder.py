"""The recorder in its container: started, pointed at pid namespaces, and read. One serves all sessions of a run.

Reading is bounded from end to end: when nobody takes the events, the stream stops, the recorder's rings fill, and
what finds no room there is counted by the kernel part. What it all says is decoded in `harness.sandbox.records`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc

from harness.model.errors import EngineError, HarnessError
from harness.sandbox import records_frames as frames
from harness.sandbox.containers import Doomed, background, doomed
from harness.sandbox.engine import Engine
from harness.sandbox.hardening import recorder_config
from harness.sandbox.recording import ANSWER_SECONDS, Recording
from harness.sandbox.recording import BATCHES as BATCHES
from harness.sandbox.streams import ContainerStreams, attach

RECORDER_IMAGE = "recorder"
READY_SECONDS = 30.0
STDERR_BYTES = 4096
#: Holds 0.1 s of the fastest flood that was measured.
RING_KIB = 16 << 10
#: How many pid namespaces one recorder records in its life (`sandboxes/recorder/record.h`).
SPACES = 16


class RecorderUnavailable(EngineError):
    """This machine, its kernel or its engine does not let the recorder work; the message says why."""


class Recorder:
    """One recorder, made by `start_recorder` or `open_recorder`. Its container is removed by whoever collects it.

    It records up to `SPACES` pid namespaces in its life, at the same time or after another; `records` counts them.
    """

    def __init__(self, engine: Engine, collected: Doomed, name: str, config: dict[str, Any]) -> None:
        self.ended = anyio.Event()
        self.name = name
        self.container = ""
        self.records = 0
        self.reason: str | None = None
        self._engine = engine
        self._collected = collected
        self._config = config
        self._streams: ContainerStreams | None = None
        self._ready = anyio.Event()
        self._armed = anyio.Event()
        self._arming, self._telling = anyio.Lock(), anyio.Lock()
        self._error: EngineError | None = None
        self._closed = False
        self._names = frames.CallNames()
        self._recordings: dict[int, Recording] = {}
        self._asked: tuple[str, int] = ("", 0)
        self._last = -1

    @property
    def usable(self) -> bool:
        """It has not ended, and can record another namespace."""
        return not self.ended.is_set() and not self._closed and self.records < SPACES

    async def ready(self) -> None:
        """Return when the kernel part is attached. Raises `RecorderUnavailable`, `EngineError`."""
        await self._await(self._ready, READY_SECONDS)

    async def record(self, inode: int, *, seconds: int, session: str = "main", epoch: int = 0) -> Recording:
        """Record the pid namespace with that inode, which must be alive, and those inside it.

        It ends by itself after `seconds`. The events carry `session`, and times in nanoseconds since `epoch`
        (CLOCK_MONOTONIC). Call it after `ready`. Raises `EngineError` when the recorder is gone.
        """
        self.records += 1
        async with self._arming:  # one at a time: answers carry no name
            self._asked, self._armed = (session, epoch), anyio.Event()
            await self._tell(b"RECORD %d %d\n" % (inode, seconds))
            await self._await(self._armed, ANSWER_SECONDS)
            return self._recordings[self._last]

    def close(self) -> None:
        """Hang up: the recorder ends, and what was not read of its events is thrown away."""
        self._closed = True
        if self._streams is not None:
            self._streams.close()
        for recording in self._recordings.values():
            recording.close()

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
        finally:
            if self._streams is not None:
                self._streams.close()
            if self._error is None:
                self._error = EngineError("the recorder ended before it was told to")
            for recording in self._recordings.values():
                if not recording.ended.is_set():
                    recording.lose(self._error)
            self.ended.set()

    async def _listen(self, streams: ContainerStreams) -> None:
        reader = frames.FrameReader()
        with suppress(anyio.EndOfStream):
            while self.reason is None:
                for kind, payload in reader.feed(await streams.stdout.receive()):
                    await self._frame(kind, payload)

    async def _frame(self, kind: int, payload: bytes) -> None:
        if kind == frames.RECORDS:
            for recording in self._recordings.values():
                if not recording.ended.is_set():
                    await recording.take_records(payload)
        elif kind == frames.READ and len(payload) == frames.REACHED.size:
            space, sequence = frames.REACHED.unpack(payload)
            if space in self._recordings:
                await self._recordings[space].reach(sequence)
        elif kind == frames.READY:
            self._names = frames.CallNames(payload)
            self._ready.set()
        elif kind == frames.ARMED:
            self._arm(frames.number(payload))
        elif kind == frames.COUNTERS:
            counters = frames.parse_counters(payload)
            found = self._recordings.get(frames.number(counters.get("space", "").encode()))
            if found is not None:
                found.take_counters(counters)
        elif kind == frames.END:
            space, _, reason = payload.partition(b" ")
            if space == b"-":
                self.reason = reason.decode("ascii", "replace")
            elif (found := self._recordings.get(frames.number(space))) is not None:
                await found.end(reason.decode("ascii", "replace"))
        elif kind == frames.FAILED:
            raise RecorderUnavailable(_reason(payload), remedy="`harness doctor` says what can be used instead")

    def _arm(self, space: int) -> None:
        session, epoch = self._asked
        self._last = space
        self._recordings[space] = Recording(self._tell, self._names, space, session, epoch)
        self._armed.set()

    async def _tell(self, line: bytes) -> None:
        try:
            if self._streams is None:
                raise self._error or EngineError("the recorder was not started")
            with anyio.fail_after(ANSWER_SECONDS):
                async with self._telling:  # sessions end when they like
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
