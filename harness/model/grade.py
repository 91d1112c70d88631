"""What the record of one session is worth, and what several are worth together."""

from __future__ import annotations

from harness.model.recording import Grade, RecorderEndEvent

#: The most that each recorder's record is worth, weakest last.
_WORTH = {"ebpf": Grade.TRUSTED, "strace": Grade.CONTAINED}
_ORDER = (Grade.TRUSTED, Grade.CONTAINED, Grade.TAMPERABLE, Grade.NONE)


def grade_of(end: RecorderEndEvent) -> Grade:
    """What one session's record is worth: none where a heartbeat is missing, since it may be blind."""
    if not end.loaded or end.marks_missing:
        return Grade.NONE
    return _WORTH.get(end.recorder, Grade.NONE)


def weaker(one: Grade, other: Grade) -> Grade:
    """The lower one of two grades."""
    return max(one, other, key=_ORDER.index)
