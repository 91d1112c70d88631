"""A life with an interface of its own, for a target that read what else is in the network namespace that it shares.

What it does there and nowhere else is judged by `analyzers.behavior.apart`.
"""

from __future__ import annotations

import anyio

from harness.analyzers.behavior.apart import LIFE, shows_network
from harness.model.errors import EngineError, TargetError
from harness.model.options import NetworkChoice, RunOptions
from harness.model.plan import Action, ActionKind, Adjustment
from harness.model.recording import Event, NoteEvent, Phase
from harness.model.surface import Surface
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.looks import look_once_more
from harness.pipeline.progress import Progress
from harness.pipeline.session import open_session
from harness.pipeline.supply import Supply
from harness.pipeline.wire import place_of
from harness.sandbox.base import Sandbox

#: Not begun with less time left than this; and the longest that a server which answered before may take to do so.
LEAST_SECONDS, MOST_SECONDS = 5.0, 60.0
#: Added to our own deadline before the warden's strikes.
MARGIN_SECONDS = 15.0


class Unwatched:
    """Made for one run, before its first life: it listens for the looks that make another life worth while."""

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
        self._read = ""
        if options.network is not NetworkChoice.NONE and not options.stealth:
            bundle.listen(self._hear)

    def _hear(self, event: Event) -> None:
        if not self._read and shows_network(event):
            self._read = str(getattr(event, "path", ""))[:200]

    async def take(self, adjustment: Adjustment, number: int, seconds: float, first: Surface | None) -> bool:
        """Start it once more with `adjustment` if it looked, and at least so much time is left; whether that was done.

        `number`: of the action in the plan; `first`: what it declared at first. Raises EngineError.
        """
        if not self._read or place_of(self._options, adjustment) is not None:
            return False  # what listens on a port is reached in the gateway's namespace only
        text = f"it read {self._read}, which shows what else is in its network namespace"
        if seconds < LEAST_SECONDS:
            self._note(f"{text}; no time was left for a life with an interface of its own")
            return False
        self._progress.phase("a life with an interface of its own")
        spec = await self._supply.spec(adjustment)
        if spec is None:
            return False
        action = Action(
            number=number,
            kind=ActionKind.START,
            session=LIFE,
            prediction="it does what it did in its other lives",
            adjustment=adjustment,
            why=text,
        )
        self._bundle.plan(action)
        limit = min(seconds, MOST_SECONDS)
        spec = spec.model_copy(update={"stealth": True, "deadline_seconds": limit + MARGIN_SECONDS})
        try:
            async with open_session(
                LIFE, self._sandbox, spec, self._bundle, self._entropy, self._options, why=text
            ) as session:
                with anyio.move_on_after(limit) as scope:
                    await look_once_more(LIFE, session, self._bundle, self._options, adjustment, first)
                if scope.cancelled_caught:
                    session.deadline("a life with an interface of its own", limit)
        except (TargetError, EngineError) as error:
            self._note(f"{text}; no life with an interface of its own: {error.message}")
            return False
        self._note(f"{text}; it was started once more with an interface of its own, to see whether it does the same")
        return True

    def _note(self, text: str) -> None:
        self._bundle.record(NoteEvent(phase=Phase.START, text=text))
