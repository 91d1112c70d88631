"""What was noticed: one entry a fact and setting, with a count and the first examples; bounded whatever comes.

The identity of a finding must not depend on races, so what nobody asked for (start, discovery, idle …) is one
setting; installation, and each tool's calls, are others. The phase of every example is told in the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from harness.analyzers.behavior.attribution import Where
from harness.analyzers.evidence import render_safe
from harness.model.finding import Evidence, EvidenceLevel, Finding, Location, Severity, Threat, ThreatLevel
from harness.model.recording import EventBase, Phase

EXAMPLES = 3
#: Facts can hold names that a target chose. More of them than this are counted and no longer told apart.
MAX_ENTRIES = 256


#: What tells entries apart: rule, fact, setting, place.
Key: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True)
class Kind:
    """One kind of behaviour: its rule, how bad it is, how it is known, and what to say."""

    rule: str
    title: str
    severity: Severity
    description: str
    threat: Threat = Threat.MALICIOUS_CODE
    level: EvidenceLevel = EvidenceLevel.DYNAMIC
    cwe: int | None = None
    remediation: str = "Ask the server's author why it does this; do not connect to it before that is known."


@dataclass
class Entry:
    """One fact. `extra` is what the first event said beyond the description."""

    kind: Kind
    location: Location
    extra: str
    count: int = 0
    examples: list[Evidence] = field(default_factory=list)


class Ledger:
    """Collects what one analyzer saw."""

    def __init__(self, analyzer: str) -> None:
        self._analyzer = analyzer
        self._entries: dict[Key, Entry] = {}
        self.overflow = 0

    def note(
        self,
        kind: Kind,
        fact: str,
        event: EventBase,
        where: Where,
        text: str,
        *,
        extra: str = "",
        location: Location | None = None,
    ) -> Key | None:
        """One more of its kind. `fact` is part of the identity; `text` and `extra` are shown, and may be hostile.

        `location`: instead of what `where` gives. Returns the entry's key, None when it is not kept.
        """
        fact = render_safe(fact)
        place = location if location is not None else location_of(where)
        key = (kind.rule, fact, setting(where), place.model_dump_json(exclude_none=True))
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= MAX_ENTRIES:
                self.overflow += 1
                return None
            entry = self._entries[key] = Entry(kind, place, render_safe(extra) if extra else "")
        elif kind.severity.rank > entry.kind.severity.rank:
            entry.kind = kind
        entry.count += 1
        if len(entry.examples) < EXAMPLES:
            entry.examples.append(evidence_of(event, where, text))
        return key

    def findings(self) -> tuple[Finding, ...]:
        """One finding for each entry, in a fixed order."""
        return tuple(finding for _, finding in self.by_key())

    def by_key(self) -> tuple[tuple[Key, Finding], ...]:
        """The same with the keys that `note` returned."""
        return tuple((key, self._finding(key[1], self._entries[key])) for key in sorted(self._entries))

    def _finding(self, fact: str, entry: Entry) -> Finding:
        kind = entry.kind
        extra = f" {entry.extra}" if entry.extra else ""
        times = f" Seen {entry.count} times." if entry.count > 1 else ""
        hard = kind.severity.rank >= Severity.HIGH.rank and kind.level is not EvidenceLevel.HEURISTIC
        level = ThreatLevel.DANGEROUS if hard else ThreatLevel.WARNING
        return Finding.make(
            rule_id=kind.rule,
            title=kind.title,
            severity=kind.severity,
            evidence_level=kind.level,
            threat=kind.threat,
            threat_level=ThreatLevel.INFO if kind.severity is Severity.INFO else level,
            cwe=kind.cwe,
            location=entry.location,
            fact=fact,
            analyzer=self._analyzer,
            description=f"{kind.description}{extra}{times}",
            remediation=kind.remediation,
            evidence=tuple(entry.examples),
        )


def setting(where: Where) -> str:
    """Who asked for it: `install`, `call:<tool>`, or `unprompted`."""
    if where.phase == Phase.INSTALL.value:
        return where.phase
    return f"call:{where.tool}" if where.tool is not None else "unprompted"


def location_of(where: Where) -> Location:
    """The part of `where` that is the same in every run."""
    if where.phase == Phase.INSTALL.value:
        return Location(phase=where.phase)
    if where.tool is not None:
        return Location(tool=where.tool, phase="call")
    return Location()


def evidence_of(event: EventBase, where: Where, text: str) -> Evidence:
    """A pointer to the event, with who did it."""
    after = f" (after call {where.after})" if where.after else ""
    program = where.process.name
    by = f"{program}: " if program else ""
    return Evidence(
        kind=str(getattr(event, "kind", "event")),
        phase=render_safe(where.phase),
        call=where.call,
        seq=event.seq,
        text=render_safe(f"{by}{text}{after}"),
    )
