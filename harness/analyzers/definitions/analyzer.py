"""The `definitions` analyzer: the checks over every declared item, one finding an item, and what was not looked at.

A check that raises is isolated: the item counts as failed with the check's id, the other checks still speak.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.analyzers.base import AnalysisFacts, AnalyzerBase, Material, ServerSurface
from harness.analyzers.definitions.check import Check, Hit
from harness.analyzers.definitions.directive_imperative import DirectiveImperative
from harness.analyzers.definitions.frame_rules import lexicon, rules_and_frames
from harness.analyzers.definitions.phrase_injection import PhraseInjection, catalog
from harness.analyzers.definitions.unicode_hidden import UnicodeHidden
from harness.analyzers.definitions.view import SERVER, ItemView, RegistryView, build_view
from harness.analyzers.evidence import render_safe
from harness.analyzers.lists import unread_rest
from harness.model.base import canonical_json, sha256_hex
from harness.model.coverage import Coverage, Failure, Floor, Skip, SkipReason, Tally
from harness.model.finding import Evidence, EvidenceLevel, Finding, Severity, ThreatLevel, Tier
from harness.model.recording import Event
from harness.model.result import AnalyzerResult, AnalyzerStatus
from harness.model.surface import ItemKind, ListOutcome

#: The checks in the order that decides which one names a finding.
CHECKS: tuple[Check, ...] = (UnicodeHidden(), PhraseInjection(), DirectiveImperative())

#: Above this a hard signal is CRITICAL (tool-definitions.md).
CRITICAL_CONFIDENCE = 0.9
_SUBJECTS = tuple(kind.value for kind in ItemKind)


class DefinitionsAnalyzer(AnalyzerBase):
    """Static checks of what a server declares. Input: the surfaces; the events are not looked at."""

    name = "definitions"
    version = "2"
    description = "hidden characters, injected instructions and pushy directives in what the server declares"
    materials = frozenset({Material.RECORDING, Material.DECLARATIONS})
    facts_only = True

    def __init__(self, checks: tuple[Check, ...] = CHECKS) -> None:
        self.checks = checks
        self.rules = tuple(check.rule for check in checks)

    def prepare(self) -> None:
        """Compile concepts, rules and phrases."""
        lexicon()
        rules_and_frames()
        catalog()

    def start(self, facts: AnalysisFacts) -> DefinitionsFold:
        """Begin; all the work is done at the end."""
        return DefinitionsFold(self, facts)


class DefinitionsFold:
    """Waits for the end, then inspects the items one by one."""

    def __init__(self, analyzer: DefinitionsAnalyzer, facts: AnalysisFacts) -> None:
        self._analyzer = analyzer
        self._facts = facts

    def event(self, event: Event) -> None:
        """Nothing of interest: surfaces are facts."""

    def finish(self) -> AnalyzerResult:
        """Run the checks and keep the books."""
        view = build_view(self._facts)
        books = Books()
        findings: list[Finding] = []
        for item in view.items:
            hits, failures = self._inspect(item, view)
            if hits:
                findings.append(make_finding(item, hits, served=self._facts.served))
            books.item(item, failures)
            item.forget()
        looks = self._facts.declared or tuple(ServerSurface(surface) for surface in self._facts.surfaces)
        for look in looks:
            for outcome in look.surface.lists:
                books.list_end(outcome)
        coverage = books.coverage()
        reason = self._reason(coverage)
        return AnalyzerResult(
            name=self._analyzer.name,
            version=self._analyzer.version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=reason,
            findings=tuple(findings),
            coverage=coverage,
        )

    def _inspect(self, item: ItemView, view: RegistryView) -> tuple[list[Hit], list[str]]:
        hits: list[Hit] = []
        failures: list[str] = []
        for check in self._analyzer.checks:
            try:
                hits.extend(check.inspect(item, view))
            except Exception as error:
                failures.append(f"check {check.rule.id} raised {type(error).__name__}")
        return hits, failures

    def _reason(self, coverage: Coverage) -> str:
        if not self._facts.complete:
            return "the recording is incomplete"
        if not self._facts.surfaces and not self._facts.declared:
            return "the server declared nothing that could be read"
        if sum(coverage.subjects[subject].analyzed for subject in _SUBJECTS) == 0:
            return "the server declares no tool, prompt, resource or resource template"
        return ""


class Books:
    """Counts items by subject until they are a `Coverage`."""

    def __init__(self) -> None:
        self._analyzed = dict.fromkeys(_SUBJECTS, 0)
        self._skips: dict[str, list[Skip]] = {subject: [] for subject in _SUBJECTS}
        self._failed: dict[str, list[Failure]] = {subject: [] for subject in _SUBJECTS}

    def item(self, item: ItemView, failures: list[str]) -> None:
        """Book one item: analyzed, failed, or not wholly looked at."""
        subject = item.kind
        for book in (self._skips, self._failed):
            book.setdefault(subject, [])
        self._analyzed.setdefault(subject, 0)
        name = render_safe(item.name, 80) or "(no name)"
        if failures:
            self._failed[subject].append(Failure(item=name, detail="; ".join(failures)))
        elif item.cut:
            detail = f"more text than the {item.budget} characters matched for phrases"
            self._skips[subject].append(Skip(item=name, reason=SkipReason.LIMIT, detail=detail))
        else:
            self._analyzed[subject] += 1

    def list_end(self, outcome: ListOutcome) -> None:
        """Book the unread rest of a list that did not end well."""
        skip = unread_rest(outcome, "the rest of the list")
        if skip is not None:
            self._skips[outcome.kind.value].append(skip)

    def coverage(self) -> Coverage:
        """The books, closed. The server's own words are not a capability."""
        subjects = {
            subject: Tally(
                discovered=analyzed + sum(skip.count for skip in self._skips[subject]) + len(self._failed[subject]),
                analyzed=analyzed,
                skipped=tuple(self._skips[subject]),
                failed=tuple(self._failed[subject]),
            )
            for subject, analyzed in self._analyzed.items()
        }
        return Coverage(subjects=subjects, floors=(Floor(what="capabilities", subjects=_SUBJECTS),))


def make_finding(item: ItemView, hits: Iterable[Hit], *, served: bool) -> Finding:
    """One finding for all signals of an item. `served`: by a live server, else read from a file."""
    found = tuple(hits)
    hard = [hit for hit in found if hit.signal.tier is Tier.HARD]
    primary = hard[0] if hard else found[0]
    if hard:
        strongest = max(hit.signal.confidence for hit in hard)
        severity = Severity.CRITICAL if strongest >= CRITICAL_CONFIDENCE else Severity.HIGH
        level = EvidenceLevel.PROTOCOL if served else EvidenceLevel.STATIC
    else:
        distinct = len({hit.signal.check for hit in found})
        severity = {1: Severity.LOW, 2: Severity.MEDIUM}.get(distinct, Severity.HIGH)
        level = EvidenceLevel.HEURISTIC
    # A rewritten text gives another fact, so that a suppression does not outlive what it was written for.
    fact = sha256_hex(canonical_json(sorted([hit.signal.tier, hit.fact] for hit in found)))
    what = "the server's own description" if item.kind == SERVER else item.kind.removesuffix("s").replace("_", " ")
    return Finding.make(
        rule_id=primary.signal.check,
        title=_TITLES.get(primary.signal.check, primary.signal.check),
        severity=severity,
        evidence_level=level,
        threat=primary.threat,
        threat_level=ThreatLevel.DANGEROUS if hard else ThreatLevel.WARNING,
        location=item.location,
        fact=fact,
        analyzer=DefinitionsAnalyzer.name,
        confidence=min(1.0, round(sum(hit.signal.confidence for hit in found), 4)),
        signals=tuple(hit.signal for hit in found),
        description=f"In {what} at {render_safe(primary.path, 160)}: {primary.signal.evidence}",
        remediation="Read the declaration in full; do not connect before its author has explained or removed the text.",
        evidence=(Evidence(kind="declaration", seq=item.frame, text=primary.signal.evidence),),
    )


_TITLES = {check.rule.id: check.rule.title for check in CHECKS}
