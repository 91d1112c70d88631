"""What an analyzer is: a pure fold over the events of a recording, begun with the facts known beforehand.

Memory must not grow with the number of events, so a `Fold` sees each event once and keeps bounded state.
Nothing here, nor in any analyzer, does I/O; the engine isolates what goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol, TypeAlias

from harness.model.base import Record
from harness.model.recording import Event, Manifest
from harness.model.result import AnalyzerResult
from harness.model.surface import Surface


class Material(StrEnum):
    """The kinds of input that an analyzer can be made for."""

    RECORDING = "a recording"
    DECLARATIONS = "saved declarations"


@dataclass(frozen=True)
class ServerSurface:
    """One look at one server. `server` is its name where several are analyzed together, else None."""

    surface: Surface
    server: str | None = None


class Contents(Protocol):
    """The bytes that events point to. They are handed in, as events are, because analyzers open nothing themselves."""

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """The bytes kept under this digest, in pieces of at most a megabyte; nothing where there are none."""
        ...


class NoContents:
    """Contents of which nothing was kept."""

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """Nothing."""
        return iter(())


@dataclass(frozen=True)
class AnalysisFacts:
    """What is known before the first event.

    `manifest`: None where nothing was run. `surfaces`: every look at a live server, in order.
    `declared`: saved declarations of one or more servers (read from a file, so STATIC).
    `complete`: False when the recording was cut off. `contents`: what events point to (payloads of flows).
    """

    manifest: Manifest | None = None
    surfaces: tuple[Surface, ...] = ()
    complete: bool = True
    declared: tuple[ServerSurface, ...] = ()
    contents: Contents = field(default=NoContents(), compare=False)

    @property
    def served(self) -> bool:
        """True when the surfaces came from a live server."""
        return not self.declared


@dataclass(frozen=True)
class RecordingInput:
    """A run: its facts and its events in the order of their numbers; `events` is consumed once."""

    facts: AnalysisFacts
    events: Iterable[Event]
    material: ClassVar[Material] = Material.RECORDING


@dataclass(frozen=True)
class DeclarationInput:
    """Saved declarations (a tool list in a file) without any run."""

    servers: tuple[ServerSurface, ...]
    material: ClassVar[Material] = Material.DECLARATIONS

    @property
    def facts(self) -> AnalysisFacts:
        """The same as facts, so that one fold serves both."""
        return AnalysisFacts(declared=self.servers)

    @property
    def events(self) -> Iterable[Event]:
        """There are none."""
        return ()


#: What can be analyzed. Source trees and agent skills join as members of their own.
AnalysisInput: TypeAlias = RecordingInput | DeclarationInput


class Rule(Record):
    """A rule that findings can carry as `rule_id`: what it says when it is found."""

    id: str
    title: str


class Fold(Protocol):
    """One analysis under way."""

    def event(self, event: Event) -> None:
        """Take the next event."""
        ...

    def finish(self) -> AnalyzerResult:
        """Say what was found. Called once, after the last event."""
        ...


class Analyzer(Protocol):
    """One analyzer. Stateless: everything that changes lives in the fold."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def rules(self) -> tuple[Rule, ...]: ...

    @property
    def materials(self) -> frozenset[Material]: ...

    @property
    def facts_only(self) -> bool:
        """True when it looks at no event: it is shown none."""
        ...

    @property
    def light(self) -> bool:
        """True when an event costs it little: it may share one reading of them with others."""
        ...

    def availability(self) -> str | None:
        """None when it can run here, else the reason why not, in one line."""
        ...

    def prepare(self) -> None:
        """Compile what every analysis needs; called once in a process from which analyses are forked."""
        ...

    def passes(self, facts: AnalysisFacts) -> bool:
        """True when the facts alone say that there is nothing to analyze: no event would be looked at."""
        ...

    def start(self, facts: AnalysisFacts) -> Fold:
        """Begin an analysis."""
        ...


class AnalyzerBase:
    """The fields of an analyzer, with the usual answers."""

    name: str
    version: str = "1"
    description: str
    rules: tuple[Rule, ...] = ()
    materials: frozenset[Material] = frozenset({Material.RECORDING})
    facts_only: bool = False
    light: bool = False

    def availability(self) -> str | None:
        """It can run."""
        return None

    def prepare(self) -> None:
        """There is nothing to compile."""

    def passes(self, facts: AnalysisFacts) -> bool:
        """There is something to analyze."""
        return False


class UnavailableAnalyzer(AnalyzerBase):
    """A stub that makes a gap visible: an analyzer whose dependency is missing here."""

    materials = frozenset(Material)

    def __init__(self, name: str, description: str, reason: str) -> None:
        self.name = name
        self.description = description
        self._reason = reason

    def availability(self) -> str | None:
        """Say what is missing."""
        return self._reason

    def start(self, facts: AnalysisFacts) -> Fold:
        """Never called by the engine. Raises RuntimeError."""
        raise RuntimeError(self._reason)
