"""What a target did while no call was under way: the late effects of earlier ones show there, and nothing else counts.

The kernel's record has marks at the end of every call and before the next; between two such marks the digest is told
of a call that nobody made, so that the same rules say what is the target's own doing.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.call import Call, CallEndEvent, CallEvent, Outcome, Purpose
from harness.model.kernel import MarkEvent, Origin, ProcessEvent
from harness.model.recording import Event
from harness.probing.digest import Digest, call_phase

_NOBODY = Call(id="between", item="between", params={}, purpose=Purpose.PREPARE)
_CALL = "call:"
#: Sessions that are followed at once: one is called, one stands ready, some come to their ends.
MOST_SESSIONS = 8


class Between:
    """Feed it every event; each gap between calls gives an outcome (of a call that was never sent) when it ends."""

    def __init__(self) -> None:
        #: By session. What a gap is told of is its own session's only.
        self._gaps: dict[str, _Gap] = {}

    def take(self, event: Event) -> tuple[str, Outcome] | None:
        """Learn from the next event: the session and what was done there since the last call, when a gap ends."""
        gap = self._gaps.get(event.session)
        if gap is None:
            if not isinstance(event, MarkEvent | ProcessEvent):
                return None
            while len(self._gaps) >= MOST_SESSIONS:
                del self._gaps[next(iter(self._gaps))]
            gap = self._gaps[event.session] = _Gap(event.session)
        return gap.take(event)

    def close(self) -> Iterator[tuple[str, Outcome]]:
        """End the gaps at hand."""
        for gap in self._gaps.values():
            if (ended := gap.close()) is not None:
                yield ended


class _Gap:
    """The gap at hand in one session."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._digest = Digest()
        self._open = False

    def take(self, event: Event) -> tuple[str, Outcome] | None:
        if not isinstance(event, MarkEvent) or event.by is not Origin.WARDEN:
            if not isinstance(event, CallEvent | CallEndEvent):
                self._digest.take(event)
            return None
        self._digest.take(event)
        ended = self.close()
        if not event.phase.startswith(_CALL):
            phase = call_phase(_NOBODY)
            self._digest.take(CallEvent(phase=phase, session=self._session, call=_NOBODY, seq=event.seq))
            self._digest.take(event.model_copy(update={"phase": phase}))
            self._open = True
        return ended

    def close(self) -> tuple[str, Outcome] | None:
        if not self._open:
            return None
        self._open = False
        end = CallEndEvent(phase=call_phase(_NOBODY), session=self._session, call=_NOBODY.id, state="unsent")
        outcome = self._digest.take(end)
        return (self._session, outcome) if outcome is not None else None
