"""What an attempt showed beside the protocol, kept within bounds for the planner: noise on stdout, refusals, stderr."""

from __future__ import annotations

from harness.model.recording import Anomaly, Direction, Event, EventSink, FrameEvent

MOST_LINES = 200
LINE_CHARACTERS = 1000
MOST_REFUSALS = 3
#: Of standard error, this much of the head and of the tail.
STDERR_BYTES = 24 << 10


class Witness:
    """An `EventSink` that passes everything on, and remembers what a person would read off the screen."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self.output: list[str] = []
        self.refusals: list[str] = []

    def record(self, event: Event) -> int:
        """Pass the event on; returns its number."""
        if isinstance(event, FrameEvent) and event.direction is Direction.RECEIVED:
            if Anomaly.NOT_JSON in event.anomalies:
                if len(self.output) < MOST_LINES:
                    self.output.append(event.raw[:LINE_CHARACTERS].decode("utf-8", "replace"))
            elif len(self.refusals) < MOST_REFUSALS and b'"error"' in event.raw[:LINE_CHARACTERS]:
                self.refusals.append(event.raw[:LINE_CHARACTERS].decode("utf-8", "replace"))
        return self._sink.record(event)


def readable_stderr(kept: bytes) -> str:
    """Head and tail of a standard error as text."""
    if len(kept) > 2 * STDERR_BYTES:
        kept = kept[:STDERR_BYTES] + b"\n" + kept[-STDERR_BYTES:]
    return kept.decode("utf-8", "replace")
