"""One HTTP/1.1 exchange over a byte stream: what we ask, and what comes back, with bounds. h11 does the parsing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio
import anyio.abc
import h11

from harness.model.probe import HttpReply

#: Of the head of an answer, and interim answers (1xx) that may come before it.
HEAD_BYTES = 64 << 10
MOST_INTERIM = 10
_CHUNK = 65536
EVENTS = "text/event-stream"
#: Headers of an answer that a judgement may need.
_TELLING = (
    "mcp-session-id", "content-type", "location", "allow", "www-authenticate", "access-control-allow-origin",
    "access-control-allow-headers", "access-control-allow-methods", "access-control-allow-credentials",
)  # fmt: skip

Headers = Sequence[tuple[str, str]]


class BadHttp(Exception):
    """The answer is no HTTP; the message says what is wrong with it."""


class UnsendableRequest(Exception):
    """The request can't be put into HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers of an answer; names in lower case, values of one name joined by commas."""

    status: int
    headers: dict[str, str]

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Exchange:
    """One request and its answer on a stream of its own."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)

    async def send(self, method: str, target: str, headers: Headers, body: bytes) -> None:
        """Send a request whole. A server may answer and hang up before it has read all: the answer tells.

        Raises `UnsendableRequest`.
        """
        try:
            given = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
            request = h11.Request(method=method, target=target, headers=given)
            data = self._connection.send(request) or b""
            if body:
                data += self._connection.send(h11.Data(data=body)) or b""
            data += self._connection.send(h11.EndOfMessage()) or b""
        except (h11.LocalProtocolError, UnicodeError) as error:
            raise UnsendableRequest(str(error)) from error
        with suppress(anyio.BrokenResourceError, OSError):
            await self._stream.send(data)

    async def head(self) -> Head:
        """The head of the answer. Raises `BadHttp`, and as the stream does."""
        for _ in range(MOST_INTERIM + 1):
            event = await self._next()
            if isinstance(event, h11.Response):
                joined: dict[str, str] = {}
                for name, value in event.headers:
                    key, text = name.decode("latin-1").lower(), value.decode("latin-1")
                    joined[key] = f"{joined[key]}, {text}" if key in joined else text
                return Head(event.status_code, joined)
            if not isinstance(event, h11.InformationalResponse):
                break
        raise BadHttp("no final answer")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes of the body, as they come. Raises `BadHttp`, and as the stream does."""
        while True:
            event = await self._next()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            else:
                return

    async def aclose(self) -> None:
        """Hang up."""
        with anyio.CancelScope(shield=True):
            await self._stream.aclose()

    async def _next(self) -> object:
        try:
            while (event := self._connection.next_event()) is h11.NEED_DATA:
                try:
                    data = await self._stream.receive(_CHUNK)
                except anyio.EndOfStream:
                    data = b""
                self._connection.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise BadHttp(str(error)[:200]) from error
        return event


class Answered:
    """What became of one request: `head` once its head is there or none will come, `done` at its end."""

    def __init__(self) -> None:
        self.head, self.done = anyio.Event(), anyio.Event()
        self.reply: HttpReply | None = None
        self.stream = False

    @property
    def accepted(self) -> bool:
        """It was answered with success."""
        return self.reply is not None and 200 <= self.reply.status < 300

    def told(self, head: Head) -> None:
        """The head has come."""
        headers = {name: head.headers[name][:500] for name in _TELLING if name in head.headers}
        self.reply, self.stream = HttpReply(status=head.status, headers=headers), head.content_type == EVENTS
        self.head.set()

    def over(self) -> None:
        """Nothing more comes."""
        self.head.set()
        self.done.set()
