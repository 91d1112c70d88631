"""What was noticed about malformed messages: one entry a fact, with the messages that showed it; bounded."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.analyzers.evidence import render_safe
from harness.analyzers.messages.probes_rules import TITLES, Fault
from harness.model.finding import Evidence, Finding, Location, Severity, ThreatLevel
from harness.model.probe import Probe
from harness.model.recording import EventBase

EXAMPLES = 5
#: Messages that a finding names.
NAMED = 12
#: Facts can hold names that a target chose: paths, addresses.
MAX_ENTRIES = 256


@dataclass
class _Entry:
    fault: Fault
    probes: dict[str, None] = field(default_factory=dict)
    examples: list[Evidence] = field(default_factory=list)


class ProbeLedger:
    """Collects faults. `fact` is part of a finding's identity: no id, number or time may be in it."""

    def __init__(self, analyzer: str) -> None:
        self._analyzer = analyzer
        self._entries: dict[tuple[str, str], _Entry] = {}

    def note(self, fault: Fault, fact: str, probe: Probe, event: EventBase, text: str) -> None:
        """One more of its kind, shown by `probe`; `text` may be hostile."""
        if (fault.rule, fact) not in self._entries and len(self._entries) >= MAX_ENTRIES:
            return
        entry = self._entries.setdefault((fault.rule, fact), _Entry(fault))
        if fault.severity.rank > entry.fault.severity.rank:
            entry.fault = fault
        new = probe.id not in entry.probes
        entry.probes[probe.id] = None
        if new and len(entry.examples) < EXAMPLES:
            entry.examples.append(
                Evidence(
                    kind=str(getattr(event, "kind", "probe")),
                    phase=render_safe(event.phase),
                    seq=event.seq or None,
                    text=render_safe(text),
                )
            )

    def findings(self) -> tuple[Finding, ...]:
        """One finding for each entry, in a fixed order."""
        return tuple(self._finding(fact, self._entries[rule, fact]) for rule, fact in sorted(self._entries))

    def _finding(self, fact: str, entry: _Entry) -> Finding:
        fault = entry.fault
        names = list(entry.probes)
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        hard = fault.severity.rank >= Severity.HIGH.rank
        level = ThreatLevel.DANGEROUS if hard else ThreatLevel.WARNING
        return Finding.make(
            rule_id=fault.rule,
            title=TITLES[fault.rule],
            severity=fault.severity,
            evidence_level=fault.level,
            threat=fault.threat,
            threat_level=ThreatLevel.INFO if fault.severity is Severity.INFO else level,
            cwe=fault.cwe,
            location=Location(phase="probe"),
            fact=render_safe(fact),
            analyzer=self._analyzer,
            description=f"{fault.description} Messages: {render_safe(', '.join(names[:NAMED]), 300)}{more}.",
            remediation=fault.remediation,
            evidence=tuple(entry.examples),
        )
