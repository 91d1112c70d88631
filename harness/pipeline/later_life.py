"""Another life with a later clock, for a target that did in one what it did in no life with the right time.

The first of them differs in more than its clock; this one in nothing else. What both show is judged by
`analyzers.behavior.later`.
"""

from __future__ import annotations

from collections.abc import Iterable

import anyio

from harness.analyzers.behavior.later import LIFE, Dates
from harness.model.errors import EngineError, TargetError
from harness.model.options import RunOptions
from harness.model.plan import Action, ActionKind, Adjustment
from harness.model.recording import Event, FlowEvent, FrameEvent, NoteEvent, Phase, ProcessEvent
from harness.model.surface import Surface
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.looks import later, look_once_more
from harness.pipeline.progress import Progress
from harness.pipeline.session import open_session
from harness.pipeline.supply import Supply
from harness.probing.drift import DAYS
from harness.sandbox.base import Sandbox

#: Not begun with less time left than this; and the longest that a server which answered before may take to do so.
LEAST_SECONDS, MOST_SECONDS = 5.0, 60.0
#: Added to our own deadline before the warden's strikes.
MARGIN_SECONDS = 15.0
#: So many events of lives with a later clock are remembered by their numbers.
MAX_EVENTS = 16384


class LaterLife:
    """Made for one run, before its first life: it listens for what is done in lives with a later clock alone."""

    def __init__(
        self,
        sandbox: Sandbox,
        supply: Supply,
        bundle: BundleWriter,
        entropy: Entropy,
        options: RunOptions,
        progress: Progress,
    ) -> None:
        self._sandbox, self._supply, self._bundle = sandbox, supply, bundle
        self._entropy, self._options, self._progress = entropy, options, progress
        self._dates = Dates()
        self._events: set[int] = set()
        bundle.listen(self._hear)

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
        if seconds < LEAST_SECONDS:
            self._note(f"{text}; no time was left for another life with one")
            return False
        self._progress.phase("another life with a later clock")
        spec = await self._supply.spec(adjustment)
        if spec is None:
            return False
        action = Action(
            number=number,
            kind=ActionKind.START,
            session=LIFE,
            prediction="it does the same again",
            adjustment=adjustment,
            why=text,
            days=DAYS,
        )
        self._bundle.plan(action)
        limit = min(seconds, MOST_SECONDS)
        spec = later(spec, DAYS).model_copy(update={"deadline_seconds": limit + MARGIN_SECONDS})
        try:
            async with open_session(
                LIFE, self._sandbox, spec, self._bundle, self._entropy, self._options, why=text
            ) as session:
                with anyio.move_on_after(limit) as scope:
                    await look_once_more(
                        LIFE, session, self._bundle, self._options, adjustment, first, days=spec.days_ahead
                    )
                if scope.cancelled_caught:
                    session.deadline("a life with a later clock", limit)
        except (TargetError, EngineError) as error:
            self._note(f"{text}; no further life with one: {error.message}")
            return False
        self._note(f"{text}; it was started once more with one, to see whether it does that again")
        return True

    def _note(self, text: str) -> None:
        self._bundle.record(NoteEvent(phase=Phase.START, text=text))
