"""A raw JSON-RPC session over two byte streams: every frame recorded, every wait on the clock, outcomes as values.

One task reads and never waits for a write; one answers what the server asks; requests write for themselves. So a
server that stops reading its stdin, floods its stdout or closes either of them can't stall anything but itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

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
from harness.protocol.frames import frame_event
from harness.protocol.framing import Line, LineFramer
from harness.protocol.messages import Message, Notification, Request, Response, interpret
from harness.protocol.outcomes import Closed, CloseReason, Outcome, TimedOut, Unreadable, outcome_of
from harness.protocol.server_requests import answer

#: A server whose stdin is gone is usually dying: how long its last words are waited for.
LAST_WORDS_SECONDS = 2.0

#: Revision with batches (JSON-RPC arrays); no other has them.
BATCH_REVISION = "2025-03-26"

_CHUNK = 65536
_LOST = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
_ID_IN_TEXT = re.compile(rb'"id"\s*:\s*(\d{1,9})\s*[,}]')
_OUR_ID = re.compile("[0-9]{1,9}")
_ID_HEAD_BYTES = 256
_TOO_MUCH = frozenset({Anomaly.TOO_LONG, Anomaly.TOO_DEEP, Anomaly.TOO_MANY_VALUES})
_TAIL_BYTES = 128
#: Of a line that is sent as bytes, this much is recorded: what is longer is filling of ours.
_SENT_KEEP_BYTES = 16 << 10


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
    session = RawSession(stdin, stdout, sink, limits=limits, name=name, phase=phase)
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


class _Pending:
    """A request that waits. `outcome` is set before `done`."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.outcome: Outcome | None = None

    def resolve(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.done.set()


class RawSession:
    """Made by `raw_session`. `phase` is stamped on each event and is the driver's to change.

    `protocol_version` is set once it is agreed; `notifications` counts those received.
    """

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
        self.name = name
        self.phase = phase
        self.protocol_version: str | None = None
        self.notifications = 0
        #: Called with each line that comes, and the number of its frame.
        self.watch: Callable[[Line, int], None] | None = None
        self._stdin, self._stdout, self._sink, self._limits = stdin, stdout, sink, limits
        self._framer = LineFramer(limits)
        self._ended = anyio.Event()
        self._close_reason: CloseReason | None = None
        self._failure: HarnessError | None = None
        self._writing = anyio.Lock()
        self._jammed = False
        self._last_id = 0
        self._pending: dict[int, _Pending] = {}
        self._answered: set[int] = set()
        self._admitted: set[int] = set()
        self._timed_out = False
        self._asked_of_us = 0
        replies: tuple[MemoryObjectSendStream[JsonObject], MemoryObjectReceiveStream[JsonObject]] = (
            anyio.create_memory_object_stream[JsonObject](max(1, limits.queued_server_requests))
        )
        self._replies_in, self._replies_out = replies

    @property
    def last_id(self) -> int:
        """The id of the latest request; 0 before the first."""
        return self._last_id

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
        self._last_id += 1
        while self._last_id in self._admitted:  # a probe's: an answer to it could not be told from one to this
            self._last_id += 1
        number = self._last_id
        message: JsonObject = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        pending = self._pending[number] = _Pending()
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
        del self._pending[number]
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
        self._admitted.update(ids)

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

    def note(self, text: str) -> None:
        """Record a fact about this session that a reader of the bundle needs."""
        self._sink.record(NoteEvent(phase=self.phase, session=self.name, text=text))

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
            self._jammed = True  # unless the send comes to its end
            try:
                await self._stdin.send(data + b"\n")
            except _LOST:
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

    async def _read(self) -> None:
        reason = CloseReason.END_OF_STREAM
        try:
            while self._framer.exhausted is None:
                for line in self._framer.feed(await self._stdout.receive(_CHUNK)):
                    self._take(line)
            reason = CloseReason.FLOOD if self._framer.exhausted is Anomaly.FLOOD else CloseReason.BYTE_LIMIT
            self._record_exhausted()
        except anyio.EndOfStream:
            pass
        except _LOST:
            reason = CloseReason.BROKEN_STREAM
        except HarnessError as error:
            self._failure = error
            reason = CloseReason.BROKEN_STREAM
        for line in self._framer.finish():
            self._take(line)
        self._close_reason = reason
        self._ended.set()
        for pending in list(self._pending.values()):
            pending.resolve(Closed(reason))

    def _record_exhausted(self) -> None:
        flood = self._framer.exhausted is Anomaly.FLOOD
        self._sink.record(
            LimitEvent(
                phase=self.phase,
                session=self.name,
                what="stdout-lines" if flood else "stdout-bytes",
                bound=self._limits.messages if flood else self._limits.stdout_bytes,
                seen=self._framer.lines_seen if flood else self._framer.bytes_seen,
            )
        )

    def _settle(self) -> None:
        """At the end: a line begun and never finished matters only where an answer was missed."""
        self._replies_in.close()
        self._replies_out.close()
        if self._close_reason is None and self._timed_out:
            for line in self._framer.finish():
                self._take(line)

    def _take(self, line: Line) -> None:
        """Understand one line, record it with all that was noticed, then act on it."""
        messages: list[Message] = []
        anomalies = dict.fromkeys(line.anomalies)
        if line.parsed:
            messages, deviations = interpret(line.value, batches=self.protocol_version == BATCH_REVISION)
            anomalies.update(dict.fromkeys(deviations))
        matched: list[tuple[_Pending, Response]] = []
        for message in messages:
            if isinstance(message, Response):
                pending, tag = self._match(message)
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
        if not line.parsed and (hit := self._named_in(line)) is not None:
            hit.resolve(Unreadable(noticed, frame))
        for message in messages:
            if isinstance(message, Notification):
                self.notifications += 1
            elif isinstance(message, Request):
                self._serve(message, frame)

    def _match(self, response: Response) -> tuple[_Pending | None, Anomaly | None]:
        """The request that this answers, and what is wrong with its id. Ids of ours are whole numbers from 1."""
        identifier, tag = response.id, None
        if type(identifier) is not int:
            tag = Anomaly.WRONG_ID_TYPE
            if (isinstance(identifier, str) and _OUR_ID.fullmatch(identifier)) or (
                isinstance(identifier, float) and identifier.is_integer()
            ):
                identifier = int(identifier)
            elif identifier is None and response.failed and len(self._pending) == 1:
                identifier = next(iter(self._pending))  # an error about a request it could not read
            else:
                return None, tag if identifier is not None or not response.failed else None
        if identifier in self._admitted:
            return None, None
        if identifier in self._answered:
            return None, Anomaly.REPEATED_ID
        if not 1 <= identifier <= self._last_id:
            return None, Anomaly.UNKNOWN_ID
        self._answered.add(identifier)
        return self._pending.get(identifier), tag  # no longer pending: a late answer

    def _named_in(self, line: Line) -> _Pending | None:
        """The waiting request whose id stands at either end of a line that was too much to read."""
        if _TOO_MUCH.isdisjoint(line.anomalies):
            return None
        head, tail = line.raw[:_ID_HEAD_BYTES], line.tail or line.raw[-_TAIL_BYTES:]
        if not head.lstrip().startswith(b"{") or b'"method"' in head:
            return None
        for number in (*_ID_IN_TEXT.findall(head), *_ID_IN_TEXT.findall(tail)):
            if (pending := self._pending.get(int(number))) is not None:
                self._answered.add(int(number))
                return pending
        return None

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
        reply = answer(request)
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
