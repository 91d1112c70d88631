"""What every event has: a number, a time, a phase and a session. The kinds are in `recording` and `kernel`."""

from __future__ import annotations

from enum import StrEnum

from harness.model.base import Record


class Phase(StrEnum):
    """The phases of a run in order. A call's phase is `call:<tool>:<nonce>` and not in this list."""

    FETCH = "fetch"
    INSTALL = "install"
    START = "start"
    DISCOVER = "discover"
    PROBE = "probe"
    IDLE = "idle"
    STOP = "stop"


class EventBase(Record):
    """Fields of every event. `session` names one life of the target (`install`, `main`, `stock-client` …)."""

    seq: int = 0
    t: int = 0
    phase: str
    session: str = "main"

    def give_number(self, seq: int) -> None:
        """Set `seq`, in place: for whoever stores an event that nobody else holds. A copy costs more than the rest."""
        self.__dict__["seq"] = seq
        self.__pydantic_fields_set__.add("seq")
