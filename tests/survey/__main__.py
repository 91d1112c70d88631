"""`python -m tests.survey [--jobs N] [--again] [WORD ...]`: start the corpus, resume where it was left.

What is known already (a completed start of the same fields) is not started again without `--again`; words choose
entries whose name holds one of them. Results: docs/survey/<entry>.json, and the table docs/survey.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.survey.entries import LeftOut, Start, read_corpus
from tests.survey.starting import start

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
FOLDER = DOCS / "survey"


def main() -> int:
    """Start what is to be started; 0 when all of the corpus is completed."""
    parser = argparse.ArgumentParser(prog="python -m tests.survey")
    parser.add_argument("--jobs", type=int, choices=range(1, 5), default=2)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    starts, left_out = read_corpus()
    chosen = [s for s in starts if not given.words or any(word in s.name for word in given.words)]
    todo = [s for s in chosen if given.again or not known(s)]
    print(f"{len(todo)} of {len(chosen)} to start", file=sys.stderr)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(keep, todo))
    for path in set(FOLDER.glob("*.json")) - {FOLDER / f"{s.name}.json" for s in starts}:
        path.unlink()
    (DOCS / "survey.md").write_text(table(starts, left_out))
    return 0 if all(known(s) for s in starts) else 1


def keep(entry: Start) -> None:
    """Start an entry and write down what came of it at once: an interrupted survey goes on from there."""
    facts = start(entry)
    (FOLDER / f"{entry.name}.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    told = f"{facts.get('tools')} tools" if facts["completed"] else f"NOT COMPLETED: {facts.get('reason')}"
    print(f"{entry.name}: {told}", file=sys.stderr, flush=True)


def read(entry: Start) -> dict[str, Any] | None:
    """What is kept of an entry, if anything."""
    path = FOLDER / f"{entry.name}.json"
    found: dict[str, Any] | None = json.loads(path.read_text()) if path.is_file() else None
    return found


def known(entry: Start) -> bool:
    """Is there a completed start of the same fields?"""
    facts = read(entry)
    return facts is not None and facts["completed"] and facts["fields"] == entry.digest


def table(starts: list[Start], left_out: list[LeftOut]) -> str:
    """The page docs/survey.md."""
    kept = [(entry, read(entry) or {"completed": False, "reason": "not started yet"}) for entry in starts]
    benign = [facts["completed"] for entry, facts in kept if entry.kind == "benign"]
    pairs: dict[str, list[bool]] = {}
    for entry, facts in kept:
        if entry.kind == "pair":
            pairs.setdefault(entry.id, []).append(facts["completed"])
    whole = sum(all(both) for both in pairs.values())
    lines = [
        "# Starting the corpus",
        "",
        "Made by `make survey`: every version of every server in `tests/data/corpus.toml` is started with the fields",
        "of its own entry. What the harness does by itself when a start fails (dependencies of the release's time, an",
        "install without its failing scripts …) counts. Completed means that all lists were read to the end, and that",
        "it has tools.",
        "",
        f"* benign servers: {sum(benign)} of {len(benign)} completed",
        f"* pairs: {whole} of {len(pairs)} completed in both versions",
        "",
        "| entry | target | completed | tools | protocol | why not, or what else |",
        "|---|---|---|---|---|---|",
    ]
    for entry, facts in kept:
        note = str(facts.get("reason", ""))
        if facts["completed"] and entry.tools not in (None, facts.get("tools")):
            note = f"{entry.tools} tools are known of it. {note}"
        cells = [entry.id, entry.target, "yes" if facts["completed"] else "**no**", facts.get("tools", "")]
        cells += [facts.get("protocol") or "", note]
        lines.append("| " + " | ".join(_cell(str(cell)) for cell in cells) + " |")
    lines += ["", "Not started:", ""]
    lines += [f"* {entry.id}: {entry.why}" for entry in left_out]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Texts of servers, harmless in a table."""
    return "".join(f"&#{ord(c)};" if c in "|<>[]`*_\\&" and text != "**no**" else c for c in " ".join(text.split()))


if __name__ == "__main__":
    sys.exit(main())
