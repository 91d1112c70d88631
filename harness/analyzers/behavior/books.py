"""What a behaviour analyzer stands on: which sessions were recorded, how well, and how many events were lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.analyzers.base import AnalysisFacts
from harness.analyzers.evidence import render_safe
from harness.model.coverage import Coverage, Floor, Skip, SkipReason, Tally
from harness.model.options import RecorderChoice
from harness.model.recording import (
    AttemptEvent,
    Event,
    Grade,
    InstallStepEvent,
    KernelEvent,
    Origin,
    Phase,
    ProcessEvent,
    RecorderEndEvent,
)

#: Sessions are few; a recording with more is not one of ours.
MAX_SESSIONS = 64
INSTALL = Phase.INSTALL.value
#: Grades of which every event was made by somebody whom the target can't reach.
ENOUGH = frozenset({Grade.TRUSTED, Grade.CONTAINED})


def declined(facts: AnalysisFacts) -> bool:
    """True when the operator chose to have nothing recorded: then there is nothing to say, and no gap either.

    A recorder that was asked for and could not be had is not meant: that is a gap.
    """
    manifest = facts.manifest
    return manifest is not None and manifest.recorder == "none" and manifest.options.recorder is RecorderChoice.NONE


@dataclass(slots=True)
class _Recorded:
    """One session. `lives`: how often the target was started in it; `ends`: how often a recorder reported."""

    lives: int = 0
    ends: int = 0
    executed: bool = False
    lost: int = 0
    problem: str = ""


@dataclass(slots=True)
class Books:
    """Counts while events pass. `install`: whether it is the installation that is looked at, or all the rest."""

    install: bool = False
    seen: int = 0
    _sessions: dict[str, _Recorded] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Count the next event that is no system call; those are counted in `seen` directly."""
        if isinstance(event, KernelEvent):
            self.seen += 1
            if isinstance(event, ProcessEvent) and event.what == "exec" and event.by is Origin.TARGET:
                self._of(event).executed = True
        elif isinstance(event, AttemptEvent | InstallStepEvent):
            self._of(event).lives += 1
        elif isinstance(event, RecorderEndEvent):
            self._end(event)

    def _of(self, event: Event) -> _Recorded:
        name = event.session if event.session in self._sessions or len(self._sessions) < MAX_SESSIONS else "others"
        return self._sessions.setdefault(name, _Recorded())

    def _end(self, event: RecorderEndEvent) -> None:
        state = self._of(event)
        state.ends += 1
        state.lost += sum(max(0, number) for number in event.lost.values())
        if not event.loaded:
            problem = "the recorder did not work"
        elif event.early:
            problem = f"the recorder ended early: {event.reason or 'no reason given'}"
        elif event.marks_missing:
            problem = f"{len(event.marks_missing)} heartbeats are missing in the record"
        else:
            return
        state.problem = state.problem or render_safe(problem)

    def coverage(self) -> Coverage:
        """The books, closed."""
        sessions = {name: state for name, state in self._sessions.items() if (name == INSTALL) == self.install}
        skips = [skip for name, state in sorted(sessions.items()) if (skip := self._gap(name, state)) is not None]
        lost = sum(state.lost for state in sessions.values())
        dropped = (Skip(item="lost events", reason=SkipReason.TARGET, count=lost),) if lost else ()
        whole = len(sessions) - len(skips)
        floors = () if self.install else (Floor(what="recorded sessions", subjects=("recordings",)),)
        return Coverage(
            subjects={
                "events": Tally(discovered=self.seen + lost, analyzed=self.seen, skipped=dropped),
                "recordings": Tally(discovered=len(sessions), analyzed=whole, skipped=tuple(skips)),
            },
            floors=floors,
        )

    def _gap(self, name: str, state: _Recorded) -> Skip | None:
        problem = state.problem
        if not problem and not state.ends:
            problem = "it was not recorded"
        elif not problem and not state.executed and (state.lives or not self.install):  # a command installs nothing
            problem = "no program of the target is in the record"
        elif not problem and state.ends < state.lives and not self.install:
            problem = f"{state.lives - state.ends} of its starts were not recorded"
        if not problem:
            return None
        return Skip(item=render_safe(name, 40), reason=SkipReason.LIMIT, detail=problem)

    def reason(self, facts: AnalysisFacts, coverage: Coverage) -> str:
        """Why the analysis is not whole, in one line; empty when it is."""
        manifest = facts.manifest
        if manifest is not None and manifest.problems:
            return render_safe(manifest.problems[0])
        if not facts.complete:
            return "the recording is incomplete"
        gaps = coverage.gaps()
        grade = manifest.grade if manifest is not None else Grade.NONE
        if grade not in ENOUGH and (not self.install or self._sessions.get(INSTALL) is not None):
            return f"the record of system calls is of grade {grade}, and at least {Grade.CONTAINED} is needed"
        return render_safe(gaps[0]) if gaps else ""
