"""The messages in HTTP answers: a body that is one JSON text, or a stream of events. Bounded, linear, sans I/O.

Events are read as the HTML standard says ("Parsing an event stream"): lines end with CR, LF or both, the `data` lines
of one event are joined by newlines, a blank line ends it, and what is no known field is passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness.model.options import Limits
from harness.model.recording import Anomaly
from harness.protocol.framing import Held, Line
from harness.protocol.messages import Response, interpret

_LINE_END = re.compile(rb"\r\n|\r|\n")
#: Of a line that is no data: names and values are short.
_FIELD_BYTES = 1024
#: Characters of the body of a refusal, for whoever reads why.
MOST_SAID = 300
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Totals:
    """What all answers of a session may have together. `exhausted` names the bound that was reached."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bytes_seen = 0
        self.messages_seen = 0
        self.exhausted: Anomaly | None = None

    def take(self, size: int) -> bool:
        """Count bytes that came; False once there were too many."""
        self.bytes_seen += size
        if self.bytes_seen > self._limits.stdout_bytes:
            self.exhausted = self.exhausted or Anomaly.BYTE_LIMIT
        return self.exhausted is None

    def message(self) -> bool:
        """Count a message; False once there were too many."""
        self.messages_seen += 1
        if self.messages_seen > self._limits.messages:
            self.exhausted = self.exhausted or Anomaly.FLOOD
        return self.exhausted is None


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. `line`: its data as a message, None when blank; `kind` is empty for `message`."""

    kind: str
    line: Line | None


class EventReader:
    """Takes one event stream apart. `last_id` and `retry` (milliseconds) are as the stream said last."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._data = Held(limits.line_bytes)
        self._line = Held(limits.line_bytes + _FIELD_BYTES)
        self._some = False
        self._kind = ""
        self._after_cr = self._begun = False
        self.last_id = ""
        self.retry: int | None = None

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that `data` completes."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        events: list[ServerEvent] = []
        start = 0
        for end in _LINE_END.finditer(data):
            self._line.keep(data, start, end.start())
            self._complete(events)
            start = end.end()
        self._line.keep(data, start, len(data))
        return events

    def finish(self) -> list[ServerEvent]:
        """An event that was begun and not ended by a blank line, tagged so. (Clients in order drop it.)"""
        events: list[ServerEvent] = []
        if self._line.size:
            self._complete(events)
        if self._some:
            line = self._data.line(self._limits, Anomaly.NO_NEWLINE_AT_END)
            events.append(ServerEvent(self._kind, line))
            self._some = False
        return events

    def _complete(self, events: list[ServerEvent]) -> None:
        raw, cut = bytes(self._line.head), self._line.size - len(self._line.head)
        tail = self._line.tail
        self._line = Held(self._limits.line_bytes + _FIELD_BYTES)
        if not self._begun:
            self._begun = True
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
        if not raw:
            if self._some:
                events.append(ServerEvent(self._kind, self._data.line(self._limits)))
            self._some, self._kind = False, ""
            return
        name, _, value = raw.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                if self._some:
                    self._data.keep(b"\n", 0, 1)
                self._some = True
                self._data.keep(value, 0, len(value))
                if cut:
                    self._data.size += cut
                    self._data.tail = tail
            case b"event":
                kind = value[:_FIELD_BYTES].decode("utf-8", "replace")
                self._kind = "" if kind == "message" else kind
            case b"id":
                if b"\0" not in value and len(value) <= _FIELD_BYTES:
                    self.last_id = value.decode("utf-8", "replace")
            case b"retry":
                if value.isdigit() and len(value) < 10:
                    self.retry = int(value)
            case _:
                pass


def refusal(status: int, line: Line | None) -> str:
    """A status in words, with the beginning of what was said with it."""
    words = "" if line is None else " ".join(line.raw[:4096].decode("utf-8", "replace").split())[:MOST_SAID]
    return f"HTTP status {status}{': ' if words else ''}{words}"


def answers(line: Line | None) -> bool:
    """Whether a body is an answer of JSON-RPC."""
    if line is None or not line.parsed:
        return False
    messages, _ = interpret(line.value, batches=True)
    return any(isinstance(message, Response) for message in messages)


def endpoint_of(line: Line) -> tuple[str, str] | None:
    """Where a server of the first revision says that messages go, as path and query, and the host if it names another
    one than this machine; None for what is no address.
    """
    try:
        place = urlsplit(line.raw[:4096].decode("ascii").strip())
        local = place.hostname in (None, "127.0.0.1", "localhost", "0.0.0.0", "::1")  # noqa: S104
    except ValueError:
        return None
    return (place.path or "/") + (f"?{place.query}" if place.query else ""), "" if local else place.netloc
