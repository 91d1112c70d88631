"""The summary for people: the verdict first, then why, the findings, what was looked at, and the next step."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.model.finding import Finding
from harness.model.recording import Grade
from harness.model.result import AnalyzerStatus, ScanResult
from harness.report import behavior, phrasing
from harness.report.canvas import SEVERITY_STYLE, VERDICT_STYLE, draw
from harness.report.escape import one_line, visible
from harness.report.proof import chain

#: Findings shown in full; the counts always say all, and what is left out is said.
MOST_FINDINGS = 25
MOST_LINES = 12
_TOOL_NAMES = 30
_OTHER_NAMES = 8
_EVIDENCE = 3


def render(result: ScanResult, *, color: bool = False, width: int = 80) -> str:
    """Render the summary, `width` cells wide, ending in one line end."""
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(no_wrap=True, width=11, style="bold")
    grid.add_column(ratio=1, overflow="fold")
    for label, shape in _rows(result):
        grid.add_row(label, shape)
    return draw([_headline(result), phrasing.target_line(result), "", grid], color=color, width=width)


def _headline(result: ScanResult) -> Text:
    style = VERDICT_STYLE[result.verdict]
    text = Text(overflow="fold")
    headline = one_line(result.headline, 300)
    verdict = result.verdict.value
    if headline.startswith(verdict):
        return text.append(verdict, f"{style} reverse").append(headline.removeprefix(verdict), style)
    return text.append(headline, style)


def _rows(result: ScanResult) -> Iterable[tuple[str, RenderableType]]:
    yield (
        "Verdict",
        f"{result.verdict} (status {result.status}, exit code {result.exit_code.value}), at level {_level(result)}",
    )
    yield "Policy", phrasing.policy_line(result)
    if result.reasons:
        yield "Why", _lines(result.reasons)
    yield "", ""
    yield "Findings", _findings(result)
    by_design = [finding for finding in phrasing.in_order(result) if finding.by_design]
    if by_design:
        yield "By design", _lines(["what this server can do by design:", *(phrasing.capability(f) for f in by_design)])
    yield "", ""
    yield "Looked at", ", ".join(phrasing.looked_at(result)) or "nothing"
    left_out = phrasing.not_asked(result)
    if left_out:
        yield "Not asked", _lines(left_out)
    yield "Gaps", _gaps(result)
    yield "Analyzers", _analyzers(result)
    yield "", ""
    yield "Surface", _surface(result)
    yield "Client", _client(result)
    done = list(behavior.lines(result.behavior))
    if done:
        yield "Behaviour", _lines(done)
    yield "Recording", _recording(result)
    if result.notes:
        yield "Notes", _lines(result.notes)
    if result.warnings:
        yield "Warnings", _lines(result.warnings)
    if result.timing:
        yield "Took", _timing(result)
    yield "", ""
    yield "Next", phrasing.next_step(result)


def _level(result: ScanResult) -> str:
    allowed = ", ".join(phrasing.name(tool) for tool in result.active.allowed[:_TOOL_NAMES])
    return f"{result.active.level}, allowed: {allowed}" if allowed else result.active.level.value


def _lines(sentences: Iterable[str]) -> RenderableType:
    """The sentences as a list; those past the bound are counted."""
    every = [one_line(sentence, 400) for sentence in sentences]
    lines = [_hanging("-", line) for line in every[:MOST_LINES]]
    if len(every) > MOST_LINES:
        lines.append(_hanging("-", f"and {len(every) - MOST_LINES} more, see `--format json`"))
    return every[0] if len(every) == 1 else Group(*lines)


def _hanging(mark: str, text: str | Text) -> Table:
    row = Table.grid(padding=(0, 1, 0, 0), expand=True)
    row.add_column(no_wrap=True, width=len(mark))
    row.add_column(ratio=1, overflow="fold")
    row.add_row(mark, text)
    return row


def _findings(result: ScanResult) -> RenderableType:
    findings = [finding for finding in phrasing.in_order(result) if not finding.by_design]
    shapes: list[RenderableType] = [phrasing.counts(result)]
    for finding in findings[:MOST_FINDINGS]:
        shapes += ["", *_finding(finding, phrasing.blocks(finding, result.policy))]
    if len(findings) > MOST_FINDINGS:
        shapes += ["", f"and {len(findings) - MOST_FINDINGS} more, see `--format table` or `--format json`"]
    return Group(*shapes)


def _finding(finding: Finding, blocking: bool) -> Iterable[RenderableType]:
    title = Text(overflow="fold")
    title.append(finding.severity.value, SEVERITY_STYLE[finding.severity])
    title.append(f"  {one_line(finding.title)}", "bold")
    if blocking:
        title.append("  BLOCKS", "bold red")
    if finding.suppressed_by is not None:
        title.append(f"  SUPPRESSED by {one_line(finding.suppressed_by)}", "bold magenta")
    yield title
    yield _hanging(" ", f"{visible(finding.rule_id)} · evidence {finding.evidence_level} · {visible(finding.id)}")
    yield _hanging(" ", f"at {phrasing.where(finding.location)}")
    yield _hanging(" ", one_line(finding.description, 400))
    if finding.confirmation is not None:
        yield from (_hanging(" ", line) for line in chain(finding))
    else:
        yield from _seen(finding)
    if finding.remediation:
        yield _hanging(" ", f"fix: {one_line(finding.remediation)}")


def _seen(finding: Finding) -> Iterable[RenderableType]:
    shown = [evidence for evidence in finding.evidence if evidence.text][:_EVIDENCE]
    for evidence in shown:
        event = f" (event {evidence.seq})" if evidence.seq is not None else ""
        yield _hanging(" ", f"seen in {visible(evidence.kind)}{event}: {phrasing.quoted(evidence.text)}")
    if len(finding.evidence) > len(shown):
        yield _hanging(" ", f"and {phrasing.number(len(finding.evidence) - len(shown), 'more piece')} of evidence")


def _gaps(result: ScanResult) -> RenderableType:
    every = phrasing.gaps(result)
    reasons = [one_line(reason, 400) for reason in result.reasons]
    new = [gap for gap in every if not any(gap in reason for reason in reasons)]
    if new:
        return _lines(new)
    return f"{len(every)}, named under Why" if every else "none"


def _analyzers(result: ScanResult) -> RenderableType:
    done = [visible(a.name) for a in result.analyzers if a.status is AnalyzerStatus.COMPLETED]
    lines = [f"{', '.join(done)} completed"] if done else []
    others: dict[tuple[str, str], list[str]] = {}
    for analyzer in result.analyzers:
        if analyzer.status is not AnalyzerStatus.COMPLETED:
            need = "required" if analyzer.required else "not required"
            key = (f"{analyzer.status} ({need})", one_line(analyzer.reason))
            others.setdefault(key, []).append(visible(analyzer.name))
    lines += [f"{', '.join(names)} {how}: {reason}" for (how, reason), names in others.items()]
    return _lines(lines) if lines else "none ran"


def _surface(result: ScanResult) -> RenderableType:
    surface = result.surface
    server = phrasing.item_name(surface.server, "name")
    version = f" {phrasing.item_name(surface.server, 'version')}" if "version" in surface.server else ""
    lines = [f"the server calls itself {server}{version}"] if surface.server else ["the server did not say who it is"]
    for kind, items, keys, most in (
        ("tool", surface.tools, ("name",), _TOOL_NAMES),
        ("prompt", surface.prompts, ("name",), _OTHER_NAMES),
        ("resource", surface.resources, ("uri", "name"), _OTHER_NAMES),
        ("resource template", surface.resource_templates, ("uriTemplate", "name"), _OTHER_NAMES),
    ):
        if items:
            names = [phrasing.item_name(item, *keys) for item in items[:most]]
            rest = [f"{len(items) - most} more"] if len(items) > most else []
            lines.append(f"{phrasing.number(len(items), kind)}: {', '.join(names + rest)}")
    if not any((surface.tools, surface.prompts, surface.resources, surface.resource_templates)):
        lines.append("it declares no tools, prompts, resources or resource templates")
    if surface.instructions is not None:
        lines.append(f"instructions for the model: {phrasing.quoted(surface.instructions)}")
    return _lines(lines)


def _client(result: ScanResult) -> str:
    stock = result.behavior.stock_client
    detail = f": {one_line(stock.detail)}" if stock.detail else ""
    client = f"a stock client ({visible(stock.client)})" if stock.client else "a stock client"
    if stock.works is None:
        return f"not tried with a stock client{detail}"
    return f"works with {client}{detail}" if stock.works else f"does not work with {client}{detail}"


def _recording(result: ScanResult) -> RenderableType:
    facts = result.recording
    bundle = f"bundle {visible(facts.bundle)}, " if facts.bundle else "no bundle, "
    lines = [f"{bundle}{phrasing.number(facts.events, 'event')}, {facts.lost} lost"]
    if facts.grade is Grade.NONE:
        what = "system calls or egress" if facts.network == "none" else "system calls"
        lines.append(f"no {what} were recorded: what the process did unseen is not part of this verdict")
    else:
        lines.append(f"system calls recorded by {visible(facts.recorder)}, grade {facts.grade}")
    if facts.network != "none":
        lines.append(f"egress recorded behind a fake internet (network {visible(facts.network)})")
    return _lines(lines)


def _timing(result: ScanResult) -> str:
    phases = [f"{phrasing.name(phase)} {ms / 1000:.1f} s" for phase, ms in sorted(result.timing.items())]
    return ", ".join(phases)
