"""Requests of ours that wait for an answer, and which of them a received answer belongs to. No I/O but the waiting."""

from __future__ import annotations

import re
from collections.abc import Iterable

import anyio

from harness.model.recording import Anomaly
from harness.protocol.framing import Line
from harness.protocol.messages import Response
from harness.protocol.outcomes import Outcome

_ID_IN_TEXT = re.compile(rb'"id"\s*:\s*(\d{1,9})\s*[,}]')
_OUR_ID = re.compile("[0-9]{1,9}")
_ID_HEAD_BYTES = 256
_TOO_MUCH = frozenset({Anomaly.TOO_LONG, Anomaly.TOO_DEEP, Anomaly.TOO_MANY_VALUES})
_TAIL_BYTES = 128


class Pending:
    """A request that waits. `outcome` is set before `done`."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.outcome: Outcome | None = None

    def resolve(self, outcome: Outcome) -> None:
        """It ended like this; what is told later does not count."""
        if self.outcome is None:
            self.outcome = outcome
            self.done.set()


class Waiting:
    """Of one session. `last_id`: of the latest request, 0 before the first; ids of ours are whole numbers from 1."""

    def __init__(self) -> None:
        self.last_id = 0
        self._pending: dict[int, Pending] = {}
        self._answered: set[int] = set()
        self._admitted: set[int] = set()

    def begin(self) -> tuple[int, Pending]:
        """A fresh id, and what waits for its answer."""
        self.last_id += 1
        while self.last_id in self._admitted:  # a probe's: an answer to it could not be told from one to this
            self.last_id += 1
        pending = self._pending[self.last_id] = Pending()
        return self.last_id, pending

    def end(self, number: int) -> None:
        """Wait for it no longer."""
        del self._pending[number]

    def admit(self, ids: Iterable[int]) -> None:
        """Expect answers with these ids at any time and any number of them."""
        self._admitted.update(ids)

    def of(self, number: int) -> Pending | None:
        """What waits for the answer with this id."""
        return self._pending.get(number)

    def resolve_all(self, outcome: Outcome) -> None:
        """All that wait end like this."""
        for pending in list(self._pending.values()):
            pending.resolve(outcome)

    def match(self, response: Response) -> tuple[Pending | None, Anomaly | None]:
        """The request that this answers, and what is wrong with its id."""
        identifier, tag = response.id, None
        if type(identifier) is not int:
            tag = Anomaly.WRONG_ID_TYPE
            if (isinstance(identifier, str) and _OUR_ID.fullmatch(identifier)) or (
                isinstance(identifier, float) and identifier.is_integer()
            ):
                identifier = int(identifier)
            elif identifier is None and response.failed and len(self._pending) == 1:
                identifier = next(iter(self._pending))  # an error about a request it could not read
            else:
                return None, tag if identifier is not None or not response.failed else None
        if identifier in self._admitted:
            return None, None
        if identifier in self._answered:
            return None, Anomaly.REPEATED_ID
        if not 1 <= identifier <= self.last_id:
            return None, Anomaly.UNKNOWN_ID
        self._answered.add(identifier)
        return self._pending.get(identifier), tag  # no longer pending: a late answer

    def named_in(self, line: Line) -> Pending | None:
        """The waiting request whose id stands at either end of a line that was too much to read."""
        if _TOO_MUCH.isdisjoint(line.anomalies):
            return None
        head, tail = line.raw[:_ID_HEAD_BYTES], line.tail or line.raw[-_TAIL_BYTES:]
        if not head.lstrip().startswith(b"{") or b'"method"' in head:
            return None
        for number in (*_ID_IN_TEXT.findall(head), *_ID_IN_TEXT.findall(tail)):
            if (pending := self._pending.get(int(number))) is not None:
                self._answered.add(int(number))
                return pending
        return None
