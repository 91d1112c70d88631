"""The event types of a recording, in one numbered order, and what a bundle says about itself.

`seq` counts from 1 over all events of a run; `t` is nanoseconds of CLOCK_MONOTONIC since the run's start.
A recording is iterated, never loaded whole. Reading and writing bundles is `harness.pipeline.bundle`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic import Field, TypeAdapter

from harness.model.base import Record
from harness.model.call import BoundariesEvent as BoundariesEvent
from harness.model.call import CallBooksEvent as CallBooksEvent
from harness.model.call import CallEndEvent as CallEndEvent
from harness.model.call import CallEvent as CallEvent
from harness.model.call import WorldEvent as WorldEvent
from harness.model.canary import Canary
from harness.model.canary import PredictionEvent as PredictionEvent
from harness.model.event import EventBase as EventBase
from harness.model.event import Phase as Phase
from harness.model.flow import FlowEvent as FlowEvent
from harness.model.flow import GatewayEndEvent as GatewayEndEvent
from harness.model.kernel import KernelEvent as KernelEvent
from harness.model.kernel import MarkEvent as MarkEvent
from harness.model.kernel import Origin as Origin
from harness.model.kernel import ProcessEvent as ProcessEvent
from harness.model.kernel import RecorderEndEvent as RecorderEndEvent
from harness.model.kernel import SyscallEvent as SyscallEvent
from harness.model.kernel import TransferEvent as TransferEvent
from harness.model.options import RunOptions, Transport
from harness.model.plan import Obstacle
from harness.model.probe import LookEvent as LookEvent
from harness.model.probe import ProbeBooksEvent as ProbeBooksEvent
from harness.model.probe import ProbeEndEvent as ProbeEndEvent
from harness.model.probe import ProbeEvent as ProbeEvent
from harness.model.surface import ItemKind, ListEnd, Surface
from harness.model.target import Artifact, TargetRef


class Direction(StrEnum):
    """Seen from the harness."""

    SENT = "sent"
    RECEIVED = "received"


class Anomaly(StrEnum):
    """What framing noticed about the bytes of one received line. Facts, not judgements."""

    NOT_JSON = "not-json"
    INVALID_UTF8 = "invalid-utf8"
    BYTE_ORDER_MARK = "byte-order-mark"
    TOO_LONG = "too-long"
    TOO_DEEP = "too-deep"
    TOO_MANY_VALUES = "too-many-values"
    DUPLICATE_KEY = "duplicate-key"
    NON_FINITE = "non-finite-number"
    HUGE_NUMBER = "huge-number"
    LONE_SURROGATE = "lone-surrogate"
    NOT_AN_OBJECT = "not-an-object"
    NOT_JSONRPC = "not-jsonrpc-2.0"
    NO_NEWLINE_AT_END = "no-newline-at-end"
    UNKNOWN_ID = "unknown-id"
    REPEATED_ID = "repeated-id"
    WRONG_ID_TYPE = "wrong-id-type"
    FLOOD = "flood"
    BYTE_LIMIT = "byte-limit"


class PhaseEvent(EventBase):
    """A phase begins. `nonce` ties it to the heartbeat that the warden makes inside the sandbox."""

    kind: Literal["phase"] = "phase"
    nonce: str


class AttemptEvent(EventBase):
    """The target was started with these arguments; environment by name only.

    `number` counts the starts within the session; `why` is empty for the first, which is as the metadata says.
    `files`: absolute paths of what was planted for this attempt, for the target looks for it.
    `guess`: nothing that the target said asked for the change. An attempt that was answered counts, the last of
    several; where none was, the last that was no guess. `days`: how far ahead its clock was set.
    """

    kind: Literal["attempt"] = "attempt"
    number: int
    argv: tuple[str, ...]
    environment: tuple[str, ...] = ()
    why: str = ""
    guess: bool = False
    files: tuple[str, ...] = ()
    days: int = 0


class InstallStepEvent(EventBase):
    """One step of the install phase, run in the sandbox. `output`: bounded tail; `cached`: kept from an earlier run."""

    kind: Literal["install-step"] = "install-step"
    argv: tuple[str, ...]
    code: int
    output: str = ""
    cached: bool = False


class FrameEvent(EventBase):
    """One line on stdin or stdout. `data` holds at most the bound's bytes, `size` counts all of them."""

    kind: Literal["frame"] = "frame"
    direction: Direction
    data: str
    encoding: Literal["utf-8", "base64"] = "utf-8"
    size: int
    truncated: bool = False
    anomalies: tuple[Anomaly, ...] = ()

    @property
    def raw(self) -> bytes:
        """The bytes kept of this line, without its newline."""
        return base64.b64decode(self.data) if self.encoding == "base64" else self.data.encode()


class StderrEvent(EventBase):
    """The target's standard error, once per session at its end: bytes kept are in the bundle's stderr.log."""

    kind: Literal["stderr"] = "stderr"
    size: int
    kept: int
    sha256: str
    tail: str = ""


class ListEvent(EventBase):
    """Reading one list ended like this (see `ListOutcome`)."""

    kind: Literal["list"] = "list"
    list: ItemKind
    pages: int
    items: int
    end: ListEnd
    detail: str = ""


class DeadlineEvent(EventBase):
    """We stopped waiting for `what` after `seconds`; `blocked` when it was our own write that did not go through."""

    kind: Literal["deadline"] = "deadline"
    what: str
    seconds: float
    blocked: bool = False


class ServerRequestEvent(EventBase):
    """The target asked the client for something (roots, sampling, elicitation …) and got this answer."""

    kind: Literal["server-request"] = "server-request"
    method: str
    answered: str
    frame: int | None = None


class ExitEvent(EventBase):
    """A session's process ended. `ended_by`: `target` by itself, `harness` at stop, `deadline`, `engine`."""

    kind: Literal["exit"] = "exit"
    code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    ended_by: Literal["target", "harness", "deadline", "engine"]


class LimitEvent(EventBase):
    """A bound of ours was reached, so something was not looked at. `what` names it (`stdout-bytes` …)."""

    kind: Literal["limit"] = "limit"
    what: str
    bound: int
    seen: int


class StockClientEvent(EventBase):
    """Does a stock client (the mcp SDK) work with this server? `tools` it listed, or the `error` it ended with."""

    kind: Literal["stock-client"] = "stock-client"
    works: bool | None
    client: str = ""
    protocol_version: str | None = None
    tools: int | None = None
    error: str = ""


class NoteEvent(EventBase):
    """A fact about the run that a reader needs (an argument supplied, a fallback taken)."""

    kind: Literal["note"] = "note"
    text: str


class ObstacleEvent(EventBase):
    """The target could not start here for a reason that is no fault of its own; `what` names what was missing."""

    kind: Literal["obstacle"] = "obstacle"
    obstacle: Obstacle
    what: str = ""


Event: TypeAlias = Annotated[
    PhaseEvent
    | AttemptEvent
    | InstallStepEvent
    | FrameEvent
    | StderrEvent
    | ListEvent
    | DeadlineEvent
    | ServerRequestEvent
    | ExitEvent
    | LimitEvent
    | StockClientEvent
    | NoteEvent
    | ObstacleEvent
    | SyscallEvent
    | ProcessEvent
    | TransferEvent
    | MarkEvent
    | RecorderEndEvent
    | FlowEvent
    | GatewayEndEvent
    | PredictionEvent
    | WorldEvent
    | BoundariesEvent
    | CallEvent
    | CallEndEvent
    | CallBooksEvent
    | ProbeEvent
    | ProbeEndEvent
    | ProbeBooksEvent
    | LookEvent,
    Field(discriminator="kind"),
]

EVENT_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


class Grade(StrEnum):
    """How far the syscall record can be trusted; `none` where there is none."""

    TRUSTED = "trusted"
    CONTAINED = "contained"
    TAMPERABLE = "tamperable"
    NONE = "none"


class ImageFact(Record):
    """A sandbox image used in the run: folder name and engine id."""

    name: str
    id: str


class Manifest(Record):
    """What a bundle says about its run. The only place, with `timing`, for times and paths of this machine.

    `started_at` is RFC 3339 in UTC; `timing` in milliseconds by phase. `finished` becomes true when the recording
    ended in order; `canaries`: all that were planted; `network`: answer, refuse, or none without a gateway;
    `problems` are the sentences that say why a run stopped early (each is a gap). `transport`: over which the server
    was found to speak, where that is not the one of the options.
    """

    format: Literal[1] = 1
    harness_version: str
    run_id: str
    target: TargetRef
    name: str = ""
    version: str = ""
    artifacts: tuple[Artifact, ...] = ()
    closure_digest: str = ""
    images: tuple[ImageFact, ...] = ()
    engine: dict[str, str] = {}
    options: RunOptions
    transport: Transport | None = None
    canaries: tuple[Canary, ...] = ()
    network: str = "none"
    recorder: str = "none"
    grade: Grade = Grade.NONE
    finished: bool = False
    started_at: str = ""
    timing: dict[str, int] = {}
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Recording(Protocol):
    """A bundle read back. `events()` may be called more than once and starts anew each time."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def surfaces(self) -> tuple[Surface, ...]: ...

    @property
    def complete(self) -> bool:
        """False when the run died before it sealed the bundle."""
        ...

    def events(self) -> Iterator[Event]: ...


class EventSink(Protocol):
    """Where the recording half puts what it sees. The sink numbers, stamps and bounds; it returns the number."""

    def record(self, event: Event) -> int: ...
