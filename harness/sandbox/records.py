"""The recorder's stream as events: frames, records in the order in which they were made, and what they say.

Pure. The other side is `sandboxes/recorder/record.h`, where the format is described. Any bytes may come: the recorder
is trusted, what it quotes is not, and whoever could write to its stream must not be able to take us down.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping

from harness.model.errors import HarnessError
from harness.model.recording import Event, MarkEvent, Origin, ProcessEvent, SyscallEvent, TransferEvent
from harness.sandbox.records_calls import named_flags
from harness.sandbox.records_text import address, forwards, joined, text

FRAME = struct.Struct("<BxxxI")
#: The loader's largest frame is a batch of 256 KiB.
FRAME_BYTES = 1 << 20
RECORD = struct.Struct("<HBBIQQIIIiq16s")
PART = struct.Struct("<BBH")
TRANSFER = struct.Struct("<QQIIIIQQQ")
IDENTITY = struct.Struct("<QII")
ORDER = struct.Struct("<HBBIQ")

READY, ARMED, RECORDS, READ, COUNTERS, END, FAILED = b"RAEWCZF"

CALL, EXEC, FORK, EXIT, MARK, TRANSFERRED, PENDING = range(1, 8)

FLAG_COMPAT, FLAG_X32, FLAG_DENIED, FLAG_NESTED, FLAG_ENTERED, FLAG_UNREADABLE, FLAG_DECOY, FLAG_FIRST = (
    1 << bit for bit in range(8)
)
(
    PART_ARGUMENTS, PART_PATH, PART_PATH2, PART_BASE, PART_BASE2, PART_FILE, PART_FILE2, PART_IDENTITY, PART_SOCKET,
    PART_LOCAL, PART_REMOTE, PART_ADDRESS, PART_ARGV, PART_ENVIRONMENT, PART_REQUESTED, PART_INTERPRETER,
    PART_DIRECTORY,
) = range(1, 18)  # fmt: skip
CUT, CLAIM, DELETED, DETACHED, REVERSED = (1 << bit for bit in range(5))

#: Records that are told afterwards have no number.
UNNUMBERED = (1 << 64) - 1
#: How many records are held for their order before they are passed on all the same.
HELD = 1 << 16
#: More arguments of one exec than this are left out.
ARGV_STRINGS = 1024

_NOTED = ((FLAG_COMPAT, "compat32"), (FLAG_X32, "x32"), (FLAG_NESTED, "nested"), (FLAG_ENTERED, "entered"))
_NOTES: tuple[tuple[str, ...], ...] = tuple(
    tuple(name for bit, name in (*_NOTED, (FLAG_UNREADABLE, "unreadable")) if flags & bit) for flags in range(256)
)
_PART_NOTES = ((CUT, "cut"), (DELETED, "deleted"), (DETACHED, "detached"))
_MARK_PREFIX = b"/.mark/"


class FrameReader:
    """Cuts the recorder's stream into frames, however it was cut into reads."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (kind, payload) for every frame that `data` completes. Raises `HarnessError` for a frame too large."""
        held = self._held
        held += data
        at = 0
        try:
            while len(held) - at >= FRAME.size:
                kind, size = FRAME.unpack_from(held, at)
                if size > FRAME_BYTES:
                    raise HarnessError("the recorder's stream is out of order", remedy="run `harness images build`")
                if len(held) - at - FRAME.size < size:
                    return
                payload = bytes(held[at + FRAME.size : at + FRAME.size + size])
                at += FRAME.size + size
                yield kind, payload
        finally:
            del held[:at]


class CallNames:
    """The names of system calls by number, as the recorder tells them: its machine's own and the 32-bit table."""

    def __init__(self, ready: bytes = b"") -> None:
        self.architecture = ""
        self.native: dict[int, str] = {}
        self.compat: dict[int, str] = {}
        for line in ready.decode("ascii", "replace").splitlines():
            words = line.split(" ")
            if words[0] == "arch" and len(words) == 2:
                self.architecture = words[1]
            elif len(words) == 2 and words[0].isdecimal():
                self.native[int(words[0])] = words[1]
            elif len(words) == 3 and words[0] == "32" and words[1].isdecimal():
                self.compat[int(words[1])] = words[2]

    def name(self, number: int, *, compat: bool = False) -> str:
        """The call's name, or `syscall-<number>` for one that is newer than the table."""
        return (self.compat if compat else self.native).get(number) or f"syscall-{number}"

    def set_in(self, bitmap: str, *, compat: bool = False) -> tuple[str, ...]:
        """The names of the calls whose bits are set, sorted; `bitmap` is 16 hexadecimal 64-bit words."""
        try:
            words = [int(bitmap[at : at + 16], 16) for at in range(0, len(bitmap), 16)]
        except ValueError:
            return ()
        numbers = (64 * index + bit for index, word in enumerate(words) for bit in range(64) if word >> bit & 1)
        return tuple(sorted(self.name(number, compat=compat) for number in numbers))


class RecordDecoder:
    """Turns batches of records into events, in the order of their numbers.

    `session` and `phase` are those of the events until the first heartbeat; `epoch` is the run's start in nanoseconds
    of CLOCK_MONOTONIC. `received` counts records, `damaged` such that make no sense, `late` such that came after
    their order was given out. `marks` are the nonces of the heartbeats of gate and warden.
    """

    def __init__(self, names: CallNames, *, session: str, phase: str, epoch: int) -> None:
        self._names = names
        self._session = session
        self._phase = phase
        self._epoch = epoch
        self._held: list[tuple[int, bytes]] = []
        self._next = 0
        self._highest = 0
        self._gate = 0
        self._gate_open = True
        self._marked: deque[str] = deque(maxlen=4096)
        self.received = 0
        self.damaged = 0
        self.late = 0

    @property
    def marks(self) -> tuple[str, ...]:
        """Nonces of the heartbeats seen, in order."""
        return tuple(self._marked)

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
        except (ValueError, IndexError, struct.error):
            event = None
        if event is None:
            self.damaged += 1
        else:
            told.append(event)

    def _event(self, record: bytes) -> Event | None:
        _, kind, flags, uid, sequence, time, pid, tid, parent, number, result, comm = RECORD.unpack_from(record)
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
        name = comm.partition(b"\0")[0]
        common = {
            "phase": self._phase,
            "session": self._session,
            "t": time - self._epoch,
            "record": sequence if sequence != UNNUMBERED else -1,
            "pid": pid,
            "tid": tid,
            "parent": parent,
            "uid": uid,
            "comm": _said(name, notes),
            "by": self._origin(pid, flags),
        }
        if kind in (CALL, PENDING):
            return self._call(common, parts, addresses, kind, flags, number, result, notes)
        if kind == TRANSFERRED:
            return self._transfer(common, parts, notes)
        if kind == EXEC:
            if pid == self._gate:
                self._gate = 0
                common["by"] = Origin.TARGET
            return self._exec(common, parts, notes)
        if kind == FORK:
            return ProcessEvent.model_validate(
                {**common, "what": "thread" if number else "fork", "child": result & 0xFFFFFFFF, "notes": tuple(notes)}
            )
        if kind == EXIT:
            died = result & 0x7F
            code = None if died else result >> 8 & 0xFF
            return ProcessEvent.model_validate(
                {**common, "what": "exit", "code": code, "signal": died or None, "notes": tuple(notes)}
            )
        return None

    def _origin(self, pid: int, flags: int) -> Origin:
        if flags & FLAG_FIRST:
            return Origin.WARDEN
        return Origin.GATE if self._gate_open or pid == self._gate else Origin.TARGET

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
            self._phase = phase or self._phase
        else:
            self._gate, self._gate_open = pid, False
        self._marked.append(nonce)
        return MarkEvent(
            phase=self._phase,
            session=self._session,
            t=time - self._epoch,
            record=sequence,
            pid=pid,
            tid=tid,
            parent=parent,
            uid=uid,
            comm=_said(comm.partition(b"\0")[0], notes),
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
        compat = bool(flags & FLAG_COMPAT)
        call = self._names.name(number, compat=compat)
        raw = parts.get(PART_ARGUMENTS, (0, b""))[1]
        args = struct.unpack_from(f"<{len(raw) // 8}q", raw)
        path, claimed = _path_of(parts, PART_FILE, PART_PATH, PART_BASE, notes)
        path2, claimed2 = _path_of(parts, PART_FILE2, PART_PATH2, PART_BASE2, notes)
        # A filter that kills leaves the call's number where the result would be.
        unreturned = kind == PENDING or bool(flags & FLAG_ENTERED) or (compat and bool(flags & FLAG_DENIED))
        return SyscallEvent.model_validate(
            {
                **common,
                "call": call,
                "args": args,
                "result": None if unreturned else result,
                "denied": bool(flags & FLAG_DENIED),
                "flags": () if compat else named_flags(call, args, self._names.architecture),
                "path": path,
                "path2": path2,
                "claimed": claimed or claimed2,
                "identity": _identity(parts),
                "decoy": bool(flags & FLAG_DECOY),
                "local": _address(parts, PART_LOCAL, notes),
                "remote": _address(parts, PART_REMOTE, notes),
                "addresses": tuple(_shown(raw, notes) for raw in addresses),
                "notes": tuple(notes),
            }
        )

    def _transfer(self, common: dict[str, object], parts: Mapping[int, tuple[int, bytes]], notes: list[str]) -> Event:
        values = TRANSFER.unpack_from(parts[PART_ARGUMENTS][1])
        _, inode, device, _, _, pid, read, written, _ = values
        path, _ = _path_of(parts, PART_FILE, PART_PATH, PART_BASE, notes)
        return TransferEvent.model_validate(
            {
                **common,
                "pid": pid,
                "path": path,
                "local": _address(parts, PART_LOCAL, notes),
                "remote": _address(parts, PART_REMOTE, notes),
                "identity": f"{device}:{inode}",
                "read": read,
                "written": written,
                "notes": tuple(notes),
            }
        )

    def _exec(self, common: dict[str, object], parts: Mapping[int, tuple[int, bytes]], notes: list[str]) -> Event:
        path, _ = _path_of(parts, PART_FILE, PART_PATH, PART_BASE, notes)
        directory, _ = _path_of(parts, PART_DIRECTORY, PART_PATH, PART_BASE, notes)
        return ProcessEvent.model_validate(
            {
                **common,
                "what": "exec",
                "path": path,
                "requested": _part(parts, PART_REQUESTED, notes),
                "interpreter": _part(parts, PART_INTERPRETER, notes),
                "directory": directory or "",
                "argv": _strings(parts, PART_ARGV, notes),
                "environment": _strings(parts, PART_ENVIRONMENT, notes),
                "identity": _identity(parts),
                "notes": tuple(notes),
            }
        )


def _note(notes: list[str], name: str) -> None:
    if name not in notes:
        notes.append(name)


def _said(raw: bytes, notes: list[str]) -> str:
    shown, escaped = text(raw)
    if escaped:
        _note(notes, "escaped")
    return shown


def _part(parts: Mapping[int, tuple[int, bytes]], tag: int, notes: list[str]) -> str:
    found = parts.get(tag)
    if found is None:
        return ""
    if found[0] & CUT:
        _note(notes, "cut")
    return _said(found[1], notes)


def _strings(parts: Mapping[int, tuple[int, bytes]], tag: int, notes: list[str]) -> tuple[str, ...]:
    flags, raw = parts.get(tag, (0, b""))
    if not raw:
        return ()
    strings = raw.split(b"\0")
    if not strings[-1]:
        strings.pop()
    if flags & CUT or len(strings) > ARGV_STRINGS:
        _note(notes, "cut")
    return tuple(_said(string, notes) for string in strings[:ARGV_STRINGS])


def _path_of(
    parts: Mapping[int, tuple[int, bytes]], file: int, path: int, base: int, notes: list[str]
) -> tuple[str | None, bool]:
    """The kernel's path where there is one, else the claimed one, resolved; and whether it is a claim."""
    found = parts.get(file)
    claimed = found is None
    if found is None:
        found = parts.get(path)
        if found is None:
            return None, False
    flags, raw = found
    if flags & (CUT | DELETED | DETACHED):
        for bit, name in _PART_NOTES:
            if flags & bit:
                _note(notes, name)
    if flags & REVERSED:
        raw = forwards(raw, cut=bool(flags & CUT))
    elif base in parts:
        base_flags, directory = parts[base]
        raw = joined(forwards(directory, cut=bool(base_flags & CUT)), raw)
        _note(notes, "relative")
    return _said(raw, notes), claimed


def _identity(parts: Mapping[int, tuple[int, bytes]]) -> str:
    found = parts.get(PART_IDENTITY)
    if found is None:
        return ""
    inode, device, _ = IDENTITY.unpack_from(found[1])
    return f"{device}:{inode}"


def _shown(raw: bytes, notes: list[str]) -> str:
    shown, escaped = address(raw)
    if escaped:
        _note(notes, "escaped")
    return shown


def _address(parts: Mapping[int, tuple[int, bytes]], tag: int, notes: list[str]) -> str:
    found = parts.get(tag)
    return _shown(found[1], notes) if found is not None else ""


def parse_counters(payload: bytes) -> dict[str, str]:
    """The recorder's counters by name."""
    lines = (line.partition(" ") for line in payload.decode("ascii", "replace").splitlines())
    return {name: value for name, _, value in lines if name}
