"""strace's trace as events, in its order: the same events as the kernel recorder's, with what strace can know.

Pure. What the kernel says stands beside each descriptor (`3</path>`); names that the target passed are claims. Marks
are calls in the trace like all others, believed only of the process that proved itself with a word nobody else knew.
"""

from __future__ import annotations

import re
import signal
from urllib.parse import unquote

from harness.model.recording import Event, MarkEvent, Origin, ProcessEvent, SyscallEvent
from harness.sandbox import strace_lines as lines
from harness.sandbox.records_parts import add_note, said
from harness.sandbox.strace_call import Call, CallReader, Task
from harness.sandbox.strace_calls import CLONES, EXECS, RECEIVES, SIGNATURES, WRITES, flag_names
from harness.sandbox.strace_filter import Filter
from harness.sandbox.strace_lines import Said

#: Bounds of what is remembered.
MAX_TASKS = 8192
MAX_HELD = 4096
_MARK = b"/.mark/"
_QUICK = re.compile(rb"(\d{1,10}) +\d{1,12}\.\d{9} (?:<\.\.\. )?([a-z0-9_]+)[( ]")
_WATCHING = re.compile(rb"watching (\d{1,10})")
_USUAL = re.compile(rb"strace: Process \d+ (attached|detached)")
_MODES = {b"32 bit": "compat32", b"x32": "x32"}


class StraceDecoder:
    """Turns the trace into events.

    `filter`: the profile of the target. The events carry `session`, and until the first mark `phase`; `clock` is
    CLOCK_REALTIME minus CLOCK_MONOTONIC, `epoch` the zero of their times on the latter, in nanoseconds. `word` is what
    the marker proves itself with, `uid` that of the target. `received` counts lines, `damaged` those that make no
    sense. `attached`: the process that strace was told to watch is in the trace; `refused`: what was said instead.
    """

    def __init__(
        self, filter: Filter, *, session: str, phase: str, clock: int, epoch: int, word: str, uid: int
    ) -> None:
        self._filter = filter
        self._session = session
        self._phase = phase
        self._offset = clock + epoch
        self._word = word
        self._uid = uid
        self._lines = lines.LineReader()
        self._tasks: dict[int, Task] = {}
        self._calls = CallReader(clock)
        self._cloning: dict[int, Said] = {}
        self._held: dict[int, list[Said]] = {}
        self._held_lines = 0
        self._gate = 0
        self._gate_open = False
        self._marker = 0
        self._time = 0
        self._numbers = 0
        self._marked: list[str] = []
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
                if task is not None and not task.mode:
                    if task.pid != self._marker:
                        self.calls.add(name)
                    return
        found = lines.parse(line)
        if found.what == "bad":
            self.damaged += 1
        elif found.what != "other":
            try:
                self._said(found)
            except (ValueError, LookupError):
                self.damaged += 1

    def _message(self, line: bytes) -> None:
        if not self._marker:
            if (found := _WATCHING.fullmatch(line)) is not None:
                self._gate = int(found[1])
            else:
                self.refused = self.refused or line.decode("ascii", "replace")[:200]
        elif _USUAL.fullmatch(line) is None:
            self.damaged += 1  # strace complains: what it says may be a loss

    def _said(self, found: Said) -> None:
        tid = found.tid
        task = self._tasks.get(tid)
        if task is None:
            if tid == self._gate and not self.attached:
                self.attached = True
                task = self._tasks[tid] = Task(tid, 0, "entry")
            elif not self._marker:
                self._introduce(found)
                return
            elif (task := self._newcomer(found)) is None:
                return
        if tid == self._marker:
            self._mark_of_warden(found, task)
            return
        match found.what:
            case "exit" | "killed":
                self._ended(found, task)
            case "mode":
                task.mode = _MODES.get(found.body, "")
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
            self._tasks[found.tid] = Task(found.tid, 0)

    def _newcomer(self, found: Said) -> Task | None:
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

    def _adopt(self, tid: int, parent_tid: int | None) -> Task:
        """Begin to know a thread; without a known parent it is an orphan of process 1."""
        parent = self._tasks.get(parent_tid) if parent_tid is not None else None
        begun = self._cloning.pop(parent_tid, None) if parent_tid is not None else None
        if parent is None:
            task = Task(tid, 1)
        elif begun is not None and b"CLONE_THREAD" in begun.body:
            task = Task(parent.pid, parent.parent, parent.comm, parent.mode)
        else:
            task = Task(tid, parent.pid, parent.comm, parent.mode)
            self._calls.born(tid, parent.pid)
        while len(self._tasks) >= MAX_TASKS:
            oldest = next(known for known in self._tasks if known not in (self._marker, self._gate))
            del self._tasks[oldest]
            self._calls.gone(oldest)
        self._tasks[tid] = task
        if parent is not None and parent_tid is not None:
            what = "thread" if task.pid == parent.pid else "fork"
            common = self._common(parent_tid, parent, begun.time if begun is not None else 0, [])
            self._tell(ProcessEvent.model_validate({**common, "what": what, "child": tid}))
        return task

    def _release(self, tid: int, task: Task) -> None:
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
                return unquote(phase), nonce
        return "", ""

    def _mark_of_warden(self, found: Said, task: Task) -> None:
        if found.what == "begun":
            task.pending = found
            return
        if found.what in ("exit", "killed"):
            self._marker = -1  # its number may be given to another now
            del self._tasks[found.tid]
            return
        if found.what == "resumed" and task.pending is not None:
            found = task.pending._replace(what="call")
        task.pending = None
        phase, nonce = self._mark_in(found) if found.what == "call" else ("", "")
        if nonce and nonce != self._word:
            self._tell_transfers(None)
            self._phase = phase or self._phase
            self._mark(found, task, nonce, Origin.WARDEN)

    def _mark(self, found: Said, task: Task, nonce: str, by: Origin) -> None:
        self._marked.append(nonce)
        common = {**self._common(found.tid, task, found.time, []), "by": by, "nonce": nonce}
        self._tell(MarkEvent.model_validate(common))

    def _ended(self, found: Said, task: Task) -> None:
        self._cloning.pop(found.tid, None)
        if task.pending is not None and task.pending.name in SIGNATURES:
            self._completed(task.pending, task, None)
        del self._tasks[found.tid]
        if found.tid != task.pid:
            return
        self._tell_transfers(task.pid)
        self._calls.gone(found.tid)
        code: int | None = found.number
        number: int | None = None
        if found.what == "killed":
            code, number = None, int(signal.Signals.__members__.get(found.body.decode("ascii", "replace"), 0))
        event = {**self._common(found.tid, task, found.time, []), "what": "exit", "code": code, "signal": number}
        self._tell(ProcessEvent.model_validate(event))

    def _completed(self, found: Said, task: Task, end: Said | None) -> None:
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
        call = Call(found, task, lines.arguments(found.body), result)
        if lines.CUT in found.body[lines.HEAD_BYTES - 64 :] and len(found.body) > lines.HEAD_BYTES - 64:
            call.notes.append("cut")
        if end is None or (result is None and found.result.startswith(b"?")):
            call.notes.append("entered")
        flags = flag_names(name, call.args)
        free = self._count(found, task, result, flags)
        if name in EXECS and result == 0:
            self._executed(call)
        elif not free or task.mode or self._calls.wanted(call, flags):
            event = self._event(call, flags, denied=not free)
            if event is not None:
                self._tell(event)

    def _count(self, found: Said, task: Task, result: int | None, flags: tuple[str, ...]) -> bool:
        """Put the call into the books; False where a filter answered it."""
        if task.mode:
            self.compat.add(found.name)
            return True
        if self._filter.answered(found.name, result, flags):
            self.denied.add(found.name)
            return False
        self.calls.add(found.name)
        return True

    def _cloned(self, found: Said, task: Task, result: int | None) -> None:
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

    def _newcomer_of(self, tid: int) -> Task | None:
        return self._adopt(tid, next(iter(self._cloning), None)) if tid not in self._tasks else self._tasks[tid]

    def _executed(self, call: Call) -> None:
        if call.said.tid == self._gate and self._gate_open:
            self._gate = 0
        facts = self._calls.executed(call)
        call.task.mode = ""
        common = self._common(call.said.tid, call.task, call.said.time, [])
        self._tell(ProcessEvent.model_validate({**common, "what": "exec", **facts}))

    def _event(self, call: Call, flags: tuple[str, ...], *, denied: bool) -> Event | None:
        planting = call.said.tid == self._gate and not self._gate_open
        common = self._bare(call.said, call.task, call.result, call.notes)
        facts = self._calls.described(call, flags, planting=planting)
        path = facts.get("path")
        if planting and isinstance(path, str) and path.startswith("/.mark/"):
            self._gate_open = True
            self._mark(call.said, call.task, path.rpartition("/")[2], Origin.GATE)
            return None
        return SyscallEvent.model_validate({**common, **facts, "denied": denied})

    def _moved(self, found: Said, task: Task, result: int | None) -> None:
        if result is None or result <= 0 or self._by(found.tid) is not Origin.TARGET:
            return
        behind = lines.descriptor(found.body)
        if behind is not None:
            self._calls.transfers.add(task.pid, behind[0], result, written=found.name in WRITES)
            if self._calls.transfers.full:
                self._tell_transfers(None)

    def _tell_transfers(self, pid: int | None) -> None:
        for moved in self._calls.transfers.taken(pid):
            task = self._tasks.get(moved.pid) or Task(moved.pid, 1)
            notes: list[str] = []
            path = said(moved.path, notes) if moved.path is not None else None
            common = self._common(moved.pid, task, 0, notes)
            self._tell(moved.event({**common, "path": path, "notes": tuple(notes)}))

    def _bare(self, found: Said, task: Task, result: int | None, notes: list[str]) -> dict[str, object]:
        if task.mode:
            add_note(notes, task.mode)
        event = self._common(found.tid, task, found.time, notes)
        if found.name not in self._filter.free and self._filter.answered(found.name, result) and not task.mode:
            event["denied"] = True
        return {**event, "call": found.name, "result": result, "notes": tuple(notes)}

    def _by(self, tid: int) -> Origin:
        return Origin.GATE if tid == self._gate else Origin.TARGET

    def _common(self, tid: int, task: Task, time: int, notes: list[str]) -> dict[str, object]:
        self._time = max(self._time, time)
        return {
            "phase": self._phase,
            "session": self._session,
            "record": self._numbers,  # each is made just before it is told
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
        self._told.append(event)
        self._numbers += 1
