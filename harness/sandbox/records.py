"""The recorder's records as events, in the order in which they were made.

Pure. The other side is `sandboxes/recorder/record.h`, where the format is described. Any bytes may come: the recorder
is trusted, what it quotes is not, and whoever could write to its stream must not be able to take us down.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from urllib.parse import unquote

from harness.model.recording import Event, MarkEvent, Origin, ProcessEvent, SyscallEvent, TransferEvent
from harness.sandbox.records_calls import named_flags
from harness.sandbox.records_frames import CallNames
from harness.sandbox.records_parts import (
    PART_ADDRESS,
    PART_ARGUMENTS,
    PART_ARGV,
    PART_BASE,
    PART_BASE2,
    PART_CHANGED,
    PART_DIRECTORY,
    PART_ENVIRONMENT,
    PART_FILE,
    PART_FILE2,
    PART_IDENTITY,
    PART_INTERPRETER,
    PART_LOCAL,
    PART_PATH,
    PART_PATH2,
    PART_REMOTE,
    PART_REQUESTED,
    PART_SOCKET,
    identity_of,
    part_address,
    part_strings,
    part_text,
    path_of,
    said,
    shown_address,
)

RECORD = struct.Struct("<HBBIQQIIIiq16sII")
PART = struct.Struct("<BBH")
TRANSFER = struct.Struct("<QQIIIIQQQ")
ORDER = struct.Struct("<HBBIQ")
SPACE = struct.Struct("<I")
SPACE_AT = RECORD.size - 8

CALL, EXEC, FORK, EXIT, MARK, TRANSFERRED, PENDING = range(1, 8)

FLAG_COMPAT, FLAG_X32, FLAG_DENIED, FLAG_NESTED, FLAG_ENTERED, FLAG_UNREADABLE, FLAG_DECOY, FLAG_FIRST = (
    1 << bit for bit in range(8)
)
#: Records that are told afterwards have no number.
UNNUMBERED = (1 << 64) - 1
#: A process that the engine starts is a gate first, and with its second exec what it was started for.
STEP_EXECS = 2
#: Of what looks like a heartbeat of the gate so many are remembered, the first ones: it makes one for each program.
GATE_MARKS = 1024
#: How many records are held for their order before they are passed on all the same.
HELD = 1 << 16
_NOTED = ((FLAG_COMPAT, "compat32"), (FLAG_X32, "x32"), (FLAG_NESTED, "nested"), (FLAG_ENTERED, "entered"))
_NOTES: tuple[tuple[str, ...], ...] = tuple(
    tuple(name for bit, name in (*_NOTED, (FLAG_UNREADABLE, "unreadable")) if flags & bit) for flags in range(256)
)
_ARGUMENTS = tuple(struct.Struct(f"<{count}q") for count in range(7))
_MARK_PREFIX = b"/.mark/"


class RecordDecoder:
    """Turns batches of records into events, in the order of their numbers.

    `session` and `phase` are those of the events until the first heartbeat; `epoch` is the run's start in nanoseconds
    of CLOCK_MONOTONIC. Of a batch only the records of its `space` (one recorded pid namespace) are taken. `received`
    counts records, `damaged` such that make no sense, `late` such that came after their order was given out. `marks`
    are the nonces of the heartbeats of gate and warden.
    """

    def __init__(self, names: CallNames, *, session: str, phase: str, epoch: int, space: int = 0) -> None:
        self._names = names
        self._space = space
        self._session = session
        self._phase = phase
        self._epoch = epoch
        self._held: list[tuple[int, bytes]] = []
        self._next = 0
        self._highest = 0
        self._gate = 0
        self._gate_open = True
        self._comers: dict[int, int] = {}  # processes that came from outside, and how many programs each has become
        self._siblings: set[int] = set()  # such that only look as if they had
        #: The warden makes as many as it is told to; a target can make some that look like the gate's.
        self._marked: list[str] = []
        self._gate_marked: list[str] = []
        self.received = 0
        self.damaged = 0
        self.late = 0

    @property
    def marks(self) -> tuple[str, ...]:
        """Nonces of the heartbeats seen: the gate's first ones, then all of the warden's, each in order."""
        return (*self._gate_marked, *self._marked)

    def add(self, batch: bytes) -> list[Event]:
        """Take a batch; returns events only where too much would be held."""
        at, end = 0, len(batch)
        told: list[Event] = []
        while end - at >= RECORD.size:
            size, _, _, _, sequence = ORDER.unpack_from(batch, at)
            if size < RECORD.size or size > end - at:
                break
            record = batch[at : at + size]
            at += size
            if SPACE.unpack_from(record, SPACE_AT)[0] != self._space:
                continue
            if sequence == UNNUMBERED:
                sequence = self._highest  # told afterwards: in its place among what has come
            else:
                self.received += 1
                self._highest = max(self._highest, sequence)
            self._held.append((sequence, record))
        if at != end:
            self.damaged += 1
        if len(self._held) > HELD:
            self._held.sort()
            half = len(self._held) // 2
            told = self._given(half)
        return told

    def read_up_to(self, sequence: int, limit: int = HELD) -> list[Event]:
        """No record with a lower number will come: return at most `limit` events up to there, in order."""
        self._held.sort()
        count = len(self._held)
        if count and self._held[-1][0] >= sequence:
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                low, high = (middle + 1, high) if self._held[middle][0] < sequence else (low, middle)
            count = low
        return self._given(min(count, limit))

    def finish(self) -> list[Event]:
        """All that is still held."""
        self._held.sort()
        return self._given(len(self._held))

    def _given(self, count: int) -> list[Event]:
        told: list[Event] = []
        for sequence, record in self._held[:count]:
            if sequence < self._next:
                self.late += ORDER.unpack_from(record)[4] != UNNUMBERED
            else:
                self._next = sequence + 1
            self._tell(record, told)
        del self._held[:count]
        return told

    def _tell(self, record: bytes, told: list[Event]) -> None:
        try:
            event = self._event(record)
        except (ValueError, LookupError, struct.error):
            event = None
        if event is None:
            self.damaged += 1
        else:
            told.append(event)

    def _event(self, record: bytes) -> Event | None:
        _, kind, flags, uid, sequence, time, pid, tid, parent, number, result, comm, _, _ = RECORD.unpack_from(record)
        parts: dict[int, tuple[int, bytes]] = {}
        addresses: list[bytes] = []
        at, end = RECORD.size, len(record)
        while at < end:
            tag, part_flags, length = PART.unpack_from(record, at)
            at += PART.size
            if at + length > end:
                raise ValueError("a part that is longer than its record")
            if tag == PART_ADDRESS:
                addresses.append(record[at : at + length])
            else:
                parts[tag] = (part_flags, record[at : at + length])
            at += length
        notes = list(_NOTES[flags])
        if kind == MARK:
            return self._mark(parts, flags, uid, sequence, time, pid, tid, parent, comm, notes)
        common: dict[str, object] = {
            "phase": self._phase,
            "session": self._session,
            "t": time - self._epoch,
            "pid": pid,
            "tid": tid,
            "parent": parent,
            "uid": uid,
            "comm": said(comm.partition(b"\0")[0], notes),
        }
        if sequence != UNNUMBERED:
            common["record"] = sequence
        if flags & FLAG_FIRST:
            common["by"] = Origin.WARDEN
        elif self._gate_open or pid == self._gate:
            if kind == EXEC and not self._gate_open:
                self._gate = 0
                self._comers[pid] = STEP_EXECS
            else:
                common["by"] = Origin.GATE
        elif parent == 0 and self._arrives(kind, pid, number, result):
            common["by"] = Origin.GATE
        if kind in (CALL, PENDING):
            return self._call(common, parts, addresses, kind, flags, number, result, notes)
        if kind == TRANSFERRED:
            return self._transfer(common, parts, notes)
        if kind == EXEC:
            return self._exec(common, parts, notes)
        if notes:
            common["notes"] = tuple(notes)
        if kind == FORK:
            common |= {"what": "thread" if number else "fork", "child": result & 0xFFFFFFFF}
            return ProcessEvent.model_validate(common)
        if kind == EXIT:
            died = result & 0x7F
            common |= {"what": "exit", "code": None if died else result >> 8 & 0xFF, "signal": died or None}
            return ProcessEvent.model_validate(common)
        return None

    def _arrives(self, kind: int, pid: int, number: int, result: int) -> bool:
        """Is a process without a parent in its namespace one that the engine is still bringing there?

        That is a later step of an install: it becomes the gate, and then the step. A child that one of these made to
        look like a sibling has no parent there either, and was announced by its fork.
        """
        if kind == FORK and not number:
            self._siblings.add(result & 0xFFFFFFFF)
        if pid in self._siblings:
            if kind == EXIT:
                self._siblings.discard(pid)
            return False
        execs = self._comers.get(pid, 0) + (kind == EXEC)
        if kind == EXIT:
            self._comers.pop(pid, None)
        else:
            self._comers[pid] = execs
        return execs < STEP_EXECS

    def _mark(
        self,
        parts: Mapping[int, tuple[int, bytes]],
        flags: int,
        uid: int,
        sequence: int,
        time: int,
        pid: int,
        tid: int,
        parent: int,
        comm: bytes,
        notes: list[str],
    ) -> Event | None:
        _, path = parts.get(PART_PATH, (0, b""))
        if not path.startswith(_MARK_PREFIX):
            return None
        phase, _, nonce = path[len(_MARK_PREFIX) :].decode("ascii", "replace").rpartition("/")
        by = Origin.WARDEN if flags & FLAG_FIRST else Origin.GATE
        if by is Origin.WARDEN:
            self._phase = unquote(phase) or self._phase  # as `gate.mark_line` quoted it
        else:
            self._gate, self._gate_open = pid, False
        if by is Origin.WARDEN:
            self._marked.append(nonce)
        elif len(self._gate_marked) < GATE_MARKS:
            self._gate_marked.append(nonce)
        return MarkEvent(
            phase=self._phase,
            session=self._session,
            t=time - self._epoch,
            record=sequence,
            pid=pid,
            tid=tid,
            parent=parent,
            uid=uid,
            comm=said(comm.partition(b"\0")[0], notes),
            by=by,
            notes=tuple(notes),
            nonce=nonce,
        )

    def _call(
        self,
        common: dict[str, object],
        parts: Mapping[int, tuple[int, bytes]],
        addresses: list[bytes],
        kind: int,
        flags: int,
        number: int,
        result: int,
        notes: list[str],
    ) -> Event:
        # Only what differs from the default is set: most events are opens, and there may be a million of them.
        compat = flags & FLAG_COMPAT
        denied = flags & FLAG_DENIED
        common["call"] = call = self._names.name(number, compat=bool(compat))
        found = parts.get(PART_ARGUMENTS)
        if found is not None:
            common["args"] = args = _ARGUMENTS[min(len(found[1]) // 8, 6)].unpack_from(found[1])
            if not compat and (named := named_flags(call, args, self._names.architecture)):
                common["flags"] = named
        # A filter that kills leaves the call's number where the result would be.
        if kind == CALL and not flags & FLAG_ENTERED and not (compat and denied):
            common["result"] = result
        elif flags & FLAG_ENTERED and result > 0:
            common["flags"] = (f"{result} s",)  # so long it sleeps or waits, if nothing comes in between
        if denied:
            common["denied"] = True
        if flags & FLAG_DECOY:
            common["decoy"] = True
        path, claimed = path_of(parts, PART_FILE, PART_PATH, PART_BASE, notes)
        if path is not None:
            common["path"] = path
        if PART_PATH2 in parts or PART_FILE2 in parts:
            common["path2"], claimed2 = path_of(parts, PART_FILE2, PART_PATH2, PART_BASE2, notes)
            claimed = claimed or claimed2
        if claimed:
            common["claimed"] = True
        if PART_CHANGED in parts:
            notes.append("changed")
        if PART_IDENTITY in parts:
            common["identity"] = identity_of(parts)
        if PART_SOCKET in parts:
            common["local"] = part_address(parts, PART_LOCAL, notes)
            common["remote"] = part_address(parts, PART_REMOTE, notes)
        if addresses:
            common["addresses"] = tuple(shown_address(raw, notes) for raw in addresses)
        if notes:
            common["notes"] = tuple(notes)
        return SyscallEvent.model_validate(common)

    def _transfer(self, common: dict[str, object], parts: Mapping[int, tuple[int, bytes]], notes: list[str]) -> Event:
        values = TRANSFER.unpack_from(parts[PART_ARGUMENTS][1])
        _, inode, device, _, _, pid, read, written, _ = values
        path, _ = path_of(parts, PART_FILE, PART_PATH, PART_BASE, notes)
        return TransferEvent.model_validate(
            {
                **common,
                "pid": pid,
                "path": path,
                "local": part_address(parts, PART_LOCAL, notes),
                "remote": part_address(parts, PART_REMOTE, notes),
                "identity": f"{device}:{inode}",
                "read": read,
                "written": written,
                "notes": tuple(notes),
            }
        )

    def _exec(self, common: dict[str, object], parts: Mapping[int, tuple[int, bytes]], notes: list[str]) -> Event:
        path, _ = path_of(parts, PART_FILE, PART_PATH, PART_BASE, notes)
        directory, _ = path_of(parts, PART_DIRECTORY, PART_PATH, PART_BASE, notes)
        return ProcessEvent.model_validate(
            {
                **common,
                "what": "exec",
                "path": path,
                "requested": part_text(parts, PART_REQUESTED, notes),
                "interpreter": part_text(parts, PART_INTERPRETER, notes),
                "directory": directory or "",
                "argv": part_strings(parts, PART_ARGV, notes),
                "environment": part_strings(parts, PART_ENVIRONMENT, notes),
                "identity": identity_of(parts),
                "notes": tuple(notes),
            }
        )
