"""The coverage of the plan of calls: item by argument by class, each field executed or left out for a reason."""

from __future__ import annotations

from harness.model.call import CallBooks, Cell
from harness.model.coverage import Coverage, Skip, SkipReason, Tally

CALLS = "calls"
#: Items whose fields are told one by one; of the rest only the number is.
MAX_NAMED = 200
_REASONS = {"operator": SkipReason.OPERATOR, "limit": SkipReason.LIMIT, "target": SkipReason.TARGET}


def coverage_of(books: CallBooks | None, calls: int) -> Coverage:
    """The tally of all fields. Without books the plan was not finished, which is a gap of ours."""
    if books is None:
        skip = Skip(item="the plan of calls", reason=SkipReason.LIMIT, detail="it was not finished")
        return Coverage(subjects={CALLS: Tally(discovered=calls + 1, analyzed=calls, skipped=(skip,))})
    skipped: dict[tuple[str, SkipReason, str], int] = {}
    for cell in books.cells:
        if cell.state != "executed":
            key = (_item(cell, len(skipped)), _REASONS[cell.state], cell.detail)
            skipped[key] = skipped.get(key, 0) + 1
    executed = sum(cell.state == "executed" for cell in books.cells)
    skips = tuple(
        Skip(item=item, reason=reason, detail=detail, count=count) for (item, reason, detail), count in skipped.items()
    )
    return Coverage(subjects={CALLS: Tally(discovered=len(books.cells), analyzed=executed, skipped=skips)})


def _item(cell: Cell, known: int) -> str:
    """A name for the fields of one item that share a fate; classes are told where the operator left them out."""
    if known >= MAX_NAMED:
        return "others"
    return cell.item if cell.payload_class is None else f"{cell.item} {cell.argument or '(whole)'}"
