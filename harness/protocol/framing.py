"""Bytes to lines: bounded in every direction, linear in time, sans I/O. What a line holds is `decoding`'s business.

Bounds: bytes of one line (the head is kept, the rest counted, reading goes on after the next newline), bytes and
lines of a whole session (after either nothing more is read). JSON whitespace makes CRLF and blanks harmless:
RFC 8259 section 2 allows it around a value, so they are no anomaly. Blank lines are counted and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.base import JsonValue
from harness.model.options import Limits
from harness.model.recording import Anomaly
from harness.protocol.decoding import decode

#: How much of the end of an over-long line is kept beside its head: enough for the `id` that some servers put last.
TAIL_BYTES = 128

_JSON_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One received line.

    `raw`: the bytes kept of it, without the newline; `size`: all its bytes; `tail`: its last bytes when it was too
    long. `parsed` says whether `value` holds its JSON, and `values` of how many values.
    """

    raw: bytes
    size: int
    parsed: bool
    value: JsonValue
    anomalies: tuple[Anomaly, ...]
    tail: bytes = b""
    values: int = 0

    @property
    def truncated(self) -> bool:
        """True when `raw` is only the head of the line."""
        return self.size > len(self.raw)


class Held:
    """What is kept of one line or message while it comes: its first bytes, its last ones, and its size."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self.head = bytearray()
        self.tail = b""
        self.size = 0

    def keep(self, data: bytes, start: int, end: int) -> None:
        """Add `data[start:end]`; beyond the bound only its size and its last bytes."""
        length = end - start
        kept = max(0, min(length, self._bound - len(self.head)))
        self.head += data[start : start + kept]
        self.size += length
        if kept < length:
            self.tail = (self.tail + data[max(start + kept, end - TAIL_BYTES) : end])[-TAIL_BYTES:]

    def line(self, limits: Limits, *tags: Anomaly, whole: bool = True) -> Line | None:
        """What was kept as a line, and begin anew; None when it is blank. Only what is `whole` is decoded."""
        raw, tail, size = bytes(self.head), self.tail, self.size
        self.head.clear()
        self.tail, self.size = b"", 0
        if size > len(raw):
            return Line(raw, size, False, None, (Anomaly.TOO_LONG, *tags), tail)
        if not whole:
            return Line(raw, size, False, None, tags)
        if not raw.strip(_JSON_SPACE):
            return None
        decoded = decode(raw, depth=limits.json_depth, values=limits.json_values)
        return Line(raw, size, decoded.parsed, decoded.value, (*decoded.anomalies, *tags), values=decoded.values)


class LineFramer:
    """Cuts a byte stream into lines. `exhausted` names the session bound that was reached, if any."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = Held(limits.line_bytes)
        self.bytes_seen = 0
        self.lines_seen = 0
        self.exhausted: Anomaly | None = None

    @property
    def too_long(self) -> bool:
        """True while the line that is being read is longer than what is kept of it."""
        return self._held.size > len(self._held.head)

    def feed(self, data: bytes) -> list[Line]:
        """The lines that `data` completes. Raises nothing; after a session bound was reached, returns none."""
        if self.exhausted is not None:
            return []
        room = self._limits.stdout_bytes - self.bytes_seen
        over = len(data) > room
        self.bytes_seen += len(data)
        lines: list[Line] = []
        start, end = 0, min(len(data), room)
        while (newline := data.find(b"\n", start, end)) != -1:
            self._held.keep(data, start, newline)
            if not self._complete(lines):
                return lines
            start = newline + 1
        self._held.keep(data, start, end)
        if over:
            self.exhausted = Anomaly.BYTE_LIMIT
            self._complete(lines, Anomaly.BYTE_LIMIT)
        return lines

    def finish(self) -> list[Line]:
        """What was left without a newline when the stream ended, tagged so; empty when nothing was."""
        lines: list[Line] = []
        if self.exhausted is None:
            self._complete(lines, Anomaly.NO_NEWLINE_AT_END)
        return lines

    def _complete(self, lines: list[Line], *tags: Anomaly) -> bool:
        """Add the line at hand to `lines` unless it is blank; False when it was one too many."""
        self.lines_seen += Anomaly.NO_NEWLINE_AT_END not in tags
        if flood := self.lines_seen > self._limits.messages:
            self.exhausted = Anomaly.FLOOD
            tags = (*tags, Anomaly.FLOOD)
        # The end of what we read is not the end of what was said.
        line = self._held.line(self._limits, *tags, whole=not flood and Anomaly.BYTE_LIMIT not in tags)
        if line is not None:
            lines.append(line)
        return not flood
