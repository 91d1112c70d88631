"""Comparing two results: a pure function from two `ScanResult`s to a `Comparison`, the same for the same two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from harness.model.base import JsonObject, JsonValue, canonical_json
from harness.model.comparison import Change, Comparison, Side
from harness.model.finding import Finding
from harness.model.result import BehaviorFacts, ScanResult, SurfaceFacts

#: Differences kept of one section, and of one item.
MOST_CHANGES = 500
MOST_FIELDS = 40
#: Stands for a member that is not there, which is not the same as one that is null.
_ABSENT = object()
_LISTS = (
    ("tools", "tool", "name"),
    ("prompts", "prompt", "name"),
    ("resources", "resource", "uri"),
    ("resource_templates", "resource template", "uriTemplate"),
)


def compare(before: ScanResult, after: ScanResult) -> Comparison:
    """What changed from `before` to `after`."""
    sections = {
        "surface": _surface(before.surface, after.surface),
        "behavior": _behavior(before.behavior, after.behavior),
        "findings": _findings(before.findings, after.findings),
        "profile": _profile(before.behavior.profile, after.behavior.profile),
    }
    found: dict[str, tuple[Change, ...]] = {}
    left_out: dict[str, int] = {}
    for name, changes in sections.items():
        every = list(changes)
        found[name] = tuple(every[:MOST_CHANGES])
        if len(every) > MOST_CHANGES:
            left_out[name] = len(every) - MOST_CHANGES
    return Comparison(
        before=_side(before),
        after=_side(after),
        surface=found["surface"],
        behavior=found["behavior"],
        findings=found["findings"],
        profile=found["profile"],
        caveats=tuple(_caveats(before, after)),
        left_out=left_out,
    )


def _side(result: ScanResult) -> Side:
    return Side(target=result.target, status=result.status, verdict=result.verdict)


def _caveats(before: ScanResult, after: ScanResult) -> Iterator[str]:
    """What was not the same about the two runs."""
    if before.target.name != after.target.name:
        yield f"they are of different targets: {before.target.name} and {after.target.name}"
    if before.active != after.active:
        yield "they were run at different levels, or with different tools allowed"
    if before.recording.grade != after.recording.grade:
        yield f"system calls were recorded with grade {before.recording.grade} and {after.recording.grade}"
    if before.policy.sha256 != after.policy.sha256:
        yield "they were judged by different policies"
    if before.harness_version != after.harness_version:
        yield f"they come from different versions: {before.harness_version} and {after.harness_version}"
    for word, result in (("first", before), ("second", after)):
        if result.status != "COMPLETED":
            yield f"the {word} is {result.status}: what is missing from it may be there all the same"


def _surface(before: SurfaceFacts, after: SurfaceFacts) -> Iterator[Change]:
    for field in ("protocol_version", "era", "instructions"):
        yield from _value("server", field, getattr(before, field), getattr(after, field))
    yield from _item("server", "serverInfo", before.server, after.server)
    for field, kind, key in _LISTS:
        one, two = _named(getattr(before, field), key), _named(getattr(after, field), key)
        for name in sorted(one.keys() | two.keys()):
            if name not in one:
                yield Change(change="added", kind=kind, name=name)
            elif name not in two:
                yield Change(change="removed", kind=kind, name=name)
            else:
                yield from _item(kind, name, one[name], two[name])


def _named(items: Iterable[JsonValue], key: str) -> dict[str, JsonValue]:
    """Items by name; a name that comes again is numbered."""
    found: dict[str, JsonValue] = {}
    seen: Counter[str] = Counter()
    for item in items:
        name = item.get(key) if isinstance(item, dict) else None
        text = name if isinstance(name, str) else "(no name)"
        seen[text] += 1
        found[text if seen[text] == 1 else f"{text} ({seen[text]})"] = item
    return found


def _item(kind: str, name: str, before: JsonValue, after: JsonValue) -> Iterator[Change]:
    for count, (field, one, two) in enumerate(_fields(before, after)):
        if count >= MOST_FIELDS:
            yield Change(change="changed", kind=kind, name=name, field="and more")
            return
        yield Change(change="changed", kind=kind, name=name, field=field, before=one, after=two)


def _fields(before: JsonValue, after: JsonValue) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Where two JSON values differ, by pointer; objects are looked into, everything else is compared whole."""
    stack: list[tuple[str, JsonValue, JsonValue]] = [("", before, after)]
    while stack:
        place, one, two = stack.pop()
        if isinstance(one, dict) and isinstance(two, dict):
            for key in sorted(one.keys() | two.keys(), reverse=True):
                word = str(key).replace("~", "~0").replace("/", "~1")
                stack.append((f"{place}/{word}", one.get(key, _ABSENT), two.get(key, _ABSENT)))
        elif one is _ABSENT or two is _ABSENT:
            yield place, None if one is _ABSENT else one, None if two is _ABSENT else two
        elif canonical_json(one) != canonical_json(two):
            yield place, one, two


def _behavior(before: BehaviorFacts, after: BehaviorFacts) -> Iterator[Change]:
    yield from _sets("program", _column(before.processes, "program"), _column(after.processes, "program"))
    yield from _sets("destination", _column(before.egress, "destination"), _column(after.egress, "destination"))
    for key, kind in (("read", "folder read"), ("written", "folder written"), ("deleted", "file deleted")):
        yield from _sets(kind, _texts(before.files, key), _texts(after.files, key))
    one, two = before.stock_client.works, after.stock_client.works
    yield from _value("stock client", "works", one, two)


def _profile(before: JsonObject, after: JsonObject) -> Iterator[Change]:
    yield from _sets("executable", _texts(before, "executables"), _texts(after, "executables"))
    yield from _sets("destination", _texts(before, "destinations"), _texts(after, "destinations"))
    for key in ("read", "written"):
        one, two = before.get("paths"), after.get("paths")
        yield from _sets(f"path {key}", _texts(one, key), _texts(two, key))
    yield from _sets("system call", _calls(before), _calls(after))


def _calls(profile: JsonObject) -> set[str]:
    seccomp = profile.get("seccomp")
    rules = seccomp.get("syscalls") if isinstance(seccomp, dict) else None
    return {
        name
        for rule in (rules if isinstance(rules, list) else [])
        if isinstance(rule, dict) and rule.get("action") == "SCMP_ACT_ALLOW"
        for name in _texts(rule, "names")
    }


def _findings(before: Iterable[Finding], after: Iterable[Finding]) -> Iterator[Change]:
    one = {finding.fingerprint: finding for finding in before}
    two = {finding.fingerprint: finding for finding in after}
    for print_ in sorted(one.keys() | two.keys(), key=lambda p: ((one.get(p) or two[p]).rule_id, p)):
        old, new = one.get(print_), two.get(print_)
        finding = new or old
        assert finding is not None
        name = f"{finding.rule_id} {finding.id}"
        if old is None or new is None:
            change = "added" if old is None else "removed"
            told: JsonValue = {"severity": finding.severity, "evidence": finding.evidence_level, "title": finding.title}
            yield Change.model_validate(
                {
                    "change": change,
                    "kind": "finding",
                    "name": name,
                    "before": told if new is None else None,
                    "after": told if old is None else None,
                }
            )
            continue
        for field in ("severity", "evidence_level", "suppressed_by"):
            yield from _value("finding", field, getattr(old, field), getattr(new, field), name=name)


def _value(kind: str, field: str, before: JsonValue, after: JsonValue, *, name: str = "") -> Iterator[Change]:
    if before != after:
        yield Change(change="changed", kind=kind, name=name or field, field=field, before=before, after=after)


def _sets(kind: str, before: set[str], after: set[str]) -> Iterator[Change]:
    for name in sorted(after - before):
        yield Change(change="added", kind=kind, name=name)
    for name in sorted(before - after):
        yield Change(change="removed", kind=kind, name=name)


def _column(rows: Iterable[JsonObject], key: str) -> set[str]:
    return {str(row[key]) for row in rows if key in row}


def _texts(value: JsonValue, key: str) -> set[str]:
    found = value.get(key) if isinstance(value, dict) else None
    return {str(entry) for entry in found} if isinstance(found, list | tuple) else set()
