"""Connections into the target's network namespace, as byte streams: the harness' side of the gateway's relay.

Each is a number in frames on the gateway's stdin and stdout (sandboxes/gateway/sinkhole/relay.py). Neither side sends
more than `WINDOW` bytes beyond what the other took, so a reader that is slow holds up its own connection only. All end
with the gateway.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.abc
import anyio.lowlevel

from harness.model.errors import EngineError
from harness.sandbox.gateway_frames import Message

WINDOW = 256 << 10
#: Bytes of one frame.
CHUNK = 32 << 10
#: How long the gateway may take to say whether somebody listens.
OPEN_SECONDS = 10.0
#: Connections that are remembered as ours for the check of the capture.
MOST_ENDS = 20_000

#: Sends one frame to the gateway. Raises `EngineError`.
Tell = Callable[[Message, bytes], Awaitable[None]]


class RelayedStream(anyio.abc.ByteStream):
    """One connection, made by `Relay.connect`."""

    def __init__(self, number: int, tell: Tell) -> None:
        self._number, self._tell = number, tell
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._room = WINDOW
        self._changed = anyio.Event()
        self._ended = self._closed = self._finished = False
        self.refused = False
        self.opened = anyio.Event()
        self._sending = anyio.ResourceGuard("writing to")
        self._receiving = anyio.ResourceGuard("reading from")

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        with self._receiving:
            while not self._pieces:
                if self._closed:
                    raise anyio.ClosedResourceError
                if self._ended:
                    raise anyio.EndOfStream
                await self._changed.wait()
            piece = self._pieces.popleft()
            if len(piece) > max_bytes:
                self._pieces.appendleft(piece[max_bytes:])
                piece = piece[:max_bytes]
            self._held -= len(piece)
        if not self._ended:
            with suppress(EngineError):  # a gateway that is gone ends the stream by itself
                await self._tell({"do": "more", "id": self._number, "bytes": len(piece)}, b"")
        return piece

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        with self._sending:
            rest = memoryview(item)
            while rest:
                if self._closed or self._finished:
                    raise anyio.ClosedResourceError
                if self._ended:
                    raise anyio.BrokenResourceError
                if self._room <= 0:
                    await self._changed.wait()
                    continue
                piece = bytes(rest[: min(CHUNK, self._room)])
                self._room -= len(piece)
                rest = rest[len(piece) :]
                try:
                    await self._tell({"do": "data", "id": self._number}, piece)
                except EngineError:
                    raise anyio.BrokenResourceError from None

    async def send_eof(self) -> None:
        if not self._finished and not self._ended and not self._closed:
            self._finished = True
            with suppress(EngineError):
                await self._tell({"do": "eof", "id": self._number}, b"")

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._pieces.clear()
            self._change()
            if not self._ended:
                with suppress(EngineError), anyio.CancelScope(shield=True):
                    await self._tell({"do": "close", "id": self._number}, b"")
        await anyio.lowlevel.checkpoint()

    def hear(self, message: Message, body: bytes) -> bool:
        """Take what the gateway says of it; False when it is over."""
        match message.get("kind"):
            case "opened":
                self.opened.set()
            case "refused":
                self.refused = True
            case "data":
                self._held += len(body)
                if self._held > WINDOW:  # more than was allowed: nothing that can be gone on with
                    self._ended = True
                elif not self._closed and body:
                    self._pieces.append(body)
            case "more":
                taken = message.get("bytes", 0)
                self._room = min(WINDOW, self._room + (taken if isinstance(taken, int) and taken > 0 else 0))
            case "closed":
                self.end()
        self._change()
        return not self._ended

    def end(self) -> None:
        """No more will come; what is held can still be read."""
        self._ended = True
        self.opened.set()
        self._change()

    @property
    def over(self) -> bool:
        """True once the other side has ended it."""
        return self._ended

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Relay:
    """All connections of one gateway. `ends`: protocol, local and remote end of each that was made."""

    def __init__(self, tell: Tell) -> None:
        self.ends: set[tuple[str, str, str]] = set()
        self._tell = tell
        self._live: dict[int, RelayedStream] = {}
        self._numbers = itertools.count(1)
        self._gone = False

    async def connect(self, port: int) -> anyio.abc.ByteStream:
        """A connection to what listens on a TCP port of loopback inside.

        Raises `ConnectionRefusedError` when nobody listens there, `EngineError` when the gateway is gone or silent.
        """
        if self._gone:
            raise EngineError("the gateway is gone")
        number = next(self._numbers)
        stream = self._live[number] = RelayedStream(number, self._tell)
        try:
            await self._tell({"do": "connect", "id": number, "port": port}, b"")
            with anyio.move_on_after(OPEN_SECONDS):
                await stream.opened.wait()
        except BaseException:
            await self._drop(number, stream)
            raise
        if not stream.opened.is_set():
            await self._drop(number, stream)
            raise EngineError("the gateway did not answer in time", remedy="the machine may be overloaded; try again")
        if stream.refused:
            raise ConnectionRefusedError(f"nobody listens on port {port}")
        if self._gone:
            raise EngineError("the gateway is gone")
        return stream

    async def _drop(self, number: int, stream: RelayedStream) -> None:
        self._live.pop(number, None)
        await stream.aclose()

    def hear(self, message: Message, body: bytes) -> None:
        """Take one of the gateway's frames about a connection; of one that is over nothing is expected any more."""
        number = message.get("id")
        stream = self._live.get(number) if isinstance(number, int) else None
        if stream is None or not isinstance(number, int):
            return
        if message.get("kind") == "opened" and len(self.ends) < MOST_ENDS:
            self.ends.add(("tcp", str(message.get("local", ""))[:80], str(message.get("remote", ""))[:80]))
        if not stream.hear(message, body):
            del self._live[number]

    def end(self) -> None:
        """The gateway has ended."""
        self._gone = True
        for stream in self._live.values():
            stream.end()
        self._live.clear()
