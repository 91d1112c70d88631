"""Synthesis and payloads behind the planner's door (`harness.probing.calls.kit.Kit`)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from harness.model.base import JsonObject, JsonValue, canonical_json
from harness.model.payload import Boundary, BoundaryKind, Payload
from harness.model.world import World
from harness.probing.boundaries import boundary_for
from harness.probing.calls.kit import Attack, Filled, Known, Usage
from harness.probing.calls.subjects import Subject
from harness.probing.payloads.expansion import Expansion, expand
from harness.probing.payloads.matching import choose
from harness.probing.synthesis.draft import Attempt, Context, Draft, InjectionPoint
from harness.probing.synthesis.drafting import companions, draft, inject, retry
from harness.probing.synthesis.pointers import get
from harness.probing.synthesis.walker import Regexes

#: Bounds of what is planned for one subject.
MOST_POINTS = 24
MOST_ATTACKS = 400


class CatalogKit:
    """`payloads`: the catalog; `network`: the mode of this run (`answer`, `refuse`, or empty for none).

    `commands`: programs that the start allows; `regexes`: what is known of the schemas' patterns; `refused`: canonical
    JSON of candidates that their own schema refuses.
    """

    def __init__(
        self,
        payloads: Sequence[Payload],
        *,
        seed: int = 0,
        network: str = "",
        commands: Sequence[str] = (),
        regexes: Regexes | None = None,
        spare: Mapping[str, Sequence[JsonObject]] | None = None,
    ) -> None:
        self._payloads = tuple(p for p in payloads if not p.network or not network or p.network == network)
        self._seed = seed
        self._commands = tuple(commands)
        self._regexes = regexes
        self._spare = dict(spare or {})
        self._drafts: dict[tuple[str, str, str, str], Draft] = {}

    def baseline(
        self, subject: Subject, world: World, known: Known, tried: Sequence[tuple[JsonObject, str]]
    ) -> JsonObject | None:
        """The next arguments that should succeed, given those that did not and why; None when there are no others."""
        made = self._draft(subject, world, known)
        found = retry(made, [Attempt(arguments=arguments, text=text) for arguments, text in tried])
        if found is not None:
            return found
        used = {canonical_json(arguments) for arguments, _ in tried}
        return next((a for a in self._spare.get(subject.name, ()) if canonical_json(a) not in used), None)

    def attacks(
        self, subject: Subject, arguments: JsonObject, usage: Usage, world: World, boundaries: tuple[Boundary, ...]
    ) -> tuple[Attack, ...]:
        """Every payload that fits a place in these arguments and has a boundary to cross, the likeliest first."""
        found: list[tuple[tuple[int, int, int], Attack]] = []
        points = self._draft(subject, world, {}).points
        for number, point in enumerate(sorted(points, key=lambda point: point.optional)[:MOST_POINTS]):
            here = _present(point, arguments)
            seen = usage.get(point.pointer, frozenset())
            if point.siblings:
                seen = frozenset().union(*(uses for at, uses in usage.items() if at.startswith(f"{point.pointer}/")))
            for rank, (payload, observed) in enumerate(choose(self._payloads, here, seen)):
                boundary = boundary_for(
                    payload.payload_class,
                    payload.boundary,
                    subject.name,
                    f"{subject.name}\n{subject.description}",
                    point.name,
                    point.description,
                    boundaries,
                )
                if boundary is None or not _allowed(payload, boundary):
                    continue
                attack = Attack(
                    payload=payload, argument=point.pointer, place=here.place, boundary=boundary, observed=observed
                )
                found.append(((0 if observed else 1, rank, number), attack))
        found.sort(key=lambda entry: entry[0])
        return tuple(attack for _, attack in found[:MOST_ATTACKS])

    def fill(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str, *, control: bool
    ) -> Filled | None:
        """The payload, or its inert twin, filled in; None when this world has nothing for it."""
        found = self._expanded(subject, attack, arguments, world, nonce, control=control)
        if found is None:
            return None
        expansion, made, point = found
        values: list[JsonValue] = (
            [list(_as_allowed(expansion.elements, attack.boundary))]
            + [list(_as_allowed(step, attack.boundary)) for step in expansion.step_elements]
            if expansion.elements
            else [_first_as_allowed(text, attack.boundary) for text in (expansion.value, *expansion.steps)]
        )
        try:
            base = arguments
            for pointer, value in companions(made, expansion.companions).items():
                if pointer != point.pointer:
                    base = _put(base, made, pointer, value)
            steps = tuple(inject(base, made, point, value) for value in values)
        except (KeyError, ValueError):
            return None
        return Filled(steps=steps, effects=expansion.effects)

    def documented(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str = ""
    ) -> JsonObject | None:
        """Arguments of documented use that must not already grant the attack's effect.

        With a nonce, the effect asked for plainly where the payload says how; else the benign arguments.
        """
        found = self._expanded(subject, attack, arguments, world, nonce, control=False) if nonce else None
        if found is None:
            return arguments
        expansion, made, point = found
        plain: JsonValue = list(expansion.documented_elements) or expansion.documented
        return inject(arguments, made, point, plain) if plain else arguments

    def _expanded(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str, *, control: bool
    ) -> tuple[Expansion, Draft, InjectionPoint] | None:
        made = self._draft(subject, world, {})
        point = next((p for p in made.points if p.pointer == attack.argument), None)
        if point is None:
            return None
        here = _present(point, arguments)
        base = here.value if isinstance(here.value, str) else "" if isinstance(here.value, list) else str(here.value)
        root = attack.boundary.value if attack.boundary.kind is BoundaryKind.ROOT else ""
        expansion = expand(attack.payload, world, base=base, nonce=nonce, root=root, control=control)
        return None if expansion is None else (expansion, made, point)

    def _draft(self, subject: Subject, world: World, known: Known) -> Draft:
        key = (subject.kind, subject.name, world.nonce, canonical_json({k: list(v) for k, v in known.items()}))
        if key not in self._drafts:
            if len(self._drafts) > 500:
                self._drafts.clear()
            context = Context(world=world, seed=self._seed, commands=self._commands, found=dict(known))
            self._drafts[key] = draft(
                subject.name,
                subject.schema,
                context,
                description=subject.description,
                place=subject.place,
                regexes=self._regexes,
            )
        return self._drafts[key]


def _present(point: InjectionPoint, arguments: JsonObject) -> InjectionPoint:
    """The point with the value that stands there in the call that succeeded."""
    try:
        value = get(arguments, point.pointer)
    except (KeyError, ValueError):
        return point
    return point.model_copy(update={"value": value})


def _put(arguments: JsonObject, made: Draft, pointer: str, value: str) -> JsonObject:
    point = InjectionPoint(pointer=pointer, place="argument", name="", value=value)
    return inject(arguments, made, point, value)


def _programs(boundary: Boundary) -> tuple[str, ...]:
    return tuple(boundary.value.split()) if boundary.kind is BoundaryKind.ALLOWLIST else ()


def _allowed(payload: Payload, boundary: Boundary) -> bool:
    """A payload that names a program has no chance where a list of programs is without it."""
    programs = {posixpath.basename(program) for program in _programs(boundary)}
    first = payload.elements[0] if payload.elements else ""
    return not programs or not first or "{" in first or first in programs


def _as_allowed(words: Sequence[str], boundary: Boundary) -> tuple[str, ...]:
    """The words, the first one written as the list of programs has it."""
    programs = _programs(boundary)
    if not words or not programs or words[0] in programs:
        return tuple(words)
    return (next((p for p in programs if posixpath.basename(p) == words[0]), words[0]), *words[1:])


def _first_as_allowed(text: str, boundary: Boundary) -> str:
    first, space, rest = text.partition(" ")
    return f"{_as_allowed((first,), boundary)[0]}{space}{rest}" if space else text
