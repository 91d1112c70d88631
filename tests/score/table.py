"""The page docs/score.md: recall by class, false alarms, wall times, and every trial with what was found."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from tests.score.classes import classes_of
from tests.score.trials import Trial
from tests.survey.entries import LeftOut

Facts: TypeAlias = dict[str, Any]
Row: TypeAlias = tuple[Trial, Facts | None]

SHOWN = ("DYNAMIC", "PROTOCOL", "CONFIRMED")


def page(rows: Sequence[Row], product: str, left_out: Sequence[LeftOut]) -> str:
    """The whole page, the summary first; `left_out` are the entries of the corpus that are not run."""
    parts = [_head(rows, product), _faults(rows), _again(rows), _benign(rows), _every(rows), _left(left_out)]
    return "\n".join(line for part in parts for line in part) + "\n"


def right(trial: Trial, facts: Facts | None, levels: Iterable[str]) -> list[Facts]:
    """The findings of the fault's class at one of these levels."""
    found = [] if facts is None else facts.get("findings", [])
    return [f for f in found if f["level"] in levels and classes_of(f["rule"]) & set(trial.classes)]


def usable(trial: Trial, facts: Facts | None) -> bool:
    """Did a benign call of a fixed version succeed? Else its silence says nothing.

    A tool whose baseline failed is among the skipped calls by its bare name, with the target's reason.
    """
    if facts is None or "calls" not in facts.get("called", {}):
        return False
    calls = facts["called"]["calls"]
    refused = {skip["item"] for skip in calls["skipped"] if skip["reason"] == "target"}
    anything = "*" in trial.allow or bool(facts.get("tool_gone"))
    worked = bool(calls["analyzed"]) if anything else any(tool not in refused for tool in trial.allow)
    return worked and facts.get("status") != "ERROR"


def _head(rows: Sequence[Row], product: str) -> list[str]:
    stale = sum(facts is not None and facts["product"] != product for _, facts in rows)
    missing = sum(facts is None for _, facts in rows)
    return [
        "# Score",
        "",
        "Made by `make score`: real servers with known faults in both versions, some that were never fixed, and benign",
        "ones (`tests/data/corpus.toml`). Which arguments prove a fault by hand is not known to the product; the tools",
        "allowed for a faulty server are those that have the fault, unless `--all-tools` is given.",
        "",
        f"Product {product}; {stale} of {len(rows)} results are of an older product, {missing} are missing.",
        "",
    ]


def _faults(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## Known faults",
        "",
        "| class | faults | shown | confirmed | fixed | fixed and silent | fixed, nothing worked |"
        " fixed, another fault open | seconds, median |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    classes = sorted({trial.classes[0] for trial, _ in rows if trial.classes})
    totals = [0] * 7
    for name in classes:
        mine = [row for row in rows if row[0].classes[:1] == (name,)]
        faulty = [row for row in mine if row[0].kind in ("vulnerable", "unfixed")]
        fixed = [row for row in mine if row[0].kind == "fixed"]
        counts = [
            len(faulty),
            sum(bool(right(*row, SHOWN)) for row in faulty),
            sum(bool(right(*row, ("CONFIRMED",))) for row in faulty),
            len(fixed),
            sum(not right(*row, SHOWN) and usable(*row) for row in fixed),
            sum(row[1] is not None and not usable(*row) for row in fixed),
            sum(bool(row[0].open_fault and right(*row, SHOWN)) for row in fixed),
        ]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        lines.append(f"| {name} | " + " | ".join(map(str, counts)) + f" | {_median(mine)} |")
    lines += ["| **all** | " + " | ".join(map(str, totals)) + f" | {_median([r for r in rows if r[0].classes])} |", ""]
    return lines


def _again(rows: Sequence[Row]) -> list[str]:
    """What became of the confirmed findings when they were tried again, each time from the bundle alone."""
    lines = ["## Tried again", ""]
    confirmed = sum(f["level"] == "CONFIRMED" for _, facts in rows for f in (facts or {}).get("findings", []))
    tried = [
        (trial, facts["reproduced"]["times"], one)
        for trial, facts in rows
        if facts is not None and "reproduced" in facts
        for one in facts["reproduced"]["findings"].values()
    ]
    always = sum(one["reproduced"] == times for _, times, one in tried)
    counts = ", ".join(map(str, sorted({times for _, times, _ in tried})))
    lines += [
        f"Of {confirmed} confirmed findings, of benign servers and fixed versions too, {len(tried)} were tried again"
        f"{f', {counts} times each' if tried else ''}, by `harness reproduce`; {always} were reproduced every time.",
        "",
    ]
    lines += [
        f"* {cell(trial.start.target)}, {trial.kind}: {one['rule']} {one['reproduced']} of {times}: {cell(one['why'])}"
        for trial, times, one in tried
        if one["reproduced"] != times
    ]
    return [*lines, ""] if lines[-1] else lines


def _benign(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## Benign servers",
        "",
        "| trial | servers | COMPLETED and SAFE | CONFIRMED | HIGH or above | seconds, median |",
    ]
    lines.append("|---|---|---|---|---|---|")
    names = {"safe": "level safe", "useful": "useful tool called", "all": "all tools called"}
    serious: list[str] = []
    for kind, name in names.items():
        mine = [row for row in rows if row[0].kind == kind]
        safe = sum(f is not None and (f.get("status"), f.get("verdict")) == ("COMPLETED", "SAFE") for _, f in mine)
        found = [(t, x) for t, f in mine if f is not None for x in f.get("findings", [])]
        confirmed = [x for _, x in found if x["level"] == "CONFIRMED"]
        high = [(t, x) for t, x in found if x["severity"] in ("HIGH", "CRITICAL")]
        lines.append(f"| {name} | {len(mine)} | {safe} | {len(confirmed)} | {len(high)} | {_median(mine)} |")
        serious += [f"* {t.start.target}, {name}: {x['level']} {x['rule']}: {cell(x['title'])}" for t, x in high]
    return [
        *lines,
        "",
        "Every HIGH or CRITICAL finding on a benign server, to be signed by a reader:",
        "",
        *(serious or ["none"]),
        "",
    ]


def _every(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## Every trial",
        "",
        "| target | trial | verdict | found at MEDIUM or above | seconds |",
        "|---|---|---|---|---|",
    ]
    for trial, facts in rows:
        if facts is None:
            lines.append(f"| {cell(trial.start.target)} | {trial.kind} | not run yet | | |")
            continue
        found = [f for f in facts.get("findings", []) if f["severity"] != "LOW"]
        told = sorted({f"{f['level']} {f['rule']}" for f in found})
        verdict = facts.get("verdict") or facts.get("reason", "")
        if facts.get("status") == "PARTIAL" and facts.get("reasons"):
            verdict = f"{verdict} ({facts['reasons'][0][:120]})"
        seconds = facts.get("seconds", "")
        kind = f"{trial.kind}, tool gone: all others called" if facts.get("tool_gone") else str(trial.kind)
        kind = f"{kind}, {trial.open_fault} is open in it" if trial.open_fault else kind
        lines.append(f"| {cell(trial.start.target)} | {kind} | {cell(verdict)} | {cell(', '.join(told))} | {seconds} |")
    return lines


def _left(left_out: Sequence[LeftOut]) -> list[str]:
    return ["", "Left out:", "", *(f"* {left.id}: {cell(left.why)}" for left in left_out)]


def _median(rows: Sequence[Row]) -> str:
    times = [facts["seconds"] for _, facts in rows if facts is not None and "seconds" in facts]
    return f"{statistics.median(times):.0f}" if times else ""


def cell(text: str) -> str:
    """Texts of servers, harmless in a table."""
    return "".join(f"&#{ord(c)};" if c in "|<>[]`*_\\&" else c for c in " ".join(text.split()))
