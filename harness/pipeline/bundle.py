"""Writing a run bundle as the run goes (the format is described in the design notes and in docs/bundle.md).

`BundleWriter` is the `EventSink` of a run: it numbers, stamps and bounds events. Frames go to messages.jsonl,
network flows to flows.jsonl, all other events to
events.jsonl.zst, in one common numbering. Writes are small appends to buffered local files,
which is why they are made from async code directly; sealing, which hashes everything, goes through a thread.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import anyio.to_thread
import zstandard

from harness.model.base import Record, canonical_json
from harness.model.flow import FlowEvent
from harness.model.grade import grade_of, weaker
from harness.model.options import Limits
from harness.model.plan import Action
from harness.model.recording import (
    Event,
    FrameEvent,
    Grade,
    LimitEvent,
    Manifest,
    ProcessEvent,
    RecorderEndEvent,
    SyscallEvent,
)
from harness.model.surface import Item, Surface
from harness.pipeline.blobs import CAPTURE, MOST_BYTES, BlobStore, join_capture, repointed, with_lines
from harness.pipeline.entropy import Entropy
from harness.pipeline.redaction import Redactor
from harness.pipeline.seal import write_seal

#: What is kept of a frame once the bundle's bound for messages is reached.
SHORT_FRAME_BYTES = 4096


class BundleWriter:
    """A bundle being written. Use as a context manager; `seal()` ends it in order.

    Leaving the context without `seal()` leaves an unsealed bundle, which is read as incomplete.
    Raises OSError when the folder can't be written.
    """

    def __init__(self, folder: Path, entropy: Entropy, limits: Limits, secrets: Iterable[str] = ()) -> None:
        """`secrets` are replaced wherever they occur in what is written."""
        self.folder = folder
        self._secrets = tuple(secrets)
        self._redactor = Redactor(self._secrets)
        self._entropy = entropy
        self._limits = limits
        self._started = entropy.monotonic_ns()
        self._seq = 0
        self._message_bytes = 0
        self._shortening = False
        self._kernel_events = 0
        self.dropped_kernel_events = 0
        self.grade = Grade.TRUSTED  # the weakest of the records so far
        self._blobs = BlobStore(folder / "blobs")
        self._flows: IO[bytes] | None = None
        self._surfaces: list[Surface] = []
        self._phases: list[str] = []
        self._listeners: list[Callable[[Event], None]] = []
        folder.mkdir(parents=True)
        (folder / "blobs").mkdir()
        self._messages: IO[bytes] = (folder / "messages.jsonl").open("wb")
        self._plan: IO[bytes] = (folder / "plan.jsonl").open("wb")
        self._events_file: IO[bytes] = (folder / "events.jsonl.zst").open("wb")
        self._events = zstandard.ZstdCompressor(level=3).stream_writer(self._events_file, closefd=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def hide(self, secrets: Iterable[str]) -> None:
        """Replace these too from now on."""
        self._secrets = (*self._secrets, *secrets)
        self._redactor = Redactor(self._secrets)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Have `listener` called with every event from now on, as it is numbered and stored."""
        self._listeners.append(listener)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the run began."""
        return (self._entropy.monotonic_ns() - self._started) // 1_000_000

    def record(self, event: Event) -> int:
        """Number, stamp and store one event; returns its number."""
        self._seq += 1
        stamp = {"seq": self._seq, "t": self._entropy.monotonic_ns() - self._started}
        if isinstance(event, RecorderEndEvent):
            self.grade = weaker(self.grade, grade_of(event))
        event = event.model_copy(update=stamp)
        if isinstance(event, FrameEvent):
            self.talked += 1
            self._frame(event)
        else:
            self._write(self._events, event)
            if event.kind != "note":
                self._events.flush(zstandard.FLUSH_BLOCK)
                self._events_file.flush()
        self._tell(event)
        return stamp["seq"]

    @property
    def epoch(self) -> int:
        """The start of the run in nanoseconds of CLOCK_MONOTONIC: the zero of every event's time."""
        return self._started

    @property
    def now(self) -> int:
        """Nanoseconds since the run's start."""
        return self._entropy.monotonic_ns() - self._started

    def record_flow(self, event: FlowEvent, blobs: Mapping[str, bytes]) -> int:
        """Number, stamp and store a flow and the bytes that it points to; returns its number."""
        clean = {name: self._redactor.data(data) for name, data in blobs.items()}
        renamed = {name: self._blobs.keep(data) for name, data in clean.items()}
        self._seq += 1
        event = repointed(with_lines(event, clean), renamed).model_copy(update={"seq": self._seq, "t": self.now})
        if self._flows is None:
            self._flows = (self.folder / "flows.jsonl").open("wb")
        self._write(self._flows, event)
        self._flows.flush()
        self.talked += 1
        self._tell(event)
        number = self._seq
        if self._blobs.overflowed and not self._blobs_cut:
            self._blobs_cut = True
            self._limit(event, "bundle-blobs", MOST_BYTES, self._blobs.seen)
        return number

    _blobs_cut = False
    #: Messages and flows stored so far.
    talked = 0

    def _limit(self, at: FlowEvent, what: str, bound: int, seen: int) -> None:
        self.record(LimitEvent(phase=at.phase, session=at.session, what=what, bound=bound, seen=seen))

    def join_capture(self, part: Path) -> int:
        """Append a session's packets to the bundle's capture, and remove the file that held them. Blocking.

        Returns 0, or where they were dropped as there is no room, the bytes that there would be with them.
        """
        return join_capture(self.folder / CAPTURE, part)

    def record_kernel(self, events: list[Event]) -> None:
        """Number and store events of the kernel's record, which carry their own times.

        Past the bound only what matters most is kept (programs, connections, decoys, heartbeats); the rest is counted
        in `dropped_kernel_events`, by which the session's record is known not to be whole.
        """
        lines: list[bytes] = []
        for event in events:
            self._kernel_events += 1
            if self._kernel_events > self._limits.kernel_events and not _matters(event):
                self.dropped_kernel_events += 1
                continue
            self._seq += 1
            event.give_number(self._seq)
            lines.append(self._line(event))
            self._tell(event)
        self._events.write(b"".join(lines))

    def _frame(self, event: FrameEvent) -> None:
        keep = self._limits.frame_keep_bytes if not self._shortening else SHORT_FRAME_BYTES
        if self._message_bytes > 2 * self._limits.bundle_message_bytes:
            keep = 0
        data = event.data
        if event.encoding == "base64":
            data = base64.b64encode(self._redactor.data(event.raw)).decode()
            event = event.model_copy(update={"data": data})
        if len(data) > keep:
            data = data[: keep // 4 * 4]  # whole base64 groups; for text any cut will do
            event = event.model_copy(update={"data": data, "truncated": True})
        self._message_bytes += self._write(self._messages, event)
        if not self._shortening:  # a run that dies leaves its conversation; a flood need not cost a write each
            self._messages.flush()
        if not self._shortening and self._message_bytes > self._limits.bundle_message_bytes:
            self._shortening = True
            self.record(
                LimitEvent(
                    phase=event.phase,
                    session=event.session,
                    what="bundle-messages",
                    bound=self._limits.bundle_message_bytes,
                    seen=self._message_bytes,
                )
            )

    def plan(self, action: Action) -> None:
        """Append an action and its prediction to the plan; on disk before this returns."""
        self._write(self._plan, action)
        self._plan.flush()

    def surface(self, surface: Surface, *, again: bool = False) -> None:
        """Keep what the server declared at one look; `again`: in place of all that an earlier attempt showed."""
        if again:
            self._surfaces.clear()
        self._surfaces.append(surface)
        path = self.folder / "surface.json"
        fresh = path.with_name(path.name + ".new")
        with fresh.open("wb") as file:
            for piece in _surface_pieces(self._surfaces):
                file.write(self._redactor.text(piece).encode())
        fresh.replace(path)

    def stderr(self, session: str, data: bytes) -> None:
        """Append a session's kept standard error to stderr.log, under a line that names the session."""
        with (self.folder / "stderr.log").open("ab") as log:
            log.write(b"== session " + session.encode() + b"\n" + self._redactor.data(data) + b"\n")

    def manifest(self, manifest: Manifest) -> None:
        """Write the manifest; called at the start and again when the recording ended."""
        text = self._redactor.text(manifest.model_dump_json(indent=1))
        _replace(self.folder / "manifest.json", text.encode() + b"\n")

    def further(self, name: str, text: str) -> None:
        """Write a further file of the bundle, secrets replaced; before it is sealed."""
        _replace(self.folder / name, self._redactor.text(text).encode())

    def end_recording(self) -> None:
        """Close the event files: nothing more is recorded, the judging half may read."""
        self._close()

    async def seal(self, result_json: str) -> None:
        """Write result.json and, last, the digests of everything."""
        self._close()
        _replace(self.folder / "result.json", result_json.encode())
        await anyio.to_thread.run_sync(write_seal, self.folder)

    def _write(self, file: IO[bytes] | zstandard.ZstdCompressionWriter, record: Record) -> int:
        """Append a record as a line; returns the line's bytes, which escapes can make six times those of its text."""
        line = self._line(record)
        file.write(line)
        return len(line)

    def _line(self, record: Record) -> bytes:
        return self._redactor.data(record.model_dump_json().encode()) + b"\n"

    def _close(self) -> None:
        if not self._messages.closed:
            self._events.close()  # type: ignore[no-untyped-call]
            for file in (self._messages, self._plan, self._events_file, self._flows):
                if file is not None:
                    file.close()


def _matters(event: Event) -> bool:
    """What is kept of a flood of system calls."""
    if isinstance(event, SyscallEvent):
        return event.decoy or event.denied or event.call == "connect"
    return not isinstance(event, ProcessEvent) or event.what == "exec"


def _surface_pieces(surfaces: Sequence[Surface]) -> Iterator[str]:
    """The canonical JSON of all looks, item by item: a large surface is never held as one text."""
    for first, surface in enumerate(surfaces):
        yield "[" if first == 0 else ","
        for number, name in enumerate(sorted(Surface.model_fields)):
            yield f"{'{' if number == 0 else ','}{canonical_json(name)}:"
            if name != "items":
                yield canonical_json(surface.model_dump(mode="json", include={name})[name])
                continue
            yield "["
            for place, item in enumerate(surface.items):
                yield ("," if place else "") + canonical_json({key: getattr(item, key) for key in Item.model_fields})
            yield "]"
        yield "}"
    yield "]\n" if surfaces else "[]\n"


def _replace(path: Path, data: bytes) -> None:
    """Write a whole file so that a reader sees the old or the new one, never half of it."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(data)
    fresh.replace(path)
