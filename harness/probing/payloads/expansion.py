"""A payload or its control, filled in: what is sent, and what is predicted of it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from harness.model.base import Record
from harness.model.payload import Effect, Payload, PayloadClass
from harness.model.world import World
from harness.probing.payloads.placeholders import ENCODINGS, Missing, Place, fill

#: No payload of ours is larger once it is filled in: a bound for the bounded attacks on size.
MOST_CHARACTERS = 2_000_000


class Expansion(Record):
    """One payload or control, complete.

    `value` replaces the argument's value; `elements`, where not empty, a list argument's elements. `companions`: words
    of other arguments' names, and what they are set to. `steps` and `step_elements`: the values of the further calls.
    `effects` are the payload's prediction with this nonce; for a control, what must not be seen.
    """

    payload: str
    control: bool
    nonce: str
    value: str
    elements: tuple[str, ...] = ()
    companions: dict[str, str] = {}
    steps: tuple[str, ...] = ()
    step_elements: tuple[tuple[str, ...], ...] = ()
    documented: str = ""
    documented_elements: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()

    def sent(self) -> tuple[str, ...]:
        """Every text that is sent."""
        inner = (text for step in self.step_elements for text in step)
        return (self.value, *self.elements, *self.companions.values(), *self.steps, *inner)


def expand(
    payload: Payload,
    world: World,
    *,
    base: str,
    nonce: str,
    root: str = "",
    control: bool = False,
    programs: Sequence[str] = (),
) -> Expansion | None:
    """Fill in a payload, or its control, for a place whose benign value is `base`.

    `nonce`: 20 hex digits, fresh for each call; everything that is drawn follows from it, so that the same nonce gives
    the same expansion. `root`: the boundary, where it is one of the world's roots. `programs`: those that the target's
    list of allowed commands holds, so that a command is written as it stands there. None when this world lacks
    something that the payload needs.
    """
    place = Place(world=world, base=base, nonce=nonce, root=root if root in world.roots else _narrowest(world))

    line = payload.payload_class is PayloadClass.ALLOWLIST_BYPASS

    def value(text: str) -> str:
        text = fill(text, place)
        if line and " " in text:
            first, _, rest = text.partition(" ")
            text = f"{_as_listed((first,), programs)[0]} {rest}"
        for word in payload.encoding:
            text = ENCODINGS[word](text)
        return text[:MOST_CHARACTERS]

    def values(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(value(text) for text in texts)

    def words(texts: tuple[str, ...]) -> tuple[str, ...]:
        return _as_listed(tuple(fill(text, place) for text in texts), programs)

    try:
        return Expansion(
            payload=payload.id,
            control=control,
            nonce=nonce,
            value=value(payload.control if control else payload.template),
            elements=words(payload.control_elements if control else payload.elements),
            companions={name: fill(text, place) for name, text in payload.companions.items()},
            steps=values(payload.control_steps if control else payload.steps),
            step_elements=tuple(
                words(step) for step in (payload.control_step_elements if control else payload.step_elements)
            ),
            documented=fill(payload.documented, place),
            documented_elements=tuple(fill(text, place) for text in payload.documented_elements),
            effects=tuple(
                Effect(
                    kind=effect.kind,
                    path=fill(effect.path, place),
                    text=fill(effect.text, place),
                    address=fill(effect.address, place),
                )
                for effect in payload.effects
            ),
        )
    except Missing:
        return None


def _as_listed(words: tuple[str, ...], programs: Sequence[str]) -> tuple[str, ...]:
    """The words, the first one written as the list of programs has it."""
    if not words or words[0] in programs:
        return words
    listed = (program for program in programs if posixpath.basename(program) == words[0])
    return (next(listed, words[0]), *words[1:])


def _narrowest(world: World) -> str:
    return world.roots[0] if world.roots else world.root
