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
from harness.model.options import RunOptions
from harness.model.plan import Obstacle
from harness.model.surface import ItemKind, ListEnd, Surface
from harness.model.target import Artifact, TargetRef


class Phase(StrEnum):
    """The phases of a run in order. A call's phase is `call:<tool>:<nonce>` and not in this list."""

    FETCH = "fetch"
    INSTALL = "install"
    START = "start"
    DISCOVER = "discover"
    PROBE = "probe"
    IDLE = "idle"
    STOP = "stop"


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


class EventBase(Record):
    """Fields of every event. `session` names one life of the target (`install`, `main`, `stock-client` …)."""

    seq: int = 0
    t: int = 0
    phase: str
    session: str = "main"


class PhaseEvent(EventBase):
    """A phase begins. `nonce` ties it to the heartbeat that the warden makes inside the sandbox."""

    kind: Literal["phase"] = "phase"
    nonce: str


class AttemptEvent(EventBase):
    """The target was started with these arguments; environment by name only.

    `number` counts the starts within the session; `why` is empty for the first, which is as the metadata says.
    `guess`: nothing that the target said asked for the change. An attempt that was answered counts, the last of
    several; where none was, the last that was no guess.
    """

    kind: Literal["attempt"] = "attempt"
    number: int
    argv: tuple[str, ...]
    environment: tuple[str, ...] = ()
    why: str = ""
    guess: bool = False


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


class Origin(StrEnum):
    """Whose doing a kernel event is: the target's, or that of the gate or the warden beside it."""

    TARGET = "target"
    GATE = "gate"
    WARDEN = "warden"


class KernelEvent(EventBase):
    """Fields of what the recorder saw a process do.

    `t` is the kernel's time, `record` the recorder's own number (a gap in it is a lost record; -1: told afterwards).
    `pid`, `tid` and `parent` are numbers in the target's pid namespace; 0 where a process lives outside of it.
    Text is exact where `notes` lacks `escaped`; with it, bytes that are not UTF-8 are `\\xNN` and backslashes doubled.
    `notes` may hold: escaped, cut, unreadable, relative, deleted, detached, nested, x32, compat32, entered,
    changed (a claimed path was another one when the call began).
    """

    record: int = -1
    pid: int
    tid: int
    parent: int = 0
    uid: int = 0
    comm: str = ""
    by: Origin = Origin.TARGET
    notes: tuple[str, ...] = ()


class SyscallEvent(KernelEvent):
    """One system call. Which are recorded, and what is kernel truth and what a claim: docs/recording.md.

    `result` is the kernel's (negative: an errno); None for a call that was begun and had not returned. `denied`: a
    seccomp filter answered it. `claimed`: `path` and `path2` come from memory that the target could change meanwhile.
    `flags` are the arguments that have names (O_WRONLY, AF_INET, CLONE_NEWUSER). `local` and `remote` are a socket's
    ends (`203.0.113.1:443`, `[2001:db8::1]:443`, `unix:/path`, `unix:@abstract`), `addresses` those in the call:
    claims. `identity` (`device:inode`) names a file beyond its path; `decoy`: one that was planted beforehand.
    """

    kind: Literal["syscall"] = "syscall"
    call: str
    args: tuple[int, ...] = ()
    result: int | None = None
    denied: bool = False
    flags: tuple[str, ...] = ()
    path: str | None = None
    path2: str | None = None
    claimed: bool = False
    identity: str = ""
    decoy: bool = False
    local: str = ""
    remote: str = ""
    addresses: tuple[str, ...] = ()


class ProcessEvent(KernelEvent):
    """A process (or thread) began, became another program, or ended.

    exec: `path` of the program file, the name as `requested`, the `interpreter` of a script, the `directory`, `argv`,
    and the environment's names. fork, thread: `child`. exit: `code`, or the `signal` that ended it.
    """

    kind: Literal["process"] = "process"
    what: Literal["exec", "fork", "thread", "exit"]
    path: str | None = None
    requested: str = ""
    interpreter: str = ""
    directory: str = ""
    argv: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    identity: str = ""
    child: int = 0
    code: int | None = None
    signal: int | None = None


class TransferEvent(KernelEvent):
    """Bytes one process read and wrote through one socket, or one file open for writing, since the last such event."""

    kind: Literal["transfer"] = "transfer"
    path: str | None = None
    local: str = ""
    remote: str = ""
    identity: str = ""
    read: int = 0
    written: int = 0


class MarkEvent(KernelEvent):
    """A heartbeat of gate or warden: from here on the phase is `phase`."""

    kind: Literal["mark"] = "mark"
    nonce: str


class RecorderEndEvent(EventBase):
    """What the recorder says about itself at the end of a session; the ground for its grade.

    `early`: it ended before it was told to. `matched` counts records that had to be made, `lost` those dropped by ring
    or missing in the stream. `marks_missing` are the nonces of heartbeats that were made and not seen. `calls` are
    the names of all system calls that reached the kernel, `denied` of those that never did, `compat` of 32-bit ones.
    """

    kind: Literal["recorder-end"] = "recorder-end"
    recorder: str = "ebpf"
    loaded: bool = True
    early: bool = False
    reason: str = ""
    matched: int = 0
    received: int = 0
    lost: dict[str, int] = {}
    marks_seen: int = 0
    marks_missing: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    compat: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Every record came, and every heartbeat is among them."""
        return self.loaded and not self.early and not self.marks_missing and not any(self.lost.values())


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
    | RecorderEndEvent,
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
    ended in order; `problems` are the sentences that say why a run stopped early (each is a gap).
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
