"""Frames on stdin and stdout: eight bytes of sizes, a JSON object, then bytes that belong to it. Pure.

Both sizes are big-endian 32-bit: that of the JSON text, and that of the bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

_SIZES = struct.Struct("!II")
MAX_HEADER = 4 << 20
MAX_BODY = 16 << 20

Message: TypeAlias = dict[str, Any]


class FrameError(Exception):
    """The other side sent what is no frame."""


def encode(message: Message, body: bytes = b"") -> bytes:
    """One frame."""
    header = json.dumps(message, separators=(",", ":")).encode()
    return _SIZES.pack(len(header), len(body)) + header + body


class FrameReader:
    """Takes a stream of frames apart, however it was cut into reads."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Message, bytes]]:
        """Yield what `data` completes. Raises `FrameError` for sizes out of bounds or a header that is no object."""
        self._held += data
        while len(self._held) >= _SIZES.size:
            header, body = _SIZES.unpack_from(self._held)
            if header > MAX_HEADER or body > MAX_BODY:
                raise FrameError("a frame is too large")
            end = _SIZES.size + header + body
            if len(self._held) < end:
                return
            frame = bytes(self._held[_SIZES.size : end])
            del self._held[:end]
            try:
                message = json.loads(frame[:header])
            except ValueError as error:
                raise FrameError("a frame's header is no JSON") from error
            if not isinstance(message, dict):
                raise FrameError("a frame's header is no object")
            yield message, frame[header:]
