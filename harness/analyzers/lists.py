"""What the end of a list means for coverage; several analyzers keep books on it."""

from __future__ import annotations

from harness.model.coverage import Skip, SkipReason
from harness.model.surface import ItemKind, ListEnd, ListOutcome

_OUR_BOUNDS = frozenset({ListEnd.PAGE_LIMIT, ListEnd.ITEM_LIMIT, ListEnd.BYTE_LIMIT})
#: JSON-RPC 2.0: method not found.
_NO_SUCH_METHOD = "-32601"


def unread_rest(outcome: ListOutcome, item: str) -> Skip | None:
    """The gap that a list's end leaves, called `item`; None when the list was read to its end or is not offered.

    A server with resources need not have templates, and no capability says so: "no such method" is no gap there.
    """
    if outcome.end in (ListEnd.COMPLETE, ListEnd.NOT_OFFERED):
        return None
    absent = outcome.end is ListEnd.ERROR and _NO_SUCH_METHOD in outcome.detail
    if absent and outcome.kind is ItemKind.RESOURCE_TEMPLATE:
        return None
    reason = SkipReason.LIMIT if outcome.end in _OUR_BOUNDS else SkipReason.TARGET
    return Skip(item=item, reason=reason, detail=f"the list ended with {outcome.end.value}")
