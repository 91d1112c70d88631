"""What was noticed, by kind: a count and the first few examples, so that noise becomes one finding and stays small."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.analyzers.evidence import render_safe
from harness.analyzers.messages.rules import TITLES, Kind
from harness.model.finding import Evidence, EvidenceLevel, Finding, Location, Severity, ThreatLevel
from harness.model.recording import EventBase

EXAMPLES = 3
STOCK_CLIENT = "stock-client"


@dataclass
class _Entry:
    kind: Kind
    count: int = 0
    examples: list[Evidence] = field(default_factory=list)


class Notebook:
    """Collects deviations. `fact` comes from a closed vocabulary, so the number of entries is bounded."""

    def __init__(self, analyzer: str) -> None:
        self._analyzer = analyzer
        self._entries: dict[tuple[str, str, str], _Entry] = {}

    def note(
        self, kind: Kind, fact: str, event: EventBase, text: str, *, place: str = "", more: Evidence | None = None
    ) -> None:
        """One more of its kind. `place`: a phase that is part of the fact; `text` is shown, and may be hostile.

        `more`: evidence that goes with this one.
        """
        session = STOCK_CLIENT if event.session == STOCK_CLIENT else ""
        entry = self._entries.setdefault((fact, session, place), _Entry(kind))
        entry.count += 1
        if len(entry.examples) < EXAMPLES:
            entry.examples.append(
                Evidence(
                    kind=str(getattr(event, "kind", "event")), phase=event.phase, seq=event.seq, text=render_safe(text)
                )
            )
            if more is not None:
                entry.examples.append(more)

    def add(self, other: Notebook) -> None:
        """Take over all that another book holds."""
        for key, theirs in other._entries.items():
            entry = self._entries.setdefault(key, _Entry(theirs.kind))
            entry.count += theirs.count
            entry.examples += theirs.examples[: max(0, EXAMPLES - len(entry.examples))]

    def drop_repeated(self, session: str) -> None:
        """Forget what one session shows of rules that another shows already."""
        elsewhere = {entry.kind.rule for (_, where, _), entry in self._entries.items() if where != session}
        for key in [key for key, entry in self._entries.items() if key[1] == session and entry.kind.rule in elsewhere]:
            del self._entries[key]

    def findings(self) -> tuple[Finding, ...]:
        """One finding for each fact, session and place, in a fixed order."""
        return tuple(self._finding(*item) for item in sorted(self._entries.items(), key=lambda item: item[0]))

    def _finding(self, key: tuple[str, str, str], entry: _Entry) -> Finding:
        fact, session, place = key
        kind = entry.kind
        where = " (in the session with a stock client)" if session else ""
        times = f" Seen {entry.count} times." if entry.count > 1 else ""
        return Finding.make(
            rule_id=kind.rule,
            title=TITLES[kind.rule] + where,
            severity=kind.severity,
            evidence_level=EvidenceLevel.PROTOCOL,
            threat=kind.threat,
            threat_level=ThreatLevel.INFO if kind.severity is Severity.INFO else ThreatLevel.WARNING,
            cwe=kind.cwe,
            location=Location(phase=session or place or None),
            fact=fact,
            analyzer=self._analyzer,
            description=kind.description + times,
            remediation=kind.remediation,
            evidence=tuple(entry.examples),
        )
