"""A life with other canaries: what left or was told in the first is predicted, planted anew, and watched for.

Only a target of which something was found gets one. What is predicted are the findings' identities, which hold no
value, so that the same thing seen with other values is the same finding (see `analyzers.behavior.canaries`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from harness.model.canary import SECOND_LIFE, PredictionEvent
from harness.model.errors import TargetError
from harness.model.plan import Adjustment
from harness.model.recording import Phase
from harness.pipeline.further_life import LEAST_SECONDS, FurtherLife, FurtherLives
from harness.pipeline.later_life import LaterLife
from harness.pipeline.looks import later
from harness.pipeline.session import Session
from harness.pipeline.wire import spoken_to
from harness.probing.drift import DAYS
from harness.protocol.observe import look


@dataclass(frozen=True)
class Foreseen:
    """The findings so far that are worth a second life, by their ids; and the numbers of the events of each."""

    findings: tuple[str, ...] = ()
    events: tuple[tuple[int, ...], ...] = ()


Foresight = Callable[[], Coroutine[Any, Any, Foreseen]]


class SecondLook:
    """Made for one run. `foresight` looks at what was recorded so far."""

    def __init__(self, lives: FurtherLives, foresight: Foresight, later_life: LaterLife) -> None:
        self._lives = lives
        self._foresight = foresight
        self._later_life = later_life

    async def take(self, adjustment: Adjustment, number: int, seconds: float) -> None:
        """Start it once more with `adjustment`, if there is anything to be proved and at least so much time.

        `number`: of the action in the plan. Raises EngineError; what the target does is recorded instead.
        """
        foreseen = await self._foresight()
        predicted = foreseen.findings
        if not predicted:
            return
        days = DAYS if any(self._later_life.alone(events) for events in foreseen.events) else 0
        lives = self._lives
        if seconds < LEAST_SECONDS:
            lives.note("no time was left for a second life, in which what was found could be confirmed")
            return
        life = FurtherLife(
            session=SECOND_LIFE,
            called="second look, with other canaries",
            prediction=f"with other canaries, these findings are seen with those: {', '.join(predicted)}",
            why="other canaries are planted" + (", and the clock is set ahead" if days else ""),
            days=days,
        )
        lives.begins(life)
        adjustment, spec = lives.supply.with_other_canaries(adjustment)

        def planned() -> None:
            lives.bundle.record(PredictionEvent(phase=Phase.START, session=SECOND_LIFE, findings=predicted))

        async def lived(session: Session) -> None:
            await session.enter(Phase.START)
            async with spoken_to(session, lives.options, adjustment) as raw:
                await look(raw, session.witness, options=lives.options, phase_hook=session.enter)

        try:
            await lives.run(life, later(spec, days), adjustment, number, seconds, lived, planned)
        except TargetError as error:
            lives.note(f"no second life: {error}", SECOND_LIFE)
