"""What a target did while no call was under way: the late effects of earlier ones show there, and nothing else counts.

The kernel's record has marks at the end of every call and before the next; between two such marks the digest is told
of a call that nobody made, so that the same rules say what is the target's own doing.
"""

from __future__ import annotations

from harness.model.call import Call, CallEndEvent, CallEvent, Outcome, Purpose
from harness.model.kernel import MarkEvent, Origin
from harness.model.recording import Event
from harness.probing.digest import Digest, call_phase

_NOBODY = Call(id="between", item="between", params={}, purpose=Purpose.PREPARE)
_CALL = "call:"


class Between:
    """Feed it every event; each gap between calls gives an outcome (of a call that was never sent) when it ends."""

    def __init__(self) -> None:
        self._digest = Digest()
        self._session: str | None = None

    def take(self, event: Event) -> tuple[str, Outcome] | None:
        """Learn from the next event: the session and what was done there since the last call, when a gap ends."""
        if not isinstance(event, MarkEvent) or event.by is not Origin.WARDEN:
            if not isinstance(event, CallEvent | CallEndEvent):
                self._digest.take(event)
            return None
        self._digest.take(event)
        ended = self.close()
        if not event.phase.startswith(_CALL):
            phase = call_phase(_NOBODY)
            self._digest.take(CallEvent(phase=phase, session=event.session, call=_NOBODY, seq=event.seq))
            self._digest.take(event.model_copy(update={"phase": phase}))
            self._session = event.session
        return ended

    def close(self) -> tuple[str, Outcome] | None:
        """End the gap at hand, if there is one."""
        if self._session is None:
            return None
        session, self._session = self._session, None
        end = CallEndEvent(phase=call_phase(_NOBODY), session=session, call=_NOBODY.id, state="unsent")
        outcome = self._digest.take(end)
        return (session, outcome) if outcome is not None else None
