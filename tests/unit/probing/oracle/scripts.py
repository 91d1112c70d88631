"""Whole recordings in parts that can be left out or spoilt: a command injection that is proven, step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.model.call import Call, Purpose
from harness.model.payload import Boundary
from harness.model.recording import Event, Grade
from tests.unit.probing.oracle.tape import DATA, NONCES, OUTSIDE, Tape, call, created, made, world


@dataclass(frozen=True)
class Part:
    """One call of the script. `works`: its effect shows; `session`: in a start of its own with this world."""

    id: str
    purpose: Purpose
    nonce: str
    works: bool
    session: str = ""
    world: str = ""
    network: str = ""
    boundary: Boundary | None = DATA
    about: str = "c1"
    payload: str = "command-injection/semicolon"
    state: str = "answered"
    marked: bool = True
    predicted: bool = True
    planned: bool = True
    claimed: bool = False
    item: str = "show"
    dirty: bool = False


@dataclass(frozen=True)
class Script:
    """A finding call with what follows it. The default proves a command injection."""

    parts: tuple[Part, ...] = (
        Part("c1", Purpose.PAYLOAD, NONCES[0], True, about=""),
        Part("c2", Purpose.CONTROL, NONCES[1], False),
        Part("c3", Purpose.DOCUMENTED, NONCES[2], False),
        Part("c4", Purpose.CONFIRM, NONCES[3], True, session="again-1", world="w2"),
        Part("c5", Purpose.CONFIRM, NONCES[4], True, session="again-2", world="w3"),
    )
    grade: Grade = Grade.TRUSTED
    boundaries: tuple[Boundary, ...] = (DATA,)
    boundaries_late: bool = False
    lost: frozenset[str] = frozenset()
    worlds: bool = True

    def change(self, number: int, **fields: object) -> Script:
        """The script with one part (counted from 1) changed."""
        parts = list(self.parts)
        parts[number - 1] = replace(parts[number - 1], **fields)  # type: ignore[arg-type]
        return replace(self, parts=tuple(parts))

    def without(self, number: int) -> Script:
        """The script without one part (counted from 1)."""
        return replace(self, parts=tuple(part for n, part in enumerate(self.parts, 1) if n != number))

    def tape(self) -> Tape:
        """The recording."""
        tape = Tape(grade=self.grade)
        self._start(tape, "main", "w1", "")
        if not self.boundaries_late:
            tape.boundaries(*self.boundaries)
        for part in self.parts:
            if part.session:
                self._end(tape)
                self._start(tape, part.session, part.world, part.network)
            if part.dirty:
                other = call("x" + part.id, Purpose.PAYLOAD, {"name": "other"}, here=tape.here, nonce="f" * 16)
                tape.call(other)
            made_call = self._call(part, tape)
            doings: list[Event] = []
            if part.works:
                doings.append(made(_path(part), claimed=part.claimed))
            tape.call(made_call, *doings, state=part.state, marked=part.marked)
            if not part.planned:
                from harness.probing.oracle import call_digest

                tape.unplanned.add(call_digest(made_call))
        self._end(tape)
        if self.boundaries_late:
            tape.boundaries(*self.boundaries)
        return tape

    def _start(self, tape: Tape, session: str, nonce: str, network: str) -> None:
        if self.worlds:
            tape.start(session, nonce, network=network)
        else:
            tape.session, tape.here = session, world(nonce)

    def _end(self, tape: Tape) -> None:
        tape.end(lost=1 if tape.session in self.lost else 0)

    def _call(self, part: Part, tape: Tape) -> Call:
        quiet = part.purpose in (Purpose.CONTROL, Purpose.DOCUMENTED)
        value = f"notes {part.nonce}" if quiet else f"x; touch {_path(part)}"
        return call(
            part.id,
            part.purpose,
            {"name": value},
            *((created(_path(part)),) if part.predicted else ()),
            nonce=part.nonce,
            here=tape.here,
            boundary=part.boundary,
            about=part.about,
            payload=part.payload,
            item=part.item,
        )


def _path(part: Part) -> str:
    return f"{OUTSIDE}/made-{part.nonce}"
