"""The words that summary and table share: places, findings in order, coverage, tools as declared.

Everything returned is safe to print: target-made text in it went through `harness.report.escape`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.model.base import JsonValue
from harness.model.coverage import Coverage, Skip, SkipReason, Tally
from harness.model.finding import Finding, Location, Severity
from harness.model.result import PolicyFacts, ScanResult, ScanStatus, Verdict
from harness.report.escape import EXCERPT, one_line, visible

_NAME = 80
_TOOL_DESCRIPTION = 160
_ARGUMENTS = 12

_PLACES = (
    ("server", "server"),
    ("tool", "tool"),
    ("resource", "resource"),
    ("resource_template", "resource template"),
    ("prompt", "prompt"),
)
_HINTS = (
    ("readOnlyHint", "read-only", "writes"),
    ("destructiveHint", "destructive", "not destructive"),
    ("idempotentHint", "idempotent", "not idempotent"),
    ("openWorldHint", "open world", "closed world"),
)


def where(location: Location) -> str:
    """The place of a finding in words, e.g. `tool get_time, inputSchema.properties.zone`."""
    parts = [f"{word} {name(getattr(location, key))}" for key, word in _PLACES if getattr(location, key) is not None]
    if location.file is not None:
        line = f":{location.line}" if location.line is not None else ""
        parts.append(f"{name(location.file)}{line}")
    if location.field is not None:
        parts.append(name(location.field))
    if location.call is not None:
        parts.append(f"call {name(location.call)}")
    elif location.phase is not None:
        parts.append(f"phase {name(location.phase)}")
    return ", ".join(parts) or "the server as a whole"


def name(text: str) -> str:
    """A name as served, on one line; `(blank)` for one of spaces or nothing."""
    shown = visible(text, _NAME)
    return shown if shown.strip() else "(blank)"


def blocks(finding: Finding, policy: PolicyFacts) -> bool:
    """Whether the finding is marked as blocking. A mark for the reader: the verdict was made elsewhere."""
    return (
        finding.suppressed_by is None
        and finding.severity.rank >= policy.blocking_severity.rank
        and finding.evidence_level.rank >= policy.blocking_evidence.rank
    )


def in_order(result: ScanResult) -> list[Finding]:
    """The findings, worst first: blocking, then open, then suppressed; by severity, evidence, rule and place."""
    return sorted(
        result.findings,
        key=lambda f: (
            f.suppressed_by is not None,
            not blocks(f, result.policy),
            -f.severity.rank,
            -f.evidence_level.rank,
            f.rule_id,
            where(f.location),
            f.id,
        ),
    )


def counts(result: ScanResult) -> str:
    """How many findings of each severity, e.g. `1 CRITICAL, 2 LOW, 1 suppressed`; `none` without any."""
    faults = [f for f in result.findings if not f.by_design]
    open_ones = Counter(f.severity for f in faults if f.suppressed_by is None)
    parts = [f"{open_ones[severity]} {severity}" for severity in reversed(Severity) if open_ones[severity]]
    suppressed = len(faults) - open_ones.total()
    if suppressed:
        parts.append(f"{suppressed} suppressed")
    return ", ".join(parts) or "none"


def capability(finding: Finding) -> str:
    """What a server can do by design, in one safe sentence."""
    return f"{one_line(finding.title)} ({visible(finding.rule_id)})"


def target_line(result: ScanResult) -> str:
    """What was vetted: the reference as asked for, the name and version it came to, and how it speaks."""
    target = result.target
    exact = f"{target.name} {target.version}".strip()
    protocol = target.protocol_version or result.surface.protocol_version
    parts = [target.ref]
    if exact and exact != target.ref:
        parts.append(exact)
    parts += [target.transport.value, f"protocol {protocol}" if protocol else "no protocol version agreed"]
    return " · ".join(visible(part, 120) for part in parts)


def policy_line(result: ScanResult) -> str:
    """Which policy was in force and from where on a finding blocks."""
    policy = result.policy
    return (
        f"{visible(policy.name, _NAME)}: blocks from severity {policy.blocking_severity} "
        f"and evidence {policy.blocking_evidence} up"
    )


def quoted(text: str, limit: int = EXCERPT) -> str:
    """Words of the target, on one line and in quotes, so that they do not pass for ours."""
    return f'"{one_line(text, limit)}"'


def number(count: int, noun: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def skip_words(skip: Skip) -> str:
    """One skipped item with its own reason."""
    count = f" ({skip.count})" if skip.count > 1 else ""
    why = f": {one_line(skip.detail)}" if skip.detail else ""
    return f"{one_line(skip.item, _NAME)}{count}{why}"


def not_asked(result: ScanResult) -> list[str]:
    """What the operator chose to leave out, by subject: no gap, but said."""
    return [
        f"{name(subject)}: {skip_words(skip)}"
        for subject, tally in sorted(result.coverage.items())
        for skip in tally.skipped
        if skip.reason is SkipReason.OPERATOR
    ]


def gaps(result: ScanResult) -> list[str]:
    """What should have been looked at and was not: of the whole and of each analyzer, each sentence once."""
    sentences = list(Coverage(subjects=result.coverage).gaps())
    for analyzer in result.analyzers:
        sentences += analyzer.coverage.gaps()
    return list(dict.fromkeys(one_line(sentence) for sentence in sentences))


def looked_at(result: ScanResult) -> list[str]:
    """The coverage in numbers, one phrase a subject, e.g. `tools 14 of 14`."""
    return [
        f"{name(subject)} {tally.analyzed} of {tally.discovered}" for subject, tally in sorted(result.coverage.items())
    ]


def skipped_number(tally: Tally, reason: SkipReason) -> int:
    """How many items were skipped for this reason."""
    return sum(skip.count for skip in tally.skipped if skip.reason is reason)


@dataclass(frozen=True)
class ToolWords:
    """One declared tool in safe words; `arguments` has a star where the schema requires the argument."""

    name: str
    arguments: str
    claims: str
    description: str


def item_name(item: JsonValue, *keys: str) -> str:
    """The name of a declared item under the first of `keys` that holds text; the item can be any JSON."""
    for key in keys:
        if isinstance(item, dict) and isinstance(item.get(key), str):
            return name(item[key])
    return "(no name)"


def tool_words(tool: JsonValue) -> ToolWords:
    """Describe a tool as served. Total on any JSON: what is not of the expected type is left out."""
    fields = tool if isinstance(tool, dict) else {}
    annotations = fields.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    claims = [yes if hints[key] else no for key, yes, no in _HINTS if key in hints and isinstance(hints[key], bool)]
    description = fields.get("description")
    return ToolWords(
        name=item_name(tool, "name"),
        arguments=_arguments(fields.get("inputSchema")),
        claims=", ".join(claims),
        description=one_line(description, _TOOL_DESCRIPTION) if isinstance(description, str) else "",
    )


def _arguments(schema: JsonValue) -> str:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required")
    needed = [key for key in required if isinstance(key, str)] if isinstance(required, list) else []
    words = [f"{name(key)}{'*' if key in needed else ''}" for key in list(properties)[:_ARGUMENTS]]
    rest = len(properties) - len(words)
    return ", ".join([*words, f"{rest} more"] if rest else words)


def next_step(result: ScanResult) -> str:
    """What the reader can do now."""
    if result.verdict is Verdict.SAFE:
        digest = f" (closure {visible(result.target.digest[:16])})" if result.target.digest else ""
        return (
            f"connect to exactly this version{digest}; another version is another target. "
            "SAFE holds for what was looked at, at this level, and for nothing else."
        )
    if result.verdict is Verdict.UNSAFE:
        return "do not connect to it. Read the findings marked BLOCKS; `--format json` has all of the evidence."
    if any(blocks(finding, result.policy) for finding in result.findings):
        return "do not connect to it: the scan is incomplete, and what it found blocks already."
    if result.status is ScanStatus.PARTIAL:
        return (
            "treat it as not vetted. Close the gaps: see Why; a target that needs configuration takes "
            "`--entry`, `--arg` and `--env`, a slow one `--timeout`."
        )
    if result.status is ScanStatus.ERROR:
        return (
            "treat it as not vetted. An analyzer failed, which says nothing about the target: "
            "run it again, and report the failure if it stays."
        )
    return "treat it as not vetted: nothing was analyzed. See Why, and `harness analyzers` for what is available."
