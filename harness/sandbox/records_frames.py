"""The recorder's stream: frames, and those among them that are text. Pure; any bytes may come.

The format is described in `sandboxes/recorder/record.h`. Frames with records are decoded in `harness.sandbox.records`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from harness.model.errors import HarnessError

FRAME = struct.Struct("<BxxxI")
#: Of a `READ` frame: a space, and the sequence number up to which all of it has come.
REACHED = struct.Struct("<IxxxxQ")
#: The loader's largest frame is a batch of 256 KiB.
FRAME_BYTES = 1 << 20

READY, ARMED, RECORDS, READ, COUNTERS, END, FAILED = b"RAEWCZF"


class FrameReader:
    """Cuts the recorder's stream into frames, however it was cut into reads."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (kind, payload) for every frame that `data` completes. Raises `HarnessError` for a frame too large."""
        held = self._held
        held += data
        at = 0
        try:
            while len(held) - at >= FRAME.size:
                kind, size = FRAME.unpack_from(held, at)
                if size > FRAME_BYTES:
                    raise HarnessError("the recorder's stream is out of order", remedy="run `harness images build`")
                if len(held) - at - FRAME.size < size:
                    return
                payload = bytes(held[at + FRAME.size : at + FRAME.size + size])
                at += FRAME.size + size
                yield kind, payload
        finally:
            del held[:at]


class CallNames:
    """The names of system calls by number, as the recorder tells them: its machine's own and the 32-bit table."""

    def __init__(self, ready: bytes = b"") -> None:
        self.architecture = ""
        self.native: dict[int, str] = {}
        self.compat: dict[int, str] = {}
        for line in ready.decode("ascii", "replace").splitlines():
            words = line.split(" ")
            if words[0] == "arch" and len(words) == 2:
                self.architecture = words[1]
            elif len(words) == 2 and words[0].isdecimal():
                self.native[int(words[0])] = words[1]
            elif len(words) == 3 and words[0] == "32" and words[1].isdecimal():
                self.compat[int(words[1])] = words[2]

    def name(self, number: int, *, compat: bool = False) -> str:
        """The call's name, or `syscall-<number>` for one that is newer than the table."""
        return (self.compat if compat else self.native).get(number) or f"syscall-{number}"

    def set_in(self, bitmap: str, *, compat: bool = False) -> tuple[str, ...]:
        """The names of the calls whose bits are set, sorted; `bitmap` is 16 hexadecimal 64-bit words."""
        try:
            words = [int(bitmap[at : at + 16], 16) for at in range(0, len(bitmap), 16)]
        except ValueError:
            return ()
        numbers = (64 * index + bit for index, word in enumerate(words) for bit in range(64) if word >> bit & 1)
        return tuple(sorted(self.name(number, compat=compat) for number in numbers))


def parse_counters(payload: bytes) -> dict[str, str]:
    """The recorder's counters by name."""
    lines = (line.partition(" ") for line in payload.decode("ascii", "replace").splitlines())
    return {name: value for name, _, value in lines if name}


def number(text: bytes) -> int:
    """The number of a space; -1 for what is none."""
    return int(text) if text.isdigit() and len(text) < 10 else -1
