"""A life with other canaries: what left or was told in the first is predicted, planted anew, and watched for.

Only a target of which something was found gets one. What is predicted are the findings' identities, which hold no
value, so that the same thing seen with other values is the same finding (see `analyzers.behavior.canaries`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import anyio

from harness.model.canary import SECOND_LIFE, PredictionEvent
from harness.model.errors import TargetError
from harness.model.options import RunOptions
from harness.model.plan import Action, ActionKind, Adjustment
from harness.model.recording import NoteEvent, Phase
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.later_life import LaterLife
from harness.pipeline.looks import later
from harness.pipeline.progress import Progress
from harness.pipeline.session import open_session
from harness.pipeline.supply import Supply
from harness.pipeline.wire import spoken_to
from harness.probing.drift import DAYS
from harness.protocol.observe import look
from harness.sandbox.base import Sandbox


@dataclass(frozen=True)
class Foreseen:
    """The findings so far that are worth a second life, by their ids; and the numbers of the events of each."""

    findings: tuple[str, ...] = ()
    events: tuple[tuple[int, ...], ...] = ()


Foresight = Callable[[], Coroutine[Any, Any, Foreseen]]

#: Not begun with less time left than this; and the longest that a server which answered before may take to do so.
LEAST_SECONDS = 5.0
MOST_SECONDS = 60.0
#: Added to our own deadline before the warden's strikes.
MARGIN_SECONDS = 15.0


class SecondLook:
    """Made for one run. `foresight` looks at what was recorded so far."""

    def __init__(
        self,
        sandbox: Sandbox,
        supply: Supply,
        bundle: BundleWriter,
        entropy: Entropy,
        options: RunOptions,
        progress: Progress,
        foresight: Foresight,
        later_life: LaterLife,
    ) -> None:
        self._sandbox = sandbox
        self._supply = supply
        self._bundle = bundle
        self._entropy = entropy
        self._options = options
        self._progress = progress
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
        if seconds < LEAST_SECONDS:
            text = "no time was left for a second life, in which what was found could be confirmed"
            self._bundle.record(NoteEvent(phase=Phase.START, text=text))
            return
        self._progress.phase("second look, with other canaries")
        adjustment, spec = self._supply.with_other_canaries(adjustment)
        said = f"with other canaries, these findings are seen with those: {', '.join(predicted)}"
        why = "other canaries are planted" + (", and the clock is set ahead" if days else "")
        action = Action(
            number=number,
            kind=ActionKind.START,
            session=SECOND_LIFE,
            prediction=said,
            adjustment=adjustment,
            why=why,
            days=days,
        )
        self._bundle.plan(action)
        self._bundle.record(PredictionEvent(phase=Phase.START, session=SECOND_LIFE, findings=predicted))
        limit = min(seconds, MOST_SECONDS)
        spec = later(spec, days).model_copy(update={"deadline_seconds": limit + MARGIN_SECONDS})
        try:
            async with open_session(
                SECOND_LIFE, self._sandbox, spec, self._bundle, self._entropy, self._options, why=why
            ) as session:
                with anyio.move_on_after(limit) as scope:
                    await session.enter(Phase.START)
                    async with spoken_to(session, self._options, adjustment) as raw:
                        await look(raw, session.witness, options=self._options, phase_hook=session.enter)
                if scope.cancelled_caught:
                    session.deadline("second look", limit)
        except TargetError as error:
            self._bundle.record(NoteEvent(phase=Phase.START, session=SECOND_LIFE, text=f"no second life: {error}"))
