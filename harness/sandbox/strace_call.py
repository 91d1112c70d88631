"""One finished call of a trace, its arguments taken apart: the fields of its event.

Pure. What the kernel says of a descriptor stands beside it (`3</path>`); names that the target passed are claims, and
resolved against what the kernel said last of the working directory.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field

from harness.sandbox import strace_lines as lines
from harness.sandbox.records_parts import add_note, said
from harness.sandbox.strace_calls import CLONES, NUMBERS, OPENS, PRCTLS, SIGNATURES, SLEEPS, STATS, TELLTALES
from harness.sandbox.strace_lines import Said
from harness.sandbox.strace_transfers import Transfers

MAX_DECOYS = 4096
ARGV_STRINGS = 1024
_SECONDS = re.compile(rb"tv_sec=(\d{1,18}), tv_nsec=(\d{1,9})")


@dataclass(slots=True)
class Task:
    """One thread: the process it belongs to, that one's parent, its name, its call under way.

    `mode`: `compat32` or `x32` for a process that makes such calls.
    """

    pid: int
    parent: int
    comm: str = ""
    mode: str = ""
    pending: Said | None = None


@dataclass(slots=True)
class Call:
    """A finished call, or one that never returned (`result` None)."""

    said: Said
    task: Task
    args: list[bytes]
    result: int | None
    notes: list[str] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether it returned and did not fail."""
        return self.result is not None and self.result >= 0


class CallReader:
    """Reads calls in their order; remembers working directories, planted files and sockets, all bounded.

    `clock`: CLOCK_REALTIME minus CLOCK_MONOTONIC in nanoseconds.
    """

    def __init__(self, clock: int) -> None:
        self._clock = clock
        self._folders: dict[int, bytes] = {}
        self._decoys: set[bytes] = set()
        self.transfers = Transfers()

    def born(self, pid: int, parent: int) -> None:
        """A process begins where its parent is."""
        self._folders[pid] = self._folders.get(parent, b"")

    def gone(self, pid: int) -> None:
        """A process has ended."""
        self._folders.pop(pid, None)

    def wanted(self, call: Call, flags: tuple[str, ...]) -> bool:
        """Whether the call becomes an event, denied or not apart."""
        name = call.said.name
        if name in STATS:
            path = self._path(call, "p", "d")[0]
            asked = lines.string(call.args[SIGNATURES[name].index("p")]) if path is not None else None
            return path is not None and path.startswith(TELLTALES) and asked != (b"", False)
        if name == "mmap":
            shared = b"PROT_WRITE" in b" ".join(call.args[2:3]) and b"MAP_SHARED" in b" ".join(call.args[3:4])
            return shared and self._opened(call, 4) is not None
        if name == "prctl":
            if flags == ("PR_SET_NAME",) and len(call.args) > 1 and (read := lines.string(call.args[1])) is not None:
                call.task.comm = said(read[0][:15], [])
            return bool(flags) and flags[0] in PRCTLS
        if name in SLEEPS:
            return self._slept(call) >= 1
        return name not in CLONES or any(flag.startswith("CLONE_NEW") for flag in flags)

    def executed(self, call: Call) -> dict[str, object]:
        """The fields of an exec that succeeded. All of them are claims: strace reads them before the kernel does."""
        path, _ = self._path(call, "p", "d")
        position = 2 if call.said.name == "execveat" else 1
        argv, cut = lines.strings(call.args[position], ARGV_STRINGS) if len(call.args) > position else ([], True)
        notes = [*call.notes, "claimed", *(["cut"] if cut and "cut" not in call.notes else [])]
        asked = lines.string(call.args[position - 1]) if len(call.args) >= position else None
        requested = said(asked[0], notes) if asked is not None else ""
        call.task.comm = requested.rpartition("/")[2][:15]
        return {
            "path": said(path, notes) if path is not None else None,
            "requested": requested,
            "directory": said(self._folders.get(call.task.pid, b""), notes),
            "argv": tuple(said(word, notes) for word in argv),
            "notes": tuple(dict.fromkeys(notes)),
        }

    def described(self, call: Call, flags: tuple[str, ...], *, planting: bool) -> dict[str, object]:
        """The fields of any other call. `planting`: files that are made now were there before the target."""
        name, notes, signature = call.said.name, call.notes, SIGNATURES[call.said.name]
        event: dict[str, object] = {"args": tuple(_number(argument) for argument in call.args[:6])}
        event["flags"] = (f"{self._slept(call)} s",) if name in SLEEPS else flags
        path, claimed = self._first(call, signature)
        second, claimed_too = self._path(call, "P", "D")
        if second is None and "F" in signature:
            second = self._opened(call, signature.index("F"))
        claimed = claimed or claimed_too
        if call.done and path is not None:
            event["decoy"] = self._decoy(call, path, second, planting)
            if name in ("chdir", "fchdir"):
                self._folders[call.task.pid] = path
        if path is not None:
            event["path"] = said(path, notes)
        if second is not None:
            event["path2"] = said(second, notes)
        found: tuple[str, ...] = ()
        for at in (signature.find(letter) for letter in "am"):
            if 0 <= at < len(call.args):
                found, escaped = lines.addresses(call.args[at])
                if escaped:
                    add_note(notes, "escaped")
        socket = self._opened(call, 0) if signature.startswith("f") else None
        if socket is not None and socket.startswith(b"socket:"):
            ends = self.transfers.ends(name, socket, found[0] if found else "", call.result)
            event["local"], event["remote"] = ends
        event["addresses"] = found
        event["claimed"] = claimed or bool(found)
        event["notes"] = tuple(dict.fromkeys(notes))
        return event

    def _first(self, call: Call, signature: str) -> tuple[bytes | None, bool]:
        """The first path of a call, and whether it is a claim."""
        if call.said.name in OPENS and call.done and (opened := lines.descriptor(call.said.result)) is not None:
            self._path(call, "p", "d")  # for what it tells of the working directory
            if opened[1]:
                add_note(call.notes, "deleted")
            return opened[0], False
        if "p" in signature:
            return self._path(call, "p", "d")
        if "t" in signature and signature.index("t") < len(call.args):
            read = lines.string(call.args[signature.index("t")])
            return (read[0], True) if read is not None else (None, False)
        behind = self._opened(call, signature.index("f")) if "f" in signature else None
        # A socket is told by its ends.
        return (behind if behind is not None and not behind.startswith(b"socket:") else None), False

    def _decoy(self, call: Call, path: bytes, second: bytes | None, planting: bool) -> bool:
        """Planted files are known by their names; further names that they are given count too."""
        name = call.said.name
        if planting:
            if name in OPENS and b"O_CREAT" in call.said.body and len(self._decoys) < MAX_DECOYS:
                self._decoys.add(path)
            return False
        if path not in self._decoys:
            return False
        if second is not None and len(self._decoys) < MAX_DECOYS:
            self._decoys.add(second)
        return name in OPENS

    def _slept(self, call: Call) -> int:
        """Whole seconds that a sleep lasts; one until a point in time is told by the clock that it names."""
        found = _SECONDS.search(call.said.body)
        if found is None:
            return 0
        if b"TIMER_ABSTIME" not in call.said.body:
            return int(found[1])
        now = call.said.time - (0 if call.args[:1] == [b"CLOCK_REALTIME"] else self._clock)
        return max(0, round((int(found[1]) * 1_000_000_000 + int(found[2]) - now) / 1_000_000_000))

    def _path(self, call: Call, letter: str, base: str) -> tuple[bytes | None, bool]:
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

    def _opened(self, call: Call, at: int) -> bytes | None:
        """What the kernel says is behind the descriptor at that place."""
        found = lines.descriptor(call.args[at]) if 0 <= at < len(call.args) else None
        return found[0] if found is not None else None


def _number(argument: bytes) -> int:
    """The number of an argument, from its text; -1 where its text has none."""
    value = lines.integer(argument)
    if value is not None:
        return value
    return NUMBERS.get(argument.split(b"<", 1)[0].split(b"|", 1)[0].decode("ascii", "replace"), -1)
