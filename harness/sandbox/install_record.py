"""The record of an install, small enough to be kept with the sealed volume and to enter every bundle made from it.

An install opens tens of thousands of files below /app and the runtime's own folders; those are what installing is, and
are counted only. Everything else is kept, each kind of event once: programs, connections, denied calls, whatever was
written or removed elsewhere, whatever was read in the home directory or the system's configuration.
"""

from __future__ import annotations

import re

from harness.model.base import Record
from harness.model.recording import (
    Event,
    KernelEvent,
    MarkEvent,
    ProcessEvent,
    RecorderEndEvent,
    SyscallEvent,
    TransferEvent,
)

#: More different events than these are a flood of their own: the record is then known not to be whole.
MAX_EVENTS = 2000
#: Of so many processes at once it is known what they run; of the others, that it is not known.
MAX_PROCESSES = 4096

#: Where installing reads and writes.
_OWN = ("/app", "/input", "/tmp", "/dev/null", "/dev/tty")  # noqa: S108 - the container's
#: Where every program reads: the runtime's own files, and what the kernel says of the process itself.
_READ = (*_OWN, "/usr", "/lib", "/lib64", "/bin", "/opt", "/dev", "/proc/self", "/proc/sys", "/sys/devices/system", "/")

#: A process looking at itself or another of the install; the warden, process 1, is no business of theirs.
_PROCESS = re.compile(r"/proc/(?!1(?:/|$))\d")

_READERS = frozenset(
    {"open", "openat", "openat2", "access", "faccessat", "faccessat2", "stat", "newfstatat", "readlink", "readlinkat"}
)
_WRITING = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"})
_ALWAYS = frozenset({"connect", "bind", "listen", "sendto", "sendmsg", "sendmmsg"})


class InstallRecord(Record):
    """What was kept, in order; how many events were `counted` only; and what the recorder says of itself."""

    events: tuple[Event, ...]
    counted: int
    end: RecorderEndEvent


class InstallKeeper:
    """Takes the kernel's events of an install and keeps what tells something."""

    def __init__(self) -> None:
        self._kept: list[Event] = []
        self._known: set[tuple[object, ...]] = set()
        self._programs: dict[int, str] = {}
        self._counted = 0
        self._dropped = 0

    def take(self, events: list[Event]) -> None:
        """Take the next events, in order."""
        for event in events:
            key = _key(event, self._program(event))
            if key is None or key in self._known:
                self._counted += 1
            elif len(self._kept) >= MAX_EVENTS:
                self._dropped += 1
            else:
                self._known.add(key)
                self._kept.append(event)

    def _program(self, event: Event) -> str:
        """The program that an event is of: the same call means one thing of `su` and another of anything else."""
        if not isinstance(event, KernelEvent):
            return ""
        program = self._programs.get(event.pid, "")
        if isinstance(event, ProcessEvent):
            if event.what == "exit":
                self._programs.pop(event.pid, None)
            elif event.what == "exec":
                program = self._programs[event.pid] = event.path or event.requested
            elif event.what == "fork":
                self._programs[event.child] = program
            while len(self._programs) > MAX_PROCESSES:
                del self._programs[next(iter(self._programs))]
        return program

    def record(self, end: RecorderEndEvent) -> InstallRecord:
        """The record, once the recorder has ended; what did not fit counts as lost."""
        if self._dropped:
            end = end.model_copy(update={"lost": {**end.lost, "record": self._dropped}})
        return InstallRecord(events=tuple(self._kept), counted=self._counted, end=end)


def _key(event: Event, program: str) -> tuple[object, ...] | None:
    """What makes an event one that was seen already; None for one that is counted only."""
    match event:
        case MarkEvent():
            return ("mark", event.nonce)
        case ProcessEvent():
            return ("exec", event.path, event.argv) if event.what == "exec" else None
        case TransferEvent():
            return (
                None if event.path is not None and _below(event.path, _OWN) else ("transfer", event.path, event.remote)
            )
        case SyscallEvent():
            key = _call_key(event)
            return None if key is None else (program, *key)
    return None


def _call_key(event: SyscallEvent) -> tuple[object, ...] | None:
    key = (event.call, event.path, event.path2, event.flags, event.remote, event.addresses, event.denied)
    if event.denied or event.decoy or event.call in _ALWAYS or "compat32" in event.notes:
        return key
    if event.path is None:
        return (event.call, event.flags, event.args[:1])
    if event.call in _READERS and not _WRITING & set(event.flags):
        return None if _below(event.path, _READ) or _PROCESS.match(event.path) else key
    paths = [path for path in (event.path, event.path2) if path]
    return None if all(_below(path, _OWN) for path in paths) else key


def _below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or (place != "/" and path.startswith(f"{place}/")) for place in places)
