"""Which classes of fault a rule stands for: as the oracle's own list says."""

from __future__ import annotations

from harness.probing.oracle.rules import RULES


def classes_of(rule: str) -> set[str]:
    """The classes whose findings carry this rule."""
    return {kind.value for kind, row in RULES.items() if row.id == rule}
