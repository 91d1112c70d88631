"""A life with an interface of its own, for a target that read what else is in the network namespace that it shares.

What it does there and nowhere else is judged by `analyzers.behavior.apart`.
"""

from __future__ import annotations

from harness.analyzers.behavior.apart import LIFE, shows_network
from harness.model.errors import EngineError, TargetError
from harness.model.options import NetworkChoice
from harness.model.plan import Adjustment
from harness.model.recording import Event
from harness.model.surface import Surface
from harness.pipeline.further_life import LEAST_SECONDS, FurtherLife, FurtherLives
from harness.pipeline.looks import look_once_more
from harness.pipeline.session import Session
from harness.pipeline.wire import place_of


class Unwatched:
    """Made for one run, before its first life: it listens for the looks that make another life worth while."""

    def __init__(self, lives: FurtherLives) -> None:
        self._lives = lives
        self._read = ""
        if lives.options.network is not NetworkChoice.NONE and not lives.options.stealth:
            lives.bundle.listen(self._hear)

    def _hear(self, event: Event) -> None:
        if not self._read and shows_network(event):
            self._read = str(getattr(event, "path", ""))[:200]

    async def take(self, adjustment: Adjustment, number: int, seconds: float, first: Surface | None) -> bool:
        """Start it once more with `adjustment` if it looked, and at least so much time is left; whether that was done.

        `number`: of the action in the plan; `first`: what it declared at first. Raises EngineError.
        """
        if not self._read or place_of(self._lives.options, adjustment) is not None:
            return False  # what listens on a port is reached in the gateway's namespace only
        text = f"it read {self._read}, which shows what else is in its network namespace"
        lives = self._lives
        if seconds < LEAST_SECONDS:
            lives.note(f"{text}; no time was left for a life with an interface of its own")
            return False
        life = FurtherLife(LIFE, "a life with an interface of its own", "it does what it did in its other lives", text)
        lives.begins(life)
        spec = await lives.supply.spec(adjustment)
        if spec is None:
            return False

        async def lived(session: Session) -> None:
            await look_once_more(LIFE, session, lives.bundle, lives.options, adjustment, first)

        try:
            spec = spec.model_copy(update={"stealth": True})
            await lives.run(life, spec, adjustment, number, seconds, lived)
        except (TargetError, EngineError) as error:
            lives.note(f"{text}; no life with an interface of its own: {error.message}")
            return False
        lives.note(f"{text}; it was started once more with an interface of its own, to see whether it does the same")
        return True
