"""A raw JSON-RPC session over two byte streams: every frame recorded, every wait on the clock, outcomes as values.

One task reads and never waits for a write; one answers what the server asks; requests write for themselves. So a
server that stops reading its stdin, floods its stdout or closes either of them can't stall anything but itself.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from harness.model.base import JsonObject
from harness.model.errors import HarnessError
from harness.model.options import Limits
from harness.model.recording import (
    Anomaly,
    DeadlineEvent,
    Direction,
    EventSink,
    LimitEvent,
    NoteEvent,
    Phase,
    ServerRequestEvent,
)
from harness.protocol.era import CLIENT_CAPABILITIES
from harness.protocol.frames import frame_event
from harness.protocol.framing import Line, LineFramer
from harness.protocol.messages import Message, Notification, Request, Response, interpret
from harness.protocol.outcomes import Closed, CloseReason, Outcome, TimedOut, Unreadable, outcome_of
from harness.protocol.server_requests import Reply, answer
from harness.protocol.waiting import Pending, Waiting

#: A server whose stdin is gone is usually dying: how long its last words are waited for.
LAST_WORDS_SECONDS = 2.0

#: Revision with batches (JSON-RPC arrays); no other has them.
BATCH_REVISION = "2025-03-26"

_CHUNK = 65536
LOST = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
#: Of a line that is sent as bytes, this much is recorded: what is longer is filling of ours.
_SENT_KEEP_BYTES = 16 << 10

AnySession = TypeVar("AnySession", bound="RawSession")


@asynccontextmanager
async def raw_session(
    stdin: anyio.abc.ByteSendStream,
    stdout: anyio.abc.ByteReceiveStream,
    sink: EventSink,
    *,
    limits: Limits,
    name: str = "main",
    phase: str = Phase.START,
) -> AsyncIterator[RawSession]:
    """A session over the streams, which stay the caller's to close. Reading goes on until the context is left.

    Raises what the body raises, unwrapped, and HarnessError when a stream reports that our side broke.
    """
    async with running(StreamSession(stdin, stdout, sink, limits=limits, name=name, phase=phase)) as session:
        yield session


@asynccontextmanager
async def running(session: AnySession) -> AsyncIterator[AnySession]:
    """The session with its tasks, until the context is left. Raises what the body raises, unwrapped."""
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session._read)
            tasks.start_soon(session._answer)
            try:
                yield session
            except ExceptionGroup as group:  # of a task group in the body; the first to fail ended the others
                failure = group.exceptions[0]
            except Exception as error:  # carried out of the group, which would wrap it
                failure = error
            tasks.cancel_scope.cancel()
    finally:
        session._settle()
    if failure is not None:
        raise failure


class RawSession:
    """Whatever it goes over. `phase` is stamped on each event and is the driver's to change.

    `protocol_version` is set once it is agreed; `notifications` counts those received. A transport says how lines are
    sent (`_send`), how it reads (`_receive`), and what was left unfinished (`_left_over`).
    """

    #: Whether a write that was cut short spoils all that follow.
    _jams = True

    def __init__(self, sink: EventSink, *, limits: Limits, name: str, phase: str) -> None:
        self.name = name
        self.phase = phase
        self.protocol_version: str | None = None
        self.notifications = 0
        #: The client's capabilities, as the handshake declares them, and who answers what the server asks for then.
        self.offers: JsonObject = CLIENT_CAPABILITIES
        self.answerer: Callable[[Request], Reply] = answer
        #: Called with each line that comes, and the number of its frame.
        self.watch: Callable[[Line, int], None] | None = None
        self._sink, self._limits = sink, limits
        self._ended = anyio.Event()
        self._close_reason: CloseReason | None = None
        self._failure: HarnessError | None = None
        self._writing = anyio.Lock()
        self._jammed = False
        self._waiting = Waiting()
        self._timed_out = False
        self._asked_of_us = 0
        replies: tuple[MemoryObjectSendStream[JsonObject], MemoryObjectReceiveStream[JsonObject]] = (
            anyio.create_memory_object_stream[JsonObject](max(1, limits.queued_server_requests))
        )
        self._replies_in, self._replies_out = replies

    @property
    def last_id(self) -> int:
        """The id of the latest request; 0 before the first."""
        return self._waiting.last_id

    @property
    def closed(self) -> CloseReason | None:
        """Why nothing more will be received, or None while the session lives."""
        return self._close_reason

    async def ended(self) -> None:
        """Return when nothing more will be received."""
        await self._ended.wait()

    async def request(
        self, method: str, params: JsonObject | None = None, *, timeout: float, quiet: bool = False
    ) -> Outcome:
        """Send a request with a fresh id and wait at most `timeout` seconds, the write included.

        A deadline missed is recorded, unless `quiet`: for questions that a server need not answer.
        Raises HarnessError when a stream reports that our side broke.
        """
        if self._close_reason is not None:
            return self._end(Closed(self._close_reason))
        number, pending = self._waiting.begin()
        message: JsonObject = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        self._asked_of_us = 0
        written = False
        with anyio.move_on_after(timeout):
            if await self._write(message):
                written = True
                await pending.done.wait()
            elif not self._jammed and self._failure is None:
                with anyio.move_on_after(LAST_WORDS_SECONDS):
                    await self._ended.wait()
                pending.resolve(Closed(self.closed or CloseReason.STDIN_GONE))
        self._waiting.end(number)
        if pending.outcome is None:
            self._timed_out = True
            pending.outcome = TimedOut(timeout, blocked=not written)
            if not quiet:
                self._sink.record(
                    DeadlineEvent(
                        phase=self.phase, session=self.name, what=method, seconds=timeout, blocked=not written
                    )
                )
        return self._end(pending.outcome)

    async def notify(self, method: str, params: JsonObject | None = None, *, timeout: float) -> bool:
        """Send a notification; False when it could not be written within `timeout` seconds, which is recorded."""
        message: JsonObject = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        with anyio.move_on_after(timeout) as scope:
            return await self._write(message)
        if scope.cancelled_caught:
            self._sink.record(
                DeadlineEvent(phase=self.phase, session=self.name, what=method, seconds=timeout, blocked=True)
            )
        return False

    def admit(self, ids: Iterable[int]) -> None:
        """Expect answers with these ids, which `send_bytes` carries, at any time and any number of them."""
        self._waiting.admit(ids)

    async def send_bytes(self, data: bytes, *, timeout: float) -> bool:
        """Send lines as they are, whatever they hold; `data` ends with a newline.

        False when they could not be written within `timeout` seconds, which is recorded, or stdin is gone. Raises
        HarnessError when a stream reports that our side broke.
        """
        written = False
        with anyio.move_on_after(timeout) as scope:
            written = await self._write_bytes(data.removesuffix(b"\n"), keep=_SENT_KEEP_BYTES)
        if scope.cancelled_caught:
            self._sink.record(
                DeadlineEvent(phase=self.phase, session=self.name, what="probe", seconds=timeout, blocked=True)
            )
        if self._failure is not None:
            raise self._failure
        return written

    def note(self, text: str) -> int:
        """Record a fact about this session that a reader of the bundle needs; its number."""
        return self._sink.record(NoteEvent(phase=self.phase, session=self.name, text=text))

    def _end(self, outcome: Outcome) -> Outcome:
        if self._failure is not None:
            raise self._failure
        return outcome

    # Writing

    async def _write(self, message: JsonObject) -> bool:
        """Record and send one frame. False when stdin is gone; after a write that was cut short, always."""
        return await self._write_bytes(json.dumps(message, separators=(",", ":")).encode())

    async def _write_bytes(self, data: bytes, *, keep: int | None = None) -> bool:
        async with self._writing:
            if self._jammed:
                return False
            for line in data.split(b"\n"):
                self._record(Direction.SENT, line if keep is None else line[:keep], len(line), ())
            self._jammed = self._jams  # unless the send comes to its end
            try:
                await self._send(data)
            except LOST:
                self._jammed = False
                return False
            except HarnessError as error:
                self._failure = error
                return False
            self._jammed = False
            return True

    async def _answer(self) -> None:
        """Send the replies to what the server asked, one at a time."""
        async for message in self._replies_out:
            await self._write(message)

    # Reading

    async def _send(self, data: bytes) -> None:
        """Send lines, of which the last has no newline. Raises as a stream does, and HarnessError."""
        raise NotImplementedError

    async def _receive(self) -> CloseReason:
        """Take what comes until nothing more does; why that is. Raises as a stream does, and HarnessError."""
        raise NotImplementedError

    def _left_over(self) -> list[Line]:
        """Lines that were begun and not finished."""
        return []

    async def _read(self) -> None:
        reason = CloseReason.BROKEN_STREAM
        try:
            reason = await self._receive()
        except anyio.EndOfStream:
            reason = CloseReason.END_OF_STREAM
        except LOST:
            pass
        except HarnessError as error:
            self._failure = error
        for line in self._left_over():
            self._take(line)
        self._close_reason = reason
        self._ended.set()
        self._waiting.resolve_all(Closed(reason))

    def _exhausted(self, exhausted: Anomaly | None, lines: int, size: int) -> CloseReason:
        """Record that a bound of the session was reached after so many lines and bytes."""
        flood = exhausted is Anomaly.FLOOD
        self._sink.record(
            LimitEvent(
                phase=self.phase,
                session=self.name,
                what="stdout-lines" if flood else "stdout-bytes",
                bound=self._limits.messages if flood else self._limits.stdout_bytes,
                seen=lines if flood else size,
            )
        )
        return CloseReason.FLOOD if flood else CloseReason.BYTE_LIMIT

    def _settle(self) -> None:
        """At the end: a line begun and never finished matters only where an answer was missed."""
        self._replies_in.close()
        self._replies_out.close()
        if self._close_reason is None and self._timed_out:
            for line in self._left_over():
                self._take(line)

    def _take(self, line: Line) -> int:
        """Understand one line, record it with all that was noticed, then act on it; the number of its frame."""
        messages: list[Message] = []
        anomalies = dict.fromkeys(line.anomalies)
        if line.parsed:
            messages, deviations = interpret(line.value, batches=self.protocol_version == BATCH_REVISION)
            anomalies.update(dict.fromkeys(deviations))
        matched: list[tuple[Pending, Response]] = []
        for message in messages:
            if isinstance(message, Response):
                pending, tag = self._waiting.match(message)
                if tag is not None:
                    anomalies[tag] = None
                if pending is not None:
                    matched.append((pending, message))
        noticed = tuple(anomalies)
        frame = self._record(Direction.RECEIVED, line.raw, line.size, noticed)
        if self.watch is not None:
            self.watch(line, frame)
        for pending, response in matched:
            pending.resolve(outcome_of(response, noticed, frame, line.size, line.values))
        if not line.parsed and (hit := self._waiting.named_in(line)) is not None:
            hit.resolve(Unreadable(noticed, frame))
        for message in messages:
            if isinstance(message, Notification):
                self.notifications += 1
            elif isinstance(message, Request):
                self._serve(message, frame)
        return frame

    def _serve(self, request: Request, frame: int) -> None:
        """Answer a request of the server, at most so many between two of ours."""
        bound = self._limits.queued_server_requests
        self._asked_of_us += 1
        if self._asked_of_us > bound:
            if self._asked_of_us == bound + 1:
                self._sink.record(
                    LimitEvent(phase=self.phase, session=self.name, what="server-requests", bound=bound, seen=bound + 1)
                )
            return
        reply = self.answerer(request)
        summary = reply.summary
        if reply.message is not None:
            try:
                self._replies_in.send_nowait(reply.message)
            except anyio.WouldBlock:
                summary = "ignored: earlier replies were not read"
        self._sink.record(
            ServerRequestEvent(
                phase=self.phase, session=self.name, method=request.method[:200], answered=summary, frame=frame
            )
        )

    def _record(self, direction: Direction, raw: bytes, size: int, anomalies: tuple[Anomaly, ...]) -> int:
        return self._sink.record(
            frame_event(
                direction, raw, size, anomalies, phase=self.phase, session=self.name, keep=self._limits.frame_keep_bytes
            )
        )


class StreamSession(RawSession):
    """Over two byte streams, a message a line; made by `raw_session`."""

    def __init__(
        self,
        stdin: anyio.abc.ByteSendStream,
        stdout: anyio.abc.ByteReceiveStream,
        sink: EventSink,
        *,
        limits: Limits,
        name: str,
        phase: str,
    ) -> None:
        super().__init__(sink, limits=limits, name=name, phase=phase)
        self._stdin, self._stdout = stdin, stdout
        self._framer = LineFramer(limits)

    async def _send(self, data: bytes) -> None:
        await self._stdin.send(data + b"\n")

    async def _receive(self) -> CloseReason:
        framer = self._framer
        while framer.exhausted is None:
            for line in framer.feed(await self._stdout.receive(_CHUNK)):
                self._take(line)
        return self._exhausted(framer.exhausted, framer.lines_seen, framer.bytes_seen)

    def _left_over(self) -> list[Line]:
        return self._framer.finish()
