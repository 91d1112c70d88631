"""The order of attacks: fair over subjects and classes, and first what the records of the baseline point to. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.model.payload import PayloadClass
from harness.probing.calls.kit import Attack, Usage
from harness.probing.calls.state import State

#: What an observed use points to, the likeliest first. A class that no use points to comes after all of these.
POINTS_TO: dict[str, tuple[PayloadClass, ...]] = {
    "in-shell": (PayloadClass.COMMAND_INJECTION, PayloadClass.ALLOWLIST_BYPASS, PayloadClass.ARGUMENT_INJECTION),
    "in-argv": (PayloadClass.ARGUMENT_INJECTION, PayloadClass.ALLOWLIST_BYPASS, PayloadClass.COMMAND_INJECTION),
    "written-path": (PayloadClass.TRAVERSAL_WRITE, PayloadClass.SYMLINK_ESCAPE, PayloadClass.TRAVERSAL_READ),
    "opened-path": (
        PayloadClass.TRAVERSAL_READ,
        PayloadClass.SYMLINK_ESCAPE,
        PayloadClass.TRAVERSAL_WRITE,
        PayloadClass.ARCHIVE_SLIP,
        PayloadClass.XXE,
        PayloadClass.DESERIALISATION,
    ),
    "connected-host": (PayloadClass.SSRF, PayloadClass.HEADER_INJECTION),
    "resolved-host": (PayloadClass.SSRF, PayloadClass.HEADER_INJECTION),
    "in-query": (PayloadClass.SQL,),
    "echoed": (PayloadClass.TEMPLATE_INJECTION, PayloadClass.CODE_EVALUATION),
}
_LAST = 50


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
        self._queues: list[deque[tuple[Cell, Attack]]] = []
        self.cells: dict[tuple[int, str, PayloadClass], Cell] = {}

    def add(self, state: State, attacks: Iterable[Attack], usage: Usage) -> None:
        """Plan a subject's attacks: the classes that the baseline points to first, each class's second payload after
        every class's first.
        """
        ranked: list[tuple[tuple[int, int, int, int], Cell, Attack]] = []
        for number, attack in enumerate(attacks):
            payload_class = attack.payload.payload_class
            key = (id(state), attack.argument, payload_class)
            cell = self.cells.setdefault(key, Cell(state, attack.argument, payload_class))
            rank = rank_of(payload_class, usage.get(attack.argument, frozenset()))
            if attack.observed:
                rank = min(rank, _LAST - 1)
            ranked.append(((rank == _LAST, cell.planned, rank, number), cell, attack))
            cell.planned += 1
        ranked.sort(key=lambda entry: entry[0])
        if ranked:
            self._queues.append(deque((cell, attack) for _, cell, attack in ranked))

    def turns(self) -> Iterator[tuple[Cell, Attack]]:
        """The attacks in order; those of a cell that was settled meanwhile are left out."""
        queues = deque(self._queues)
        while queues:
            queue = queues.popleft()
            while queue:
                cell, attack = queue.popleft()
                if not cell.settled:
                    yield cell, attack
                    break
            if queue:
                queues.append(queue)


def rank_of(payload_class: PayloadClass, usage: Iterable[str]) -> int:
    """How likely a class is where an argument was seen used so: the smaller, the likelier."""
    ranks = [
        classes.index(payload_class) for use, classes in POINTS_TO.items() if use in usage and payload_class in classes
    ]
    return min(ranks, default=_LAST)
