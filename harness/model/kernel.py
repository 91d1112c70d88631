"""The events of the kernel's record: what the recorder saw the target's processes do (see docs/recording.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from harness.model.event import EventBase


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
    changed (a claimed path was another one when the call began), claimed (an exec as it was asked for: strace's),
    relayed (written to a connection of the harness' own to what the target serves; its ends are left out).
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
