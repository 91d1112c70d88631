"""The one maker of a verdict and of the exit code that goes with it (verdict.md)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Self

from pydantic import model_validator

from harness.assessment.policy_model import Policy
from harness.assessment.rewriting import merge, rewrite
from harness.model.base import Record
from harness.model.coverage import Tally
from harness.model.finding import EvidenceLevel, Finding
from harness.model.options import ActiveLevel
from harness.model.result import (
    AnalyzerFacts,
    AnalyzerResult,
    AnalyzerStatus,
    ExitCode,
    ScanStatus,
    Selection,
    Verdict,
    check_combination,
)

#: More reasons than these are counted, not listed.
MAX_REASONS = 50


class Scope(Record):
    """What the headline of a SAFE must say: the level it was reached at, tools declared, tools called.

    `others`: prompts, resources and templates that were called. `target`: as the operator named it.
    """

    level: ActiveLevel = ActiveLevel.NONE
    declared: int = 0
    called: int = 0
    others: int = 0
    target: str = ""


class Decision(Record):
    """The outcome. `findings` are merged, rewritten and sorted; `reasons`: why it is not COMPLETED, or what blocks."""

    status: ScanStatus
    verdict: Verdict
    exit_code: ExitCode
    headline: str
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    analyzers: tuple[AnalyzerFacts, ...] = ()
    warnings: tuple[str, ...] = ()
    coverage: dict[str, Tally] = {}

    @model_validator(mode="after")
    def _possible(self) -> Self:
        check_combination(self.status, self.verdict)
        allowed = {
            Verdict.SAFE: {ExitCode.SAFE},
            Verdict.UNSAFE: {ExitCode.UNSAFE},
            Verdict.UNKNOWN: {ExitCode.UNKNOWN, ExitCode.UNSAFE},
        }[self.verdict]
        if self.exit_code not in allowed:
            raise ValueError(f"exit code {self.exit_code} does not go with {self.verdict}")
        return self


def aggregate(
    results: Sequence[AnalyzerResult],
    policy: Policy,
    *,
    today: datetime.date | None = None,
    scope: Scope | None = None,
) -> Decision:
    """Decide. Never raises for what the results hold.

    `results` in the operator's order; `today` (UTC) is what suppressions expire by, None when it is not known.
    """
    required = [result for result in results if is_required(result, policy)]
    scope = scope or Scope()
    findings, warnings = rewrite(merge(f for r in results for f in r.findings), policy, today, scope.target)
    blocking = [finding for finding in findings if policy.blocks(finding)]
    status, reasons = _incomplete(results, required, policy)
    if status is not None:
        proven = [finding for finding in blocking if finding.evidence_level is EvidenceLevel.CONFIRMED]
        unsafe = bool(proven) and status is not ScanStatus.SKIPPED
        verdict, code = Verdict.UNKNOWN, ExitCode.UNSAFE if unsafe else ExitCode.UNKNOWN
        headline = _unknown_headline(status, reasons, proven if unsafe else [])
    elif blocking:
        status, verdict, code = ScanStatus.COMPLETED, Verdict.UNSAFE, ExitCode.UNSAFE
        headline = f"UNSAFE: {_count(blocking)}"
        reasons = [f"{f.severity} {f.evidence_level} {f.rule_id} ({f.id})" for f in blocking]
    else:
        status, verdict, code = ScanStatus.COMPLETED, Verdict.SAFE, ExitCode.SAFE
        headline = _safe_headline(scope)
    return Decision(
        status=status,
        verdict=verdict,
        exit_code=code,
        headline=headline,
        reasons=_bounded(reasons),
        findings=findings,
        analyzers=tuple(_facts(result, result in required) for result in results),
        warnings=(*warnings, *_excused(results, policy), *sorted({w for r in results for w in r.warnings})),
        coverage=_coverage(results),
    )


def is_required(result: AnalyzerResult, policy: Policy) -> bool:
    """True when this analyzer must complete.

    Named ones and the policy's are; best-effort ones are not; default ones are, unless they did not begin at all.
    """
    if result.name in policy.required or result.selection is Selection.NAMED:
        return True
    return result.selection is Selection.DEFAULT and result.status.ran


def _incomplete(
    results: Sequence[AnalyzerResult], required: Sequence[AnalyzerResult], policy: Policy
) -> tuple[ScanStatus | None, list[str]]:
    """Rules 1 to 5 in order: the status they end in with the reasons, or None when the analysis is complete."""
    ran = [result for result in results if result.status.ran]
    if not ran:
        return ScanStatus.SKIPPED, ["no analyzer ran", *(f"{r.name}: {r.reason}" for r in results)]
    failed = [f"{r.name} failed: {r.reason}" for r in required if r.status.failed]
    if failed:
        return ScanStatus.ERROR, failed
    present = {result.name for result in results}
    unfinished = [
        f"{r.name} did not complete: {r.reason}" for r in required if r.status is not AnalyzerStatus.COMPLETED
    ]
    unfinished += [
        f"{name} is required by the policy and was not selected" for name in policy.required if name not in present
    ]
    gaps = [f"{r.name}: {gap}" for r in required for gap in _gaps(r)]
    if unfinished:
        return ScanStatus.PARTIAL, unfinished + gaps
    if gaps:
        return ScanStatus.PARTIAL, gaps
    # Rule 5, and a little more: with nothing required, one complete analysis at least has to stand.
    if not required and not any(r.status is AnalyzerStatus.COMPLETED and not _gaps(r) for r in ran):
        return ScanStatus.SKIPPED, ["no analyzer produced usable analysis", *(_unusable(r) for r in ran)]
    return None, []


def _gaps(result: AnalyzerResult) -> tuple[str, ...]:
    if not result.status.ran:
        return ()
    if not result.coverage.subjects:
        return ("it did not say what it looked at",)
    return result.coverage.gaps()


def _unusable(result: AnalyzerResult) -> str:
    return f"{result.name}: {result.reason or '; '.join(_gaps(result))}"


def _excused(results: Iterable[AnalyzerResult], policy: Policy) -> list[str]:
    """What did not go well and does not downgrade: said all the same."""
    warnings = []
    for result in results:
        if is_required(result, policy) or result.selection is not Selection.BEST_EFFORT:
            continue
        if result.status is not AnalyzerStatus.COMPLETED:
            warnings.append(f"best-effort analyzer {result.name}: {result.reason}")
        else:
            warnings.extend(f"best-effort analyzer {result.name}: {gap}" for gap in _gaps(result)[:MAX_REASONS])
    return warnings


def _facts(result: AnalyzerResult, required: bool) -> AnalyzerFacts:
    return AnalyzerFacts(
        name=result.name,
        version=result.version,
        status=result.status,
        required=required,
        reason=result.reason,
        duration_ms=result.duration_ms,
        coverage=result.coverage,
    )


def _coverage(results: Iterable[AnalyzerResult]) -> dict[str, Tally]:
    """One tally a subject. Where several analyzers report one, the one that left most of it unanalyzed is shown."""
    merged: dict[str, Tally] = {}
    for result in sorted(results, key=lambda r: r.name):
        for subject, tally in result.coverage.subjects.items():
            known = merged.get(subject)
            if known is None or _unread(tally) > _unread(known):
                merged[subject] = tally
    return dict(sorted(merged.items()))


def _unread(tally: Tally) -> tuple[int, int]:
    return tally.discovered - tally.analyzed, tally.discovered


def _bounded(reasons: Sequence[str]) -> tuple[str, ...]:
    if len(reasons) <= MAX_REASONS:
        return tuple(reasons)
    return (*reasons[:MAX_REASONS], f"and {len(reasons) - MAX_REASONS} more")


def _count(blocking: Sequence[Finding]) -> str:
    noun = "finding" if len(blocking) == 1 else "findings"
    return f"{len(blocking)} blocking {noun}, the worst {blocking[0].severity} {blocking[0].rule_id}"


def _unknown_headline(status: ScanStatus, reasons: Sequence[str], proven: Sequence[Finding]) -> str:
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    why = f"{reasons[0]}{more}"
    if proven:
        return f"incomplete, and already confirmed unsafe: {_count(proven)}; {why}"
    what = {ScanStatus.ERROR: "an analysis failed", ScanStatus.PARTIAL: "incomplete"}.get(
        status, "nothing was analyzed"
    )
    return f"UNKNOWN, {what}: {why}"


def _safe_headline(scope: Scope) -> str:
    tools = "1 tool" if scope.declared == 1 else f"{scope.declared} tools"
    called = f"{scope.called} called" if scope.called else "none called"
    noun = "prompt or resource" if scope.others == 1 else "prompts or resources"
    others = f", and {scope.others} {noun}" if scope.others else ""
    return f"SAFE at level {scope.level}: {tools} declared, {called}{others}"
