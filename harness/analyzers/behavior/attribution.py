"""Who did it and when: phase, call, process and its parents, and paths that the recorder could not resolve.

A fold that every behaviour analyzer feeds with each event and asks only about the few it is interested in. All of its
memory is bounded. The phase is that of the last heartbeat before an event in the trace itself, so no clocks have to
agree; what is told afterwards (`record` is -1) is put in order by its time.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.model.call import Purpose
from harness.model.recording import (
    AttemptEvent,
    CallEvent,
    Event,
    KernelEvent,
    MarkEvent,
    Origin,
    PhaseEvent,
    ProcessEvent,
    SyscallEvent,
)

#: Bounds of what is remembered. The oldest goes first.
MAX_SESSIONS = 64
MAX_PROCESSES = 4096
MAX_MARKS = 4096
MAX_CALLS = 256
MAX_FOLDERS = 64
MAX_ANCESTORS = 6
MAX_ENTERED = 1024
ARGV_WORDS = 16
#: A shorter mark of a call (`c17`) turns up in any text by chance.
MIN_NONCE = 8

CALL = "call"
#: The program that every container of a run begins with; the same as that of `harness.sandbox.hardening`.
GATE = "/usr/local/bin/entry"
_AT_FDCWD = -100
_SELF = re.compile(r"^/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/(root|cwd)(?=/|$)")
#: Calls that move a process, or give it a descriptor to move by.
FOLLOWED = frozenset({"chdir", "fchdir", "open", "openat", "openat2"})
_BASE2 = {"renameat": 2, "renameat2": 2, "linkat": 2, "symlinkat": 1}


@dataclass(slots=True)
class Process:
    """One process as far as it is known. `born`: number of the call it began in (0: in none), inherited by children."""

    pid: int
    ancestors: tuple[str, ...] = ()
    program: str = ""
    argv: tuple[str, ...] = ()
    directory: str = ""
    execs: int = 0
    born: int = 0
    entry: bool = False
    folders: dict[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The program's file name, empty when it is not known."""
        return self.program.rpartition("/")[2]

    @property
    def parent_name(self) -> str:
        """Name of the program that started it."""
        return self.ancestors[0].rpartition("/")[2] if self.ancestors else ""


class Where(NamedTuple):
    """What an event belongs to. `phase` has no call in it; `after`: number of the call whose late effect it is.

    `attacked`: the call was one with a payload, or its twin: what it did there was asked for by us.
    """

    session: str
    phase: str
    process: Process
    tool: str | None = None
    call: str | None = None
    number: int = 0
    after: int = 0
    attacked: bool = False


class Call(NamedTuple):
    """One call: its number in the run, from 1."""

    number: int
    tool: str
    nonce: str
    attacked: bool = False


_BENIGN = frozenset({Purpose.BASELINE, Purpose.PREPARE, Purpose.DOCUMENTED, Purpose.REFUSAL})


class _Session:
    """Marks, calls and processes of one session.

    `entered`: processes that came from outside of the namespace and have become a program of the target's.
    """

    __slots__ = ("called", "entered", "marks", "phase", "processes", "started")

    def __init__(self) -> None:
        self.phase = ""
        self.marks: deque[tuple[int, str]] = deque(maxlen=MAX_MARKS)
        self.processes: dict[int, Process] = {}
        self.started = False
        self.called = 0
        self.entered: set[int] = set()


class Attribution:
    """Feed it every event with `take`; ask with `where` and `path` about the event just taken."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._calls: dict[str, Call] = {}
        self._by_phase: dict[str, Call] = {}
        self._numbers = 0
        self._entered = ("", -1)
        #: The process of what no process did.
        self.nobody = Process(0)

    def take(self, event: Event) -> None:
        """Learn from the next event."""
        kind = type(event)
        if kind is SyscallEvent:
            if event.call in FOLLOWED:  # type: ignore[union-attr, operator]
                self.follow(event)  # type: ignore[arg-type]
        elif kind is ProcessEvent:
            self._process(event)  # type: ignore[arg-type]
        elif kind is MarkEvent:
            self._mark(event)  # type: ignore[arg-type]
        elif kind is PhaseEvent:
            self._call_of(event.phase)
        elif kind is CallEvent:
            self._announced(event)  # type: ignore[arg-type]
        elif kind is AttemptEvent:
            self._restart(event.session)

    def noise(self, event: KernelEvent) -> bool:
        """True for what gate, warden and the container's start do.

        A process whose parent lives outside of the namespace was put there by the container runtime: until it has
        become a program of the target's, it is the runtime or the gate. (Orphans go to the namespace's first process.)
        """
        if event.by is not Origin.TARGET:
            return True
        if event.parent != 0:
            return False
        if event.pid == self._entered[1] and event.session == self._entered[0]:
            return False
        session = self._session(event.session)
        if event.pid in session.entered:
            self._entered = event.session, event.pid
            return False
        return len(session.entered) < MAX_ENTERED

    def where(self, event: KernelEvent, *texts: str | None) -> Where:
        """What the event belongs to. `texts`: what of it may hold the nonce of a call."""
        session = self._session(event.session)
        process = self._known(session, event)
        phase = session.phase or event.phase
        if event.record < 0 and session.marks:
            at = bisect_right(session.marks, event.t, key=lambda mark: mark[0])
            phase = session.marks[at - 1][1] if at else event.phase
        exact = self._by_nonce(texts) if self._calls else None
        if exact is not None:
            return Where(event.session, CALL, process, exact.tool, exact.nonce, exact.number, 0, exact.attacked)
        if not phase.startswith("call:"):
            return Where(event.session, phase, process, after=process.born or session.called)
        call = self._call_of(phase)
        if process.born and call is not None and process.born != call.number:
            return Where(event.session, CALL, process, after=process.born)
        if call is None:
            return Where(event.session, CALL, process)
        return Where(event.session, CALL, process, call.tool, call.nonce, call.number, 0, call.attacked)

    def path(self, event: KernelEvent, path: str, *, second: bool = False) -> str:
        """An event's path made absolute as far as is known: against a descriptor's folder or the working directory."""
        if path.startswith("/proc/") and (match := _SELF.match(path)) is not None:
            rest = path[match.end() :]
            path = rest or "/" if match[1] == "root" else f"./{rest.lstrip('/')}"
        if not path.startswith(("/", "...")):
            base = self._folder(event, second=second)
            path = posixpath.join(base, path) if base else path
        if "//" in path or "/." in path:
            path = posixpath.normpath(path) if not path.startswith("...") else path
            path = "/" + path.lstrip("/") if path.startswith("/") else path
        return path

    def _folder(self, event: KernelEvent, *, second: bool) -> str:
        process = self._known(self._session(event.session), event)
        call = getattr(event, "call", "")
        args: tuple[int, ...] = getattr(event, "args", ())
        position = _BASE2.get(call, -1) if second else 0
        if 0 <= position < len(args) and (call.endswith(("at", "at2"))):
            descriptor = _signed(args[position])
            if descriptor != _AT_FDCWD:
                return process.folders.get(descriptor, "")
        return process.directory

    def _session(self, name: str) -> _Session:
        found = self._sessions.get(name)
        if found is None:
            if len(self._sessions) >= MAX_SESSIONS:
                return self._sessions.setdefault("others", _Session())
            found = self._sessions[name] = _Session()
        return found

    def _known(self, session: _Session, event: KernelEvent) -> Process:
        process = session.processes.get(event.pid)
        if process is None:
            parent = session.processes.get(event.parent)
            process = self._born(session, event.pid, parent)
        return process

    def _born(self, session: _Session, pid: int, parent: Process | None) -> Process:
        call = self._call_of(session.phase) if session.phase.startswith("call:") else None
        born = call.number if call is not None else 0
        if parent is None:
            process = Process(pid, born=born)
        else:
            above = (parent.program, *parent.ancestors) if parent.program else parent.ancestors
            process = Process(
                pid, above[:MAX_ANCESTORS], parent.program, parent.argv, parent.directory, born=parent.born or born
            )
            process.folders.update(parent.folders)
        while len(session.processes) >= MAX_PROCESSES:
            del session.processes[next(iter(session.processes))]
        session.processes[pid] = process
        return process

    def _process(self, event: ProcessEvent) -> None:
        session = self._session(event.session)
        if event.what == "fork":
            session.processes.pop(event.child, None)
            self._born(session, event.child, self._known(session, event))
        elif event.what == "exec":
            process = self._known(session, event)
            if process.program and event.by is Origin.TARGET and process.execs and process.program != event.path:
                process.ancestors = (process.program, *process.ancestors)[:MAX_ANCESTORS]
            process.program = event.path or event.requested
            process.argv = event.argv[:ARGV_WORDS]
            process.directory = event.directory or process.directory
            if event.by is Origin.TARGET and not (event.parent == 0 and event.path == GATE):
                if event.parent == 0 and len(session.entered) < MAX_ENTERED:
                    session.entered.add(event.pid)
                process.execs += 1
                process.entry = not session.started
                session.started = True

    def _mark(self, event: MarkEvent) -> None:
        session = self._session(event.session)
        if event.by is Origin.GATE:
            self._restart(event.session)
        elif event.by is Origin.WARDEN:
            call = self._call_of(event.phase)
            session.called = call.number if call is not None else session.called
            session.phase = event.phase
            session.marks.append((event.t, event.phase))

    def _restart(self, name: str) -> None:
        """A new life of the target: process numbers begin anew, and what is known of them is void."""
        session = self._session(name)
        session.processes.clear()
        session.marks.clear()
        session.phase = ""
        session.started = False
        session.called = 0
        session.entered.clear()
        self._entered = ("", -1)

    def _call_of(self, phase: str) -> Call | None:
        """The call that a phase `call:<tool>:<nonce>` is; told once, it is remembered."""
        known = self._by_phase.get(phase)
        if known is not None or not phase.startswith("call:"):
            return known
        tool, _, nonce = phase[len("call:") :].rpartition(":")
        if not nonce:
            return None
        self._numbers += 1
        call = Call(self._numbers, tool, nonce)
        self._keep(phase, call)
        return call

    def _keep(self, phase: str, call: Call, *nonces: str) -> None:
        while len(self._by_phase) >= MAX_CALLS:
            del self._by_phase[next(iter(self._by_phase))]
        self._by_phase[phase] = call
        for nonce in (call.nonce, *nonces):
            if len(nonce) >= MIN_NONCE:
                while len(self._calls) >= MAX_CALLS:
                    del self._calls[next(iter(self._calls))]
                self._calls[nonce] = call

    def _announced(self, event: CallEvent) -> None:
        """A call is about to be made: what stands for it in what it does, and whether it carries a payload."""
        call = self._call_of(event.phase)
        if call is not None:
            call = call._replace(attacked=event.call.purpose not in _BENIGN)
            self._keep(event.phase, call, event.call.nonce)

    def _by_nonce(self, texts: tuple[str | None, ...]) -> Call | None:
        for text in texts:
            if text:
                for nonce, call in self._calls.items():
                    if nonce in text:
                        return call
        return None

    def follow(self, event: SyscallEvent) -> None:
        """Learn from one of the calls in `FOLLOWED`; the part of `take` for those who sort calls themselves."""
        if event.result is None or event.result < 0:
            return
        if event.call == "chdir" or event.call == "fchdir":
            process = self._known(self._session(event.session), event)
            if event.path is not None:
                process.directory = self.path(event, event.path)
            elif event.args:
                process.directory = process.folders.get(_signed(event.args[0]), process.directory)
        elif "O_DIRECTORY" in event.flags and event.path is not None:
            process = self._known(self._session(event.session), event)
            if len(process.folders) >= MAX_FOLDERS:
                del process.folders[next(iter(process.folders))]
            process.folders.pop(event.result, None)
            process.folders[event.result] = self.path(event, event.path)


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
