"""Which classes of fault a rule stands for: as the oracle's own list says, and the analyzer of what answers say."""

from __future__ import annotations

from harness.model.payload import PayloadClass
from harness.probing.oracle.rules import RULES

#: Found by what answers hold, whatever was sent: instructions, and secrets that are told unasked, which no payload
#: can be blamed for.
_BY_TEXT = {
    "results.injection": PayloadClass.RETURNED_INSTRUCTIONS.value,
    "behavior.canaries.disclosed": PayloadClass.SECRET_DISCLOSURE.value,
}


def classes_of(rule: str) -> set[str]:
    """The classes whose findings carry this rule."""
    found = {kind.value for kind, row in RULES.items() if row.id == rule}
    return found | ({_BY_TEXT[rule]} if rule in _BY_TEXT else set())
