"""The words about what a target did: programs, destinations, files. Total on any JSON; everything is safe to print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.model.base import JsonObject, JsonValue
from harness.model.result import BehaviorFacts
from harness.report.escape import one_line
from harness.report.phrasing import name, number

_PROGRAMS = 8
_DESTINATIONS = 6
_FOLDERS = 6
_ARGV = 160


class Row(NamedTuple):
    """One line of a table: what, by whom and when, how often. Empty where it is not known."""

    what: str
    by: str
    phase: str
    times: str


def lines(facts: BehaviorFacts) -> Iterator[str]:
    """At most one sentence each about programs, destinations and files; nothing where nothing was recorded."""
    programs = list(dict.fromkeys(_file_name(_text(row, "program")) for row in facts.processes if "program" in row))
    if programs:
        yield f"{number(len(programs), 'program')} started: {_some(programs, _PROGRAMS)}"
    destinations = list(dict.fromkeys(_text(row, "destination") for row in facts.egress if "destination" in row))
    if destinations:
        yield f"{number(len(destinations), 'destination')} tried: {_some(destinations, _DESTINATIONS)}"
    written, deleted = _list(facts.files, "written"), _list(facts.files, "deleted")
    if written:
        yield f"wrote below {_some(written, _FOLDERS)}"
    if deleted:
        yield f"deleted {_some(deleted, _FOLDERS)}"


def processes(facts: BehaviorFacts) -> Iterator[Row]:
    """The programs that were started, one row each."""
    for row in facts.processes:
        if "more" in row:
            yield _more(row)
            continue
        argv = row.get("argv")
        words = " ".join(str(word) for word in argv) if isinstance(argv, list | tuple) else ""
        by = _file_name(_text(row, "started_by"))
        yield Row(one_line(words or _text(row, "program"), _ARGV), name(by) if by else "", *_when(row))


def destinations(facts: BehaviorFacts) -> Iterator[Row]:
    """The destinations that were tried, one row each."""
    for row in facts.egress:
        if "more" in row:
            yield _more(row)
            continue
        by = _file_name(_text(row, "program"))
        way = _text(row, "application") or _text(row, "call")
        what = f"{way} {_text(row, 'destination')}".strip()
        yield Row(one_line(f"{what}{_moved(row)}", _ARGV), name(by) if by else "", *_when(row))


def files(facts: BehaviorFacts) -> Iterator[Row]:
    """What was written and deleted, then what was read."""
    for kind in ("deleted", "written", "read"):
        for path in _list(facts.files, kind):
            yield Row(one_line(path, _ARGV), kind, "", "")


def _moved(row: JsonObject) -> str:
    """How many bytes went each way, and whether they could be read, where the gateway told."""
    if "sent" not in row:
        return ""
    unread = ", unreadable" if row.get("unreadable") else ""
    return f" ({_text(row, 'sent')} bytes sent, {_text(row, 'received')} received{unread})"


def _more(row: JsonObject) -> Row:
    return Row(f"and {one_line(_text(row, 'more'), 20)} more", "", "", "")


def _when(row: JsonObject) -> tuple[str, str]:
    return one_line(_text(row, "phase"), 60), one_line(_text(row, "count"), 20)


def _text(row: JsonObject, key: str) -> str:
    value = row.get(key)
    return "" if value is None else str(value)


def _list(value: JsonObject, key: str) -> list[str]:
    found: JsonValue = value.get(key)
    return [str(entry) for entry in found] if isinstance(found, list | tuple) else []


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _some(values: list[str], most: int) -> str:
    shown = [name(value) for value in values[:most]]
    return ", ".join([*shown, f"{len(values) - most} more"] if len(values) > most else shown)
