"""Properties of the decision over any mixture of results."""

from __future__ import annotations

import datetime

from assessment_sample import FULL, finding
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.assessment.aggregate import Decision, Scope, aggregate, is_required
from harness.assessment.policy import PRESETS, Policy, Suppression
from harness.model.coverage import Coverage, Failure, Floor, Skip, SkipReason, Tally
from harness.model.finding import EvidenceLevel, Finding, Severity
from harness.model.result import (
    AnalyzerResult,
    AnalyzerStatus,
    ExitCode,
    ScanStatus,
    Selection,
    Verdict,
    check_combination,
)

TODAY = datetime.date(2026, 6, 1)
BADNESS = {ExitCode.SAFE: 0, ExitCode.UNKNOWN: 1, ExitCode.UNSAFE: 2}

findings = st.builds(
    lambda severity, level, fact, rule, analyzer, confidence: finding(
        severity, level, fact=fact, rule=rule, analyzer=analyzer, confidence=confidence
    ),
    st.sampled_from(Severity),
    st.sampled_from(EvidenceLevel),
    st.sampled_from("abc"),
    st.sampled_from(["phrase.injection", "protocol.crash"]),
    st.sampled_from(["definitions", "protocol", "confirmation"]),
    st.sampled_from([0.1, 0.5, 1.0]),
)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    analyzed = draw(st.integers(0, 3))
    skips = draw(
        st.lists(
            st.builds(Skip, item=st.just("i"), reason=st.sampled_from(SkipReason), count=st.integers(1, 3)), max_size=2
        )
    )
    failed = draw(st.lists(st.just(Failure(item="f")), max_size=1))
    discovered = analyzed + sum(skip.count for skip in skips) + len(failed)
    return Tally(discovered=discovered, analyzed=analyzed, skipped=tuple(skips), failed=tuple(failed))


coverages = st.just(FULL) | st.builds(
    Coverage,
    subjects=st.dictionaries(st.sampled_from(["tools", "frames"]), tallies(), max_size=2),
    floors=st.sampled_from([(), (Floor(what="capabilities", subjects=("tools",)),)]),
)


@st.composite
def results_lists(draw: st.DrawFn) -> list[AnalyzerResult]:
    names = draw(st.lists(st.sampled_from(["protocol", "definitions", "yara", "source"]), unique=True, max_size=4))
    made = []
    for name in names:
        status = draw(st.just(AnalyzerStatus.COMPLETED) | st.sampled_from(AnalyzerStatus))
        made.append(
            AnalyzerResult(
                name=name,
                version="1",
                status=status,
                selection=draw(st.sampled_from(Selection)),
                reason="" if status is AnalyzerStatus.COMPLETED else "why",
                findings=tuple(draw(st.lists(findings, max_size=3))) if status.ran else (),
                coverage=draw(coverages),
            )
        )
    return made


policies = st.builds(
    lambda base, required, disabled, severities, suppressed: base.model_copy(
        update={
            "required": tuple(sorted(required)),
            "disabled": tuple(sorted(disabled)),
            "severities": severities,
            "suppressions": tuple(
                Suppression(
                    rule=f.rule_id,
                    fingerprint=f.fingerprint,
                    location=f.location,
                    reason="r",
                    expires=TODAY + datetime.timedelta(days=days),
                )
                for f, days in suppressed
            ),
        }
    ),
    st.sampled_from(list(PRESETS.values())),
    st.sets(st.sampled_from(["protocol", "yara"])),
    st.sets(st.just("protocol.crash")),
    st.dictionaries(st.just("phrase.injection"), st.sampled_from(Severity)),
    st.lists(st.tuples(findings, st.integers(-1, 1)), max_size=2),
)


def decide(results: list[AnalyzerResult], policy: Policy) -> Decision:
    return aggregate(results, policy, today=TODAY, scope=Scope())


def with_finding(result: AnalyzerResult, extra: Finding, at: int) -> AnalyzerResult:
    found = list(result.findings)
    found.insert(at, extra)
    return result.model_copy(update={"findings": tuple(found)})


@settings(deadline=None, max_examples=200)
@given(results_lists(), policies, st.randoms(use_true_random=False))
def test_the_order_of_results_and_findings_does_not_matter(
    results: list[AnalyzerResult], policy: Policy, random: object
) -> None:
    shuffled = [
        r.model_copy(update={"findings": tuple(random.sample(r.findings, len(r.findings)))})  # type: ignore[attr-defined]
        for r in random.sample(results, len(results))  # type: ignore[attr-defined]
    ]
    one, other = decide(results, policy), decide(shuffled, policy)
    assert (one.status, one.verdict, one.exit_code) == (other.status, other.verdict, other.exit_code)
    assert one.findings == other.findings
    assert one.coverage == other.coverage
    assert sorted(one.reasons) == sorted(other.reasons)
    assert sorted(one.warnings) == sorted(other.warnings)


@settings(deadline=None, max_examples=300)
@given(results_lists(), policies, findings, st.integers(0, 3), st.integers(0, 3))
def test_adding_a_finding_never_softens(
    results: list[AnalyzerResult], policy: Policy, extra: Finding, who: int, at: int
) -> None:
    ran = [n for n, result in enumerate(results) if result.status.ran]
    if not ran:
        return
    chosen = ran[who % len(ran)]
    worse = [with_finding(r, extra, at) if n == chosen else r for n, r in enumerate(results)]
    before, after = decide(results, policy), decide(worse, policy)
    assert BADNESS[after.exit_code] >= BADNESS[before.exit_code]
    if before.verdict is not Verdict.SAFE:
        assert (after.status, after.verdict) == (before.status, before.verdict)


@settings(deadline=None, max_examples=300)
@given(results_lists(), policies, st.integers(0, 3), st.sampled_from([SkipReason.TARGET, SkipReason.LIMIT]))
def test_losing_coverage_never_yields_safe(
    results: list[AnalyzerResult], policy: Policy, who: int, reason: SkipReason
) -> None:
    required = [n for n, r in enumerate(results) if r.status.ran and is_required(r, policy)]
    if not required:
        return
    chosen = required[who % len(required)]
    for lost in (
        Coverage(),
        Coverage(subjects={"tools": Tally(discovered=1, analyzed=0, skipped=(Skip(item="x", reason=reason),))}),
        Coverage(subjects={"tools": Tally(discovered=1, analyzed=0, failed=(Failure(item="x"),))}),
        Coverage(subjects={"tools": Tally(discovered=0, analyzed=0)}, floors=(Floor(what="any", subjects=("tools",)),)),
    ):
        less = [r.model_copy(update={"coverage": lost}) if n == chosen else r for n, r in enumerate(results)]
        assert decide(less, policy).verdict is not Verdict.SAFE


@settings(deadline=None, max_examples=300)
@given(results_lists(), policies)
def test_it_is_total_and_only_the_five_combinations_come_out(results: list[AnalyzerResult], policy: Policy) -> None:
    for today in (TODAY, None):
        decision = aggregate(results, policy, today=today)
        check_combination(decision.status, decision.verdict)
        assert decision.headline
        assert (decision.exit_code is ExitCode.SAFE) == (decision.verdict is Verdict.SAFE)
        assert Decision.model_validate_json(decision.model_dump_json()) == decision
        assert len(decision.analyzers) == len(results)


@settings(deadline=None, max_examples=300)
@given(results_lists(), policies)
def test_no_mixture_of_failures_is_safe(results: list[AnalyzerResult], policy: Policy) -> None:
    decision = decide(results, policy)
    complete = [
        r for r in results if r.status is AnalyzerStatus.COMPLETED and r.coverage.subjects and not r.coverage.gaps()
    ]
    must = [r for r in results if is_required(r, policy)]
    if not complete or any(r not in complete for r in must):
        assert decision.verdict is not Verdict.SAFE
        assert decision.status is not ScanStatus.COMPLETED
    if decision.verdict is Verdict.SAFE:
        assert not any(policy.blocks(f) for f in decision.findings)


@settings(deadline=None, max_examples=200)
@given(results_lists(), policies)
def test_no_finding_gets_lost_but_those_of_disabled_rules(results: list[AnalyzerResult], policy: Policy) -> None:
    ids = {f.id for r in results for f in r.findings if f.rule_id not in policy.disabled}
    assert [f.id for f in decide(results, policy).findings].__len__() == len(ids)
    assert {f.id for f in decide(results, policy).findings} == ids
