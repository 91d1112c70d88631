"""The gate: recall and false positives on the labelled corpus, overall and by class. Run with -s to see the table."""

from __future__ import annotations

from collections import Counter

from corpus_definitions import CORPUS, Entry
from recordings_sample import surface

from harness.analyzers.base import DeclarationInput, ServerSurface
from harness.analyzers.engine import run_one
from harness.model.finding import ThreatLevel

MIN_RECALL = 0.95
MAX_FALSE_POSITIVES = 0.02


def found(entry: Entry) -> tuple[bool, bool]:
    """Whether the entry got any finding, and whether a hard one."""
    result = run_one("definitions", DeclarationInput((ServerSurface(surface(entry.item)),)))
    return bool(result.findings), any(f.threat_level is ThreatLevel.DANGEROUS for f in result.findings)


def test_recall_and_false_positives_hold_the_gate() -> None:
    hits: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for entry in CORPUS:
        any_finding, hard = found(entry)
        hit = (hard if entry.hard else any_finding) if entry.label == "malicious" else hard
        key = (entry.label, entry.klass)
        total[key] += 1
        hits[key] += hit
        if hit != (entry.label == "malicious"):
            wrong.append(f"{entry.label} {entry.klass}: {entry.item}")
    print(f"\n{'label':14}{'class':20}{'found':>6}{'of':>5}")
    for key in sorted(total):
        print(f"{key[0]:14}{key[1]:20}{hits[key]:>6}{total[key]:>5}")
    positives = sum(n for (label, _), n in total.items() if label == "malicious")
    true = sum(n for (label, _), n in hits.items() if label == "malicious")
    false = sum(n for (label, _), n in hits.items() if label != "malicious")
    recall, precision = true / positives, true / (true + false)
    rates = {
        label: sum(n for (one, _), n in hits.items() if one == label)
        / sum(n for (one, _), n in total.items() if one == label)
        for label in ("hard-negative", "benign")
    }
    f1 = 2 * recall * precision / (recall + precision)
    print(f"recall {recall:.3f}, precision {precision:.3f}, F1 {f1:.3f}, false positives {rates}")
    assert len(CORPUS) >= 60
    assert recall >= MIN_RECALL, wrong
    assert max(rates.values()) <= MAX_FALSE_POSITIVES, wrong
    for key, number in total.items():
        if key[0] == "malicious":
            assert hits[key] / number >= MIN_RECALL - 0.05, (key, wrong)


def test_benign_entries_are_wholly_silent() -> None:
    loud = [entry.item for entry in CORPUS if entry.label == "benign" and found(entry)[0]]
    assert loud == []
