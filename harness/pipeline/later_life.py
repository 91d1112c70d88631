"""Another life with a later clock, for a target that did in one what it did in no life with the right time.

The first of them differs in more than its clock; this one in nothing else. What both show is judged by
`analyzers.behavior.later`.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.analyzers.behavior.later import LIFE, Dates
from harness.model.errors import EngineError, TargetError
from harness.model.plan import Adjustment
from harness.model.recording import Event, FlowEvent, FrameEvent, ProcessEvent
from harness.model.surface import Surface
from harness.pipeline.further_life import LEAST_SECONDS, FurtherLife, FurtherLives
from harness.pipeline.looks import later, look_once_more
from harness.pipeline.session import Session
from harness.probing.drift import DAYS

#: So many events of lives with a later clock are remembered by their numbers.
MAX_EVENTS = 16384


class LaterLife:
    """Made for one run, before its first life: it listens for what is done in lives with a later clock alone."""

    def __init__(self, lives: FurtherLives) -> None:
        self._lives = lives
        self._dates = Dates()
        self._events: set[int] = set()
        lives.bundle.listen(self._hear)

    def _hear(self, event: Event) -> None:
        self._dates.take(event)
        told = isinstance(event, FlowEvent | FrameEvent | ProcessEvent) and self._dates.later(event.session)
        if told and len(self._events) < MAX_EVENTS:
            self._events.add(event.seq)

    def alone(self, events: Iterable[int]) -> bool:
        """Whether events, by their numbers, all were in lives with a later clock. False for none."""
        numbers = set(events)
        return bool(numbers) and numbers <= self._events

    async def take(self, adjustment: Adjustment, number: int, seconds: float, first: Surface | None) -> bool:
        """Start it once more with `adjustment` if it did more, and at least so much time is left; whether so.

        `number`: of the action in the plan; `first`: what it declared at first. Raises EngineError.
        """
        alone = self._dates.alone()
        if not alone:
            return False
        what = ", ".join(sorted(f"{kind} {name}" for kind, name in alone))
        text = f"with a later clock alone it did this: {what}"[:400]
        lives = self._lives
        if seconds < LEAST_SECONDS:
            lives.note(f"{text}; no time was left for another life with one")
            return False
        life = FurtherLife(LIFE, "another life with a later clock", "it does the same again", text, DAYS)
        lives.begins(life)
        spec = await lives.supply.spec(adjustment)
        if spec is None:
            return False
        launched = later(spec, DAYS)

        async def lived(session: Session) -> None:
            days = launched.days_ahead
            await look_once_more(LIFE, session, lives.bundle, lives.options, adjustment, first, days=days)

        try:
            await lives.run(life, launched, adjustment, number, seconds, lived)
        except (TargetError, EngineError) as error:
            lives.note(f"{text}; no further life with one: {error.message}")
            return False
        lives.note(f"{text}; it was started once more with one, to see whether it does that again")
        return True
