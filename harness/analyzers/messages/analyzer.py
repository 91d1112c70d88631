"""The `protocol` analyzer: how the server kept to the protocol, over what it sent. What we sent is trusted."""

from __future__ import annotations

from collections import Counter

from harness.analyzers.base import AnalysisFacts, AnalyzerBase
from harness.analyzers.evidence import render_safe
from harness.analyzers.messages import rules
from harness.analyzers.messages.life import Life
from harness.analyzers.messages.notebook import STOCK_CLIENT, Notebook
from harness.analyzers.messages.rules import RULES
from harness.analyzers.messages.sessions import SessionState, silence_of
from harness.analyzers.messages.tally import ProtocolTally
from harness.model.base import canonical_json, sha256_hex
from harness.model.canary import SECOND_LIFE
from harness.model.recording import AttemptEvent, Event, EventBase, ObstacleEvent, Phase
from harness.model.result import AnalyzerResult, AnalyzerStatus
from harness.model.surface import Item, ItemKind, ListEnd, Surface

#: Sessions are few; a recording with more is not one of ours.
MAX_SESSIONS = 64
#: The installation has none, and a second life is only there for what its canaries show.
_NO_CONVERSATIONS = frozenset({Phase.INSTALL.value, SECOND_LIFE})


class ProtocolAnalyzer(AnalyzerBase):
    """Judges received frames, ends of lists, deadlines, limits and exits."""

    name = "protocol"
    version = "1"
    description = "malformed messages, schema violations, noise on stdout, floods, hangs and crashes"
    rules = RULES
    light = True

    def start(self, facts: AnalysisFacts) -> ProtocolFold:
        """Begin; duplicate names are looked for in the surfaces."""
        return ProtocolFold(facts)


class ProtocolFold:
    """State bounded by the number of sessions and of kinds of deviation.

    Of the attempts to start a session one counts: the last that was answered, else the last that was no guess.
    """

    def __init__(self, facts: AnalysisFacts) -> None:
        self._facts = facts
        self._lives: dict[str, Life] = {}
        self._earlier: dict[str, Life] = {}
        self._obstacle: ObstacleEvent | None = None
        self._served: dict[int, list[Item]] = {}
        for surface in facts.surfaces:
            for item in surface.items:
                self._served.setdefault(item.frame, []).append(item)

    def event(self, event: Event) -> None:
        """Take the next event."""
        if event.session in _NO_CONVERSATIONS:
            return
        name = event.session if event.session in self._lives or len(self._lives) < MAX_SESSIONS else "others"
        if isinstance(event, AttemptEvent):
            self._settle(name)
            self._lives[name] = self._new(name, guess=event.guess)
        elif isinstance(event, ObstacleEvent):
            self._obstacle = event
        elif name in self._lives or Life.takes(event):
            self._lives.setdefault(name, self._new(name)).event(event)

    def finish(self) -> AnalyzerResult:
        """Judge how the sessions ended, and close the books."""
        book, tally = Notebook(ProtocolAnalyzer.name), ProtocolTally()
        for name in list(self._lives):
            self._settle(name)
        lives = [self._earlier[name] for name in self._lives]
        for life in lives:
            life.state.obstacle = self._obstacle  # the sandbox lacks it for every session
            life.judge_exit()
            book.add(life.book)
            tally.add(life.tally)
        self._duplicate_names(book)
        self._other_looks(book)
        book.drop_repeated(STOCK_CLIENT)
        sessions = [life.state for life in lives if life.state.name != STOCK_CLIENT and not life.state.felled]
        reason = self._reason(sessions)
        return AnalyzerResult(
            name=ProtocolAnalyzer.name,
            version=ProtocolAnalyzer.version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=reason,
            findings=book.findings(),
            coverage=tally.coverage(sessions),
        )

    def _new(self, name: str, *, guess: bool = False) -> Life:
        return Life(name, Notebook(ProtocolAnalyzer.name), self._served, guess=guess)

    def _settle(self, name: str) -> None:
        """Of the life at hand and the one that counted so far, keep the one that counts."""
        life, earlier = self._lives.get(name), self._earlier.get(name)
        if life is not None and (earlier is None or life.outweighs(earlier)):
            self._earlier[name] = life

    def _reason(self, sessions: list[SessionState]) -> str:
        manifest = self._facts.manifest
        if manifest is not None and manifest.problems:
            return render_safe(manifest.problems[0])
        if not self._facts.complete:
            return "the recording is incomplete"
        if not sessions:
            return "the target was never started"
        silent = next((state for state in sessions if not state.answered), None)
        return f"the server never answered the handshake: {silence_of(silent)}" if silent is not None else ""

    def _duplicate_names(self, book: Notebook) -> None:
        for surface in self._facts.surfaces:
            counts: Counter[tuple[str, str]] = Counter((item.kind.value, item.name) for item in surface.items)
            for item in surface.items:
                if item.name and counts[item.kind.value, item.name] > 1:
                    event = EventBase(phase=Phase.DISCOVER, seq=item.frame)
                    book.note(rules.DUPLICATE_NAME, f"duplicate:{item.kind.value}", event, item.name)

    def _other_looks(self, book: Notebook) -> None:
        """Tools that the stock client's look shows otherwise than the first; an analyzer of its own has other looks."""
        if not self._facts.surfaces:
            return
        first, *later = self._facts.surfaces
        before = Counter(_identity(item) for item in first.of(ItemKind.TOOL))
        for surface in (surface for surface in later if surface.look == STOCK_CLIENT):
            after = Counter(_identity(item) for item in surface.of(ItemKind.TOOL))
            for name, _ in sorted({*(after - before), *(before - after if _read_to_its_end(surface) else ())}):
                event = EventBase(phase=Phase.DISCOVER, session=STOCK_CLIENT)
                book.note(rules.UNSTABLE, "unstable:tools", event, name or "(no name)")


def _identity(item: Item) -> tuple[str, str]:
    return item.name, sha256_hex(canonical_json(item.value))


def _read_to_its_end(surface: Surface) -> bool:
    return all(outcome.end is ListEnd.COMPLETE for outcome in surface.lists if outcome.kind is ItemKind.TOOL)
