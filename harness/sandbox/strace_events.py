"""strace's trace as events, in its order: the same events as the kernel recorder's, with what strace can know.

Pure. What the kernel says stands beside each descriptor (`3</path>`); names that the target passed are claims. Marks
are calls in the trace like all others, believed only of the process that proved itself with a word nobody else knew.
"""

from __future__ import annotations

import posixpath
import re
import signal
from collections import deque
from dataclasses import dataclass, field

from harness.model.recording import Event, MarkEvent, Origin, ProcessEvent, SyscallEvent
from harness.sandbox import strace_lines as lines
from harness.sandbox.records_parts import add_note, said
from harness.sandbox.strace_calls import (
    CLONES,
    EXECS,
    NUMBERS,
    OPENS,
    PRCTLS,
    RECEIVES,
    SIGNATURES,
    SLEEPS,
    STATS,
    TELLTALES,
    WRITES,
    flag_names,
)
from harness.sandbox.strace_filter import Filter
from harness.sandbox.strace_lines import Said
from harness.sandbox.strace_transfers import Transfers

#: Bounds of what is remembered.
MAX_TASKS = 8192
MAX_HELD = 4096
MAX_DECOYS = 4096
ARGV_STRINGS = 1024
_MARK = b"/.mark/"
_QUICK = re.compile(rb"(\d{1,10}) +\d{1,12}\.\d{9} (?:<\.\.\. )?([a-z0-9_]+)[( ]")
_WATCHING = re.compile(rb"watching (\d{1,10})")
_MODE = re.compile(rb"strace: \[ Process PID=(\d+) runs in (32 bit|x32|64 bit) mode\. \]")
_SECONDS = re.compile(rb"tv_sec=(\d{1,18})")


@dataclass(slots=True)
class _Task:
    """One thread: the process it belongs to, that one's parent, its name, its call under way."""

    pid: int
    parent: int
    comm: str = ""
    mode: str = ""
    pending: Said | None = None


@dataclass(slots=True)
class _Call:
    """A finished call, its arguments taken apart."""

    said: Said
    task: _Task
    args: list[bytes]
    result: int | None
    notes: list[str] = field(default_factory=list)


class StraceDecoder:
    """Turns the trace into events.

    `filter`: the profile of the target. The events carry `session`, and until the first mark `phase`; `offset` is
    CLOCK_REALTIME minus the time they count in, in nanoseconds. `word` is what the marker proves itself with, `uid`
    that of the target. `received` counts lines, `damaged` those that make no sense. `attached`: the process that strace
    was told to watch is in the trace; `refused`: what was said instead.
    """

    def __init__(self, filter: Filter, *, session: str, phase: str, offset: int, word: str, uid: int) -> None:
        self._filter = filter
        self._session = session
        self._phase = phase
        self._offset = offset
        self._word = word
        self._uid = uid
        self._lines = lines.LineReader()
        self._tasks: dict[int, _Task] = {}
        self._folders: dict[int, bytes] = {}
        self._cloning: dict[int, Said] = {}
        self._held: dict[int, list[Said]] = {}
        self._held_lines = 0
        self._decoys: set[bytes] = set()
        self._gate = 0
        self._gate_open = False
        self._marker = 0
        self._numbers = 0
        self._marked: deque[str] = deque(maxlen=4096)
        self._transfers = Transfers()
        self._told: list[Event] = []
        self.attached = False
        self.refused = ""
        self.calls: set[str] = set()
        self.denied: set[str] = set()
        self.compat: set[str] = set()
        self.received = 0
        self.damaged = 0

    @property
    def marks(self) -> tuple[str, ...]:
        """Nonces of the heartbeats seen, in order."""
        return tuple(self._marked)

    @property
    def proved(self) -> bool:
        """Whether the marker has made its first call in the trace."""
        return self._marker != 0

    def feed(self, data: bytes) -> list[Event]:
        """Take bytes of the stream; returns the events that they complete."""
        for line in self._lines.feed(data):
            self._line(line)
        told, self._told = self._told, []
        return told

    def finish(self) -> list[Event]:
        """The stream has ended: calls that never returned, and bytes not told yet."""
        for tid in list(self._held):
            self._release(tid, self._adopt(tid, None))
        for tid, task in list(self._tasks.items()):
            if task.pending is not None and task.pending.name in SIGNATURES and tid != self._marker:
                self._completed(task.pending, task, None)
        self._tell_transfers(None)
        told, self._told = self._told, []
        return told

    def _line(self, line: bytes) -> None:
        if line.startswith((b"strace: ", b"watching ", b"sh: ")):
            self._message(line)
            return
        self.received += 1
        quick = _QUICK.match(line)
        if quick is not None:
            name = quick[2].decode()
            if name not in SIGNATURES and name not in WRITES and name not in RECEIVES and name in self._filter.free:
                task = self._tasks.get(int(quick[1]))
                if task is not None:
                    if task.mode:
                        self.compat.add(name)
                    elif task.pid != self._marker:
                        self.calls.add(name)
                    return
        found = lines.parse(line)
        if found.what == "bad":
            self.damaged += 1
        elif found.what != "other":
            self._said(found)

    def _message(self, line: bytes) -> None:
        if (found := _MODE.fullmatch(line)) is not None:
            task = self._tasks.get(int(found[1]))
            if task is not None:
                task.mode = {b"32 bit": "compat32", b"x32": "x32"}.get(found[2], "")
        elif not self._marker:
            if (found := _WATCHING.fullmatch(line)) is not None:
                self._gate = int(found[1])
            else:
                self.refused = self.refused or line.decode("ascii", "replace")[:200]

    def _said(self, found: Said) -> None:
        tid = found.tid
        task = self._tasks.get(tid)
        if task is None:
            if tid == self._gate and not self.attached:
                self.attached = True
                task = self._tasks[tid] = _Task(tid, 0, "entry")
            elif not self._marker:
                self._introduce(found)
                return
        if task is None:
            task = self._newcomer(found)
            if task is None:
                return
        if tid == self._marker:
            self._mark_of_warden(found, task)
            return
        match found.what:
            case "exit" | "killed":
                self._ended(found, task)
            case "superseded":
                other = self._tasks.pop(found.number, None)
                task.pending = other.pending if other is not None else None
            case "begun":
                task.pending = found
                if found.name in CLONES:
                    self._cloning[tid] = found
            case "resumed":
                begun, task.pending = task.pending, None
                self._cloning.pop(tid, None)
                if begun is None or begun.name != found.name:
                    begun = found._replace(body=b"")  # it was under way when strace came
                    if found.name in SIGNATURES and found.name not in CLONES:
                        self.damaged += 1
                self._completed(begun._replace(body=begun.body + found.body, result=found.result), task, found)
            case _:
                self._completed(found, task, found)

    def _introduce(self, found: Said) -> None:
        """Before the marker has proved itself nobody but it and the waiting gate can be in the trace."""
        if found.what in ("call", "begun") and self._mark_in(found)[1] == self._word:
            self._marker = found.tid
            self._tasks[found.tid] = _Task(found.tid, 0)

    def _newcomer(self, found: Said) -> _Task | None:
        """A thread seen for the first time: the child of the clone under way; None while there are several such."""
        if len(self._cloning) == 1:
            return self._adopt(found.tid, next(iter(self._cloning)))
        if len(self._cloning) > 1 and self._held_lines < MAX_HELD:
            self._held.setdefault(found.tid, []).append(found)
            self._held_lines += 1
            return None
        task = self._adopt(found.tid, None)
        self._release(found.tid, task)
        return task

    def _adopt(self, tid: int, parent_tid: int | None) -> _Task:
        """Begin to know a thread; without a known parent it is an orphan of process 1."""
        parent = self._tasks.get(parent_tid) if parent_tid is not None else None
        begun = self._cloning.pop(parent_tid, None) if parent_tid is not None else None
        if parent is None:
            task = _Task(tid, 1)
        elif begun is not None and b"CLONE_THREAD" in begun.body:
            task = _Task(parent.pid, parent.parent, parent.comm, parent.mode)
        else:
            task = _Task(tid, parent.pid, parent.comm, parent.mode)
            self._folders[tid] = self._folders.get(parent.pid, b"")
        while len(self._tasks) >= MAX_TASKS:
            oldest = next(known for known in self._tasks if known not in (self._marker, self._gate))
            del self._tasks[oldest]
            self._folders.pop(oldest, None)
        self._tasks[tid] = task
        if parent is not None and parent_tid is not None:
            what = "thread" if task.pid == parent.pid else "fork"
            common = self._common(parent_tid, parent, begun.time if begun is not None else 0, [])
            self._tell(ProcessEvent.model_validate({**common, "what": what, "child": tid}))
        return task

    def _release(self, tid: int, task: _Task) -> None:
        """Take what a thread did before it was known whose it is."""
        waiting = self._held.pop(tid, [])
        self._held_lines -= len(waiting)
        for found in waiting:
            if self._tasks.get(tid) is task:
                self._said(found)

    def _mark_in(self, found: Said) -> tuple[str, str]:
        """Phase and nonce of a call that is a heartbeat; empty ones of any other."""
        for argument in lines.arguments(found.body, 3):
            read = lines.string(argument)
            if read is not None and read[0].startswith(_MARK):
                phase, _, nonce = read[0][len(_MARK) :].decode("ascii", "replace").rpartition("/")
                return phase, nonce
        return "", ""

    def _mark_of_warden(self, found: Said, task: _Task) -> None:
        if found.what == "begun":
            task.pending = found
            return
        if found.what == "resumed" and task.pending is not None:
            found = task.pending._replace(what="call")
        task.pending = None
        phase, nonce = self._mark_in(found) if found.what == "call" else ("", "")
        if nonce and nonce != self._word:
            self._tell_transfers(None)
            self._phase = phase or self._phase
            self._mark(found, task, nonce, Origin.WARDEN)

    def _mark(self, found: Said, task: _Task, nonce: str, by: Origin) -> None:
        self._marked.append(nonce)
        common = {**self._common(found.tid, task, found.time, []), "by": by, "nonce": nonce}
        self._tell(MarkEvent.model_validate(common))

    def _ended(self, found: Said, task: _Task) -> None:
        self._cloning.pop(found.tid, None)
        if task.pending is not None and task.pending.name in SIGNATURES:
            self._completed(task.pending, task, None)
        del self._tasks[found.tid]
        if found.tid != task.pid:
            return
        self._tell_transfers(task.pid)
        self._folders.pop(found.tid, None)
        number = None
        if found.what == "killed":
            number = signal.Signals.__members__.get(found.body.decode("ascii", "replace"), 0)
        code = None if found.what == "killed" else found.number
        event = {**self._common(found.tid, task, found.time, []), "what": "exit", "code": code, "signal": number}
        self._tell(ProcessEvent.model_validate(event))

    def _completed(self, found: Said, task: _Task, end: Said | None) -> None:
        """A call has returned (`end`), or never did."""
        if task.pid == self._marker:
            return
        name = found.name
        result = lines.outcome(found.result) if end is not None else None
        if name in CLONES:
            self._cloned(found, task, result)
        elif name in WRITES or name in RECEIVES:
            self._moved(found, task, result)
        if name not in SIGNATURES:
            if not self._count(found, task, result, ()) or task.mode:
                self._tell(SyscallEvent.model_validate(self._bare(found, task, result, [])))
            return
        call = _Call(found, task, lines.arguments(found.body), result)
        if lines.CUT in found.body[lines.HEAD_BYTES - 64 :] and len(found.body) > lines.HEAD_BYTES - 64:
            call.notes.append("cut")
        if end is None or (result is None and found.result.startswith(b"?")):
            call.notes.append("entered")
        flags = flag_names(name, call.args)
        free = self._count(found, task, result, flags)
        if name in EXECS and result == 0:
            self._executed(call)
        elif not free or task.mode or self._wanted(call, flags):
            self._tell(self._event(call, flags, denied=not free))

    def _count(self, found: Said, task: _Task, result: int | None, flags: tuple[str, ...]) -> bool:
        """Put the call into the books; False where a filter answered it."""
        if task.mode:
            self.compat.add(found.name)
            return True
        if self._filter.answered(found.name, result, flags):
            self.denied.add(found.name)
            return False
        self.calls.add(found.name)
        return True

    def _cloned(self, found: Said, task: _Task, result: int | None) -> None:
        if result is None or result <= 0:
            return
        if result not in self._tasks:
            self._cloning[found.tid] = found
            known = self._adopt(result, found.tid)
            self._release(result, known)
        self._cloning.pop(found.tid, None)
        if len(self._cloning) < 2:
            for tid in list(self._held):
                waiting = self._newcomer_of(tid)
                if waiting is not None:
                    self._release(tid, waiting)

    def _newcomer_of(self, tid: int) -> _Task | None:
        return self._adopt(tid, next(iter(self._cloning), None)) if tid not in self._tasks else self._tasks[tid]

    def _wanted(self, call: _Call, flags: tuple[str, ...]) -> bool:
        name = call.said.name
        if name in STATS:
            path = self._raw_path(call, "p", "d")[0]
            asked = lines.string(call.args[SIGNATURES[name].index("p")]) if path is not None else None
            return path is not None and path.startswith(TELLTALES) and asked != (b"", False)
        if name == "mmap":
            text = b" ".join(call.args[2:4])
            return b"PROT_WRITE" in text and b"MAP_SHARED" in text and lines.descriptor(call.args[4]) is not None
        if name == "prctl":
            if flags == ("PR_SET_NAME",) and len(call.args) > 1:
                read = lines.string(call.args[1])
                call.task.comm = said(read[0][:15], []) if read is not None else call.task.comm
            return bool(flags) and flags[0] in PRCTLS
        if name in SLEEPS:
            return self._slept(call) >= 1
        return name not in CLONES or any(flag.startswith("CLONE_NEW") for flag in flags)

    def _slept(self, call: _Call) -> int:
        """Whole seconds a sleep is to last; of one until a point in time only that it is one."""
        if b"TIMER_ABSTIME" in call.said.body:
            return 0
        found = _SECONDS.search(call.said.body)
        return int(found[1]) if found is not None else 0

    def _executed(self, call: _Call) -> None:
        path, _ = self._raw_path(call, "p", "d")
        position = 2 if call.said.name == "execveat" else 1
        task, tid = call.task, call.said.tid
        argv, cut = lines.strings(call.args[position], ARGV_STRINGS) if len(call.args) > position else ([], True)
        notes = [*call.notes, "claimed", *(["cut"] if cut and "cut" not in call.notes else [])]
        asked = lines.string(call.args[position - 1]) if len(call.args) >= position else None
        requested = said(asked[0], notes) if asked is not None else ""
        shown = said(path, notes) if path is not None else None
        if tid == self._gate and self._gate_open:
            self._gate = 0
        task.comm = requested.rpartition("/")[2][:15]
        task.mode = ""
        event = {
            **self._common(tid, task, call.said.time, notes),
            "what": "exec",
            "path": shown,
            "requested": requested,
            "directory": said(self._folders.get(task.pid, b""), notes),
            "argv": tuple(said(word, notes) for word in argv),
        }
        self._tell(ProcessEvent.model_validate({**event, "notes": tuple(dict.fromkeys(notes))}))

    def _event(self, call: _Call, flags: tuple[str, ...], *, denied: bool) -> Event:
        name, notes = call.said.name, call.notes
        event = self._bare(call.said, call.task, call.result, notes)
        event["args"] = tuple(self._number(argument) for argument in call.args[:6])
        event["denied"] = denied
        event["flags"] = (f"{self._slept(call)} s",) if name in SLEEPS else flags
        path, claimed = self._raw_path(call, "p", "d")
        done = call.result is not None and call.result >= 0
        if name in OPENS and done:
            opened = lines.descriptor(call.said.result)
            if opened is not None:
                path, claimed = opened[0], False
                if opened[1]:
                    notes.append("deleted")
        signature = SIGNATURES[name]
        if path is None and "f" in signature:
            path, claimed = self._opened(call, signature.index("f")), False
            if path is not None and not path.startswith((b"/", b"pipe:", b"anon")):
                path = None  # a socket: told by its ends
        if path is None and "t" in signature:
            path, claimed = self._text(call, signature.index("t")), True
        second, claimed_too = self._raw_path(call, "P", "D")
        if second is None and "F" in signature:
            second, claimed_too = self._opened(call, signature.index("F")), False
        claimed = claimed or claimed_too
        self._decoy(call, event, path, second, done)
        if path is not None:
            event["path"] = said(path, notes)
        if second is not None:
            event["path2"] = said(second, notes)
        addressed = [signature.find(letter) for letter in "am" if letter in signature]
        if addressed and addressed[0] < len(call.args):
            found, escaped = lines.addresses(call.args[addressed[0]])
            if escaped:
                add_note(notes, "escaped")
            event["addresses"] = found
            claimed = claimed or bool(found)
        if name in ("chdir", "fchdir") and done and path is not None:
            self._folders[call.task.pid] = path
        if signature.startswith("f") and (socket := self._opened(call, 0)) is not None and socket[:7] == b"socket:":
            address = event["addresses"][0] if event.get("addresses") else ""  # type: ignore[index]
            event["local"], event["remote"] = self._transfers.ends(name, socket, address, call.result)
        event["claimed"] = claimed
        event["notes"] = tuple(dict.fromkeys(notes))
        return SyscallEvent.model_validate(event)

    def _decoy(
        self, call: _Call, event: dict[str, object], path: bytes | None, second: bytes | None, done: bool
    ) -> None:
        """Planted files are known by their names; further names that they are given count too."""
        if not done or path is None:
            return
        if call.said.tid == self._gate and not self._gate_open:
            if call.said.name in OPENS and b"O_CREAT" in call.said.body and len(self._decoys) < MAX_DECOYS:
                self._decoys.add(path)
            return
        if path in self._decoys:
            event["decoy"] = call.said.name in OPENS
            if second is not None and len(self._decoys) < MAX_DECOYS:
                self._decoys.add(second)

    def _raw_path(self, call: _Call, letter: str, base: str) -> tuple[bytes | None, bool]:
        """The path at that letter, made absolute as far as is known; and that it is a claim."""
        signature = SIGNATURES[call.said.name]
        at = signature.find(letter)
        if at < 0 or at >= len(call.args):
            return None, False
        folder_at = signature.find(base)
        folder = self._opened(call, folder_at) if folder_at >= 0 else None
        if folder_at >= 0 and folder is not None and call.args[folder_at].startswith(b"AT_FDCWD"):
            self._folders[call.task.pid] = folder
        if folder is None:
            folder = self._folders.get(call.task.pid, b"")
        read = lines.string(call.args[at])
        if read is None:
            add_note(call.notes, "unreadable")
            return None, False
        path, cut = read
        if cut:
            add_note(call.notes, "cut")
        if not path.startswith(b"/"):
            add_note(call.notes, "relative")
            path = posixpath.join(folder, path) if path else folder
        return (b"/" + posixpath.normpath(path).lstrip(b"/") if path.startswith(b"/") else path), True

    def _text(self, call: _Call, at: int) -> bytes | None:
        read = lines.string(call.args[at]) if at < len(call.args) else None
        return read[0] if read is not None else None

    def _opened(self, call: _Call, at: int) -> bytes | None:
        """What the kernel says is behind the descriptor at that place."""
        found = lines.descriptor(call.args[at]) if 0 <= at < len(call.args) else None
        return found[0] if found is not None else None

    def _moved(self, found: Said, task: _Task, result: int | None) -> None:
        if result is None or result <= 0 or self._by(found.tid) is not Origin.TARGET:
            return
        behind = lines.descriptor(found.body)
        if behind is not None:
            self._transfers.add(task.pid, behind[0], result, written=found.name in WRITES)
            if self._transfers.full:
                self._tell_transfers(None)

    def _tell_transfers(self, pid: int | None) -> None:
        for moved in self._transfers.taken(pid):
            task = self._tasks.get(moved.pid) or _Task(moved.pid, 1)
            notes: list[str] = []
            path = said(moved.path, notes) if moved.path is not None else None
            common = self._common(moved.pid, task, 0, notes)
            self._tell(moved.event({**common, "path": path, "notes": tuple(notes)}))

    def _bare(self, found: Said, task: _Task, result: int | None, notes: list[str]) -> dict[str, object]:
        if task.mode:
            add_note(notes, task.mode)
        event = self._common(found.tid, task, found.time, notes)
        if found.name not in self._filter.free and self._filter.answered(found.name, result) and not task.mode:
            event["denied"] = True
        return {**event, "call": found.name, "result": result, "notes": tuple(notes)}

    def _by(self, tid: int) -> Origin:
        return Origin.GATE if tid == self._gate else Origin.TARGET

    def _common(self, tid: int, task: _Task, time: int, notes: list[str]) -> dict[str, object]:
        self._time = max(getattr(self, "_time", 0), time)
        return {
            "phase": self._phase,
            "session": self._session,
            "t": (time or self._time) - self._offset,
            "pid": task.pid,
            "tid": tid,
            "parent": task.parent,
            "uid": self._uid,
            "comm": task.comm,
            "by": self._by(tid),
            "notes": tuple(notes),
        }

    def _tell(self, event: Event) -> None:
        self._told.append(event.model_copy(update={"record": self._numbers}))
        self._numbers += 1
        if (
            isinstance(event, SyscallEvent)
            and event.by is Origin.GATE
            and not self._gate_open
            and event.path is not None
            and event.path.startswith("/.mark/")
        ):
            self._gate_open = True
            self._told.pop()
            self._marked.append(event.path.rpartition("/")[2])
            facts = event.model_dump(include=set(MarkEvent.model_fields) - {"kind", "nonce"})
            self._told.append(MarkEvent.model_validate({**facts, "nonce": event.path.rpartition("/")[2]}))

    def _number(self, argument: bytes) -> int:
        """The number of an argument, from its text; -1 where its text has none."""
        value = lines.integer(argument)
        if value is not None:
            return value
        return NUMBERS.get(argument.split(b"<", 1)[0].split(b"|", 1)[0].decode("ascii", "replace"), -1)
