"""Does it do more at a later date? What is done, unasked, in lives with a later clock and in no other.

The life in which other things are looked for too (another client's name, what comes before the handshake) shows it
first; then the target lives once more (`LIFE`) as usual but for its clock. What both show is told. What it is (a
secret that leaves, a program of its own) the other analyzers tell, whatever the date.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from harness.analyzers.behavior.apart import doings
from harness.analyzers.behavior.attribution import Where
from harness.analyzers.behavior.effects import OPENS
from harness.analyzers.behavior.ledger import Kind, Ledger
from harness.model.finding import Severity, Threat
from harness.model.recording import AttemptEvent, Event, FlowEvent, Origin, ProcessEvent, SyscallEvent

#: The session, and the look, with a later clock and nothing else that is unusual.
LIFE = "later-clock"
#: Hosts, programs and paths are chosen by the target: so many are remembered.
MAX_KNOWN = 4096
MAX_SESSIONS = 64

LATER = Kind(
    "behavior.evasion.waits-for-date",
    "Does more at a later date",
    Severity.MEDIUM,
    "Started with a clock that is far ahead the server did, unasked, what it did in no life with the right time.",
    threat=Threat.SANDBOX_EVASION,
    remediation="See what it does then. Something that expired (a token, a cache) can be the reason too.",
)

#: Kind and name of what was done.
Doing: TypeAlias = tuple[str, str]


class Dates:
    """What was done, by the lives in which it was; bounded."""

    def __init__(self) -> None:
        self._later: set[str] = set()
        self._lives: dict[Doing, set[str]] = {}

    def take(self, event: Event) -> list[tuple[Doing, str]]:
        """Take the next event; what is new of it in a life with a later clock, and words for it."""
        new: list[tuple[Doing, str]] = []
        if type(event) is SyscallEvent and not event.decoy:
            return new  # nearly all events are such
        if isinstance(event, AttemptEvent):
            if event.days and len(self._later) < MAX_SESSIONS:
                self._later.add(event.session)
            return new
        for key, text in _doings(event):
            later = event.session in self._later
            if later and event.phase.startswith("call:"):
                continue  # that was asked for
            if key not in self._lives and len(self._lives) >= MAX_KNOWN:
                break
            lives = self._lives.setdefault(key, set())
            if event.session not in lives and len(lives) < MAX_SESSIONS:
                lives.add(event.session)
                if later:
                    new.append((key, text))
        return new

    def later(self, session: str) -> bool:
        """Whether the clock of that life was set ahead."""
        return session in self._later

    def alone(self) -> dict[Doing, frozenset[str]]:
        """What was done in lives with a later clock only, and in which. Nothing where more was done than is kept."""
        if len(self._lives) >= MAX_KNOWN:
            return {}
        return {key: frozenset(lives) for key, lives in self._lives.items() if lives and lives <= self._later}


def _doings(event: Event) -> Iterator[tuple[Doing, str]]:
    if isinstance(event, SyscallEvent):
        # What the gate opens, it plants: some of it under names of one life.
        if event.decoy and event.path is not None and event.call in OPENS and event.by is Origin.TARGET:
            yield ("secret", event.path), f"{event.call}: {event.path}"
    elif isinstance(event, FlowEvent) or (isinstance(event, ProcessEvent) and event.what == "exec"):
        yield from doings(event)


class Later:
    """The same, told as findings. Memory: the first events of what was done in lives with a later clock."""

    def __init__(self) -> None:
        self._dates = Dates()
        self._first: dict[Doing, tuple[Event, Where, str]] = {}

    def take(self, event: Event, where: Where) -> None:
        """Take the next event, and what it belongs to."""
        for key, text in self._dates.take(event):
            if event.session == LIFE:
                self._first.setdefault(key, (event, where, text))

    def close(self, ledger: Ledger) -> None:
        """Tell what was seen in that life and in another with a later clock, and in none with the right time."""
        for key, lives in sorted(self._dates.alone().items()):
            if key in self._first and len(lives) > 1:
                event, where, text = self._first[key]
                ledger.note(LATER, key[0], event, where, text)
