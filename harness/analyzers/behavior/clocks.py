"""Which programs of a life had a later clock: those that loaded the library that moves it.

The kernel's record tells. Static programs load none, nor do those that were started with an environment of their own;
what asks the kernel without the C library (Go) may load it, and is not moved all the same: that can't be seen.
"""

from __future__ import annotations

from harness.analyzers.behavior.attribution import GATE, MAX_PROCESSES, MAX_SESSIONS
from harness.analyzers.evidence import render_safe
from harness.model.recording import Origin, ProcessEvent, SyscallEvent

#: The library in the images; the same as in `harness.sandbox.image_spec`, which this half can't import.
LIBRARY = "/usr/local/lib/libclock.so.1"
#: So many programs are named, and remembered.
_NAMED, _MOST = 3, 64


class _Life:
    """`fresh`: processes that became a program and have not loaded the library, with the program's name."""

    __slots__ = ("fresh", "moved", "unmoved")

    def __init__(self) -> None:
        self.fresh: dict[int, str] = {}
        self.unmoved: set[str] = set()
        self.moved = False


class Clocks:
    """Memory: programs by process and life, bounded."""

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}

    def take(self, event: SyscallEvent | ProcessEvent) -> None:
        """Take the next call or process."""
        if isinstance(event, SyscallEvent):
            if event.path == LIBRARY and event.result is not None and event.result >= 0:
                life = self._life(event.session)
                life.moved = True
                life.fresh.pop(event.pid, None)
        elif event.what == "exec":
            if event.by is Origin.TARGET and event.path != GATE:
                self._begin(self._life(event.session), event)
        elif event.what == "exit":
            self._end(self._life(event.session), event.pid)

    def problem(self, session: str) -> str:
        """Why the clock of that life is not known to have moved; empty where all of its programs had it."""
        life = self._lives.get(session)
        if life is None:
            return "no record shows whether the clock that was set moved"
        unmoved = sorted(life.unmoved.union(life.fresh.values()))
        if not unmoved:
            return "" if life.moved else "no record shows whether the clock that was set moved"
        names = ", ".join(unmoved[:_NAMED]) + (" …" if len(unmoved) > _NAMED else "")
        return render_safe(f"the clock of these programs does not move: {names}")

    def _life(self, name: str) -> _Life:
        if name not in self._lives and len(self._lives) >= MAX_SESSIONS:
            name = "others"
        return self._lives.setdefault(name, _Life())

    def _begin(self, life: _Life, event: ProcessEvent) -> None:
        self._end(life, event.pid)
        if len(life.fresh) < MAX_PROCESSES:
            life.fresh[event.pid] = (event.path or event.requested).rpartition("/")[2]

    def _end(self, life: _Life, pid: int) -> None:
        """A program ends, or makes room for the next one."""
        name = life.fresh.pop(pid, None)
        if name is not None and len(life.unmoved) < _MOST:
            life.unmoved.add(name)
