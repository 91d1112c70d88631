"""How a request of ours ended. Values, not exceptions: whatever a target does to a request is one of these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from harness.model.base import JsonValue
from harness.model.recording import Anomaly
from harness.protocol.messages import Response


class CloseReason(StrEnum):
    """Why no answer can come any more."""

    END_OF_STREAM = "end of stream"
    BROKEN_STREAM = "broken stream"
    STDIN_GONE = "stdin closed"
    BYTE_LIMIT = "byte limit"
    FLOOD = "message limit"


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, of any JSON type. `frame`: number of its FrameEvent; `size`, `values`: bytes and values of its line."""

    result: JsonValue
    frame: int
    size: int
    values: int = 0


@dataclass(frozen=True, slots=True)
class RpcError:
    """An error answer. `code` is None and `message` "" when they are missing or of another type."""

    code: int | None
    message: str
    data: JsonValue
    frame: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The answer came and can't be used: too long, too deep, too full, or with neither result nor error."""

    anomalies: tuple[Anomaly, ...]
    frame: int


@dataclass(frozen=True, slots=True)
class TimedOut:
    """No answer in time; `blocked` when our own write did not go through."""

    seconds: float
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """The session ended before the answer came."""

    reason: CloseReason


Outcome: TypeAlias = Answer | RpcError | Unreadable | TimedOut | Closed


def describe(outcome: Outcome) -> str:
    """One line about an outcome that is no Answer, for `detail` fields; at most 200 characters of the target's text."""
    match outcome:
        case RpcError():
            return f"error {outcome.code}: {outcome.message[:200]}"
        case Unreadable():
            return "unreadable answer: " + ", ".join(outcome.anomalies)
        case TimedOut():
            return "our write was blocked" if outcome.blocked else f"no answer in {outcome.seconds:g} s"
        case Closed():
            return str(outcome.reason)
        case Answer():
            return "answered"


def outcome_of(response: Response, anomalies: tuple[Anomaly, ...], frame: int, size: int, values: int = 0) -> Outcome:
    """The outcome that a received response is, `frame`, `size` and `values` being those of its line."""
    if not response.whole:
        return Unreadable(anomalies, frame)
    if not response.failed:
        return Answer(response.result, frame, size, values)
    error = response.error if isinstance(response.error, dict) else {}
    code, message = error.get("code"), error.get("message")
    return RpcError(
        code=code if type(code) is int else None,
        message=message if isinstance(message, str) else "",
        data=error.get("data"),
        frame=frame,
    )
