"""`behavior.evasion`: does it look whether it is watched? Soft signals, unless something changed after the look.

Harmless libraries look too (`is-docker` of Node packages that open browsers), so one look is LOW. Several families of
tell-tales, or a process that ends itself right after a look, weigh more.
"""

from __future__ import annotations

import re
from typing import Any

from harness.analyzers.behavior.apart import OTHERWISE, Apart
from harness.analyzers.behavior.attribution import Where
from harness.analyzers.behavior.effects import OPENS
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.later import LATER, Later
from harness.analyzers.behavior.ledger import Kind
from harness.analyzers.behavior.places import Place, PlaceKind, PlaceTable
from harness.model.finding import EvidenceLevel, Severity, Threat
from harness.model.recording import AttemptEvent, Event, FlowEvent, LookEvent, ProcessEvent, SyscallEvent

_HEURISTIC = EvidenceLevel.HEURISTIC
_THREAT = Threat.SANDBOX_EVASION

LOOKS = Kind(
    "behavior.evasion.telltale",
    "Looked where a container shows itself",
    Severity.LOW,
    "The server looked at a place that tells a program that it runs in a container or on a virtual machine.",
    threat=_THREAT,
    level=_HEURISTIC,
    remediation="Libraries do this for harmless reasons too; see what it does with the answer.",
)
LOOKS_OFTEN = Kind(
    "behavior.evasion.telltales",
    "Looked at several places where a sandbox shows itself",
    Severity.MEDIUM,
    "The server looked at several unlike places that tell a program that it is in a container, on a virtual machine or "
    "watched; one of them libraries look at, all of them somebody who wants to know.",
    threat=_THREAT,
    level=_HEURISTIC,
)
LOOKS_AND_ENDS = Kind(
    "behavior.evasion.ends-after-look",
    "Ended itself after a look at a tell-tale",
    Severity.MEDIUM,
    "A process looked whether it is in a container or watched, and ended itself right after without doing anything.",
    threat=_THREAT,
    level=_HEURISTIC,
)
SLEEPS = Kind(
    "behavior.evasion.long-sleep",
    "Slept for long",
    Severity.LOW,
    "The server slept longer than most analyses last. Servers with a timer do this too.",
    threat=_THREAT,
    level=_HEURISTIC,
    remediation="See what it does when it wakes up.",
)
ACTS_AFTER_SLEEP = Kind(
    "behavior.evasion.acts-after-sleep",
    "Slept for long, and acted when it woke up",
    Severity.MEDIUM,
    "A thread of the server slept longer than most analyses last, and right after that started a program, opened a "
    "connection or a planted secret.",
    threat=_THREAT,
    level=_HEURISTIC,
    remediation="Servers that look for something once in a while do this too; see what it is.",
)
TRACES_ITSELF = Kind(
    "behavior.evasion.self-trace",
    "Tried to trace itself",
    Severity.MEDIUM,
    "The server asked to be traced, by which programs find out whether a debugger is already there.",
    threat=_THREAT,
    level=_HEURISTIC,
)
HIDES = Kind(
    "behavior.evasion.hides",
    "Made itself unreadable or renamed its process",
    Severity.INFO,
    "The server forbade others to look into its process.",
    threat=_THREAT,
    level=_HEURISTIC,
    remediation="Programs that hold keys do this as well.",
)

#: From here on a sleep is long; in seconds.
LONG_SLEEP = 60
#: So many families of tell-tales are no accident.
FAMILIES = 3
#: A process that makes at most so many more calls after its look has done nothing.
CALLS_AFTER_LOOK = 40
MAX_LOOKERS = 1024
_SECONDS = re.compile(r"(\d+) s")
#: What comes so soon after a sleep was waited for; in nanoseconds.
SOON = 2_000_000_000
MAX_SLEEPERS = 1024
#: Waits for descriptors; where their number (the argument at that place) is zero they are sleeps.
_WAITS = {
    "poll": 1,
    "ppoll": 1,
    "select": 0,
    "pselect6": 0,
    "epoll_wait": None,
    "epoll_pwait": None,
    "epoll_pwait2": None,
}
_SLEEPS = frozenset({"nanosleep", "clock_nanosleep", *_WAITS})


class EvasionFold(BehaviorFold):
    """Memory: families seen by setting, processes that looked and threads that slept, all bounded."""

    calls = OPENS | {
        "access", "faccessat", "faccessat2", "stat", "lstat", "newfstatat", "statx", "readlink", "readlinkat",
        "ptrace", "prctl", "connect", *_SLEEPS,
    }  # fmt: skip

    def __init__(self, analyzer: BehaviorAnalyzer, facts: Any) -> None:
        super().__init__(analyzer, facts)
        self._telltales = PlaceTable(PlaceKind.TELLTALE)
        self._families: dict[str, tuple[SyscallEvent, Where]] = {}
        self._lookers: dict[tuple[str, int], int] = {}
        self._sleepers: dict[tuple[str, int], tuple[int, int]] = {}
        self._apart = Apart()
        self._later = Later()

    def syscall(self, event: SyscallEvent) -> None:
        """Judge one call."""
        call = event.call
        if call == "ptrace":
            if "PTRACE_TRACEME" in event.flags:
                where = self.attribution.where(event)
                self.ledger.note(TRACES_ITSELF, "traceme", event, where, "ptrace(PTRACE_TRACEME)")
        elif call == "prctl":
            if "PR_SET_DUMPABLE" in event.flags and len(event.args) > 1 and event.args[1] == 0:
                self.ledger.note(HIDES, "dumpable", event, self.attribution.where(event), "prctl(PR_SET_DUMPABLE, 0)")
        elif call in _SLEEPS:
            self._sleep(event)
        elif call == "connect":
            self._woken(event, f"connect: {', '.join(event.addresses)}")
        elif event.decoy:
            self._woken(event, f"{call}: {event.path}")
            self._later.take(event, self.attribution.where(event))
        elif event.path is not None and event.path[:2] in ("/.", "/p", "/s", "/r", "/d"):
            place = self._telltales.find(event.path)
            if place is not None:
                self._look(event, place)

    def _look(self, event: SyscallEvent, place: Place) -> None:
        where = self.attribution.where(event)
        text = f"{event.call}: {event.path}"
        self.ledger.note(LOOKS, place.family, event, where, text, extra=f"{place.pattern}: {place.reason}.")
        self._families.setdefault(place.family, (event, where))
        key = (event.session, event.pid)
        if len(self._lookers) >= MAX_LOOKERS:
            del self._lookers[next(iter(self._lookers))]
        self._lookers[key] = event.seq

    def _sleep(self, event: SyscallEvent) -> None:
        told = next((match for flag in event.flags if (match := _SECONDS.fullmatch(flag))), None)
        seconds = int(told[1]) if told is not None else 0
        if seconds < LONG_SLEEP:
            return
        if len(self._sleepers) >= MAX_SLEEPERS:
            del self._sleepers[next(iter(self._sleepers))]
        self._sleepers[event.session, event.tid] = (event.t + seconds * 1_000_000_000, seconds)
        place = _WAITS.get(event.call)
        alone = event.call not in _WAITS or (place is not None and event.args[place : place + 1] == (0,))
        if alone:  # else it may be woken up by a message, as servers are
            where = self.attribution.where(event)
            self.ledger.note(SLEEPS, "sleep", event, where, f"{event.call}: {seconds} s")

    def _woken(self, event: SyscallEvent | ProcessEvent, text: str) -> None:
        """Something was done: was it what a sleep ended for?"""
        until, seconds = self._sleepers.get((event.session, event.tid), (None, 0))
        if until is not None and 0 <= event.t - until <= SOON:
            where = self.attribution.where(event)
            self.ledger.note(ACTS_AFTER_SLEEP, "acts", event, where, f"after {seconds} s of sleep: {text}")

    def process(self, event: ProcessEvent) -> None:
        """A process that looked and ended: did it do anything in between?"""
        if event.what == "exec":
            where = self.attribution.where(event)
            self._apart.take(event, where)
            self._later.take(event, where)
        if event.what in ("fork", "exec"):
            self._woken(event, f"{event.what}: {event.path or event.child}")
        if event.what != "exit":
            return
        seq = self._lookers.pop((event.session, event.pid), None)
        if seq is not None and event.signal is None and 0 <= event.seq - seq <= CALLS_AFTER_LOOK:
            where = self.attribution.where(event)
            if where.phase in ("start", "discover"):
                text = f"ended with code {event.code}, {event.seq - seq} events after its look"
                self.ledger.note(LOOKS_AND_ENDS, "ends", event, where, text)

    def other(self, event: Event) -> None:
        """Starts, flows and looks, by the life that they were in."""
        where = Where(event.session, event.phase, self.attribution.nobody)
        if isinstance(event, (FlowEvent, LookEvent)):
            self._apart.take(event, where)
        if isinstance(event, (FlowEvent, AttemptEvent)):
            self._later.take(event, where)

    def close(self) -> None:
        """Judge the families together, and the lives."""
        self._apart.close(self.ledger)
        self._later.close(self.ledger)
        if len(self._families) >= FAMILIES:
            for family in sorted(self._families):
                event, where = self._families[family]
                names = ", ".join(sorted(self._families))
                self.ledger.note(LOOKS_OFTEN, "families", event, where, f"{event.call}: {event.path}", extra=names)


class EvasionAnalyzer(BehaviorAnalyzer):
    """Judges whether a server looks for its observers."""

    name = "behavior.evasion"
    description = "container and debugger tell-tales looked at, long sleeps, self-tracing (soft signals)"
    fold = EvasionFold
    kinds = (LOOKS, LOOKS_OFTEN, LOOKS_AND_ENDS, SLEEPS, ACTS_AFTER_SLEEP, TRACES_ITSELF, HIDES, OTHERWISE, LATER)
