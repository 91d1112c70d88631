"""What was looked at, what was not, and why; the arithmetic behind "everything required was looked at".

Each item that was not analyzed carries its own typed reason (verdict.md): `operator` does not downgrade,
`target` and `limit` are gaps, and so is a failed item.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from harness.model.base import Record

#: A gap's sentence names at most this many items that share a reason.
MAX_NAMED = 5


class SkipReason(StrEnum):
    """Who is the cause of a skip."""

    OPERATOR = "operator"
    TARGET = "target"
    LIMIT = "limit"


class Skip(Record):
    """`count` items under one name that were not analyzed, and why."""

    item: str
    reason: SkipReason
    detail: str = ""
    count: int = Field(default=1, ge=1)


def _named(items: list[str]) -> str:
    """The items in order; those past the bound are counted."""
    more = len(items) - MAX_NAMED
    return ", ".join(items[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


class Failure(Record):
    """An item whose analysis was tried and failed."""

    item: str
    detail: str = ""


class Tally(Record):
    """The books of one subject (tools, prompts, frames, files, events …). They must add up."""

    discovered: int = Field(ge=0)
    analyzed: int = Field(ge=0)
    skipped: tuple[Skip, ...] = ()
    failed: tuple[Failure, ...] = ()

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        rest = sum(skip.count for skip in self.skipped) + len(self.failed)
        if self.discovered != self.analyzed + rest:
            raise ValueError(
                f"coverage does not add up: {self.discovered} discovered, {self.analyzed} analyzed, {rest} not"
            )
        return self


class Floor(Record):
    """At least `minimum` items must have been analyzed over `subjects` together, else it is a gap."""

    what: str
    subjects: tuple[str, ...]
    minimum: int = 1


class Coverage(Record):
    """The tallies by subject, and the floors that hold for them."""

    subjects: dict[str, Tally] = {}
    floors: tuple[Floor, ...] = ()

    def gaps(self) -> tuple[str, ...]:
        """One sentence for each gap, in a stable order; empty when the coverage adds up to complete."""
        found: list[str] = []
        for subject, tally in sorted(self.subjects.items()):
            groups: dict[tuple[SkipReason, str], list[str]] = {}
            for skip in tally.skipped:
                if skip.reason is not SkipReason.OPERATOR:
                    number = f" ({skip.count})" if skip.count > 1 else ""
                    groups.setdefault((skip.reason, skip.detail), []).append(f"{skip.item}{number}")
            for (reason, detail), items in groups.items():
                why = f": {detail}" if detail else ""
                found.append(f"{subject}: {_named(items)} not analyzed, reason {reason}{why}")
            for failure in tally.failed:
                why = f": {failure.detail}" if failure.detail else ""
                found.append(f"{subject}: {failure.item} failed{why}")
        for floor in self.floors:
            reached = sum(self.subjects[s].analyzed for s in floor.subjects if s in self.subjects)
            if reached < floor.minimum:
                found.append(f"{floor.what}: {reached} analyzed, at least {floor.minimum} needed")
        return tuple(found)
