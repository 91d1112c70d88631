"""What the target did, as facts and not as findings: processes, files, destinations, and the least it needs.

A fold over the events with bounded memory. The installation is left out: the profile is for running the server. Gate
and warden are left out of everything but the list of system calls, which a container needs for its start as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.assessment.destinations import Destinations
from harness.assessment.paths import FolderSet
from harness.model.base import JsonObject, Record
from harness.model.recording import (
    Event,
    FlowEvent,
    Origin,
    Phase,
    ProcessEvent,
    RecorderEndEvent,
    SyscallEvent,
    TransferEvent,
)

MAX_PROCESSES = 200
MAX_DELETED = 100
MAX_EXECUTABLES = 100
ARGV_WORDS = 12
WORD_CHARS = 200

_OPENS = frozenset({"open", "openat", "openat2", "creat"})
_WRITING = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"})
_MAKES_FIRST = frozenset({"mkdir", "mkdirat", "mknod", "mknodat", "truncate", "chmod", "fchmodat", "chown", "fchownat"})
_MAKES_SECOND = frozenset({"rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat"})
_DELETES = frozenset({"unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2"})
_SOCKETS = frozenset({"socket", "connect", "sendto", "sendmsg", "sendmmsg"})
_FILES = _OPENS | _MAKES_FIRST | _MAKES_SECOND | _DELETES

#: Calls that a container makes before what is recorded begins: the runtime's between loading a filter and the first
#: program (seen with runc 1.1), the gate's, and the two by which the kernel comes back from signals.
START_CALLS = (
    "access", "arch_prctl", "brk", "capget", "capset", "chdir", "clone", "close", "epoll_ctl", "epoll_pwait", "execve",
    "exit", "exit_group", "faccessat", "faccessat2", "fchdir", "fchmod", "fcntl", "fstat", "fstatfs", "futex",
    "getdents64", "getpid", "getppid", "gettid", "ioctl", "lseek", "madvise", "mkdir", "mkdirat", "mmap", "mprotect",
    "munmap", "nanosleep", "newfstatat", "open", "openat", "prctl", "read", "readlinkat", "restart_syscall",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_yield", "set_tid_address", "setgid", "setgroups",
    "setuid", "sigaltstack", "stat", "statx", "symlinkat", "tgkill", "umask", "write", "writev",
)  # fmt: skip


class Behavior(Record):
    """What was seen, bounded; each part as interface.md has it in `behavior`."""

    egress: tuple[JsonObject, ...] = ()
    processes: tuple[JsonObject, ...] = ()
    files: JsonObject = {}
    profile: JsonObject = {}


class Profiler:
    """A fold over the events."""

    def __init__(self) -> None:
        self._programs: dict[tuple[str, int], str] = {}
        self._processes: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._more_processes = 0
        self._destinations = Destinations()
        self._read = FolderSet()
        self._written = FolderSet()
        self._deleted: dict[str, None] = {}
        self._more_deleted = 0
        self._executables: dict[str, None] = {}
        self._calls: set[str] = set()
        self._recorded = False

    def event(self, event: Event) -> None:
        """Take the next event."""
        kind = type(event)
        if kind is SyscallEvent:
            assert isinstance(event, SyscallEvent)
            if event.call in _FILES:
                if _counts(event) and event.result is not None and event.result >= 0:
                    self._file(event)
            elif event.call in _SOCKETS and _counts(event):
                self._destinations.call(event, _phase(event), self._program(event.session, event.pid))
        elif isinstance(event, FlowEvent):
            if event.session != Phase.INSTALL.value:
                self._destinations.flow(event, _phase(event))
        elif isinstance(event, ProcessEvent):
            if _counts(event):
                self._process(event)
        elif isinstance(event, TransferEvent):
            if _counts(event) and event.written and event.path is not None:
                self._written.add(event.path)
        elif isinstance(event, RecorderEndEvent) and event.session != Phase.INSTALL.value:
            self._recorded = True
            self._calls.update(event.calls)

    def finish(self) -> Behavior:
        """What was seen so far; empty where nothing was recorded."""
        if not self._recorded:
            return Behavior(egress=self._destinations.rows()) if self._destinations.any_flow else Behavior()
        read, written = self._read.shown(), self._written.shown()
        deleted = [*self._deleted, *([f"and {self._more_deleted} more"] if self._more_deleted else [])]
        egress = self._destinations.rows()
        destinations = sorted({str(row["destination"]) for row in egress if "destination" in row})
        return Behavior(
            egress=egress,
            processes=_rows(self._processes.values(), self._more_processes),
            files={"read": list(read), "written": list(written), "deleted": deleted},
            profile={
                "executables": sorted(self._executables),
                "paths": {"read": list(read), "written": list(written)},
                "destinations": destinations,
                "seccomp": seccomp_profile(sorted(self._calls)),
            },
        )

    def _file(self, event: SyscallEvent) -> None:
        call, path = event.call, event.path
        own = f"/proc/{event.pid}/"
        if path is not None and path.startswith(own):
            path = "/proc/self/" + path[len(own) :]  # the same in every run
        if call in _OPENS:
            if path is not None:
                (self._read if _WRITING.isdisjoint(event.flags) else self._written).add(path)
            return
        if call in _DELETES and path is not None:
            if len(self._deleted) < MAX_DELETED:
                self._deleted[path[:1024]] = None
            elif path not in self._deleted:
                self._more_deleted += 1
        changed = event.path2 if call in _MAKES_SECOND else path if call in _MAKES_FIRST else None
        if changed is not None:
            self._written.add(changed)

    def _process(self, event: ProcessEvent) -> None:
        key = (event.session, event.pid)
        if event.what == "fork":
            self._remember((event.session, event.child), self._programs.get(key, ""))
        elif event.what == "exit":
            self._programs.pop(key, None)
        elif event.what == "exec":
            program = (event.path or event.requested)[:1024]
            parent = self._programs.get((event.session, event.parent), "")
            self._remember(key, program)
            if len(self._executables) < MAX_EXECUTABLES:
                self._executables[program] = None
            argv = [word[:WORD_CHARS] for word in event.argv[:ARGV_WORDS]]
            shown = (program, tuple(argv), parent, _phase(event))
            row = self._processes.get(shown)
            if row is None:
                if len(self._processes) >= MAX_PROCESSES:
                    self._more_processes += 1
                    return
                row = {"program": program, "argv": argv, "started_by": parent, "phase": shown[3], "count": 0}
                self._processes[shown] = row
            row["count"] += 1

    def _program(self, session: str, pid: int) -> str:
        return self._programs.get((session, pid), "")

    def _remember(self, key: tuple[str, int], program: str) -> None:
        self._programs.pop(key, None)
        if len(self._programs) >= 4096:
            del self._programs[next(iter(self._programs))]
        self._programs[key] = program


def seccomp_profile(calls: Sequence[str]) -> JsonObject:
    """A profile in Docker's format that allows `calls` and what a container's start needs, and denies the rest.

    `clone3` is answered with "no such call" (38) where it was not used: C libraries then fall back to `clone`.
    """
    names = sorted({*START_CALLS, *(call for call in calls if not call.startswith("syscall-"))})
    rules: list[JsonObject] = [{"names": names, "action": "SCMP_ACT_ALLOW"}]
    if "clone3" not in names:
        rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38})
    return {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules}


def _counts(event: SyscallEvent | ProcessEvent | TransferEvent) -> bool:
    return event.by is Origin.TARGET and event.session != Phase.INSTALL.value


def _phase(event: Event) -> str:
    kind, _, rest = event.phase.partition(":")
    tool = rest.rpartition(":")[0]
    return f"{kind}:{tool}" if tool else kind


def _rows(rows: Any, more: int) -> tuple[JsonObject, ...]:
    """The rows in the order of first sight; what was left out is one more row."""
    left = ({"more": more},) if more else ()
    return (*(dict(row) for row in rows), *left)
