"""One connection as the protocols see it: bytes that can be looked at before they are taken, and TLS put over it.

What is taken counts as sent by the target and is kept in the flow; what is only looked at is not, so that a TLS
handshake is told as such and the text inside it as payload.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.abc
from anyio.streams.tls import TLSStream

from sinkhole.flows import Flow

CHUNK = 64 << 10
IDLE_SECONDS = 60.0
HANDSHAKE_SECONDS = 10.0
#: Bytes of a handshake that failed, kept as what was sent.
MOST_HANDSHAKE = 16 << 10


class Idle(Exception):
    """Nothing came for too long."""


class _Unread(anyio.abc.ByteStream):
    """A stream with bytes put back in front of it. `seen` holds the first that went through."""

    def __init__(self, inner: anyio.abc.ByteStream, first: bytes) -> None:
        self._inner, self._first = inner, first
        self.seen = bytearray(first[:MOST_HANDSHAKE])

    async def receive(self, max_bytes: int = CHUNK) -> bytes:
        if self._first:
            data, self._first = self._first[:max_bytes], self._first[max_bytes:]
            return data
        data = await self._inner.receive(max_bytes)
        if len(self.seen) < MOST_HANDSHAKE:
            self.seen += data
        return data

    async def send(self, item: bytes) -> None:
        await self._inner.send(item)

    async def send_eof(self) -> None:
        await self._inner.send_eof()

    async def aclose(self) -> None:
        await self._inner.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return self._inner.extra_attributes


class Channel:
    """The stream of a flow. `tls`: TLS was taken off. `touched`: when bytes last came (the loop's clock)."""

    def __init__(self, stream: anyio.abc.ByteStream, flow: Flow) -> None:
        self.flow = flow
        self.tls = False
        self.touched = anyio.current_time()
        self._stream = stream
        self._held = b""
        self._ended = False
        self._known = 0  # bytes before us that are in the flow already

    async def peek(self, size: int, seconds: float) -> bytes:
        """What lies before us, at least `size` bytes unless the stream ends or the time is over."""
        with anyio.move_on_after(seconds):
            while len(self._held) < size and not self._ended:
                self._held += await self._receive()
        return self._held

    async def read(self, seconds: float = IDLE_SECONDS) -> bytes:
        """Take bytes; b"" at the end. Raises `Idle`, ssl.SSLError, anyio.BrokenResourceError."""
        data, self._held = self._held, b""
        if not data and not self._ended:
            try:
                with anyio.fail_after(seconds):
                    data = await self._receive()
            except TimeoutError:
                raise Idle from None
        self.flow.sends(data[self._known :])
        self._known = max(0, self._known - len(data))
        return data

    async def _receive(self) -> bytes:
        try:
            data = await self._stream.receive(CHUNK)
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended = True
            return b""
        except anyio.BrokenResourceError as error:
            if isinstance(error.__cause__, ssl.SSLError):
                raise error.__cause__ from None
            raise
        self.touched = anyio.current_time()
        if not self.flow.began:
            self.flow.began = time.monotonic_ns()
        return data

    def put_back(self, data: bytes) -> None:
        """Give back bytes that were taken and belong to what follows; they are not kept again."""
        self._held = data + self._held
        self._known += len(data)

    async def send(self, data: bytes) -> None:
        """Send to the target. Raises anyio.BrokenResourceError."""
        self.flow.gets(data)
        await self._stream.send(data)

    @property
    def waiting(self) -> bool:
        """Nothing lies before us, and something may still come."""
        return not self._held and not self._ended

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Be the server of a TLS handshake that begins with what lies before us.

        Raises ssl.SSLError, TimeoutError, anyio.BrokenResourceError; then what came counts as sent.
        """
        inner = _Unread(self._stream, self._held)
        self._held, self._known = b"", 0
        try:
            with anyio.fail_after(HANDSHAKE_SECONDS):
                self._stream = await TLSStream.wrap(
                    inner, server_side=True, ssl_context=context, standard_compatible=False
                )
        except BaseException as error:
            self.flow.sends(bytes(inner.seen))
            if isinstance(error, anyio.BrokenResourceError) and isinstance(error.__cause__, ssl.SSLError):
                raise error.__cause__ from None
            raise
        self.tls = True
        self._ended = False

    async def aclose(self) -> None:
        """Close the connection without waiting for the other side."""
        with anyio.move_on_after(0.5, shield=True):
            await self._stream.aclose()
