"""Whole runs on some of the faulty sample servers and their twins; `make samples` runs all of them.

Short ones with one argument each, from both sets and languages: a database, a template, a tag of YAML, a link out of
the workspace, and a resource's URI.
"""

from __future__ import annotations

import pytest

from tests.score.samples import SERVERS, Sample, read_samples, run

pytestmark = pytest.mark.docker

CHOSEN = (
    ("held_out", "sql-name"),
    ("held_out", "vm-greeting"),
    ("beside", "own-yaml"),
    ("beside", "link-read"),
    ("beside", "note-uri"),
)


def sample(folder: str, mode: str) -> Sample:
    (found,) = (one for one in read_samples(folder) if one.mode == mode)
    assert (SERVERS / folder / found.file).is_file()
    return found


@pytest.mark.parametrize(("folder", "mode"), CHOSEN)
def test_a_fault_is_found_and_its_twin_is_silent(folder: str, mode: str) -> None:
    found = run(sample(folder, mode))
    assert found.level, found
    twin = run(sample(folder, f"{mode}-benign"))
    assert twin.quiet, twin
