"""Keeping a target's standard error: all of it is read and counted, head and tail are kept."""

from __future__ import annotations

import hashlib

import anyio
import anyio.abc

#: How much of the tail goes into the event: room for what a validator says at length, and the trace before it.
TAIL_BYTES = 16_000


class StderrKeeper:
    """Reads a stream to its end, holding at most `bound` bytes: the first half and the last half."""

    def __init__(self, bound: int) -> None:
        self._half = max(1, bound // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._digest = hashlib.sha256()
        self.size = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.size += len(data)
        self._digest.update(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            if len(self._tail) > 2 * self._half:
                del self._tail[: -self._half]

    async def drain(self, stream: anyio.abc.ByteReceiveStream) -> None:
        """Read until the stream ends or breaks."""
        try:
            async for chunk in stream:
                self.feed(chunk)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    @property
    def kept(self) -> bytes:
        """What was kept; a gap is marked by a line that says how many bytes it had."""
        tail = bytes(self._tail[-self._half :])
        gap = self.size - len(self._head) - len(tail)
        mark = f"\n[{gap} bytes not kept]\n".encode() if gap else b""
        return bytes(self._head) + mark + tail

    @property
    def sha256(self) -> str:
        """The digest of all bytes, the ones that were not kept included."""
        return self._digest.hexdigest()

    @property
    def last_text(self) -> str:
        """The end of it as text, for people."""
        return (bytes(self._head) + bytes(self._tail))[-TAIL_BYTES:].decode("utf-8", "replace")
