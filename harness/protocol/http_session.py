"""A session over streamable HTTP: each message a POST of its own, answers and events taken in as they come.

What is recorded, bounded and waited for is as on two byte streams (`harness.protocol.session`); this is the way there.
Servers of the first revision (2024-11-05, HTTP with SSE) are found out by how they refuse `initialize`.
Redirects are not followed, nothing is compressed, and streams that end are resumed a few times at most.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import anyio.abc

from harness.model.errors import EngineError
from harness.model.options import Limits
from harness.model.probe import HttpReply, HttpShape
from harness.model.recording import Direction, EventSink, Phase
from harness.protocol.framing import Held, Line
from harness.protocol.http_body import EventReader, ServerEvent, Totals, answers, endpoint_of, refusal
from harness.protocol.http_exchange import EVENTS, Answered, BadHttp, Exchange, Head, UnsendableRequest
from harness.protocol.http_intake import Intake
from harness.protocol.http_request import (
    SESSION_HEADER,
    WITHOUT_BODY,
    Credentials,
    Sent,
    deviating,
    header_value,
    headers_of,
    read_sent,
    replaced,
)
from harness.protocol.outcomes import Closed, CloseReason, Outcome, RpcError, Unreadable
from harness.protocol.session import LAST_WORDS_SECONDS, LOST, RawSession, running

#: A connection to the server. Raises `ConnectionRefusedError` when nobody listens, `EngineError` when nobody can.
Connect = Callable[[], Awaitable[anyio.abc.ByteStream]]

#: Between two tries while nobody listens yet.
AGAIN_SECONDS = 0.1
#: How long the answer to what wants none (a notification) is waited for before the next message goes.
ACCEPTED_SECONDS = 5.0
#: How long the end of a session may take, and the first event of a server of the first revision.
GOODBYE_SECONDS = 2.0
ENDPOINT_SECONDS = 5.0
#: How often a stream that ended without the answer is asked for again, and how long is waited before.
MOST_RESUMES = 5
RESUME_SECONDS = (0.1, 2.0)
MOST_NOTES = 200  # facts about statuses and headers, in one session
_SESSIONLESS = frozenset({400, 404, 405})
_UNKNOWN = frozenset({401, 403})
_GREETINGS = frozenset({"initialize", "server/discover"})


@asynccontextmanager
async def http_session(
    connect: Connect,
    sink: EventSink,
    *,
    port: int,
    path: str,
    limits: Limits,
    name: str = "main",
    phase: str = Phase.START,
    ways: Sequence[tuple[str, str]] = (),
    standing: Mapping[str, str] | None = None,
) -> AsyncIterator[HttpSession]:
    """A session with what listens on `port`, at `path`; the first message waits until somebody does.

    `ways`: headers and values by which a credential may be shown, tried in turn where the greeting is refused.
    `standing`: headers that go with every request. Raises what the body raises, unwrapped.
    """
    session = HttpSession(connect, sink, port=port, path=path, limits=limits, name=name, phase=phase)
    session.credentials = Credentials(ways, standing)
    async with running(session):
        try:
            yield session
        finally:
            await session._goodbye()


class HttpSession(RawSession):
    """Made by `http_session`. `session_id` is the server's, once it gave one; `legacy`: it is of the first revision."""

    _jams = False

    def __init__(
        self, connect: Connect, sink: EventSink, *, port: int, path: str, limits: Limits, name: str, phase: str
    ) -> None:
        super().__init__(sink, limits=limits, name=name, phase=phase)
        self.session_id: str | None = None
        #: Sent with each message in place of the usual ones, or beside them.
        self.headers: dict[str, str] = {}
        self.credentials = Credentials()
        self._connect_once, self._port, self._target = connect, port, path
        self._totals = Totals(limits)
        self._reached = False
        self.legacy: anyio.Event | None = None
        self._intake, self._over = Intake(), anyio.Event()
        self._why = CloseReason.END_OF_STREAM
        self._notes = 0

    def finish(self, reason: CloseReason = CloseReason.END_OF_STREAM) -> None:
        """Nothing more will come: the server is gone."""
        if not self._over.is_set():
            self._why = reason
            self._over.set()

    async def exchange(self, body: bytes, shape: HttpShape, *, timeout: float) -> HttpReply | None:
        """Send one request that deviates as `shape` says; the head of the answer, None when none came in time.

        What its body says is taken in as any other answer is. Raises HarnessError when our side broke.
        """
        headers = deviating(self._usual(read_sent(body), shape.credential), shape)
        if shape.session == "ended":
            await self._goodbye()
        self._record(Direction.SENT, body[: self._limits.frame_keep_bytes], len(body), ())
        with anyio.move_on_after(timeout):
            try:
                exchange = await self._ask(shape.method, headers, b"" if shape.method in WITHOUT_BODY else body)
                answered = await self._start(exchange, Sent())
            except (*LOST, UnsendableRequest):
                return None
            await answered.head.wait()
            if answered.reply is not None:
                with anyio.move_on_after(ACCEPTED_SECONDS):
                    if not answered.stream:
                        await answered.done.wait()
            return answered.reply
        return None

    # Sending

    async def _send(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            await self._post(line)

    async def _post(self, line: bytes) -> None:
        sent = read_sent(line)
        if sent.method == "initialize" and sent.id is not None:
            self.session_id = None  # a new session begins without an id
        headers = replaced(self._usual(sent), self.headers if sent.id is not None else {})
        try:
            exchange = await self._ask("POST", list(headers.items()), line)
        except UnsendableRequest as error:
            self._fact(f"a message could not be sent over HTTP: {error}")
            raise anyio.BrokenResourceError from None
        answered = await self._start(exchange, sent, line)
        if sent.id is None:
            with anyio.move_on_after(ACCEPTED_SECONDS):
                await answered.done.wait()
        if sent.method == "notifications/initialized" and answered.accepted and self.legacy is None:
            self._intake.beside(self._listen)

    async def _ask(self, method: str, headers: list[tuple[str, str]], body: bytes) -> Exchange:
        """Send a request on a connection of its own. Raises as a stream does, and `UnsendableRequest`."""
        if body or method in ("POST", "PUT", "PATCH"):
            headers = [*headers, ("Content-Length", str(len(body)))]
        exchange = Exchange(await self._connect())
        try:
            await exchange.send(method, self._target, headers, body)
        except BaseException:
            await exchange.aclose()
            raise
        return exchange

    async def _connect(self) -> anyio.abc.ByteStream:
        """A connection; waits until somebody listens for the first time."""
        await self._intake.begun.wait()
        while not self._over.is_set():
            try:
                stream = await self._connect_once()
            except ConnectionRefusedError:
                if self._reached:
                    self.finish()
                    raise
            except EngineError as error:
                self._fact(f"the server can't be reached any more: {error.message}")
                self.finish(CloseReason.BROKEN_STREAM)
            else:
                self._reached = True
                return stream
            with anyio.move_on_after(AGAIN_SECONDS):
                await self._over.wait()
        raise anyio.BrokenResourceError

    async def _start(self, exchange: Exchange, sent: Sent, line: bytes = b"") -> Answered:
        """Take in the answer beside everything else. Raises as a stream does when the session has ended meanwhile."""
        answered = Answered()
        if not self._intake.take(partial(self._answered, exchange, sent, answered, line)):
            await exchange.aclose()
            raise anyio.BrokenResourceError
        return answered

    # Receiving

    async def _receive(self) -> CloseReason:
        async with self._intake.receiving():
            await self._over.wait()
            if self._why is CloseReason.END_OF_STREAM and self._totals.exhausted is None:
                with anyio.move_on_after(LAST_WORDS_SECONDS):  # of a server that has just ended
                    await self._intake.drained()
        if self._totals.exhausted is not None:
            totals = self._totals
            return self._exhausted(totals.exhausted, totals.messages_seen, totals.bytes_seen)
        return self._why

    async def _answered(self, exchange: Exchange, sent: Sent, answered: Answered, line: bytes) -> None:
        try:
            head = await exchange.head()
            answered.told(head)
            if sent.method == "initialize" and 200 <= head.status < 300:
                self.session_id = head.headers.get(SESSION_HEADER)
            await self._body(exchange, head, sent, line)
        except BadHttp as error:
            self._fact(f"the answer to {sent.method or 'a request'} is no HTTP: {error}")
            self._resolve(sent, Closed(CloseReason.BROKEN_STREAM))
        except LOST:
            self._fact(f"the connection ended before the answer to {sent.method or 'a request'} did")
            self._resolve(sent, Closed(CloseReason.BROKEN_STREAM))
        finally:
            answered.over()
            await exchange.aclose()

    async def _body(self, exchange: Exchange, head: Head, sent: Sent, posted: bytes) -> None:
        if head.content_type == EVENTS and 200 <= head.status < 300:
            await self._events(exchange, sent)
            return
        held = Held(self._limits.line_bytes)
        async for piece in exchange.pieces():
            held.keep(piece, 0, len(piece))
            if not self._take_bytes(len(piece)):
                return
        line = held.line(self._limits)
        good = 200 <= head.status < 300
        if head.status in _UNKNOWN and await self._shows(sent, posted):
            return
        older = sent.method == "initialize" and head.status in _SESSIONLESS and not answers(line)
        if older and await self._first_revision(posted):
            return
        if head.status == 202:
            return  # taken; what some say with it is for people
        if line is not None and not self._totals.message():
            self.finish()
            return
        if line is None:
            frame = 0
        elif good or answers(line):
            frame = self._take(line)
        else:  # a page about the error: evidence, and no message
            frame = self._record(Direction.RECEIVED, line.raw, line.size, ())
        if not good:
            where = f" to {head.headers['location'][:200]!r}" if "location" in head.headers else ""
            number = self._fact(f"{sent.method or 'a message'} was answered with HTTP status {head.status}{where}")
            self._resolve(sent, RpcError(head.status, refusal(head.status, line), None, frame or number))
        elif line is not None and not line.parsed:
            self._resolve(sent, Unreadable(line.anomalies, frame))

    async def _events(self, exchange: Exchange, sent: Sent) -> None:
        """A stream of events, to its end, and again where it ended early."""
        reader = await self._stream(exchange)
        for _ in range(MOST_RESUMES):
            waiting = self._waiting.of(sent.id) if sent.id is not None else None
            if waiting is None or waiting.outcome is not None or not reader.last_id:
                return
            least, most = RESUME_SECONDS
            await anyio.sleep(min(most, max(least, (reader.retry or 0) / 1000)))
            headers = {**self._get_headers(), "Last-Event-ID": header_value(reader.last_id)}
            try:
                again = await self._ask("GET", list(headers.items()), b"")
            except UnsendableRequest:
                return
            try:
                head = await again.head()
                if head.status != 200 or head.content_type != EVENTS:
                    return
                reader = await self._stream(again)
            finally:
                await again.aclose()

    async def _stream(self, exchange: Exchange) -> EventReader:
        reader = EventReader(self._limits)
        async for piece in exchange.pieces():
            events = reader.feed(piece)
            if not self._take_bytes(len(piece)) or not self._take_events(events):
                return reader
        self._take_events(reader.finish())
        return reader

    def _take_events(self, events: list[ServerEvent]) -> bool:
        for event in events:
            if not self._totals.message():
                self.finish()
                return False
            if event.kind == "endpoint" and self.legacy is not None and event.line is not None:
                self._endpoint(event.line)
            elif event.line is not None:
                self._take(event.line)
        return True

    def _take_bytes(self, size: int) -> bool:
        if self._totals.take(size):
            return True
        self.finish()
        return False

    def _resolve(self, sent: Sent, outcome: Outcome) -> None:
        """The request ended like this, unless it was answered."""
        if sent.id is not None and (pending := self._waiting.of(sent.id)) is not None:
            pending.resolve(outcome)

    def _fact(self, text: str) -> int:
        self._notes += 1
        return self.note(text) if self._notes <= MOST_NOTES else 0

    # Streams that the server opens for itself, and the end

    def _usual(self, sent: Sent, credential: str = "kept") -> dict[str, str]:
        headers = headers_of(sent, self._port, self.session_id, self.protocol_version)
        return self.credentials.on(headers, which=credential)

    def _get_headers(self) -> dict[str, str]:
        headers = self._usual(Sent())
        del headers["Content-Type"]
        return {**headers, "Accept": EVENTS}

    async def _listen(self) -> None:
        """The stream on which a server may speak unasked; one that offers none says so with status 405."""
        with suppress(BadHttp, UnsendableRequest, *LOST):
            exchange = await self._ask("GET", list(self._get_headers().items()), b"")
            try:
                head = await exchange.head()
                if head.status == 200 and head.content_type == EVENTS:
                    await self._stream(exchange)
                elif head.status not in (404, 405):
                    self._fact(f"the stream for messages of the server was answered with HTTP status {head.status}")
            finally:
                await exchange.aclose()

    async def _shows(self, sent: Sent, posted: bytes) -> bool:
        """Greet again with the next credential that there is, where who is unknown is turned away."""
        if sent.method not in _GREETINGS or not posted or not self.credentials.another():
            return False
        self.note(f"it asks who we are, and is shown what it was started with, as {self.credentials.header}")
        with suppress(*LOST):
            await self._post(posted)
        return True

    async def _first_revision(self, posted: bytes) -> bool:
        """Try HTTP with SSE: the server names an endpoint in its stream, and answers there. True when it does."""
        if self.legacy is not None:
            return False
        self.legacy = found = anyio.Event()
        self._intake.beside(self._listen)
        with anyio.move_on_after(ENDPOINT_SECONDS):
            await found.wait()
        if not found.is_set():
            self.legacy = None
            return False
        self.note("it speaks HTTP with SSE, as revision 2024-11-05 has it")
        with suppress(*LOST):
            await self._post(posted)
        return True

    def _endpoint(self, line: Line) -> None:
        """Where messages are posted to, as a server of the first revision says; another host is not gone to."""
        place = endpoint_of(line)
        if place is None:
            return
        self._target, elsewhere = place
        if elsewhere:
            self._fact(f"it names an endpoint on another host, which was not used: {elsewhere[:200]!r}")
        if self.legacy is not None:
            self.legacy.set()

    async def _goodbye(self) -> None:
        """End the server's session, as a client in order does."""
        if not self._reached:
            self.note(f"nothing listened on port {self._port}")
        if self.session_id is None or self._over.is_set():
            return
        with anyio.move_on_after(GOODBYE_SECONDS, shield=True), suppress(BadHttp, UnsendableRequest, *LOST):
            exchange = await self._ask("DELETE", list(self._get_headers().items()), b"")
            try:
                await exchange.head()
            finally:
                await exchange.aclose()
