"""Findings on their way to the verdict: merged by identity, rewritten by the policy, sorted. Order-independent."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import TypeVar

from harness.assessment.policy_model import Policy
from harness.model.base import Record, canonical_json
from harness.model.finding import EvidenceLevel, Finding, Severity, ThreatLevel

_THREAT_RANK = {ThreatLevel.INFO: 0, ThreatLevel.WARNING: 1, ThreatLevel.DANGEROUS: 2}
#: What a destination that is allowed does not explain.
_BEYOND = frozenset({"behavior.egress.dns-tunnel", "behavior.egress.scan", "behavior.egress.install"})
_Part = TypeVar("_Part", bound=Record)


def merge(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for each id: the worst of each judgement, all of the evidence, every analyzer that saw it."""
    by_id: dict[str, list[Finding]] = {}
    for finding in findings:
        by_id.setdefault(finding.id, []).append(finding)
    return tuple(_merged(same) if len(same) > 1 else same[0] for same in by_id.values())


def _merged(same: list[Finding]) -> Finding:
    ordered = sorted(same, key=lambda f: (-f.evidence_level.rank, -f.severity.rank, _bytes(f)))
    lead = ordered[0]
    # What proves it is the record that leads, so level and confirmation come from the same one.
    return lead.model_copy(
        update={
            "severity": max((f.severity for f in same), key=lambda s: s.rank),
            "confidence": max(f.confidence for f in same),
            "threat_level": max((f.threat_level for f in same), key=_THREAT_RANK.__getitem__),
            "analyzers": tuple(sorted({name for f in same for name in f.analyzers})),
            "signals": _union(f.signals for f in ordered),
            "evidence": _union(f.evidence for f in ordered),
            "suppressed_by": None,
        }
    )


def _union(groups: Iterable[tuple[_Part, ...]]) -> tuple[_Part, ...]:
    seen: dict[str, _Part] = {}
    for group in groups:
        for part in group:
            seen.setdefault(_bytes(part), part)
    return tuple(seen.values())


def _bytes(record: Record) -> str:
    return canonical_json(record.model_dump(mode="json"))


def rewrite(
    findings: Iterable[Finding], policy: Policy, today: datetime.date | None, target: str = ""
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings as the policy wants them, sorted, and warnings about the policy itself.

    `target`: as the operator named it, for what a policy allows to some targets only.
    `today`: the date (UTC) by which suppressions expire; None when it is not known, and then none holds.
    """
    kept: list[Finding] = []
    left_out: dict[str, int] = {}
    used: set[int] = set()
    warnings: list[str] = []
    for finding in findings:
        if finding.rule_id in policy.disabled:
            left_out[finding.rule_id] = left_out.get(finding.rule_id, 0) + 1
            continue
        changes: dict[str, object] = {"suppressed_by": None}
        if _allowed(finding, policy, target):
            changes |= {"severity": Severity.INFO, "threat_level": ThreatLevel.INFO}
        if finding.rule_id in policy.severities:
            changes["severity"] = policy.severities[finding.rule_id]
        for number, suppression in enumerate(policy.suppressions):
            if not suppression.covers(finding):
                continue
            used.add(number)
            if finding.evidence_level is EvidenceLevel.CONFIRMED and not suppression.confirmed:
                warnings.append(f"suppression not applied, the finding is confirmed now: {suppression.label}")
            elif today is not None and today <= suppression.expires:
                changes["suppressed_by"] = suppression.reason
        kept.append(finding.model_copy(update=changes))
    for number, suppression in enumerate(policy.suppressions):
        if today is None or today > suppression.expires:
            warnings.append(f"suppression expired on {suppression.expires.isoformat()}: {suppression.label}")
        elif number not in used:
            warnings.append(f"suppression matches nothing: {suppression.label}")
    warnings.extend(f"rule {rule} is disabled by the policy: {n} left out" for rule, n in left_out.items())
    return tuple(sorted(kept, key=sort_key)), tuple(sorted(warnings))


def _allowed(finding: Finding, policy: Policy, target: str) -> bool:
    """True for a finding about a destination that the policy allows, and about nothing more than that."""
    to = finding.location.destination
    if to is None or not finding.rule_id.startswith("behavior.egress.") or finding.rule_id in _BEYOND:
        return False
    return any(entry.covers(to, target) for entry in policy.egress)


def sort_key(finding: Finding) -> tuple[object, ...]:
    """Suppressed ones last; then the worst and best known first; then by rule, place and id."""
    return (
        finding.suppressed_by is not None,
        -finding.severity.rank,
        -finding.evidence_level.rank,
        finding.rule_id,
        _bytes(finding.location),
        finding.id,
    )
