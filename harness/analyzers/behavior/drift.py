"""`behavior.drift`: does the server declare later, or to somebody else, what it did not declare at first?

What was vetted is what was shown first. A changed description or schema under the same name is the rug pull; items
that come and go are told by whether the server said so (`list_changed`), as servers with dynamic tools do.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from harness.analyzers.base import AnalysisFacts, AnalyzerBase, Rule
from harness.analyzers.behavior.apart import LIFE
from harness.analyzers.behavior.clocks import Clocks
from harness.analyzers.evidence import render_safe
from harness.analyzers.messages.sessions import read_messages
from harness.model.base import JsonValue, canonical_json, sha256_hex
from harness.model.coverage import Coverage, Skip, SkipReason, Tally
from harness.model.finding import Evidence, EvidenceLevel, Finding, Location, Severity, Threat, ThreatLevel
from harness.model.options import ActiveLevel
from harness.model.recording import Direction, Event, FrameEvent, LookEvent, ProcessEvent, SyscallEvent
from harness.model.result import AnalyzerResult, AnalyzerStatus
from harness.model.surface import Item, ItemKind, ListEnd, Surface

MAIN = "main"
#: The look of the stock client is judged by the `protocol` analyzer.
STOCK_CLIENT = "stock-client"
CHANGED = Rule(id="drift.changed", title="A declaration changed under its name")
VOLATILE = Rule(id="drift.volatile", title="A declaration holds what changes by itself")
OTHER = Rule(id="drift.other-items", title="Other items are declared than at first")
RULES = (CHANGED, VOLATILE, OTHER)

MAX_FINDINGS = 200
MAX_LOOKS = 256
#: Notifications that are looked for; their `method` stands near the head of a line.
_NOTICE = re.compile(r"notifications/(tools|prompts|resources)/list_changed")
_HEAD_BYTES = 4096
_LISTS = {
    "tools": frozenset({ItemKind.TOOL}),
    "prompts": frozenset({ItemKind.PROMPT}),
    "resources": frozenset({ItemKind.RESOURCE, ItemKind.RESOURCE_TEMPLATE}),
}
#: Dates, times, ages, counters, identifiers: what differs in them alone is no other declaration.
_VOLATILE = re.compile(r"[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,}){0,4}|\d+(?:st|nd|rd|th)\b"
                       r"|(?:\d+|\ban?)\s(?:second|minute|hour|day|week|month|year)s?\b|\d+"
                       r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:mon|tue|wed|thu|fri|sat|sun)\b"
                       r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
                       r"|\b(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b|\b(?:am|pm|c?est|c?et|utc|gmt)\b",
                       re.IGNORECASE)  # fmt: skip
#: Words and signs: a set that is printed has the same ones in another order at each start.
_TOKEN = re.compile(r"\w+|[^\w\s]")
_REMEDY = "Pin the server's version, and compare what it declares at each start with what was vetted."


@dataclass(frozen=True)
class _Look:
    """A later look, and how it came about."""

    surface: Surface
    words: str


class DriftAnalyzer(AnalyzerBase):
    """Compares later looks at the declarations with the first."""

    name = "behavior.drift"
    version = "1"
    description = "declarations that change: in a session, in a later one, with another client or a later clock"
    rules = RULES
    light = True

    def passes(self, facts: AnalysisFacts) -> bool:
        """True where the operator asked for no further looks."""
        return facts.manifest is not None and facts.manifest.options.active is ActiveLevel.NONE

    def start(self, facts: AnalysisFacts) -> DriftFold:
        """Begin."""
        return DriftFold(facts, asked=not self.passes(facts))


class DriftFold:
    """Keeps the looks that were taken, and when which list was said to have changed."""

    def __init__(self, facts: AnalysisFacts, *, asked: bool = True) -> None:
        self._facts = facts
        self._asked = asked
        self._looks: list[LookEvent] = []
        self._notices: dict[ItemKind, int] = {}
        self._clocks = Clocks()
        self._findings: dict[str, Finding] = {}

    def event(self, event: Event) -> None:
        """Take the next event."""
        if type(event) is SyscallEvent or type(event) is ProcessEvent:
            self._clocks.take(event)
        elif isinstance(event, LookEvent) and len(self._looks) < MAX_LOOKS:
            self._looks.append(event)
        elif isinstance(event, FrameEvent) and event.direction is Direction.RECEIVED and event.size < _HEAD_BYTES:
            if "list_changed" not in event.data:
                return
            for message in read_messages(event):
                found = _NOTICE.fullmatch(str(message.get("method")))
                for kind in _LISTS[found[1]] if found is not None else ():
                    self._notices.setdefault(kind, event.seq)

    def finish(self) -> AnalyzerResult:
        """Compare, and say what differs."""
        if not self._asked:
            return AnalyzerResult(
                name=DriftAnalyzer.name,
                version=DriftAnalyzer.version,
                status=AnalyzerStatus.SKIPPED,
                reason="not asked for: --active none looks once",
            )
        first, *later = self._facts.surfaces or (Surface(),)
        for surface in later:
            if surface.look != STOCK_CLIENT:
                self._compare(first, _Look(surface, self._words(surface)))
        reason = self._reason()
        return AnalyzerResult(
            name=DriftAnalyzer.name,
            version=DriftAnalyzer.version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=reason,
            findings=tuple(self._findings[key] for key in sorted(self._findings)),
            coverage=self._coverage(),
        )

    def _reason(self) -> str:
        manifest = self._facts.manifest
        if manifest is not None and manifest.problems:
            return render_safe(manifest.problems[0])
        if not self._facts.complete:
            return "the recording is incomplete"
        return "" if self._looks else "the declarations were looked at once: no later look came to its end"

    def _coverage(self) -> Coverage:
        unread = sorted({kind.value for look in self._looks for kind in look.unread})
        skips = tuple(
            Skip(item=f"later looks at {name}", reason=SkipReason.TARGET, detail="not read to the end again")
            for name in unread
        )
        if problem := self._unmoved():
            detail = f"{problem}: what it does only after a date is not known"
            skips += (Skip(item="a life with a later clock", reason=SkipReason.OPERATOR, detail=detail),)
        seen = len(self._looks)
        return Coverage(
            subjects={"looks": Tally(discovered=seen + len(skips), analyzed=seen, skipped=skips)} if self._asked else {}
        )

    def _unmoved(self) -> str:
        """Why no life is known to have had a later clock; empty where one had it."""
        later = [self._clocks.problem(look.session) for look in self._looks if look.days]
        if later:
            return "" if "" in later else later[0]
        if any(look.session != MAIN and look.look != LIFE for look in self._looks):
            return "the clock could not be set for it"
        return "no life with a later clock came to its end"

    def _words(self, surface: Surface) -> str:
        """How the look was taken, for people."""
        event = next((look for look in self._looks if look.look == surface.look and look.changed), None)
        words = surface.look.replace("-", " ")
        if event is not None and event.client:
            words += f", with the client name {event.client}"
        if event is not None and event.days:
            words += f", with the clock {event.days} days ahead"
        return words

    # Comparing

    def _compare(self, first: Surface, look: _Look) -> None:
        if (first.instructions or "") != (look.surface.instructions or ""):
            self._changed("instructions", None, first.instructions or "", look.surface.instructions or "", look, 0)
        whole = _whole(first) & _whole(look.surface)
        for kind in ItemKind:
            before, after = _by_name(first.of(kind)), _by_name(look.surface.of(kind))
            for name in before.keys() & after.keys():
                old, new = before[name], after[name]
                if Counter(map(_digest, old)) != Counter(map(_digest, new)):
                    self._item(old, new, look)
            if kind in whole:
                for name in before.keys() ^ after.keys():
                    self._other(kind, name, (before.get(name) or after[name])[0], look, new=name in after)

    def _item(self, old: list[Item], new: list[Item], look: _Look) -> None:
        """Find the member that differs, of the first pair of items that do."""
        one, other = next(
            ((a, b) for a, b in zip(old, new, strict=False) if _digest(a) != _digest(b)), (old[0], new[-1])
        )
        if not isinstance(one.value, dict) or not isinstance(other.value, dict):
            self._changed("whole item", one, one.value, other.value, look, other.frame)
            return
        members = sorted({*one.value, *other.value})
        for member in members:
            if one.value.get(member) != other.value.get(member):
                self._changed(member, one, one.value.get(member), other.value.get(member), look, other.frame)

    def _changed(
        self, member: str, item: Item | None, before: JsonValue, after: JsonValue, look: _Look, frame: int
    ) -> None:
        old_text, new_text = _plain(before), _plain(after)
        reordered = old_text != new_text and _reordered(before, after)
        volatile = reordered or old_text == new_text
        rule = VOLATILE if volatile else CHANGED
        changed = "reordered" if reordered else "volatile" if volatile else "changed"
        what = f"{member} of {item.name}" if item is not None else member
        old, new = _differing(before, after)
        self._find(
            rule,
            {"reordered": Severity.INFO, "volatile": Severity.LOW, "changed": Severity.HIGH}[changed],
            _location(item),
            f"{changed}:{member}",
            "Its words are the same in another order."
            if reordered
            else "It differs in numbers and dates only."
            if volatile
            else "What was vetted is not what is served: the text or schema under this name is another one later.",
            (
                Evidence(kind="look", phase="discover", text=render_safe(f"{what}, first: {old}")),
                Evidence(kind="look", phase="discover", seq=frame or None, text=render_safe(f"{look.words}: {new}")),
            ),
        )

    def _other(self, kind: ItemKind, name: str, item: Item, look: _Look, *, new: bool) -> None:
        told = kind in self._notices and (not new or not item.frame or self._notices[kind] <= item.frame)
        verb = "is new" if new else "is gone"
        text = f"{look.words}: {name or '(no name)'} {verb}"
        self._find(
            OTHER,
            Severity.LOW if told else Severity.MEDIUM,
            Location(),
            f"other:{kind.value}:{'told' if told else 'untold'}",
            "Items came or went, as the server said they had."
            if told
            else "Items came or went without a word: what was vetted is not all that is served.",
            (Evidence(kind="look", phase="discover", seq=item.frame or None, text=render_safe(text)),),
        )

    def _find(
        self,
        rule: Rule,
        severity: Severity,
        location: Location,
        fact: str,
        description: str,
        evidence: tuple[Evidence, ...],
    ) -> None:
        finding = Finding.make(
            rule_id=rule.id,
            title=rule.title,
            severity=severity,
            evidence_level=EvidenceLevel.PROTOCOL,
            threat=Threat.RUG_PULL if severity.rank > Severity.LOW.rank else Threat.UNCATEGORIZED,
            threat_level=ThreatLevel.DANGEROUS if severity is Severity.HIGH else ThreatLevel.WARNING,
            location=location,
            fact=render_safe(fact),
            analyzer=DriftAnalyzer.name,
            description=description,
            remediation=_REMEDY,
            evidence=evidence,
        )
        known = self._findings.get(finding.fingerprint)
        if known is None and len(self._findings) < MAX_FINDINGS:
            self._findings[finding.fingerprint] = finding
        elif known is not None and len(known.evidence) < 6:
            self._findings[finding.fingerprint] = known.model_copy(update={"evidence": (*known.evidence, *evidence)})


def _whole(surface: Surface) -> set[ItemKind]:
    return {outcome.kind for outcome in surface.lists if outcome.end in (ListEnd.COMPLETE, ListEnd.NOT_OFFERED)}


def _by_name(items: tuple[Item, ...]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.name, []).append(item)
    return found


def _digest(item: Item) -> str:
    return sha256_hex(canonical_json(item.value))


def _plain(value: JsonValue) -> str:
    """The value as text without what changes by itself."""
    return _VOLATILE.sub("0", value if isinstance(value, str) else canonical_json(value))


def _reordered(before: JsonValue, after: JsonValue) -> bool:
    """Whether two values differ at most in the order of the words of texts, and of texts in lists.

    Values swapped between members are another declaration.
    """
    pairs = [(before, after)]
    while pairs:
        old, new = pairs.pop()
        if isinstance(old, str) and isinstance(new, str):
            if Counter(_TOKEN.findall(old)) != Counter(_TOKEN.findall(new)):
                return False
        elif isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
            pairs += [(old[name], new[name]) for name in old]
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            if Counter(map(canonical_json, old)) != Counter(map(canonical_json, new)):
                pairs += zip(old, new, strict=True)
        elif old != new or type(old) is not type(new):
            return False
    return True


def _differing(before: JsonValue, after: JsonValue) -> tuple[str, str]:
    """Both as text, from shortly before the first difference on."""
    old, new = (value if isinstance(value, str) else canonical_json(value) for value in (before, after))
    start = next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    begin = max(0, start - 40)
    cut = "…" if begin else ""
    return cut + old[begin : begin + 160], cut + new[begin : begin + 160]


def _location(item: Item | None) -> Location:
    if item is None:
        return Location(field="instructions")
    name = render_safe(item.name, 200)
    match item.kind:
        case ItemKind.TOOL:
            return Location(tool=name)
        case ItemKind.PROMPT:
            return Location(prompt=name)
        case ItemKind.RESOURCE:
            return Location(resource=name)
        case ItemKind.RESOURCE_TEMPLATE:
            return Location(resource_template=name)
