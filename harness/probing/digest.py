"""From the events of a call to its `Outcome`: what the target itself did between the call's two marks. Pure.

The driver folds the events as they are recorded, the oracle folds them again from the bundle: the same bytes come out.
A call begins with its `CallEvent`, its doings lie between the warden's mark of the phase `call:<item>:<id>` and the
next mark in the kernel's own order, and its `CallEndEvent` closes it. What gate, warden and the container runtime do
is left out, and so is what every runtime reads while it loads code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from harness.model.call import Call, CallEndEvent, CallEvent, Connection, Execution, OpenedFile, Outcome
from harness.model.flow import FlowEvent
from harness.model.kernel import KernelEvent, MarkEvent, Origin, ProcessEvent, RecorderEndEvent, SyscallEvent
from harness.model.recording import Event, ExitEvent

#: Bounds of one outcome. Reads have their own, so that many of them can't hide a write.
MAX_READS: Final = 512
MAX_CHANGES: Final = 256
MAX_EXECUTIONS: Final = 64
MAX_CONNECTIONS: Final = 64
MAX_NAMES: Final = 64
MAX_ARGV_CHARACTERS: Final = 8192
TEXT_CHARACTERS: Final = 4000
#: A mark holds the phase, percent-encoded, and is cut at 1,024 characters.
MAX_ITEM_CHARACTERS: Final = 600
#: Calls that are open at once: one, unless a recording is not one of ours.
MAX_OPEN: Final = 16

_OPENS = frozenset({"open", "openat", "openat2", "creat", "open_by_handle_at"})
_WRITING = frozenset({"O_WRONLY", "O_RDWR", "O_TRUNC", "O_APPEND", "O_TMPFILE"})
#: Calls that change what their first path names, and the word for it.
_CHANGES: Final[dict[str, str]] = {
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), "delete"),
    **dict.fromkeys(("mkdir", "mkdirat"), "mkdir"),
    **dict.fromkeys(("mknod", "mknodat"), "create"),
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), "chmod"),
    **dict.fromkeys(("chown", "lchown", "fchown", "fchownat"), "chmod"),
    **dict.fromkeys(("truncate", "ftruncate", "fallocate"), "write"),
}
_RENAMES = frozenset({"rename", "renameat", "renameat2"})
_LINKS = frozenset({"link", "linkat", "symlink", "symlinkat"})
_ACCESS = frozenset({"access", "faccessat", "faccessat2"})
_EXECS = frozenset({"execve", "execveat"})
_SENDS = frozenset({"connect", "sendto", "sendmsg", "sendmmsg"})
#: Reads that say nothing about a call: code and data of the runtime, devices, the kernel's own files.
_RUNTIME = re.compile(
    r"/(?:app|usr|opt|lib|lib32|lib64|bin|sbin|sys|proc)(?:/.*)?"
    r"|/dev(?:/(?:null|zero|u?random|tty|pts/.*|shm/?))?"
    r"|/etc/(?:ld\.so\..*|localtime|timezone|nsswitch\.conf|host\.conf|gai\.conf|resolv\.conf|hosts|services"
    r"|protocols|mime\.types|ssl/.*|ca-certificates/.*|locale\.alias|os-release|debian_version|python3.*)"
    r"|/|/home|/home/user|/etc",
    re.DOTALL,
)
_CACHES = re.compile(r".*/__pycache__(?:/.*)?", re.DOTALL)
#: What is no other machine: sockets of this one, and families without addresses.
_NO_PEER = re.compile(r"unix:.*|.*:0|[^:]*", re.DOTALL)
#: How the address of a question to the resolver ends.
RESOLVER: Final = ":53"
#: Datagram sockets that are remembered: `connect` on one sends nothing, and the resolver sorts addresses by it.
MAX_DATAGRAMS: Final = 4096
_ENTRY = "/usr/local/bin/entry"

#: Results of connect(2) with which no packet left: EPERM, EACCES, EINVAL, EAFNOSUPPORT, EADDRNOTAVAIL, ENETUNREACH.
_UNSENT = frozenset({-1, -13, -22, -97, -99, -101})


@dataclass(slots=True)
class _Open:
    """A call under way. `inside`: its mark was seen and the next was not; `began` and `ended` are their times.

    `asked`: it asked the resolver for something. `early`: flows that were told before the first mark.
    """

    call: Call
    phase: str
    session: str
    inside: bool = False
    marked: bool = False
    closed: bool = False
    began: int = 0
    ended: int | None = None
    reads: dict[tuple[str, str, bool], OpenedFile] = field(default_factory=dict)
    changes: dict[tuple[str, str, bool], OpenedFile] = field(default_factory=dict)
    executions: list[Execution] = field(default_factory=list)
    connections: dict[str, Connection] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    asked: bool = False
    early: list[FlowEvent] = field(default_factory=list)
    cut: bool = False
    broken: bool = False


class Digest:
    """Feed it every event in the order of their numbers; `take` answers with the outcome that an event completes."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._entered: set[tuple[str, int]] = set()
        self._datagrams: dict[tuple[str, int, int], None] = {}

    def take(self, event: Event) -> Outcome | None:
        """Learn from the next event. The outcome of a call comes with its `CallEndEvent`, else None."""
        if isinstance(event, SyscallEvent):
            if event.call == "socket":
                self._socket(event)
            elif self._open and (call := self._inside(event)) is not None and not self._only_sorts(event):
                _syscall(call, event)
        elif isinstance(event, ProcessEvent):
            self._process(event)
        elif isinstance(event, MarkEvent):
            self._mark(event)
        elif isinstance(event, CallEvent):
            while len(self._open) >= MAX_OPEN:
                del self._open[next(iter(self._open))]
            self._open[event.call.id] = _Open(event.call, call_phase(event.call), event.session)
        elif isinstance(event, FlowEvent):
            for call in self._open.values():
                if call.session == event.session:
                    _flow(call, event)
        elif isinstance(event, RecorderEndEvent | ExitEvent):
            for call in self._open.values():
                call.broken |= call.session == event.session and not call.closed
        elif isinstance(event, CallEndEvent):
            ended = self._open.pop(event.call, None)
            return _outcome(ended, event) if ended is not None else None
        return None

    def closed(self, call: str) -> bool:
        """Whether both marks of this call have been seen."""
        found = self._open.get(call)
        return found is not None and found.closed

    def pending(self, call: str) -> tuple[Connection, ...]:
        """Connections of this call of which no flow has been told yet; the resolver's where nothing else is known."""
        found = self._open.get(call)
        if found is None:
            return ()
        if found.asked and not found.names and not found.connections:
            return (Connection(address=RESOLVER),)
        return tuple(connection for connection in found.connections.values() if connection.flow is None)

    def _socket(self, event: SyscallEvent) -> None:
        if event.result is None or event.result < 0:
            return
        key = self._key(event, event.result)
        self._datagrams.pop(key, None)
        if "SOCK_DGRAM" in event.flags:
            while len(self._datagrams) >= MAX_DATAGRAMS:
                del self._datagrams[next(iter(self._datagrams))]
            self._datagrams[key] = None

    def _only_sorts(self, event: SyscallEvent) -> bool:
        """Whether it connects a datagram socket, which sends nothing."""
        return event.call == "connect" and bool(event.args) and self._key(event, event.args[0]) in self._datagrams

    @staticmethod
    def _key(event: SyscallEvent, descriptor: int) -> tuple[str, int, int]:
        return event.session, event.pid, descriptor

    def _inside(self, event: KernelEvent) -> _Open | None:
        if event.by is not Origin.TARGET or event.record < 0:
            return None
        if event.parent == 0 and (event.session, event.pid) not in self._entered:
            return None
        for call in self._open.values():
            if call.inside and call.session == event.session:
                return call
        return None

    def _process(self, event: ProcessEvent) -> None:
        if event.what != "exec" or event.by is not Origin.TARGET:
            return
        if event.parent == 0 and event.path == _ENTRY:
            return
        if event.parent == 0 and len(self._entered) < 1024:
            self._entered.add((event.session, event.pid))
        call = self._inside(event)
        if call is None:
            return
        if len(call.executions) >= MAX_EXECUTIONS:
            call.cut = True
            return
        argv, room = [], MAX_ARGV_CHARACTERS
        for word in event.argv:
            argv.append(word[:room])
            room = max(0, room - len(word))
        call.executions.append(Execution(path=event.path or event.requested, argv=tuple(argv), seq=event.seq))

    def _mark(self, event: MarkEvent) -> None:
        if event.by is not Origin.WARDEN:
            return
        for call in self._open.values():
            if call.session != event.session:
                continue
            if call.inside:
                call.inside, call.closed, call.ended = False, True, event.t
            elif not call.marked and event.phase == call.phase:
                call.inside, call.marked, call.began = True, True, event.t
                early, call.early = call.early, []
                for flow in early:
                    _flow(call, flow)


def call_phase(call: Call) -> str:
    """The phase `call:<item>:<id>` that a call is recorded under; an item's name too long for a mark is cut."""
    item = call.item.encode("utf-8", "replace").decode()
    while len(quote(item)) > MAX_ITEM_CHARACTERS:
        item = item[: len(item) * 3 // 4]
    return f"call:{item}:{call.id}"


def digest(events: Iterable[Event]) -> dict[str, Outcome]:
    """Every call's outcome by its id, folded at once."""
    fold = Digest()
    found = (fold.take(event) for event in events)
    return {outcome.call: outcome for outcome in found if outcome is not None}


def _syscall(call: _Open, event: SyscallEvent) -> None:
    name = event.call
    ok = event.result is not None and event.result >= 0
    path = event.path
    if name in _OPENS:
        if path is not None and "O_PATH" not in event.flags:
            _file(call, event, path, _opened(event), ok)
    elif name in _SENDS:
        _connection(call, event)
    elif name in _RENAMES:
        if path is not None:
            _file(call, event, path, "rename", ok)
        if event.path2 is not None:
            _file(call, event, event.path2, "create", ok)
    elif name in _LINKS:
        if event.path2 is not None:
            _file(call, event, event.path2, "link", ok)
    elif name in _CHANGES:
        if path is not None and not (name.startswith("mkdir") and event.result == -17):
            _file(call, event, path, _CHANGES[name], ok)
    elif name in _ACCESS and path is not None:
        _file(call, event, path, "access", ok)
    elif name in _EXECS and not ok and path is not None and len(call.executions) < MAX_EXECUTIONS:
        call.executions.append(Execution(path=path, argv=(), ok=False, seq=event.seq))


def _opened(event: SyscallEvent) -> str:
    if event.call == "creat" or "O_CREAT" in event.flags:
        return "create"
    return "read" if _WRITING.isdisjoint(event.flags) else "write"


def _file(call: _Open, event: SyscallEvent, path: str, how: str, ok: bool) -> None:
    reading = how in ("read", "access")
    if _CACHES.fullmatch(path) or path == "/dev/null" or (reading and _RUNTIME.fullmatch(path)):
        return
    book, bound = (call.reads, MAX_READS) if reading else (call.changes, MAX_CHANGES)
    key = (path, how, ok)
    told = OpenedFile(path=path, how=how, ok=ok, claimed=event.claimed or not ok, seq=event.seq)
    if key in book:
        if book[key].claimed and not told.claimed:
            book[key] = told  # the kernel's word counts for more than the target's memory
        return
    if len(book) >= bound:
        call.cut = True
        return
    book[key] = told


def _connection(call: _Open, event: SyscallEvent) -> None:
    if event.call == "connect" and event.result in _UNSENT:
        return
    if event.call != "connect" and event.remote.endswith(RESOLVER):
        call.asked = True
        return
    for address in (event.remote, *event.addresses):
        if _NO_PEER.fullmatch(address) or address in call.connections:
            continue
        if len(call.connections) >= MAX_CONNECTIONS:
            call.cut = True
            return
        call.connections[address] = Connection(address=address, seq=event.seq)


def _flow(call: _Open, event: FlowEvent) -> None:
    """A flow that began between the marks is the call's. One can be told before the first mark comes out."""
    if not call.marked:
        if len(call.early) < MAX_CONNECTIONS:
            call.early.append(event)
        else:
            call.cut = True
        return
    if event.began < call.began or (call.ended is not None and event.began > call.ended):
        return
    for part in event.parts:
        if part.what == "dns-question" and (name := part.text.split(" ")[0].rstrip(".")):
            if len(call.names) < MAX_NAMES:
                call.names[name] = None
            else:
                call.cut = True
    if event.application in ("dns", "dot", "doh"):
        call.connections.pop(event.remote, None)
        return
    if event.remote not in call.connections and len(call.connections) >= MAX_CONNECTIONS:
        call.cut = True
        return
    known = call.connections.get(event.remote)
    call.connections[event.remote] = Connection(
        address=event.remote,
        names=event.names or ((event.sni,) if event.sni else ()),
        text=_said(event),
        flow=event.flow,
        seq=known.seq if known is not None else event.seq,
    )


def _said(event: FlowEvent) -> str:
    """What was sent: the lines of every request on the connection, else the first part's short form."""
    lines = "\n".join(part.lines for part in event.parts if part.lines)
    return (lines or next((part.text for part in event.parts if part.text), ""))[:TEXT_CHARACTERS]


def _outcome(call: _Open, end: CallEndEvent) -> Outcome:
    files = sorted((*call.reads.values(), *call.changes.values()), key=lambda file: file.seq)
    return Outcome.model_validate(
        {
            "call": end.call,
            "state": end.state,
            "text": end.text,
            "size": end.size,
            "code": end.code,
            "seconds": end.seconds,
            "files": files,
            "executions": call.executions,
            "connections": sorted(call.connections.values(), key=lambda connection: connection.seq),
            "names": tuple(call.names),
            "memory_bytes": end.memory_bytes,
            "cut": call.cut,
            "complete": call.closed and not call.broken,
        }
    )
