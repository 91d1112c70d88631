"""Actions of a run, the predictions that go with them, and what was observed of each.

The planner (`harness.probing`) makes actions from observations; the driver in `harness.pipeline` writes each to
`plan.jsonl` before it executes it. A prediction that is not written before its effect proves nothing.
"""

from __future__ import annotations

from enum import StrEnum

from harness.model.base import Record


class ActionKind(StrEnum):
    """What the driver can be told to do."""

    STOCK_CLIENT = "stock-client"
    START = "start"
    DISCOVER = "discover"
    STOP = "stop"


class Action(Record):
    """One step. `background`: the driver goes on without waiting for its end."""

    number: int
    kind: ActionKind
    session: str = "main"
    background: bool = False
    prediction: str = ""


class Observation(Record):
    """What came of the action with this number: whether the session can go on, and why not."""

    number: int
    usable: bool
    detail: str = ""
