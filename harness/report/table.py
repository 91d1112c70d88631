"""The tables for people: findings, analyzers, coverage and tools, one row an entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.model.coverage import SkipReason
from harness.model.finding import Finding
from harness.model.result import AnalyzerStatus, ScanResult
from harness.report import behavior, phrasing
from harness.report.canvas import SEVERITY_STYLE, VERDICT_STYLE, draw
from harness.report.escape import one_line, visible
from harness.report.proof import links

#: Rows drawn of one table; what is left out is said, and is in the JSON report.
MOST_ROWS = 500


def render(result: ScanResult, *, color: bool = False, width: int = 80) -> str:
    """Render the tables, `width` cells wide, ending in one line end."""
    return draw(_shapes(result), color=color, width=width)


def _shapes(result: ScanResult) -> Iterable[RenderableType]:
    yield Text(one_line(result.headline, 300), VERDICT_STYLE[result.verdict])
    yield phrasing.target_line(result)
    yield f"verdict {result.verdict}, status {result.status}, exit code {result.exit_code.value}"
    yield f"level {result.active.level}, policy {phrasing.policy_line(result)}"
    faults = [finding for finding in phrasing.in_order(result) if not finding.by_design]
    by_design = [finding for finding in phrasing.in_order(result) if finding.by_design]
    yield from _section(f"Findings: {phrasing.counts(result)}", faults, _findings(result, faults))
    if by_design:
        yield from _section("What this server can do by design", by_design, _findings(result, by_design))
    yield from _section(f"Analyzers: {len(result.analyzers)}", result.analyzers, _analyzers(result))
    yield from _section(
        "Coverage (Operator, Target, Limit: skipped, and why)", tuple(result.coverage), _coverage(result)
    )
    yield from _section(
        f"Tools: {len(result.surface.tools)} (* required argument)", result.surface.tools, _tools(result)
    )
    seen = result.behavior
    for title, rows in (
        ("Programs started", list(behavior.processes(seen))),
        ("Destinations tried", list(behavior.destinations(seen))),
        ("Files", list(behavior.files(seen))),
    ):
        if rows:
            yield from _section(f"{title}: {len(rows)}", rows, _behavior(rows))
    for label, sentences in (
        ("Why", result.reasons),
        ("Gaps", phrasing.gaps(result)),
        ("Not asked for", phrasing.not_asked(result)),
        ("Notes", result.notes),
        ("Warnings", result.warnings),
    ):
        if sentences:
            yield from ("", Text(label, "bold"))
            yield from (Text(f"- {one_line(sentence, 400)}", overflow="fold") for sentence in sentences[:MOST_ROWS])
            yield from _rest(len(sentences))


def _section(title: str, rows: Sequence[object], table: Table) -> Iterable[RenderableType]:
    yield from ("", Text(title, "bold"))
    if rows:
        yield table
        yield from _rest(len(rows))
    else:
        yield "none"


def _rest(count: int) -> Iterable[str]:
    if count > MOST_ROWS:
        yield f"and {count - MOST_ROWS} more, see `--format json`"


def _new() -> Table:
    return Table(box=box.SIMPLE_HEAD, expand=True, show_edge=False, pad_edge=False, header_style="bold")


def _findings(result: ScanResult, findings: Sequence[Finding]) -> Table:
    table = _new()
    table.add_column("Severity", width=10)
    for title, ratio in (("Rule", 3), ("Where", 3), ("What", 4)):
        table.add_column(title, overflow="fold", ratio=ratio)
    for finding in findings[:MOST_ROWS]:
        severity = Text(finding.severity.value, SEVERITY_STYLE[finding.severity])
        severity.append(f"\n{finding.evidence_level}", "default")
        if phrasing.blocks(finding, result.policy):
            severity.append("\nBLOCKS", "bold red")
        what = Text(one_line(finding.title))
        if finding.suppressed_by is not None:
            severity.append("\nSUPPRESSED", "bold magenta")
            what.append(f"\nsuppressed by {one_line(finding.suppressed_by)}", "magenta")
        first = next((evidence.text for evidence in finding.evidence if evidence.text), "")
        proof = list(links(finding)) if finding.confirmation is not None else []
        if proof:
            what.append("".join(f"\n{link}" for link in proof), "dim")
        elif first:
            what.append(f"\n{phrasing.quoted(first, 120)}", "dim")
        rule = Text(f"{visible(finding.rule_id)}\n{visible(finding.id)}")
        table.add_row(severity, rule, Text(phrasing.where(finding.location)), what)
    return table


def _analyzers(result: ScanResult) -> Table:
    table = _new()
    table.add_column("Analyzer", overflow="fold", max_width=24)
    table.add_column("Version", overflow="fold", min_width=7, max_width=10)
    table.add_column("Status", width=11)
    table.add_column("Required", width=8)
    table.add_column("ms", justify="right", min_width=5)
    table.add_column("Reason", overflow="fold", ratio=1)
    for analyzer in result.analyzers[:MOST_ROWS]:
        table.add_row(
            visible(analyzer.name),
            visible(analyzer.version),
            Text(analyzer.status.value, "" if analyzer.status is AnalyzerStatus.COMPLETED else "yellow"),
            "yes" if analyzer.required else "no",
            "" if analyzer.duration_ms is None else str(analyzer.duration_ms),
            one_line(analyzer.reason),
        )
    return table


def _coverage(result: ScanResult) -> Table:
    table = _new()
    table.add_column("Subject", overflow="fold", ratio=1)
    for title in ("Found", "Analyzed", "Operator", "Target", "Limit", "Failed"):
        table.add_column(title, overflow="fold", justify="right", min_width=len(title))
    for subject, tally in sorted(result.coverage.items())[:MOST_ROWS]:
        skipped = [phrasing.skipped_number(tally, reason) for reason in SkipReason]
        numbers = [tally.discovered, tally.analyzed, *skipped, len(tally.failed)]
        table.add_row(phrasing.name(subject), *(str(number) for number in numbers))
    return table


def _tools(result: ScanResult) -> Table:
    table = _new()
    for title, ratio in (("Tool", 3), ("Arguments", 3), ("Description and claims", 5)):
        table.add_column(title, overflow="fold", ratio=ratio)
    for tool in result.surface.tools[:MOST_ROWS]:
        words = phrasing.tool_words(tool)
        description = Text(words.description)
        if words.claims:
            description.append(f"{chr(10) if words.description else ''}claims: {words.claims}", "dim")
        table.add_row(words.name, words.arguments, description)
    return table


def _behavior(rows: Sequence[behavior.Row]) -> Table:
    table = _new()
    for title, ratio in (("What", 6), ("By", 2), ("Phase", 2)):
        table.add_column(title, overflow="fold", ratio=ratio)
    table.add_column("Times", justify="right", min_width=5)
    for row in rows[:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in row))
    return table
