"""`make gate`: how well the checks of definitions do on labelled entries, overall and by class.

Two corpora: our own (tests/unit/analyzers/corpus_definitions.py), which the checks were written with, and
tests/data/held_definitions.json, written by somebody who had not seen them. Half of the latter (even places) has been
read while the concepts were widened, so only the odd half is a measure of text that nobody tuned on.

An entry is found when it gives any finding. A false positive is a dangerous finding on an honest entry; `noisy` counts
honest entries with any finding at all.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analyzers.base import DeclarationInput, ServerSurface
from harness.analyzers.engine import run_one
from harness.model.finding import ThreatLevel
from harness.model.surface import Item, ItemKind, Surface

HERE = Path(__file__).parent
MIN_RECALL = 0.95
MAX_FALSE_POSITIVES = 0.02


@dataclass(frozen=True)
class Outcome:
    """What one labelled entry gave. `wanted`: for a malicious one, whether it must be dangerous (own corpus only)."""

    name: str
    malicious: bool
    klass: str
    found: bool
    dangerous: bool
    wanted: bool = False


@dataclass(frozen=True)
class Rates:
    """Rates from 0 to 1 over some outcomes; a rate over nothing is None."""

    malicious: int
    honest: int
    recall: float | None
    dangerous_recall: float | None
    precision: float | None
    false_positives: float | None
    noisy: float | None
    f1: float | None


def judge(name: str, malicious: bool, klass: str, tools: Iterable[dict[str, Any]], wanted: bool = False) -> Outcome:
    """Run the checks over the tools of one entry."""
    items = tuple(Item(kind=ItemKind.TOOL, name=str(t.get("name", "")), value=t, frame=1) for t in tools)
    result = run_one("definitions", DeclarationInput((ServerSurface(Surface(items=items)),)))
    dangerous = any(f.threat_level is ThreatLevel.DANGEROUS for f in result.findings)
    return Outcome(name, malicious, klass, bool(result.findings), dangerous, wanted)


def own() -> list[Outcome]:
    """The outcomes of our own corpus."""
    sys.path.insert(0, str(HERE / "unit" / "analyzers"))
    corpus = importlib.import_module("corpus_definitions").CORPUS
    return [
        judge(str(n), e.label == "malicious", f"{e.label}: {e.klass}", [e.item], e.label == "malicious" and e.hard)
        for n, e in enumerate(corpus)
    ]


def held() -> tuple[list[Outcome], list[Outcome]]:
    """The outcomes of the other corpus: the half that was read, and the half that was not."""
    entries = json.loads((HERE / "data" / "held_definitions.json").read_text("utf-8"))["entries"]
    outcomes = [judge(e["id"], e["label"] == "malicious", f"{e['label']}: {e['class']}", e["tools"]) for e in entries]
    return outcomes[::2], outcomes[1::2]


def rates(outcomes: Iterable[Outcome]) -> Rates:
    """Count and divide."""
    bad: list[Outcome] = []
    good: list[Outcome] = []
    for outcome in outcomes:
        (bad if outcome.malicious else good).append(outcome)
    true = sum(o.found for o in bad)
    false = sum(o.dangerous for o in good)
    recall, precision = _part(true, len(bad)), _part(true, true + false)
    f1 = 2 * recall * precision / (recall + precision) if recall and precision else None
    return Rates(
        malicious=len(bad),
        honest=len(good),
        recall=recall,
        dangerous_recall=_part(sum(o.dangerous for o in bad), len(bad)),
        precision=precision,
        false_positives=_part(false, len(good)),
        noisy=_part(sum(o.found for o in good), len(good)),
        f1=f1,
    )


def _part(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def table(title: str, outcomes: list[Outcome]) -> str:
    """The rates overall and by class, as text."""
    classes: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        classes[outcome.klass].append(outcome)
    head = f"{title:52}{'n':>5}{'recall':>9}{'danger.':>9}{'precis.':>9}{'false+':>9}{'noisy':>9}{'F1':>9}"
    lines = [head, _row("all", rates(outcomes))]
    lines += [_row("  " + klass, rates(classes[klass])) for klass in sorted(classes)]
    return "\n".join(lines)


def _row(name: str, r: Rates) -> str:
    values = (r.recall, r.dangerous_recall, r.precision, r.false_positives, r.noisy, r.f1)
    if not r.malicious:
        values = (None, None, None, r.false_positives, r.noisy, None)
    shown = "".join(f"{'-':>9}" if v is None else f"{v:9.3f}" for v in values)
    return f"{name:52}{r.malicious + r.honest:>5}{shown}"


def main() -> int:
    """Print all tables; 1 when our own corpus is under the bounds."""
    mine = own()
    read, unread = held()
    for title, outcomes in (("own corpus", mine), ("held corpus, read half", read), ("held corpus, unread", unread)):
        print(table(title, outcomes), end="\n\n")
    print(table("held corpus, whole", read + unread))
    found = rates(mine)
    return int((found.recall or 0) < MIN_RECALL or (found.false_positives or 0) > MAX_FALSE_POSITIVES)


if __name__ == "__main__":
    sys.exit(main())
