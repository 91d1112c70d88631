"""The plan of a run at level `none`: start, read what is declared, stop; a stock client tries it in parallel.

A planner is a generator-like object without I/O: `next(observation)` answers with the next action or None. The
levels that send malformed messages and call tools extend this conversation; the driver does not change.
"""

from __future__ import annotations

from typing import Protocol

from harness.model.options import RunOptions
from harness.model.plan import Action, ActionKind, Observation


class Planner(Protocol):
    """What the driver needs of any plan."""

    def next(self, observation: Observation | None) -> Action | None:
        """The action to do now, given what came of the last one (None at the beginning); None ends the run."""
        ...


class DiscoveryPlanner:
    """Level `none`. A session that can't be used after its start is stopped without discovery."""

    def __init__(self, options: RunOptions) -> None:
        self._number = 0
        self._todo = [ActionKind.START, ActionKind.DISCOVER, ActionKind.STOP]
        self._stock_client = options.stock_client

    def next(self, observation: Observation | None) -> Action | None:
        if observation is None and self._stock_client:
            return self._action(ActionKind.STOCK_CLIENT, session="stock-client", background=True)
        if observation is not None and not observation.usable:
            self._todo = [kind for kind in self._todo if kind is ActionKind.STOP]
        if not self._todo:
            return None
        return self._action(self._todo.pop(0))

    def _action(self, kind: ActionKind, *, session: str = "main", background: bool = False) -> Action:
        self._number += 1
        return Action(number=self._number, kind=kind, session=session, background=background)
