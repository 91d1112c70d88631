"""`behavior.flood`: so many events that they can only be meant to blind whoever watches, or to wear out the machine."""

from __future__ import annotations

from typing import Any

from harness.analyzers.behavior.attribution import Where
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.ledger import Kind
from harness.model.finding import Severity, Threat
from harness.model.recording import Event, EventBase, ProcessEvent, RecorderEndEvent, SyscallEvent

SECOND = 1_000_000_000
#: Recorded calls in one second. The busiest second measured, the start of a large command-line client, had 4,000.
CALLS_A_SECOND = 10_000
#: So many such seconds are no burst any more.
BUSY_SECONDS = 5
#: Calls in one session, whatever their rate; the most measured until the end of discovery were 7,500. A slow machine
#: slows a flood as well: this bound is the one that holds there.
CALLS_A_SESSION = 150_000
#: Processes started in one session outside of calls; the most measured was 40.
PROCESSES_A_SESSION = 1_000
MAX_SESSIONS = 64

CALLS = Kind(
    "behavior.flood.calls",
    "Flood of system calls",
    Severity.HIGH,
    "The server made system calls at a rate that hides others or wears out the machine.",
    threat=Threat.SANDBOX_EVASION,
    cwe=400,
)
PROCESSES = Kind(
    "behavior.flood.processes",
    "Flood of processes",
    Severity.HIGH,
    "The server started processes without end.",
    threat=Threat.DENIAL_OF_SERVICE,
    cwe=400,
)
LOST = Kind(
    "behavior.flood.lost",
    "Events were lost in a flood",
    Severity.HIGH,
    "The server made more events than could be recorded while it flooded; what was lost is not known.",
    threat=Threat.SANDBOX_EVASION,
    cwe=400,
)


class _Rate:
    """Counts of one session: in all, and in the second at hand."""

    __slots__ = ("busy", "calls", "first", "forks", "in_second", "last", "matched", "peak", "second")

    def __init__(self) -> None:
        self.calls = self.forks = self.second = self.in_second = self.busy = self.peak = self.matched = 0
        self.first: EventBase | None = None
        self.last: EventBase | None = None


class FloodFold(BehaviorFold):
    """Every system call counts here, so that counting comes before everything else."""

    def __init__(self, analyzer: BehaviorAnalyzer, facts: Any) -> None:
        super().__init__(analyzer, facts)
        self._rates: dict[str, _Rate] = {}

    def event(self, event: Event) -> None:
        """Count a system call; the rest goes the usual way."""
        if type(event) is SyscallEvent:
            rate = self._rates.get(event.session) or self._rate(event.session)
            rate.calls += 1
            second = event.t // SECOND
            if second == rate.second:
                rate.in_second += 1
                if rate.in_second == CALLS_A_SECOND:
                    rate.busy += 1
                    rate.first = rate.first or event
            elif event.record >= 0:
                rate.peak = max(rate.peak, rate.in_second)
                rate.second, rate.in_second = second, 1
        super().event(event)

    def _rate(self, session: str) -> _Rate:
        name = session if session in self._rates or len(self._rates) < MAX_SESSIONS else "others"
        return self._rates.setdefault(name, _Rate())

    def process(self, event: ProcessEvent) -> None:
        """Count processes."""
        if event.what == "fork":
            rate = self._rate(event.session)
            rate.forks += 1
            if rate.forks == PROCESSES_A_SESSION:
                text = f"at least {PROCESSES_A_SESSION} processes"
                self.ledger.note(PROCESSES, "processes", event, self.attribution.where(event), text)

    def other(self, event: Event) -> None:
        """At a recorder's end: were events lost in a flood?"""
        if isinstance(event, RecorderEndEvent):
            rate = self._rate(event.session)
            rate.matched += event.matched
            rate.last = event
            lost = sum(max(0, number) for number in event.lost.values())
            if lost and (rate.busy or rate.calls >= CALLS_A_SECOND or lost >= CALLS_A_SECOND):
                text = f"{lost} of {event.matched} events were lost"
                self.ledger.note(LOST, "lost", event, self._nowhere(event), text)

    def close(self) -> None:
        """Judge rates and sums."""
        for session, rate in sorted(self._rates.items()):
            if session == "install":
                continue
            calls = max(rate.calls, rate.matched)
            if rate.busy >= BUSY_SECONDS or calls >= CALLS_A_SESSION:
                event = rate.first or rate.last or EventBase(phase="", session=session)
                peak = max(rate.peak, rate.in_second)
                text = f"{calls} calls in session {session}, at most {peak} recorded in one second"
                self.ledger.note(CALLS, "calls", event, self._nowhere(event), text)

    def _nowhere(self, event: EventBase) -> Where:
        from_nobody = self.attribution.nobody
        return Where(event.session, event.phase, from_nobody)


class FloodAnalyzer(BehaviorAnalyzer):
    """Judges how much there was."""

    name = "behavior.flood"
    description = "floods of system calls and processes, and events lost in them"
    fold = FloodFold
    kinds = (CALLS, PROCESSES, LOST)
