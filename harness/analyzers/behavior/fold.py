"""What the behaviour analyzers share: attribution, books and ledger around the one thing each looks for."""

from __future__ import annotations

from typing import ClassVar

from harness.analyzers.base import AnalysisFacts, AnalyzerBase, Fold, Rule
from harness.analyzers.behavior.attribution import FOLLOWED, Attribution
from harness.analyzers.behavior.books import INSTALL, Books, declined
from harness.analyzers.behavior.ledger import Kind, Ledger
from harness.model.recording import Event, ProcessEvent, SyscallEvent, TransferEvent
from harness.model.result import AnalyzerResult, AnalyzerStatus

#: Said where the operator asked for no recorder.
NOT_ASKED = "not asked for: no recorder was chosen, so nothing that the processes did is known"


class BehaviorFold:
    """One analysis under way. Subclasses say which system calls they want and override what they judge.

    Events of gate and warden are noise: they are followed for attribution, shown to `noise`, and not judged.
    """

    #: Names of the system calls that `syscall` is called for.
    calls: ClassVar[frozenset[str]] = frozenset()
    #: True: the installation and nothing else is judged; False: everything but it.
    install: ClassVar[bool] = False

    def __init__(self, analyzer: BehaviorAnalyzer, facts: AnalysisFacts) -> None:
        self.analyzer = analyzer
        self.facts = facts
        self.attribution = Attribution()
        self.books = Books(install=self.install)
        self.ledger = Ledger(analyzer.name)
        self._noise = self.attribution.noise

    def event(self, event: Event) -> None:
        """Take the next event. Most are system calls that nobody waits for: those have to be quick."""
        if type(event) is SyscallEvent:
            call = event.call
            if call in FOLLOWED and event.result is not None and event.result >= 0:
                self.attribution.follow(event)
            if (event.session == INSTALL) is self.install:
                self.books.seen += 1
                if call in self.calls:
                    (self.noise if self._noise(event) else self.syscall)(event)
                elif (event.denied or "compat32" in event.notes) and not self._noise(event):
                    self.syscall(event)
            return
        self.attribution.take(event)
        if (event.session == INSTALL) is not self.install:
            return
        self.books.take(event)
        if isinstance(event, ProcessEvent):
            if not self._noise(event):
                self.process(event)
        elif isinstance(event, TransferEvent):
            if not self._noise(event):
                self.transfer(event)
        else:
            self.other(event)

    def syscall(self, event: SyscallEvent) -> None:
        """A system call of the target: one of `calls`, a denied one, or a 32-bit one."""

    def process(self, event: ProcessEvent) -> None:
        """A process of the target began, became another program, or ended."""

    def transfer(self, event: TransferEvent) -> None:
        """Bytes that a process of the target moved."""

    def noise(self, event: SyscallEvent) -> None:
        """One of `calls` made by gate or warden."""

    def other(self, event: Event) -> None:
        """Any event that is not the kernel's."""

    def close(self) -> None:
        """Judge what only the end can tell."""

    def finish(self) -> AnalyzerResult:
        """Say what was found."""
        self.close()
        coverage = self.books.coverage()
        reason = self.books.reason(self.facts, coverage)
        more = self.ledger.overflow
        return AnalyzerResult(
            name=self.analyzer.name,
            version=self.analyzer.version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=reason,
            findings=self.ledger.findings(),
            coverage=coverage,
            warnings=(f"{self.analyzer.name}: {more} more events of further kinds are not listed",) if more else (),
        )


class _Declined:
    """Nothing was asked for: every event passes by."""

    def __init__(self, analyzer: BehaviorAnalyzer) -> None:
        self._analyzer = analyzer

    def event(self, event: Event) -> None:
        """Pass by."""

    def finish(self) -> AnalyzerResult:
        """Skipped, and said so."""
        return AnalyzerResult(
            name=self._analyzer.name,
            version=self._analyzer.version,
            status=AnalyzerStatus.SKIPPED,
            reason=NOT_ASKED,
        )


class BehaviorAnalyzer(AnalyzerBase):
    """An analyzer over what was recorded. `kinds` are all that its findings can be; rules come from them."""

    fold: ClassVar[type[BehaviorFold]]
    kinds: ClassVar[tuple[Kind, ...]] = ()
    light = True

    def __init_subclass__(cls) -> None:
        titles: dict[str, str] = {}
        for kind in cls.kinds:
            titles.setdefault(kind.rule, kind.title)
        cls.rules = tuple(Rule(id=rule, title=title) for rule, title in titles.items())

    def passes(self, facts: AnalysisFacts) -> bool:
        """True where the operator asked for no recorder."""
        return declined(facts)

    def start(self, facts: AnalysisFacts) -> Fold:
        """Begin, or pass where the operator asked for no recorder."""
        return _Declined(self) if declined(facts) else self.fold(self, facts)
