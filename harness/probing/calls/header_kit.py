"""Payloads in the headers of the request that carries a valid call, over HTTP. Pure.

Most headers are read the same way whichever tool is called, so each is tried with few of them: those whose names share
a word with it, else the first. The call's arguments stay the benign ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.model.base import JsonObject, sha256_hex
from harness.model.options import NetworkChoice
from harness.model.payload import Boundary, BoundaryKind, EffectKind, Payload, PayloadClass
from harness.model.plan import Action, ActionKind, Observation
from harness.model.surface import Surface
from harness.model.world import World
from harness.probing.boundaries import boundary_for
from harness.probing.calls.kit import Attack, Filled, Rank
from harness.probing.calls.subjects import Subject
from harness.probing.payloads.expansion import expand
from harness.probing.payloads.headers import (
    header_names,
    header_points,
    headers_beside,
    is_credential,
    other_points,
)
from harness.probing.payloads.matching import SUGGESTS, choose
from harness.probing.synthesis.draft import InjectionPoint
from harness.probing.synthesis.words import words_of

PLACE = "header"
#: The header by which a browser says which name it believes to speak to.
HOST = "Host"
#: Bounds: headers that take an address and others, subjects for each that share a word with it, or where none
#: does, and payloads at one whose name says what it is for, and at any other.
MOST_ADDRESSES = 12
MOST_OTHERS = 8
MOST_SUBJECTS = 2
MOST_UNTOLD = 4
MOST_NAMED = 20
MOST_UNNAMED = 8
MOST_VALUE = 4_000
#: What may stand in a header (RFC 9110, section 5.5), without bytes beyond ASCII.
_SENDABLE = re.compile(r"[!-~](?:[\t -~]*[!-~])?|")
#: Classes of payloads that have nothing to do with the values of the server's own headers.
_OF_REQUESTS = frozenset({PayloadClass.DNS_REBINDING, PayloadClass.MISSING_AUTHENTICATION})


class HeaderReader:
    """Asks once for the headers that the target's source and documents name; `names` then holds them."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._asked = False

    def next(self, observation: Observation | None) -> Action | None:
        """The question, then None."""
        if observation is not None:
            self.names = observation.headers
        if self._asked:
            return None
        self._asked = True
        return Action(number=0, kind=ActionKind.READ_SOURCE, what="headers")


class HeaderKit:
    """`payloads` in the catalog's order; `names`: headers that the source names.

    What the server declares is read here; refusals are told with `hear`.
    """

    def __init__(self, payloads: Sequence[Payload], names: Iterable[str], surface: Surface) -> None:
        self._payloads = tuple(payloads)
        said = [surface.instructions or "", *(str(item.value) for item in surface.items)]
        self._names = {name.lower(): name for name in (*header_names(said), *names)}

    @property
    def names(self) -> tuple[str, ...]:
        """The server's own headers that are known of."""
        return tuple(self._names.values())

    def hear(self, text: str, world: World) -> dict[str, str]:
        """Headers that a refusal asks for, with benign values: a made-up credential, a public address, a word."""
        asked = header_names([text[:4_000]])
        for name in asked:
            self._names.setdefault(name.lower(), name)
        return {name: self._benign(name, world) for name in asked}

    def attacks(
        self,
        subjects: Sequence[Subject],
        world: World,
        boundaries: tuple[Boundary, ...],
        *,
        network: NetworkChoice,
    ) -> Iterator[tuple[Subject, Attack]]:
        """Every payload that fits a header and has a boundary to cross, with the subject that it is tried with.

        `subjects` in the order in which they are worth to be called.
        """
        for payload in self._payloads:
            if payload.payload_class in _OF_REQUESTS:
                yield from self._of_requests(payload, subjects, boundaries)
        usual = [p for p in self._payloads if p.payload_class not in _OF_REQUESTS and p.network in ("", network)]
        for point in (*header_points(self.names)[:MOST_ADDRESSES], *other_points(self.names)[:MOST_OTHERS]):
            ranked = self._fitting(point, usual)
            for subject in _speaking_of(point.name, subjects):
                for payload, rank in ranked:
                    boundary = self._boundary(payload, subject, point, boundaries)
                    if boundary is not None:
                        yield subject, Attack(payload, point.pointer, PLACE, boundary, rank)

    def fill(self, attack: Attack, arguments: JsonObject, world: World, nonce: str, *, control: bool) -> Filled | None:
        """The payload, or its inert twin, in its header beside benign arguments; None where it can't stand there."""
        made = expand(
            attack.payload,
            world,
            base=self._benign(attack.argument, world),
            nonce=nonce,
            root=attack.boundary.value,
            control=control,
        )
        if made is None or len(made.value) > MOST_VALUE or not _SENDABLE.fullmatch(made.value):
            return None
        beside = headers_beside(attack.argument, self.names, _token(world, attack.argument))
        return Filled(
            steps=(arguments,),
            effects=made.effects,
            headers={**beside, **made.companions, attack.argument: made.value},
        )

    def _of_requests(
        self, payload: Payload, subjects: Sequence[Subject], boundaries: tuple[Boundary, ...]
    ) -> Iterator[tuple[Subject, Attack]]:
        """What is wrong with the request itself, tried once with the first that works."""
        wanted = "origin" if payload.payload_class is PayloadClass.DNS_REBINDING else "credential"
        boundary = next((b for b in boundaries if b.kind is BoundaryKind.SESSION and b.value.startswith(wanted)), None)
        if boundary is None or not subjects:
            return
        header = HOST if wanted == "origin" else boundary.value.partition(" ")[2]
        if not payload.applies.names or set(payload.applies.names) & set(words_of(header)):
            yield subjects[0], Attack(payload, header, PLACE, boundary, Rank.OBSERVED)

    def _fitting(self, point: InjectionPoint, payloads: Sequence[Payload]) -> list[tuple[Payload, Rank]]:
        """Payloads made for headers, then those for arguments of the same role that are one text."""
        made_for = [payload for payload, _ in choose(payloads, point, ())]
        as_argument = point.model_copy(update={"place": "argument"})
        suggested = SUGGESTS.get(point.role, ())
        found = [(payload, Rank.SUGGESTED) for payload in made_for if payload.payload_class in suggested]
        for payload, _ in choose(payloads, as_argument, ()):
            if payload.steps or payload.companions or payload.control_steps or payload in made_for or _spent(payload):
                continue
            if payload.payload_class in suggested:
                found.append((payload, Rank.SUGGESTED))
            elif not suggested:
                found.append((payload, Rank.ANY))
        return found[: MOST_NAMED if suggested else MOST_UNNAMED]

    def _boundary(
        self, payload: Payload, subject: Subject, point: InjectionPoint, boundaries: tuple[Boundary, ...]
    ) -> Boundary | None:
        words = f"{subject.name}\n{subject.description}"
        return boundary_for(payload.payload_class, payload.boundary, subject.name, words, point.name, "", boundaries)

    def _benign(self, name: str, world: World) -> str:
        if name == HOST:
            return ""
        if is_credential(name):
            return _token(world, name)
        if header_points([name]):
            return f"http://www.{world.domain}"
        role = next((point.role for point in other_points([name])), "")
        files = (item.path for item in world.items if item.where == "inside" and item.kind == _kind_of(role))
        return world.root if role == "directory" else next(files, "sample")


def _kind_of(role: str) -> str:
    """The kind of planted thing that a header of this role names in a benign request."""
    return {"path": "file", "database": "database"}.get(role, "")


def _token(world: World, name: str) -> str:
    """A credential for this world: of no known shape, and no word like a placeholder."""
    return sha256_hex(f"{world.nonce}/{name.lower()}")[:40]


def _speaking_of(name: str, subjects: Sequence[Subject]) -> tuple[Subject, ...]:
    """The subjects to try a header with; where no name tells, the first few."""
    words = set(words_of(name)) - {"x"}
    shared = [subject for subject in subjects if words & set(words_of(subject.name))]
    return tuple(shared[:MOST_SUBJECTS] or subjects[:MOST_UNTOLD])


def _spent(payload: Payload) -> bool:
    """Whether it only exhausts: a header is bounded by every HTTP server."""
    return all(effect.kind is EffectKind.EXHAUSTED for effect in payload.effects)
