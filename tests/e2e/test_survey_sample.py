"""Three starts of the corpus, another three for each commit, come out as docs/survey says."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.survey.__main__ import known, read
from tests.survey.entries import Start, read_corpus
from tests.survey.starting import same, start

pytestmark = [pytest.mark.docker, pytest.mark.registry]

SIZE = 3


def sample() -> list[Start]:
    """The completed starts that come first when ordered by a digest over commit and name."""
    root = Path(__file__).resolve().parent
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    commit = found.stdout.strip() or "no version control"
    starts = [entry for entry in read_corpus()[0] if known(entry)]
    return sorted(starts, key=lambda entry: hashlib.sha256(f"{commit} {entry.name}".encode()).digest())[:SIZE]


@pytest.mark.parametrize("entry", sample(), ids=lambda entry: entry.name)
def test_a_start_of_the_corpus_agrees_with_what_was_kept(entry: Start) -> None:
    kept = read(entry)
    assert kept is not None
    now = start(entry)
    assert same(kept, now), f"{entry.name}: kept {kept}, now {now}"


def test_most_of_the_corpus_is_completed() -> None:
    starts, _ = read_corpus()
    assert sum(known(entry) for entry in starts if entry.kind == "benign") >= 26
    pairs = {entry.id for entry in starts if entry.kind == "pair"}
    broken = {entry.id for entry in starts if entry.kind == "pair" and not known(entry)}
    assert len(pairs - broken) >= 15, broken
