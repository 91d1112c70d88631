"""What comes in pieces: a value spread over the labels of several DNS questions, or over several messages.

Pieces are put together in the order in which they began (they are told when they ended), and, where they are numbered,
in the order of their numbers.
All memory is bounded: past a bound the pieces so far are handed out to be searched, and the newest are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

#: Series at a time; the oldest is handed out when another begins.
MOST_SERIES = 256
#: Questions kept of one parent domain, and bytes kept of one series of messages.
MOST_NAMES = 256
MOST_BYTES = 64 << 10
MOST_PIECES = 4096
KEPT_BYTES = 4096
#: A body that is longer than this is a unit of its own and no piece.
PIECE_BYTES = 16 << 10
#: Keys looked at in one JSON object or one query.
MOST_KEYS = 32

#: A label with its number in front or behind.
_NUMBERED = (re.compile(r"^(\d{1,6})[-_](.*)$"), re.compile(r"^(?P<text>.*)[-_](?P<number>\d{1,6})$"))
_REQUEST = re.compile(rb"^[A-Z]{1,20} (\S+)")


class Whole(NamedTuple):
    """Pieces put together. `seq` is the event of the last of them, `key` what they were collected under: the owner and
    the parent domain for names, the owner alone for messages.
    """

    key: Any
    seq: int
    data: bytes


class Names:
    """DNS questions by parent domain."""

    def __init__(self) -> None:
        self._names: dict[Any, dict[tuple[str, ...], tuple[int, int]]] = {}

    def add(self, owner: Any, name: str, seq: int, began: int) -> Iterator[Whole]:
        """One more question of `owner`, asked at `began`. Gives what has to be searched now, mostly nothing."""
        labels = name.rstrip(".").split(".")
        for depth in (2, 3):
            if len(labels) <= depth:
                continue
            key = (owner, ".".join(labels[-depth:]).lower())
            if key not in self._names and len(self._names) >= MOST_SERIES:
                yield from self._flush(next(iter(self._names)))
            names = self._names.setdefault(key, {})
            names.setdefault(tuple(labels[:-depth]), (began, seq))  # a question is asked for several types, and again
            if len(names) >= MOST_NAMES:
                yield from self._flush(key)

    def rest(self) -> Iterator[Whole]:
        """What is left at the end."""
        for key in list(self._names):
            yield from self._flush(key)

    def _flush(self, key: Any) -> Iterator[Whole]:
        names = self._names.pop(key)
        seq = max(seq for _, seq in names.values())
        seen: set[str] = set()
        for text in _arrangements(sorted(names, key=lambda row: names[row][0])):
            if text not in seen:
                seen.add(text)
                yield Whole(key, seq, text.encode())


def _arrangements(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """The texts that questions may stand for, without their parent."""
    yield "".join("".join(row) for row in rows)
    yield "".join(row[0] for row in rows)
    yield "".join(row[-1] for row in rows)
    front = [(int(m[1]), m[2]) for row in rows if (m := _NUMBERED[0].match(row[0]))]
    behind = [(int(m["number"]), m["text"]) for row in rows if (m := _NUMBERED[1].match(row[0]))]
    for pieces in (front, behind):
        if len(pieces) > 1:
            yield "".join(text for _, text in pieces)
            yield "".join(text for _, text in sorted(pieces))
    numbers = [(int(row[1]), row[0]) for row in rows if len(row) > 1 and row[1].isdigit() and len(row[1]) < 7]
    numbers += [(int(row[0]), "".join(row[1:])) for row in rows if row[0].isdigit() and len(row[0]) < 7]
    if len(numbers) > 1:
        yield "".join(text for _, text in sorted(numbers))


class Messages:
    """Bodies, parts of paths, values of queries and of JSON objects, by destination and by what they are called."""

    def __init__(self) -> None:
        self._series: dict[Any, _Series] = {}

    def add(self, owner: Any, what: str, data: bytes, seq: int, began: int) -> Iterator[Whole]:
        """One more message to `owner` (session, destination …), of a flow that began at `began`."""
        for name, piece in _pieces(what, data):
            key = (owner, what, name)
            if key not in self._series and len(self._series) >= MOST_SERIES:
                yield from self._flush(next(iter(self._series)))
            series = self._series.setdefault(key, _Series())
            series.seq = seq
            series.pieces.append((began, piece))
            series.size += len(piece)
            if series.size >= MOST_BYTES or len(series.pieces) >= MOST_PIECES:
                yield from self._flush(key)
                self._series[key] = series.end()

    def rest(self) -> Iterator[Whole]:
        """What is left at the end."""
        for key in list(self._series):
            yield from self._flush(key)

    def _flush(self, key: Any) -> Iterator[Whole]:
        series = self._series.pop(key)
        if len(series.pieces) > 1:  # one alone was a unit already
            yield Whole(key[0], series.seq, series.together())


@dataclass
class _Series:
    """Pieces with the times at which they began."""

    seq: int = 0
    size: int = 0
    pieces: list[tuple[int, bytes]] = field(default_factory=list)

    def together(self) -> bytes:
        return b"".join(piece for _, piece in sorted(self.pieces, key=lambda piece: piece[0]))

    def end(self) -> _Series:
        """The newest pieces, for what reaches over a bound."""
        tail = self.together()[-KEPT_BYTES:]
        return _Series(self.seq, len(tail), [(0, tail)])


def _pieces(what: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The named pieces of one message."""
    if what == "http-request":
        match = _REQUEST.match(data)
        path, _, query = (match[1] if match else b"").partition(b"?")
        yield "/", unquote_to_bytes(path.rpartition(b"/")[2])
        if query:
            for name, value in parse_qsl(query.decode("latin-1"), max_num_fields=None)[:MOST_KEYS]:
                yield f"?{name}", value.encode("utf-8", "replace")
        return
    if len(data) > PIECE_BYTES:
        return
    yield "", data
    if data[:1] == b"{":
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        for name, part in list(value.items())[:MOST_KEYS] if isinstance(value, dict) else ():
            if isinstance(part, str):
                yield f".{name}", part.encode("utf-8", "replace")
