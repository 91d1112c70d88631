"""Findings and results made short, for the tests of the decision."""

from __future__ import annotations

from typing import Any

from harness.model.coverage import Coverage, Floor, Skip, SkipReason, Tally
from harness.model.finding import Confirmation, EvidenceLevel, Finding, Location, Severity, Threat
from harness.model.result import AnalyzerResult, AnalyzerStatus, Selection

FULL = Coverage(
    subjects={"tools": Tally(discovered=2, analyzed=2)}, floors=(Floor(what="capabilities", subjects=("tools",)),)
)
GAP = Coverage(
    subjects={
        "tools": Tally(discovered=2, analyzed=1, skipped=(Skip(item="x", reason=SkipReason.TARGET, detail="crash"),))
    }
)
NOT_ASKED = Coverage(
    subjects={"tools": Tally(discovered=2, analyzed=1, skipped=(Skip(item="x", reason=SkipReason.OPERATOR),))}
)


def finding(
    severity: Severity = Severity.HIGH,
    level: EvidenceLevel = EvidenceLevel.PROTOCOL,
    *,
    fact: str = "a",
    rule: str = "phrase.injection",
    analyzer: str = "definitions",
    **more: Any,
) -> Finding:
    proof = Confirmation(payload="p", nonces=("n1", "n2"), control="c") if level is EvidenceLevel.CONFIRMED else None
    return Finding.make(
        rule_id=rule,
        title="A finding",
        severity=severity,
        evidence_level=level,
        threat=Threat.PROMPT_INJECTION,
        location=Location(tool="search"),
        fact=fact,
        analyzer=analyzer,
        description="d",
        confirmation=proof,
        **more,
    )


def result(
    *findings: Finding,
    name: str = "definitions",
    status: AnalyzerStatus = AnalyzerStatus.COMPLETED,
    selection: Selection = Selection.DEFAULT,
    coverage: Coverage = FULL,
    **more: Any,
) -> AnalyzerResult:
    reason = "" if status is AnalyzerStatus.COMPLETED else "because"
    return AnalyzerResult(
        name=name,
        version="1",
        status=status,
        selection=selection,
        reason=reason,
        findings=findings if status.ran else (),
        coverage=coverage,
        **more,
    )
