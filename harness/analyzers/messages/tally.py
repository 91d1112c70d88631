"""The books of the `protocol` analyzer: frames, sessions, lists, and the bounds that cut a recording off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.analyzers.evidence import render_safe
from harness.analyzers.messages.sessions import SessionState, silence_of
from harness.model.coverage import Coverage, Floor, Skip, SkipReason, Tally


@dataclass
class ProtocolTally:
    """Counts while events pass. `truncated`: received frames of which too little was kept to check them."""

    received: int = 0
    truncated: int = 0
    lists_read: int = 0
    list_skips: list[Skip] = field(default_factory=list)
    cut_off: dict[str, Skip] = field(default_factory=dict)

    def add(self, other: ProtocolTally) -> None:
        """Add another life's counts."""
        self.received += other.received
        self.truncated += other.truncated
        self.lists_read += other.lists_read
        self.list_skips += other.list_skips
        self.cut_off.update(other.cut_off)

    def coverage(self, sessions: Sequence[SessionState]) -> Coverage:
        """The books, closed. `sessions`: those that had to answer a handshake; at least one must have."""
        subjects = {
            "frames": _tally(self.received - self.truncated, self._kept_in_part()),
            "sessions": _tally(
                sum(state.answered for state in sessions), [_unanswered(s) for s in sessions if not s.answered]
            ),
            "lists": _tally(self.lists_read, self.list_skips),
        }
        if self.cut_off:
            subjects["bounds"] = _tally(0, [self.cut_off[name] for name in sorted(self.cut_off)])
        return Coverage(subjects=subjects, floors=(Floor(what="answered handshakes", subjects=("sessions",)),))

    def _kept_in_part(self) -> list[Skip]:
        if not self.truncated:
            return []
        return [Skip(item="frames kept in part", reason=SkipReason.LIMIT, count=self.truncated)]


def _tally(analyzed: int, skipped: Sequence[Skip]) -> Tally:
    discovered = analyzed + sum(skip.count for skip in skipped)
    return Tally(discovered=discovered, analyzed=analyzed, skipped=tuple(skipped))


def _unanswered(state: SessionState) -> Skip:
    # A sandbox that broke says nothing about the target.
    ours = state.obstacle is not None or (state.exit is not None and state.exit.ended_by == "engine")
    reason = SkipReason.LIMIT if ours else SkipReason.TARGET
    return Skip(item=render_safe(state.name, 40), reason=reason, detail=silence_of(state))
