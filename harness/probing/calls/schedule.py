"""The order of attacks: fair over subjects and classes, and first what the records of the baseline point to. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.model.payload import PayloadClass
from harness.probing.calls.kit import Attack, Rank
from harness.probing.calls.state import State

#: What can hang or end the server comes after everything else.
_LAST = 1_000
#: By rank: how many further payloads of a likelier place are tried before its first.
_BEHIND = {Rank.OBSERVED: 0, Rank.SUGGESTED: 2, Rank.ANY: 5}


def sparing(attacks: Iterable[Attack]) -> Iterator[Attack]:
    """Of each class at each place only the first, two where it was seen to be for it: for what says that it takes long.

    A task is called as one because its calls are not over at once, and each holds the session.
    """
    counts: Counter[tuple[str, str, PayloadClass]] = Counter()
    for attack in attacks:
        key = attack.argument, attack.place, attack.payload.payload_class
        counts[key] += 1
        if counts[key] <= (2 if attack.rank is Rank.OBSERVED else 1):
            yield attack


@dataclass(eq=False)
class Cell:
    """One argument of one subject against one class: what is planned there, and how far it went.

    `unfit`: planned payloads for which the world had nothing. `settled`: an effect was seen, the rest is not needed.
    `why` and `detail`: why the rest stays undone.
    """

    state: State
    argument: str
    payload_class: PayloadClass
    planned: int = 0
    executed: int = 0
    unfit: int = 0
    settled: bool = False
    why: str = ""
    detail: str = ""

    def left(self, why: str, detail: str) -> None:
        """What is still planned here stays undone; the first reason counts."""
        if not self.why:
            self.why, self.detail = why, detail


class Schedule:
    """Attacks by subject. `turns` goes round the subjects, one attack each, until none is left."""

    def __init__(self) -> None:
        self._queues: deque[deque[tuple[Cell, Attack]]] = deque()
        self._held: set[tuple[int, str, str, str]] = set()
        self.cells: dict[tuple[int, str, PayloadClass], Cell] = {}

    def holds(self, state: State, attack: Attack) -> bool:
        """Whether this payload was planned at this place."""
        return (id(state), attack.argument, attack.place, attack.payload.id) in self._held

    def add(self, state: State, attacks: Iterable[Attack]) -> None:
        """Plan a subject's attacks, given the likeliest first: the places and classes that the baseline points to come
        before others, and each one's second payload after every equal's first.
        """
        ranked: list[tuple[tuple[int, int, int], Cell, Attack]] = []
        for number, attack in enumerate(attacks):
            payload_class = attack.payload.payload_class
            self._held.add((id(state), attack.argument, attack.place, attack.payload.id))
            key = (id(state), attack.argument, payload_class)
            cell = self.cells.setdefault(key, Cell(state, attack.argument, payload_class))
            behind = _LAST if payload_class is PayloadClass.EXHAUSTION else _BEHIND[attack.rank]
            ranked.append(((cell.planned + behind, attack.rank, number), cell, attack))
            cell.planned += 1
        ranked.sort(key=lambda entry: entry[0])
        if ranked:
            self._queues.append(deque((cell, attack) for _, cell, attack in ranked))

    def turns(self) -> Iterator[tuple[Cell, Attack]]:
        """The attacks in order, those that are added meanwhile included; of a cell that was settled none."""
        while self._queues:
            queue = self._queues.popleft()
            while queue:
                cell, attack = queue.popleft()
                if not cell.settled:
                    yield cell, attack
                    break
            if queue:
                self._queues.append(queue)
