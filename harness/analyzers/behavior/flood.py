"""`behavior.flood`: so many events that they can only be meant to blind whoever watches, or to wear out the machine."""

from __future__ import annotations

from typing import Any

from harness.analyzers.behavior.attribution import Where
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.ledger import Kind
from harness.model.finding import Severity, Threat
from harness.model.recording import (
    Event,
    EventBase,
    MarkEvent,
    Origin,
    ProcessEvent,
    RecorderEndEvent,
    SyscallEvent,
)

SECOND = 1_000_000_000
#: Recorded calls in one second. The busiest second measured, the start of a large command-line client, had 4,000.
CALLS_A_SECOND = 10_000
#: So many such seconds are no burst any more.
BUSY_SECONDS = 5
#: Calls outside of tool calls in one session, or in one tool call, whatever their rate; the most measured until the
#: end of discovery were 7,500, in one tool call 1,100. A slow machine slows a flood as well: this bound holds there.
MOST_CALLS = 150_000
#: Processes started outside of tool calls in one session, or in one tool call; the most measured were 40, and 8.
MOST_PROCESSES = 1_000
#: What each tool call may add to both: a tool that starts a program does so as often as it is called, and the calls
#: are ours (measured: 2,000 of them, with 150 system calls and 6 processes each).
CALLS_A_TOOL_CALL = 5_000
PROCESSES_A_TOOL_CALL = 20
MAX_SESSIONS = 64
#: How the phase of a tool call begins.
CALLED = "call:"

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


class _Tally:
    """A number that grows: in all, outside of tool calls, and in the tool call that had the most."""

    __slots__ = ("begun", "most", "outside", "total")

    def __init__(self) -> None:
        self.total = self.begun = self.outside = self.most = 0

    def part(self, *, called: bool) -> None:
        """A part ends: a tool call, or what lies between two."""
        grown, self.begun = self.total - self.begun, self.total
        if called:
            self.most = max(self.most, grown)
        else:
            self.outside += grown

    def reaches(self, most: int, share: int, made: int, whole: int = 0) -> bool:
        """Whether it is `most` outside of tool calls, in one of the `made`, or in all beyond a `share` for each.

        `whole`: the number with what was lost, which belongs nowhere; without tool calls it was outside of them.
        """
        whole = max(whole, self.total)
        outside = self.outside if made else whole
        return max(outside, self.most, whole - outside - made * share) >= most


class _Rate:
    """Counts of one session: in all and in its parts, and in the second at hand."""

    __slots__ = (
        "busy", "calls", "first", "forked", "forks", "in_second", "last", "matched", "peak", "phase", "second",
        "tool_calls",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls, self.forks = _Tally(), _Tally()
        self.second = self.in_second = self.busy = self.peak = self.matched = self.tool_calls = 0
        self.phase = ""
        self.first: EventBase | None = None
        self.last: EventBase | None = None
        self.forked: tuple[ProcessEvent, Where] | None = None

    def enter(self, phase: str) -> None:
        """What comes now belongs to another phase."""
        if phase == self.phase:
            return
        for tally in (self.calls, self.forks):
            tally.part(called=self.phase.startswith(CALLED))
        self.phase = phase
        self.tool_calls += phase.startswith(CALLED)


class FloodFold(BehaviorFold):
    """Every system call counts here, so that counting comes before everything else."""

    def __init__(self, analyzer: BehaviorAnalyzer, facts: Any) -> None:
        super().__init__(analyzer, facts)
        self._rates: dict[str, _Rate] = {}

    def event(self, event: Event) -> None:
        """Count a system call; the rest goes the usual way."""
        if type(event) is SyscallEvent:
            rate = self._rates.get(event.session) or self._rate(event.session)
            rate.calls.total += 1
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
            forks = rate.forks
            forks.total += 1
            if forks.total - forks.begun == MOST_PROCESSES or (rate.forked is None and forks.total == MOST_PROCESSES):
                rate.forked = event, self.attribution.where(event)

    def other(self, event: Event) -> None:
        """Where a tool call begins or ends; and at a recorder's end: were events lost in a flood?"""
        if isinstance(event, MarkEvent) and event.by is Origin.WARDEN:
            self._rate(event.session).enter(event.phase)
        if isinstance(event, RecorderEndEvent):
            rate = self._rate(event.session)
            rate.matched += event.matched
            rate.last = event
            lost = sum(max(0, number) for number in event.lost.values())
            if lost and (rate.busy or rate.calls.total >= CALLS_A_SECOND or lost >= CALLS_A_SECOND):
                text = f"{lost} of {event.matched} events were lost"
                self.ledger.note(LOST, "lost", event, self._nowhere(event), text)

    def close(self) -> None:
        """Judge rates and sums."""
        for session, rate in sorted(self._rates.items()):
            if session == "install":
                continue
            rate.enter("")
            calls, forks, made = rate.calls, rate.forks, rate.tool_calls
            many = calls.reaches(MOST_CALLS, CALLS_A_TOOL_CALL, made, rate.matched)
            if rate.busy >= BUSY_SECONDS or many:
                event = rate.first or rate.last or EventBase(phase="", session=session)
                peak = max(rate.peak, rate.in_second)
                whole = max(calls.total, rate.matched)
                text = f"{whole} calls in session {session}, at most {peak} recorded in one second"
                self.ledger.note(CALLS, "calls", event, self._nowhere(event), text)
            if rate.forked is not None and forks.reaches(MOST_PROCESSES, PROCESSES_A_TOOL_CALL, made):
                text = f"{forks.total} processes in session {session}, of them {forks.outside} outside of tool calls"
                text += f", at most {forks.most} in one of {made}"
                self.ledger.note(PROCESSES, "processes", *rate.forked, text)

    def _nowhere(self, event: EventBase) -> Where:
        from_nobody = self.attribution.nobody
        return Where(event.session, event.phase, from_nobody)


class FloodAnalyzer(BehaviorAnalyzer):
    """Judges how much there was."""

    name = "behavior.flood"
    description = "floods of system calls and processes, and events lost in them"
    fold = FloodFold
    kinds = (CALLS, PROCESSES, LOST)
