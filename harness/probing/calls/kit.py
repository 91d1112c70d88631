"""What the planner of calls needs of argument synthesis and of the payload catalog: one small door.

It is given to the planner, so that its conversations can be held with a made-up one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol, TypeAlias

from harness.model.base import JsonObject
from harness.model.options import NetworkChoice
from harness.model.payload import Boundary, Effect, Payload
from harness.model.world import World
from harness.probing.calls.subjects import Subject

#: By JSON pointer into the arguments: what was observed of the value there (see `Applies.observed`).
Usage: TypeAlias = Mapping[str, frozenset[str]]
#: Values seen in earlier results, by the name that they had there, newest first.
Known: TypeAlias = Mapping[str, tuple[str, ...]]

#: Arguments that were tried, and the words of the refusal.
Tried: TypeAlias = tuple[tuple[JsonObject, str], ...]


@dataclass(frozen=True)
class Filled:
    """A payload in the arguments of calls, those of each step in order, and what is predicted of them."""

    steps: tuple[JsonObject, ...]
    effects: tuple[Effect, ...]
    headers: Mapping[str, str] = field(default_factory=dict)


class Rank(IntEnum):
    """What points to a payload at a place: what was seen of it, what it is called, or nothing."""

    OBSERVED = 0
    SUGGESTED = 1
    ANY = 2


@dataclass(frozen=True)
class Attack:
    """One payload that fits one place in a subject's arguments, and the boundary that its effect would cross.

    `argument`: pointer to the place; `place`: what it is (see `Applies.places`).
    """

    payload: Payload
    argument: str
    place: str
    boundary: Boundary
    rank: Rank = Rank.ANY


class Kit(Protocol):
    """Synthesis and catalog."""

    def baseline(self, subject: Subject, world: World, known: Known, tried: Tried) -> JsonObject | None:
        """The next arguments that should succeed, given those that did not; None when there are no others."""
        ...

    def attacks(
        self,
        subject: Subject,
        arguments: JsonObject,
        usage: Usage,
        world: World,
        boundaries: tuple[Boundary, ...],
        *,
        network: NetworkChoice,
        again: bool = False,
    ) -> tuple[Attack, ...]:
        """Every payload that fits a place in these arguments and has a boundary to cross, the likeliest first.

        `network`: the mode of the fake internet. `again`: another mode was tried before; only what can differ counts.
        """
        ...

    def fill(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str, *, control: bool
    ) -> Filled | None:
        """The payload, or its inert twin, filled in; None when this world has nothing for it."""
        ...

    def documented(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str
    ) -> JsonObject | None:
        """Arguments of documented use that must not already grant the attack's effect; None when there are none.

        `nonce`: the one that the effect is predicted with.
        """
        ...
