"""A further life for a target after those that were planned: begun the same way whatever it is for, and written down.

What makes one worth while, and what is done in it, is its asker's (`later_life`, `unwatched`, `second_look`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from harness.model.options import RunOptions
from harness.model.plan import Action, ActionKind, Adjustment
from harness.model.recording import NoteEvent, Phase
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.progress import Progress
from harness.pipeline.session import Session, open_session
from harness.pipeline.supply import Supply
from harness.pipeline.worlds import Worlds
from harness.sandbox.base import LaunchSpec, Sandbox

#: Not begun with less time left than this; and the longest that a server which answered before may take to do so.
LEAST_SECONDS, MOST_SECONDS = 5.0, 60.0
#: Added to our own deadline before the warden's strikes.
MARGIN_SECONDS = 15.0


@dataclass(frozen=True)
class FurtherLife:
    """What one is for: its session's name, what it is called, what is expected of it and why it is begun.

    `days`: how far ahead its clock is set, for the plan.
    """

    session: str
    called: str
    prediction: str
    why: str
    days: int = 0


class FurtherLives:
    """Made for one run, for all who ask for such a life."""

    def __init__(
        self,
        sandbox: Sandbox,
        supply: Supply,
        bundle: BundleWriter,
        entropy: Entropy,
        options: RunOptions,
        progress: Progress,
    ) -> None:
        self.supply, self.bundle, self.options = supply, bundle, options
        self._sandbox, self._entropy, self._progress = sandbox, entropy, progress
        self._worlds = Worlds(bundle, entropy, options)

    def begins(self, life: FurtherLife) -> None:
        """Tell the operator that it begins."""
        self._progress.phase(life.called)

    async def run(
        self,
        life: FurtherLife,
        spec: LaunchSpec,
        adjustment: Adjustment,
        number: int,
        seconds: float,
        lived: Callable[[Session], Awaitable[None]],
        planned: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the target as `spec` says, and do `lived` with it in at most `seconds`.

        `adjustment` and `number` are those of the action in the plan; `planned` is called when that is written down.
        Raises TargetError, EngineError.
        """
        self.bundle.plan(
            Action(
                number=number,
                kind=ActionKind.START,
                session=life.session,
                prediction=life.prediction,
                adjustment=adjustment,
                why=life.why,
                days=life.days,
            )
        )
        planned()
        limit = min(seconds, MOST_SECONDS)
        _, spec = self._worlds.into(life.session, spec)
        spec = spec.model_copy(update={"deadline_seconds": limit + MARGIN_SECONDS})
        async with open_session(
            life.session, self._sandbox, spec, self.bundle, self._entropy, self.options, why=life.why
        ) as session:
            with anyio.move_on_after(limit) as scope:
                await lived(session)
            if scope.cancelled_caught:
                session.deadline(life.called, limit)

    def note(self, text: str, session: str = "main") -> None:
        """Write down what became of one."""
        self.bundle.record(NoteEvent(phase=Phase.START, session=session, text=text))
