"""The streams of one container: the engine's multiplexed attach stream taken apart, with bounds.

The engine sends stdout and stderr of a container over one socket, in frames: one byte that names the stream (1 or
2), three zero bytes, the payload's size as 32-bit big-endian integer, the payload (Docker Engine API, "Attach to a
container"). stdout is passed on with back-pressure; stderr must never hold up stdout, so what nobody reads in time
is dropped and counted.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel

from harness.model.errors import EngineError
from harness.sandbox.engine import Engine

HEADER_BYTES = 8
STDOUT, STDERR = 1, 2
CHUNK_BYTES = 1 << 16
#: How much of stdout is held for a slow reader before the engine is made to wait.
STDOUT_HELD_BYTES = 1 << 20


class FrameDecoder:
    """Takes the attach stream apart; pure, and indifferent to how the stream was cut into reads."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._stream = 0
        self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (stream, piece) for what `data` completes; a payload may come in several pieces.

        Raises `EngineError` when a header names no known stream.
        """
        at = 0
        while at < len(data):
            if self._left == 0:
                part = data[at : at + HEADER_BYTES - len(self._header)]
                self._header += part
                at += len(part)
                if len(self._header) < HEADER_BYTES:
                    return
                self._stream = self._header[0]
                self._left = int.from_bytes(self._header[4:], "big")
                self._header.clear()
                if self._stream not in (STDOUT, STDERR):
                    raise EngineError("the engine's attach stream is out of order")
                continue
            piece = data[at : at + self._left]
            at += len(piece)
            self._left -= len(piece)
            yield self._stream, piece


class HeldStream(anyio.abc.ByteReceiveStream):
    """Bytes on their way from the engine to one reader, at most about `limit` of them at a time.

    With `lossy`, bytes that find no room are counted in `dropped` and lost; else `put` waits for room.
    """

    def __init__(self, limit: int, *, lossy: bool) -> None:
        self._limit = limit
        self._lossy = lossy
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._ended = False
        self._closed = False
        self._changed = anyio.Event()
        self.dropped = 0

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def put(self, data: bytes) -> None:
        """Add bytes; waits for room unless lossy. After `aclose` they are thrown away."""
        if self._lossy:
            kept = data[: max(0, self._limit - self._held)]
            self.dropped += len(data) - len(kept)
            data = kept
        else:
            while self._held >= self._limit and not self._closed and not self._lossy:
                await self._changed.wait()
        if data and not self._closed:
            self._pieces.append(data)
            self._held += len(data)
            self._change()

    def put_back(self, data: bytes) -> None:
        """Give bytes back that were received too early."""
        if data:
            self._pieces.appendleft(data)
            self._held += len(data)
            self._change()

    def stop_waiting(self) -> None:
        """Lose what finds no room from now on. What is held already can still be read."""
        self._lossy = True
        self._change()

    def end(self) -> None:
        """No more bytes will come."""
        self._ended = True
        self._change()

    async def receive(self, max_bytes: int = CHUNK_BYTES) -> bytes:
        """Return at least one byte and at most `max_bytes`. Raises `anyio.EndOfStream`, `anyio.ClosedResourceError`."""
        await anyio.lowlevel.checkpoint()
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
        self._change()
        return piece

    async def receive_line(self, limit: int) -> bytes:
        """Return one line without its newline, leaving the rest. Raises `anyio.EndOfStream` when none comes.

        Raises `EngineError` for a line over `limit` bytes; meant for the gate and the warden, not for targets.
        """
        line = bytearray()
        while True:
            line += await self.receive()
            before, newline, after = bytes(line).partition(b"\n")
            if len(before) > limit:
                raise EngineError("a sandbox image said something out of order", remedy="run `harness images build`")
            if newline:
                self.put_back(after)
                return before

    async def aclose(self) -> None:
        self._closed = True
        self._pieces.clear()
        self._held = 0
        self._change()
        await anyio.lowlevel.checkpoint()


class AttachedSocket:
    """A container's attach socket, taken over from the SDK and used without blocking."""

    def __init__(self, taken: Any) -> None:
        # The SDK hands out a file-like wrapper around the socket, and its HTTP response closes the descriptor when
        # it is collected: keep the wrapper, and work on a descriptor of our own.
        self._taken = taken
        raw = getattr(taken, "_sock", taken)
        self._socket: socket.socket = raw.dup()
        self._socket.setblocking(False)
        self._closed = False

    async def receive(self) -> bytes:
        """Return what has come, or b"" at the end. A reset counts as the end: the engine's death shows in `wait`."""
        await anyio.lowlevel.checkpoint()  # a flood that never lets us wait must not starve the clocks
        try:
            while True:
                with suppress(BlockingIOError):
                    return self._socket.recv(CHUNK_BYTES)
                await anyio.wait_readable(self._socket)
        except (OSError, anyio.ClosedResourceError):
            return b""

    async def send(self, data: bytes) -> None:
        """Send all of `data`. Raises `anyio.BrokenResourceError` when the other side is gone."""
        rest = memoryview(data)
        await anyio.lowlevel.checkpoint()
        try:
            while rest:
                try:
                    rest = rest[self._socket.send(rest) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._socket)
        except (OSError, anyio.ClosedResourceError) as error:
            raise anyio.BrokenResourceError from error

    def end(self) -> None:
        """Close our direction: end of file on the process's stdin."""
        with suppress(OSError):  # gone already
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket and the SDK's side of it."""
        if not self._closed:
            self._closed = True
            anyio.notify_closing(self._socket)
            self._socket.close()
            response = getattr(self._taken, "_response", None)
            if response is not None:
                response.close()
            self._taken.close()


class StdinStream(anyio.abc.ByteSendStream):
    """A container's stdin. Closing it is end of file for the process."""

    def __init__(self, attached: AttachedSocket) -> None:
        self._attached = attached
        self._closed = False
        self._guard = anyio.ResourceGuard("writing to")

    async def send(self, item: bytes) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        with self._guard:
            await self._attached.send(item)

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._attached.end()
        await anyio.lowlevel.checkpoint()


class ContainerStreams:
    """stdin, stdout and stderr of one container. Made by `attach`; `pump` must run for bytes to arrive."""

    def __init__(self, attached: AttachedSocket, stderr_bytes: int) -> None:
        self._attached = attached
        self.stdin = StdinStream(attached)
        self.stdout = HeldStream(STDOUT_HELD_BYTES, lossy=False)
        self.stderr = HeldStream(stderr_bytes, lossy=True)
        self.ended = anyio.Event()

    async def pump(self) -> None:
        """Move bytes until the engine ends the stream; never raises but for cancellation."""
        decoder = FrameDecoder()
        try:
            while data := await self._attached.receive():
                for stream, piece in decoder.feed(data):
                    await (self.stdout if stream == STDOUT else self.stderr).put(piece)
        except EngineError:
            pass  # ends the streams; `wait` tells a broken engine from an ended process
        finally:
            self.stdout.end()
            self.stderr.end()
            self.ended.set()

    def close(self) -> None:
        """Close the socket; `pump` ends."""
        self._attached.close()


async def attach(engine: Engine, container: str, stderr_bytes: int) -> ContainerStreams:
    """Attach to a container that was created and not started yet, so that nothing it says is missed."""
    wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    taken = await engine.call(engine.api.attach_socket, container, wanted)
    return ContainerStreams(AttachedSocket(taken), stderr_bytes)
