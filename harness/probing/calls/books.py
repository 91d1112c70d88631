"""The books of the calls: what was called, what was tried where, and what was not, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model.call import CallBooks, Outcome
from harness.model.call import Cell as Entry
from harness.probing.calls.schedule import Cell
from harness.probing.calls.state import State
from harness.probing.calls.subjects import Subject
from harness.probing.starting.obstacles import is_sealed

REASON_CHARACTERS = 200
MOST_ENTRIES = 20_000


def reason_of(outcome: Outcome) -> str:
    """Why a call did not succeed, in the words that the target gave, bounded."""
    said = " ".join(outcome.text.split())[:REASON_CHARACTERS]
    if is_sealed(outcome.text):
        said = f"it keeps data in its own installation, which is sealed: name another place with --env or --arg; {said}"
    return {
        "timeout": "it did not answer in time",
        "closed": "the session ended",
        "unreadable": f"its answer can't be read: {said}",
        "error": f"error {outcome.code}: {said}",
    }.get(outcome.state, said or "it failed without a word")


def books_of(every: Iterable[Subject], states: Iterable[State], cells: Iterable[Cell], *, gone: str = "") -> CallBooks:
    """Close the books. `every`: all that could be called; `gone`: why the target could not be called any more."""
    by_subject = {state.subject: state for state in states}
    entries = [_item(subject, by_subject.get(subject), gone) for subject in every]
    for cell in cells:
        entries.extend(_cell(cell))
    return CallBooks(cells=tuple(entries[:MOST_ENTRIES]))


def _item(subject: Subject, state: State | None, gone: str) -> Entry:
    if state is None:
        return Entry(item=subject.title, state="operator", detail="not allowed")
    if state.reached:
        return Entry(item=subject.title, state="executed")
    if state.calls == 0 and not state.reason:
        over = gone or "the time of the run was over"
        return Entry(item=subject.title, state="target" if gone else "limit", detail=over)
    return Entry(item=subject.title, state="target", detail=state.reason or gone or "it could not be called")


def _cell(cell: Cell) -> Iterator[Entry]:
    if cell.planned == cell.unfit:
        return
    done = cell.settled or cell.executed + cell.unfit >= cell.planned
    state, detail = ("executed", "") if done else (cell.why or "limit", cell.detail)
    if not done and cell.executed:
        detail = f"{cell.executed} of {cell.planned - cell.unfit} payloads were tried: {detail}"
    yield Entry.model_validate(
        {
            "item": cell.state.subject.title,
            "argument": cell.argument,
            "payload_class": cell.payload_class,
            "state": state,
            "detail": detail,
        }
    )
