"""No package of the corpus is named in the program: what works for them works for their kind."""

from __future__ import annotations

import re
from pathlib import Path

from tests.survey.entries import package_names, read_corpus

ROOT = Path(__file__).resolve().parent.parent.parent


def test_no_package_of_the_corpus_is_named() -> None:
    names = package_names()
    assert len(names) > 25
    wanted = re.compile("|".join(rf"(?<![\w@/.-]){re.escape(name)}(?![\w/-])" for name in sorted(names)))
    found = []
    for folder in ("harness", "sandboxes", "payloads"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                text = path.read_text(encoding="utf-8", errors="replace")
                found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in wanted.finditer(text)]
    assert not found


def test_the_corpus_is_whole() -> None:
    starts, left_out = read_corpus()
    assert sum(start.kind == "benign" for start in starts) == 28
    assert len({start.id for start in starts if start.kind == "pair"}) == 18
    assert len({start.name for start in starts}) == len(starts)
    assert {entry.kind for entry in left_out} == {"pair"}
