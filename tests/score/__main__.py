"""`python -m tests.score [--jobs N] [--again] [--all-tools] [--bundles DIR] [--reproduce N] [WORD ...]`.

Runs the trials, and resumes where it was left.

A trial whose result is known (same fields, whatever the product was then) is not run again without `--again`; words
choose trials whose name holds one of them. Results: docs/score/<trial>.json, and the table docs/score.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.score.running import product_digest, run
from tests.score.table import page
from tests.score.trials import Trial, read_trials
from tests.survey.entries import read_corpus

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
FOLDER = DOCS / "score"


def main() -> int:
    """Run what is to be run; 0 when every trial has a result."""
    parser = argparse.ArgumentParser(prog="python -m tests.score")
    parser.add_argument("--jobs", type=int, choices=range(1, 5), default=4)
    parser.add_argument("--again", action="store_true", help="also what has a result")
    parser.add_argument("--stale", action="store_true", help="also what an older product gave")
    parser.add_argument("--all-tools", action="store_true", help="allow every tool of the faulty servers too")
    parser.add_argument("--table", action="store_true", help="only write the table")
    parser.add_argument("--bundles", type=Path, help="a folder in which the recordings stay")
    parser.add_argument("--reproduce", type=int, default=0, metavar="N", help="try what was confirmed N times again")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    trials = read_trials(all_tools=given.all_tools)
    chosen = [t for t in trials if not given.words or any(word in t.name for word in given.words)]
    product = product_digest()
    todo = [t for t in chosen if given.again or not known(t, product if given.stale else None)]
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not given.table:
        print(f"{len(todo)} of {len(chosen)} to run", file=sys.stderr)
        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(lambda trial: keep(trial, product, given.bundles, given.reproduce), todo))
    for path in set(FOLDER.glob("*.json")) - {FOLDER / f"{t.name}.json" for t in trials}:
        path.unlink()
    text = page([(trial, read(trial)) for trial in trials], product, read_corpus()[1])
    (DOCS / "score.md").write_text(text)
    print(text.partition("## Every trial")[0])
    return 0 if all(read(trial) for trial in trials) else 1


def keep(trial: Trial, product: str, bundles: Path | None = None, again: int = 0) -> None:
    """Run a trial and write down what came of it at once: an interrupted score goes on from there."""
    facts = {**run(trial, bundles, again), "product": product}
    (FOLDER / f"{trial.name}.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    found = ", ".join(f"{f['level']} {f['rule']}" for f in facts.get("findings", ())) or "nothing"
    print(f"{trial.name}: {facts.get('verdict') or facts.get('reason')}: {found}", file=sys.stderr, flush=True)


def read(trial: Trial) -> dict[str, object] | None:
    """What is kept of a trial of the same fields, if anything."""
    path = FOLDER / f"{trial.name}.json"
    facts: dict[str, object] | None = json.loads(path.read_text()) if path.is_file() else None
    return facts if facts is not None and facts["fields"] == trial.digest else None


def known(trial: Trial, product: str | None) -> bool:
    """Is there a result, and of this version of the product where one is asked for?"""
    facts = read(trial)
    return facts is not None and product in (None, facts["product"])


if __name__ == "__main__":
    sys.exit(main())
