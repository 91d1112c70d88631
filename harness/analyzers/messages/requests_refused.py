"""Servers that do not get over a refusal of what they ask their client for: whoever says no to one ends it."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analyzers.base import Rule
from harness.analyzers.evidence import render_safe
from harness.model.call import Call, CallEndEvent, Purpose
from harness.model.finding import Evidence, EvidenceLevel, Finding, Location, Severity, Threat, ThreatLevel

REFUSAL = Rule(id="requests.refusal", title="It does not get over a refusal of what it asks its client for")
MAX_REFUSED = 256
_ANALYZER = "messages.requests"
_ITEMS = {"prompts/get": "prompt", "resources/read": "resource"}


class Refusals:
    """The calls in which something was refused, and what came of each; bounded."""

    def __init__(self) -> None:
        self._open: dict[str, Call] = {}
        self._asked: set[str] = set()
        #: By method called, item, what was asked for, how it was refused: the ends that were none.
        self._ends: dict[tuple[str, str, str, str], list[CallEndEvent]] = {}

    def called(self, phase: str, call: Call) -> None:
        """A call is made."""
        if call.purpose is Purpose.REFUSAL and call.answers and len(self._open) < MAX_REFUSED:
            self._open[phase] = call

    def asked(self, phase: str, method: str) -> None:
        """The server asked for something."""
        call = self._open.get(phase)
        if call is not None and any(answer.method == method for answer in call.answers):
            self._asked.add(phase)

    def ended(self, event: CallEndEvent) -> None:
        """A call came to its end."""
        call = self._open.pop(event.phase, None)
        if call is None or event.phase not in self._asked:
            return
        self._asked.discard(event.phase)
        if event.state in ("closed", "timeout"):
            refused = call.answers[0]
            self._ends.setdefault((call.method, call.item, refused.method, refused.action), []).append(event)

    def findings(self) -> Iterator[Finding]:
        """What was seen twice is MEDIUM where the server ended, LOW where the call did not; an end seen once is LOW."""
        for (called, item, method, action), events in sorted(self._ends.items(), key=lambda entry: entry[0]):
            ends = [event for event in events if event.state == "closed"]
            if not ends and len(events) < 2:
                continue  # a call that is not answered once is told as such
            what = "the server ended" if ends else "the call was never answered"
            times = len(ends or events)
            kind = _ITEMS.get(called, "tool")
            severity = Severity.MEDIUM if len(ends) > 1 else Severity.LOW
            yield Finding.make(
                rule_id=REFUSAL.id,
                title=REFUSAL.title,
                severity=severity,
                evidence_level=EvidenceLevel.PROTOCOL,
                threat=Threat.DENIAL_OF_SERVICE,
                threat_level=ThreatLevel.WARNING,
                cwe=755,
                location=Location.model_validate({kind: item, "phase": "call"}),
                fact=f"{method}:{action}:{'ends' if ends else 'hangs'}",
                analyzer=_ANALYZER,
                description=f"In a call of {kind} {render_safe(item, 80)} it asked its client for something "
                f"({method}); when that was refused ({action}), {what}: seen {times} "
                f"{'time' if times == 1 else 'times'}. A client may refuse any such request.",
                remediation="Handle a refused request as an answer: say in the result that it can't go on.",
                evidence=tuple(
                    Evidence(
                        kind="refusal",
                        phase=render_safe(event.phase),
                        call=event.call,
                        seq=event.seq,
                        text=f"{action} of {method}: {what}",
                    )
                    for event in (ends or events)[:3]
                ),
            )
