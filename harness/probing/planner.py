"""What any plan of a run is: a conversation without I/O.

A planner is a generator-like object: `next(observation)` answers with the next action or None. The plan of starting
and reading what is declared is `harness.probing.starting`; the levels that send malformed messages and call tools
extend the conversation. The driver does not change.
"""

from __future__ import annotations

from typing import Protocol

from harness.model.plan import Action, Observation


class Planner(Protocol):
    """What the driver needs of any plan."""

    def next(self, observation: Observation | None) -> Action | None:
        """The action to do now, given what came of the last one (None at the beginning); None ends the run."""
        ...
