"""The fallback recorder: strace in a container of its own, inside the target's pid namespace.

The target is launched exactly as without it, and can neither reach the tracer (root, where the target is not) nor its
stream (another container's). strace watches the waiting gate, so nothing from the first exec on is missed, and beside
it a small shell, the marker, that makes the phase marks: so they stand in the trace itself, in its order.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import anyio
import anyio.abc
import anyio.lowlevel

from harness.model.errors import EngineError, HarnessError
from harness.model.recording import Event, Phase, RecorderEndEvent
from harness.sandbox.containers import Doomed, background
from harness.sandbox.engine import Engine
from harness.sandbox.hardening import USER_ID
from harness.sandbox.recorder import RecorderUnavailable
from harness.sandbox.strace_events import StraceDecoder
from harness.sandbox.strace_filter import Filter
from harness.sandbox.streams import ContainerStreams, attach

TRACER_IMAGE = "tracer"
READY_SECONDS = 20.0
AGAIN_SECONDS = 0.1
MARK_SECONDS = 10.0
#: How long strace may take to see that nobody is left, and then to obey.
END_SECONDS = 3.0
STDERR_BYTES = 4096
#: How many batches of events are held for a slow reader.
BATCHES = 8
#: Of each string; paths are always whole.
STRING_BYTES = 1024

#: Reading is counted where data comes from outside (recvfrom, recvmsg); what was read from files is not told.
_UNDECODED = "read,pread64,readv,preadv,preadv2"
_MARKER = 'while read -r mark; do [ -e "/.mark/$mark" ]; done'
#: The gate is the one process that came into the namespace from outside and is neither its first nor this one.
_FIND = (
    'for folder in /proc/[0-9]*; do pid=${folder#/proc/}; [ "$pid" = 1 ] || [ "$pid" = $$ ] && continue; '
    'while read -r key value; do [ "$key" = PPid: ] && [ "$value" = 0 ] && found="$found $pid"; done '
    '2>/dev/null < "$folder/status"; done; set -- $found; [ $# = 1 ] || { echo "sh: $# gates"; exit 9; }; '
)


def tracer_script(pid: int | None) -> str:
    """The shell script of a tracer that attaches to `pid` of its namespace, or to the gate that waits there."""
    options = f"-f -y -xx -s {STRING_BYTES} -e quiet=attach -e raw={_UNDECODED} -o /dev/stdout"
    stamps = "--absolute-timestamps=format:unix,precision:ns"
    find = f"set -- {pid}; " if pid is not None else _FIND
    return f"{find}echo watching $1; exec strace {options} {stamps} -p $1 sh -c '{_MARKER}' 2>&1"


class Tracer:
    """One tracer. Its container is removed by whoever collects it; `run` must run as a task.

    `batches` must be read for the recording to go on; it ends after the last event.
    """

    def __init__(
        self,
        engine: Engine,
        collected: Doomed,
        name: str,
        config: dict[str, Any],
        *,
        profile: str,
        word: str,
        session: str = "main",
        phase: str = Phase.START,
        epoch: int = 0,
        uid: int = USER_ID,
    ) -> None:
        self.ended = anyio.Event()
        self.name = name
        self._engine = engine
        self._collected = collected
        self._config = config
        self._word = word
        self._session = session
        self._decoder = StraceDecoder(
            Filter(profile),
            session=session,
            phase=phase,
            clock=time.time_ns() - time.monotonic_ns(),
            epoch=epoch,
            word=word,
            uid=uid,
        )
        self._container = ""
        self._streams: ContainerStreams | None = None
        self._started = anyio.Event()
        self._seen = anyio.Event()
        self._expected: list[str] = []
        self._loaded = self._stopping = self._closed = False
        self._error: EngineError | None = None
        self._out, self._in = anyio.create_memory_object_stream[list[Event]](BATCHES)

    async def ready(self) -> None:
        """Return when strace watches its process and the marker. Raises `RecorderUnavailable`, `EngineError`."""
        with anyio.move_on_after(READY_SECONDS):
            await self._started.wait()
            while not (self._watching() or self.ended.is_set()):
                # Said again and again: the waiting gate's own line has no end until another's cuts in.
                await self._tell(f"{Phase.START}/{self._word}")
                with anyio.move_on_after(AGAIN_SECONDS):
                    while not self._watching() and not self.ended.is_set():
                        await self._seen.wait()
        if self._error is not None:
            raise self._error
        if not self._watching():
            why = self._decoder.refused or "strace did not begin in time"
            raise RecorderUnavailable(f"strace can't work here: {why}", remedy="`harness doctor` says what can be used")
        self._loaded = True

    def _watching(self) -> bool:
        return self._decoder.proved and self._decoder.attached

    def expect(self, nonce: str) -> None:
        """A heartbeat with this nonce was asked for: it must be among the events, else the record is not whole."""
        self._expected.append(nonce)

    async def mark(self, phase: str, nonce: str) -> None:
        """Make the mark of a phase, and wait until it stands in the trace; one that does not come is missed later."""
        if not self.ended.is_set():
            with suppress(EngineError), anyio.move_on_after(MARK_SECONDS):
                await self._tell(f"{quote(phase, safe=':-._~')[:1024]}/{nonce}")
                while nonce not in self._decoder.marks and not self.ended.is_set():
                    await self._seen.wait()

    async def batches(self) -> AsyncIterator[list[Event]]:
        """The events in order, some at a time, until the recording ends or is closed; for one reader."""
        with suppress(anyio.ClosedResourceError):
            async for events in self._in:
                yield events

    async def stop(self) -> RecorderEndEvent:
        """Have strace finish; returns what is known of the recording. Somebody must read `batches` meanwhile.

        Without the marker strace ends by itself where the target has ended; else it is told to let go of it.
        """
        self._stopping = True
        if self._streams is not None:
            await self._streams.stdin.aclose()
        with anyio.move_on_after(END_SECONDS):
            await self.ended.wait()
        if not self.ended.is_set():
            with suppress(EngineError):
                await self._engine.ask(self._engine.api.kill, self._container, "SIGTERM")
            with anyio.move_on_after(END_SECONDS):
                await self.ended.wait()
        return self.outcome()

    def outcome(self) -> RecorderEndEvent:
        """What is known about the recording; whole only after `stop`."""
        decoder = self._decoder
        seen = set(decoder.marks)
        lost = {"damaged": decoder.damaged}
        ended = self._stopping and self.ended.is_set()
        return RecorderEndEvent(
            phase=Phase.STOP,
            session=self._session,
            recorder="strace",
            loaded=self._loaded,
            early=self._early or not ended,
            reason="stopped" if ended and not self._early else str(self._error or "strace is gone"),
            matched=decoder.received,
            received=decoder.received,
            lost={name: number for name, number in lost.items() if number},
            marks_seen=len(seen),
            marks_missing=tuple(nonce for nonce in self._expected if nonce not in seen),
            calls=tuple(sorted(decoder.calls)),
            denied=tuple(sorted(decoder.denied - decoder.calls)),
            compat=tuple(sorted(decoder.compat)),
        )

    _early = False

    def close(self) -> None:
        """Hang up: what was not read of the events is thrown away."""
        if self._streams is not None:
            self._streams.close()
        self._in.close()
        self._out.close()

    async def run(self) -> None:
        """Make and start the container and listen to it until it ends; errors are kept for those who wait."""
        try:
            self._container = await self._collected.create(self.name, self._config)
            self._streams = streams = await attach(self._engine, self._container, STDERR_BYTES)
            await self._engine.call(self._engine.api.start, self._container)
            self._started.set()
            async with background() as tasks:
                tasks.start_soon(streams.pump)
                await self._listen(streams)
        except HarnessError as error:
            self._error = error if isinstance(error, EngineError) else EngineError(error.message, remedy=error.remedy)
        except anyio.get_cancelled_exc_class():
            self._in.close()  # the launch is given up: nobody will read
            raise
        finally:
            self._early = not self._stopping
            if self._streams is not None:
                self._streams.close()
            self._out.close()
            self.ended.set()
            self._started.set()
            self._notice()

    async def _listen(self, streams: ContainerStreams) -> None:
        with suppress(anyio.EndOfStream):
            while True:
                await self._pass_on(self._decoder.feed(await streams.stdout.receive()))
                self._notice()
        await self._pass_on(self._decoder.finish())

    def _notice(self) -> None:
        self._seen.set()
        self._seen = anyio.Event()

    async def _pass_on(self, events: list[Event]) -> None:
        if events:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads any more
                await self._out.send(events)
        await anyio.lowlevel.checkpoint()

    async def _tell(self, line: str) -> None:
        try:
            assert self._streams is not None
            await self._streams.stdin.send(line.encode("ascii") + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise self._error or EngineError("strace does not listen") from None
