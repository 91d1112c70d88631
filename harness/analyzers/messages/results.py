"""`messages.results`: instructions to the model in what tools, prompts and resources answer, error texts included.

The texts of each item's answers go through the checks of declarations, as served text. What was sent is taken out of
an answer before: an echo of ours says nothing about the server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.analyzers.base import AnalysisFacts, AnalyzerBase, Rule
from harness.analyzers.definitions.analyzer import CHECKS
from harness.analyzers.definitions.check import Hit
from harness.analyzers.definitions.view import ItemView, RegistryView, Text, build_view
from harness.analyzers.evidence import render_safe
from harness.analyzers.messages.echoes import without_echoes
from harness.model.base import canonical_json, sha256_hex
from harness.model.call import Call, CallEndEvent, CallEvent
from harness.model.coverage import Coverage, Failure, Skip, SkipReason, Tally
from harness.model.finding import Evidence, EvidenceLevel, Finding, Location, Severity, ThreatLevel, Tier
from harness.model.options import ActiveLevel
from harness.model.payload import PayloadClass
from harness.model.recording import Event
from harness.model.result import AnalyzerResult, AnalyzerStatus

#: Bounds: items, different texts of each, characters of one item that are matched for phrases, open calls.
MAX_ITEMS = 1_000
MAX_TEXTS = 2_000
ITEM_CHARS = 600_000
TOTAL_CHARS = 4_000_000
MAX_OPEN = 64
#: Lines kept before and after one that is new.
CONTEXT = 2
#: A text is looked at so far for whether it is one.
BINARY_CHARS = 20_000
#: Lines with their ends; text that an answer holds as JSON within JSON ends its lines with an escape.
_LINES = re.compile(r"(?:[^\n\\]|\\(?!n))*(?:\n|\\n)|(?:[^\n\\]|\\(?!n))+")
#: How JSON within the text of an answer holds a zero byte.
_ESCAPED_ZERO = "\\u0000"
_NO_TEXT = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")

_RULES = {
    "unicode.hidden": Rule(id="results.hidden-characters", title="Hidden characters in an answer"),
    "phrase.injection": Rule(id="results.injection", title="Instructions to the model in an answer"),
    "directive.imperative": Rule(id="results.directive", title="Pushy or secretive orders to the model in an answer"),
}
_FIELDS = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}


@dataclass(slots=True)
class _Item:
    """The answers of one item: different texts, with the call and the event of each.

    `lines`: all that stand in the texts, so that an answer that repeats an earlier one is searched where it differs.
    """

    kind: str
    name: str
    texts: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    lines: set[str] = field(default_factory=set)
    room: int = ITEM_CHARS
    cut: int = 0


class ResultsAnalyzer(AnalyzerBase):
    """Judges the texts of answers to calls."""

    name = "messages.results"
    description = "instructions to the model in what tools, prompts and resources answer"
    rules = tuple(_RULES.values())

    def passes(self, facts: AnalysisFacts) -> bool:
        """True where nothing is called."""
        return facts.manifest is not None and facts.manifest.options.active is not ActiveLevel.TOOL_CALLS

    def start(self, facts: AnalysisFacts) -> ResultsFold:
        """Begin."""
        return ResultsFold(self, facts, passed=self.passes(facts))


class ResultsFold:
    """Memory: the different texts of each item, bounded in number and size."""

    def __init__(self, analyzer: ResultsAnalyzer, facts: AnalysisFacts, *, passed: bool) -> None:
        self._analyzer = analyzer
        self._facts = facts
        self._passed = passed
        self._open: dict[str, Call] = {}
        self._items: dict[tuple[str, str], _Item] = {}
        self._room = TOTAL_CHARS
        self._seen = 0
        self._unread = 0

    def event(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, CallEvent):
            while len(self._open) >= MAX_OPEN:
                del self._open[next(iter(self._open))]
            self._open[event.call.id] = event.call
        elif isinstance(event, CallEndEvent):
            call = self._open.pop(event.call, None)
            if call is not None and event.text and call.method in _FIELDS:
                self._take(call, event)

    def _take(self, call: Call, event: CallEndEvent) -> None:
        if call.payload_class is PayloadClass.RETURNED_INSTRUCTIONS or event.state in ("closed", "unreadable"):
            return
        text = without_echoes(event.text, [call.given, dict(call.headers)])
        if not text.strip() or _binary(text):
            return
        self._seen += 1
        key = call.method, call.item
        item = self._items.get(key)
        if item is None:
            if len(self._items) >= MAX_ITEMS:
                self._unread += 1
                return
            item = self._items[key] = _Item(_FIELDS[call.method], call.item)
        digest = sha256_hex(text)
        if digest in item.texts:
            return
        lines = _LINES.findall(text)
        text = _unseen(lines, item.lines)
        if not text:
            return
        if len(item.texts) >= MAX_TEXTS or len(text) > min(item.room, self._room):
            item.cut += 1
            self._unread += 1
            return
        item.room -= len(text)
        self._room -= len(text)
        item.lines.update(lines)
        item.texts[digest] = text, call.id, event.seq

    def finish(self) -> AnalyzerResult:
        """Run the checks."""
        name, version = self._analyzer.name, self._analyzer.version
        if self._passed:
            reason = "not asked for: nothing is called at this level"
            return AnalyzerResult(name=name, version=version, status=AnalyzerStatus.SKIPPED, reason=reason)
        registry = build_view(self._facts)
        findings: list[Finding] = []
        failed: list[Failure] = []
        for item in self._items.values():
            found, failures = _judge(item, registry)
            findings += found
            failed += failures
        skips = tuple(
            Skip(
                item=render_safe(item.name, 80) or "(no name)",
                reason=SkipReason.LIMIT,
                detail="more or longer answers than are searched",
                count=item.cut,
            )
            for item in self._items.values()
            if item.cut
        )
        beyond = self._unread - sum(skip.count for skip in skips)
        if beyond:
            skips += (Skip(item="further items", reason=SkipReason.LIMIT, count=beyond),)
        tally = Tally(
            discovered=self._seen + len(failed), analyzed=self._seen - self._unread, skipped=skips, failed=tuple(failed)
        )
        reason = "" if self._facts.complete else "the recording is incomplete"
        return AnalyzerResult(
            name=name,
            version=version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=reason,
            findings=tuple(findings),
            coverage=Coverage(subjects={"answers": tally}),
        )


def _unseen(lines: list[str], seen: set[str]) -> str:
    """The lines that were not seen, each with its neighbours, so that what goes over a line's end is still whole."""
    near = {at + step for at, line in enumerate(lines) if line not in seen for step in range(-CONTEXT, CONTEXT + 1)}
    return "".join(line for at, line in enumerate(lines) if at in near)


def _judge(item: _Item, registry: RegistryView) -> tuple[list[Finding], list[Failure]]:
    """The findings of one item, one for each rule: what each check saw in all of its answers."""
    view = ItemView(
        kind="answer",
        name=item.name,
        location=_location(item),
        texts=tuple(Text(f"$[{number}]", text) for number, (text, _, _) in enumerate(item.texts.values())),
        budget=ITEM_CHARS,
    )
    findings: list[Finding] = []
    failures: list[Failure] = []
    for check in CHECKS:
        try:
            hits = check.inspect(view, registry)
        except Exception as error:
            detail = f"check {check.rule.id} raised {type(error).__name__}"
            failures.append(Failure(item=render_safe(item.name, 80) or "(no name)", detail=detail))
            continue
        if hits:
            findings.append(_finding(item, check.rule.id, hits))
    view.forget()
    return findings, failures


def _finding(item: _Item, check: str, hits: tuple[Hit, ...]) -> Finding:
    hard = any(hit.signal.tier is Tier.HARD for hit in hits)
    rule = _RULES[check]
    first = next(hit for hit in hits if hit.signal.tier is Tier.HARD) if hard else hits[0]
    _, call, seq = list(item.texts.values())[_number(first.path)]
    return Finding.make(
        rule_id=rule.id,
        title=rule.title,
        severity=Severity.HIGH if hard else Severity.LOW,
        evidence_level=EvidenceLevel.PROTOCOL if hard else EvidenceLevel.HEURISTIC,
        threat=first.threat,
        threat_level=ThreatLevel.DANGEROUS if hard else ThreatLevel.WARNING,
        location=_location(item),
        fact=sha256_hex(canonical_json(sorted({hit.signal.tier + hit.fact for hit in hits}))),
        analyzer=ResultsAnalyzer.name,
        confidence=min(1.0, round(sum(hit.signal.confidence for hit in hits), 4)),
        signals=tuple(hit.signal for hit in hits),
        description=f"In an answer of this {item.kind}, of which nothing was sent to it: {first.signal.evidence}",
        remediation="Do not let a model read this server's answers before its author has explained the text.",
        evidence=(Evidence(kind="answer", call=call, seq=seq, text=first.signal.evidence),),
    )


def _number(path: str) -> int:
    """The number of the answer that a path `$[3]` leads into."""
    digits = path.removeprefix("$[").partition("]")[0]
    return int(digits) if digits.isdigit() else 0


def _location(item: _Item) -> Location:
    return Location.model_validate({item.kind: item.name})


def _binary(text: str) -> bool:
    """Whether these are the bytes of a file that is no text: it hides nothing in what was never to be read."""
    head = text[:BINARY_CHARS]
    return "\0" in head or _ESCAPED_ZERO in head or len(_NO_TEXT.findall(head)) > len(head) // 50
