"""A server that started and lists no tools: once more, with credentials for what it names. One went from 0 to 98."""

from __future__ import annotations

from collections.abc import Iterator

from harness.probing.starting import variables
from harness.probing.starting.case import Case, Proposal


def named(case: Case) -> Iterator[Proposal]:
    """Every variable in its output that it does not have."""
    yield from variables.plant(case, variables.named(case.lines), "named in its output")


def read(case: Case) -> Iterator[Proposal]:
    """Variables that its source reads."""
    yield from variables.from_source(case)
