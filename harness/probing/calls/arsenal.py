"""The kit of a real run: arguments by synthesis, payloads from the catalog, placed where the two fit. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.model.base import JsonObject, JsonValue, canonical_json, sha256_hex
from harness.model.options import NetworkChoice
from harness.model.payload import Boundary, BoundaryKind, Payload, PayloadClass
from harness.model.world import World
from harness.probing.answers import SAMPLING
from harness.probing.boundaries import boundary_for
from harness.probing.calls.kit import Attack, Filled, Known, Rank, Tried, Usage
from harness.probing.calls.learned import learn
from harness.probing.calls.subjects import Subject
from harness.probing.payloads.expansion import Expansion, expand
from harness.probing.payloads.matching import SUGGESTS, choose
from harness.probing.synthesis.draft import Attempt, Context, Draft, InjectionPoint
from harness.probing.synthesis.drafting import companions, draft, inject, retry
from harness.probing.synthesis.pointers import get, put
from harness.probing.synthesis.walker import Regexes

#: Drafts that are kept: one for each subject and world at hand.
MOST_DRAFTS = 2_000
#: What a server may do in another way, with a program instead of its own client, when the network is dead.
FALLBACKS = frozenset({PayloadClass.COMMAND_INJECTION, PayloadClass.ARGUMENT_INJECTION})


class Arsenal:
    """Implements `Kit`. `payloads` in the catalog's order; `regexes` answers for patterns of schemas.

    `commands`: programs that the server's start allows.
    """

    def __init__(
        self,
        payloads: Sequence[Payload],
        *,
        seed: int = 0,
        regexes: Regexes | None = None,
        commands: tuple[str, ...] = (),
    ) -> None:
        self._payloads = tuple(payloads)
        self._seed = seed
        self._regexes = regexes
        self._drafts: dict[str, Draft] = {}
        self._learned: dict[Subject, JsonObject] = {}
        self._commands = commands

    def baseline(self, subject: Subject, world: World, known: Known, tried: Tried) -> JsonObject | None:
        """The draft's first candidate, then what the refusals suggest; they may tell of more than was declared."""
        if tried and (schema := learn(self._schema(subject), tried[-1][1])) is not None:
            self._learned[subject] = schema
            made = self._draft(subject, world, known)
            before = [arguments for arguments, _ in tried]
            return next((candidate for candidate in made.candidates if candidate not in before), None)
        made = self._draft(subject, world, known)
        return retry(made, [Attempt(arguments=arguments, text=text) for arguments, text in tried])

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
        """Every payload at every place of the draft that it fits; places seen used so come first."""
        made = self._draft(subject, world, {})
        words = f"{subject.name}\n{subject.description}"
        found = []
        kinds = {boundary.kind for boundary in boundaries}
        payloads = [
            payload
            for payload in self._payloads
            if _worth(payload, network, again=again)
            and (payload.boundary is not BoundaryKind.SECRETS or payload.boundary in kinds)
        ]
        for point in made.points:
            for payload, observed in choose(payloads, point, _uses(point, usage), self._commands):
                boundary = boundary_for(
                    payload.payload_class, payload.boundary, subject.name, words, *_called(subject, point), boundaries
                )
                if boundary is not None:
                    suggested = payload.payload_class in SUGGESTS.get(point.role, ())
                    rank = Rank.OBSERVED if observed else Rank.SUGGESTED if suggested else Rank.ANY
                    found.append(Attack(payload, point.pointer, point.place, boundary, rank))
        return tuple(found)

    def fill(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str, *, control: bool
    ) -> Filled | None:
        """The payload in the benign arguments of this world."""
        made = self._draft(subject, world, {})
        point = _point(made, attack)
        filled = self._expand(attack, point, arguments, world, nonce, control=control)
        if point is None or filled is None:
            return None
        try:
            steps = _placed(arguments, made, point, filled)
        except KeyError:
            return None
        return Filled(steps=steps, effects=filled.effects)

    def documented(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str
    ) -> JsonObject | None:
        """The same effect asked for plainly, where the payload says how; else the benign arguments themselves."""
        made = self._draft(subject, world, {})
        point = _point(made, attack)
        filled = self._expand(attack, point, arguments, world, nonce, control=False)
        if point is None or filled is None or not (filled.documented or filled.documented_elements):
            return arguments or None
        whole = bool(filled.documented_elements) and point.siblings
        try:
            return inject(arguments, made, point, list(filled.documented_elements) if whole else filled.documented)
        except KeyError:
            return None

    def _expand(
        self,
        attack: Attack,
        point: InjectionPoint | None,
        arguments: JsonObject,
        world: World,
        nonce: str,
        *,
        control: bool,
    ) -> Expansion | None:
        if point is None:
            return None
        return expand(
            attack.payload,
            world,
            base=_benign(point, arguments),
            nonce=nonce,
            root=attack.boundary.value,
            control=control,
            programs=self._commands,
        )

    def _schema(self, subject: Subject) -> JsonValue:
        return self._learned.get(subject, subject.schema)

    def _draft(self, subject: Subject, world: World, known: Known) -> Draft:
        schema = self._schema(subject)
        given: JsonObject = {name: list(values) for name, values in sorted(known.items())}
        key = sha256_hex(canonical_json([subject.kind, subject.name, subject.place, world.nonce, given, schema]))
        made = self._drafts.get(key)
        if made is None:
            while len(self._drafts) >= MOST_DRAFTS:
                del self._drafts[next(iter(self._drafts))]
            context = Context(world=world, seed=self._seed, commands=self._commands, found=dict(known))
            made = self._drafts[key] = draft(
                subject.name,
                schema,
                context,
                description=subject.description,
                place=subject.place,
                regexes=self._regexes,
            )
        return made


def _uses(point: InjectionPoint, usage: Usage) -> frozenset[str]:
    """What was seen of a place; of a list, what was seen of its elements."""
    below = [uses for pointer, uses in usage.items() if point.siblings and pointer.startswith(f"{point.pointer}/")]
    return frozenset().union(usage.get(point.pointer, frozenset()), *below)


def _benign(point: InjectionPoint, arguments: JsonObject) -> str:
    """The text at a place in the call that succeeded, or the draft's where the call did without."""
    try:
        value = get(arguments, point.pointer)
    except (KeyError, ValueError):
        value = point.value
    return value if isinstance(value, str) else "" if value is None else str(value)


def _called(subject: Subject, point: InjectionPoint) -> tuple[str, str]:
    """What a place is called and what is said of it, by what the target says of itself beforehand.

    What it tells a model to write is not: that a model's text is run as code is by design where the tool says so.
    """
    return ("code", subject.description) if subject.asks == SAMPLING else (point.name, point.description)


def _point(made: Draft, attack: Attack) -> InjectionPoint | None:
    """The attack's place in a draft."""
    return next((p for p in made.points if p.pointer == attack.argument and p.place == attack.place), None)


def _worth(payload: Payload, network: NetworkChoice, *, again: bool) -> bool:
    """Whether a payload is for this mode; after another mode, whether it can do what it did not do there."""
    if payload.network:
        return payload.network == network
    return not again or payload.payload_class in FALLBACKS


def _placed(arguments: JsonObject, made: Draft, point: InjectionPoint, filled: Expansion) -> tuple[JsonObject, ...]:
    """The arguments of each step."""
    values: list[JsonValue] = [list(filled.elements) if filled.elements and point.siblings else filled.value]
    for number, text in enumerate(filled.steps):
        elements = filled.step_elements[number] if number < len(filled.step_elements) else ()
        values.append(list(elements) if elements and point.siblings else text)
    if not filled.steps:
        values += [list(elements) for elements in filled.step_elements if point.siblings]
    if point.type in ("integer", "number"):
        values = [_number(value) for value in values]
    beside = companions(made, filled.companions)
    steps = []
    for value in values:
        placed = inject(arguments, made, point, value)
        changed: JsonValue = placed
        for pointer, text in beside.items():
            if pointer != point.pointer:
                changed = put(changed, pointer, text)
        assert isinstance(changed, dict)
        steps.append(changed)
    return tuple(steps)


def _number(value: JsonValue) -> JsonValue:
    """A text of digits as the number that its place asks for."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,15}", value, re.ASCII) else value
