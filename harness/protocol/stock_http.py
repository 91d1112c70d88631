"""The stock client over HTTP: its child speaks HTTP on a socket of ours, and what passes goes on to the server.

Each request of the child's is taken apart, recorded, and asked anew on a connection of its own; the answer is read
within bounds and handed back piece by piece. So the SDK's own HTTP client is at work, and meets no more than it can
bear.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import anyio.abc
import h11

from harness.model.base import JsonObject
from harness.model.errors import EngineError
from harness.model.options import Limits
from harness.model.recording import Direction
from harness.protocol.framing import Held, Line
from harness.protocol.http_body import EventReader, Totals
from harness.protocol.http_exchange import EVENTS, HEAD_BYTES, BadHttp, Exchange, Head, UnsendableRequest
from harness.protocol.http_request import Credentials
from harness.protocol.http_session import AGAIN_SECONDS, Connect
from harness.protocol.stock_relay import LOST, TOO_MUCH, Keeper, Relay

_CHUNK = 65536
#: Headers that belong to one connection, and are said anew on the next (RFC 9110, section 7.6.1).
_OF_THE_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "upgrade", "te"})
_UNKNOWN = frozenset({401, 403})


@dataclass(frozen=True)
class HttpPlace:
    """Where a server listens. `ways`: headers by which a credential may be shown to it; `standing`: headers that go
    with every request; `older`: it speaks HTTP with SSE, as revision 2024-11-05 has it.
    """

    connect: Connect
    port: int
    path: str
    ways: Sequence[tuple[str, str]] = ()
    standing: Mapping[str, str] | None = None
    older: bool = False


class HttpRelay(Relay):
    """Between a socket that the child asks on and the server's port."""

    def __init__(self, process: anyio.abc.Process, keeper: Keeper, place: HttpPlace) -> None:
        super().__init__(process, keeper)
        self._place = place
        self._credentials = Credentials(place.ways, place.standing)
        self._totals = Totals(keeper.limits)
        self._reached = False

    @asynccontextmanager
    async def _carrying(self, job: JsonObject) -> AsyncIterator[JsonObject]:
        async with anyio.TemporaryDirectory(prefix="harness-stock-") as folder:
            path = f"{folder}/socket"
            url = f"http://localhost:{self._place.port}{self._place.path}"
            listener = await anyio.create_unix_listener(path, mode=0o600)
            async with listener, anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, self._serve)
                yield {**job, "socket": path, "url": url, "older": self._place.older}
                tasks.cancel_scope.cancel()

    async def _to_child(self, job: bytes, target: anyio.abc.ByteSendStream) -> None:
        with suppress(*LOST):
            await target.send(job)

    async def _from_child(self, source: anyio.abc.ByteReceiveStream) -> None:
        with suppress(*LOST):
            while True:
                await source.receive()  # nothing that it prints there is a message

    async def _serve(self, client: anyio.abc.SocketStream) -> None:
        """One request of the child's. A connection that ends without an answer tells it that something is wrong."""
        side = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        async with client:
            try:
                request, body = await self._request(client, side)
                exchange, head = await self._asked(request, body)
                try:
                    said = [(n, v) for n, v in head.headers.items() if n not in _OF_THE_CONNECTION]
                    headers = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in (*said, ("Connection", "close"))]
                    started = h11.Response(status_code=head.status, headers=headers)
                    await self._answer(client, side, started, exchange, events=head.content_type == EVENTS)
                finally:
                    await exchange.aclose()
            except EngineError as error:
                self.failure = self.failure or error
            except (*LOST, BadHttp, UnsendableRequest, h11.ProtocolError):
                return

    async def _request(self, client: anyio.abc.SocketStream, side: h11.Connection) -> tuple[h11.Request, bytes]:
        request, body = None, b""
        while True:
            event = side.next_event()
            if event is h11.NEED_DATA:
                side.receive_data(await client.receive(_CHUNK))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
                if len(body) > self.keeper.limits.line_bytes:  # the child handled a target's bytes
                    raise anyio.EndOfStream
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                if body:
                    self.keeper.record(Direction.SENT, [_line(body, self.keeper.limits)])
                return request, body
            else:
                raise anyio.EndOfStream

    async def _asked(self, request: h11.Request, body: bytes) -> tuple[Exchange, Head]:
        """Ask the server; where it asks who we are, once more for each credential that there is."""
        usual = {n.decode("latin-1"): v.decode("latin-1") for n, v in request.headers}
        usual = {name: value for name, value in usual.items() if name.lower() not in _OF_THE_CONNECTION}
        if body:
            usual["Content-Length"] = str(len(body))
        method, target = request.method.decode(), request.target.decode("latin-1")
        while True:
            exchange = Exchange(await self._reach())
            try:
                await exchange.send(method, target, list(self._credentials.on(usual).items()), body)
                head = await exchange.head()
            except BaseException:
                await exchange.aclose()
                raise
            if head.status not in _UNKNOWN or not self._credentials.another():
                return exchange, head
            await exchange.aclose()

    async def _reach(self) -> anyio.abc.ByteStream:
        """A connection; waits until somebody listens for the first time."""
        while True:
            try:
                stream = await self._place.connect()
            except ConnectionRefusedError:
                if self._reached:
                    raise
                await anyio.sleep(AGAIN_SECONDS)
            else:
                self._reached = True
                return stream

    async def _answer(
        self,
        client: anyio.abc.SocketStream,
        side: h11.Connection,
        started: h11.Response,
        exchange: Exchange,
        *,
        events: bool,
    ) -> None:
        """Hand the answer back: a stream of events as it comes, anything else once it is there."""
        limits = self.keeper.limits
        if events:
            await client.send(side.send(started) or b"")
            reader = EventReader(limits)
            async for piece in exchange.pieces():
                self._take([event.line for event in reader.feed(piece)], len(piece))
                await client.send(side.send(h11.Data(data=piece)) or b"")
            self._take([event.line for event in reader.finish()], 0)
        else:
            held = Held(limits.line_bytes)
            async for piece in exchange.pieces():
                held.keep(piece, 0, len(piece))
                self._take([], len(piece))
            whole = bytes(held.head)
            self._take([held.line(limits)] if held.size else [], 0)
            await client.send((side.send(started) or b"") + (side.send(h11.Data(data=whole)) or b"" if whole else b""))
        await client.send(side.send(h11.EndOfMessage()) or b"")

    def _take(self, lines: Sequence[Line | None], size: int) -> None:
        """Count and keep what came. Raises EndOfStream for what is too much for the child, or at a bound."""
        kept = [line for line in lines if line is not None]
        whole = self._totals.take(size) and all(self._totals.message() for _ in kept)
        self.keeper.record(Direction.RECEIVED, kept)
        self.refused = self.refused or any(not TOO_MUCH.isdisjoint(line.anomalies) for line in kept)
        if not whole:
            self.keeper.limit(self._totals.bytes_seen)
        if not whole or self.refused:
            raise anyio.EndOfStream


def _line(body: bytes, limits: Limits) -> Line:
    held = Held(max(limits.line_bytes, len(body)))
    held.keep(body, 0, len(body))
    line = held.line(limits)
    assert line is not None
    return line
