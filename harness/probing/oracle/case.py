"""What a seen effect needs to become a proof: a conversation with the planner, one need at a time.

The case only asks; whether a finding is CONFIRMED is judged anew from the records (`proof`), which trusts no case.
"""

from __future__ import annotations

from enum import StrEnum

from harness.model.base import JsonValue, Record
from harness.model.call import Call, Outcome, Purpose
from harness.model.payload import Effect, EffectKind, PayloadClass
from harness.model.world import World
from harness.probing.oracle.crossing import ADMISSIBLE, UNBOUND, admissible
from harness.probing.oracle.effects import PROVING, Sighting, sightings
from harness.probing.oracle.minimise import Minimiser

#: Clean starts in which the effect has to show, with a nonce each.
CONFIRMATIONS = 2
#: Calls that may be spent on making a payload smaller. With controls and confirmations a case stays below 12 calls.
MINIMISATIONS = 6


#: An address is as small as it gets, and a call to a network takes its time.
_SMALL = frozenset({PayloadClass.SSRF})


class Stage(StrEnum):
    """Where a case stands. The last five are its ends."""

    CONTROL = "control"
    DOCUMENTED = "documented"
    CONFIRM = "confirm"
    MINIMISE = "minimise"
    CONFIRMED = "confirmed"
    UNCONTROLLED = "uncontrolled"  # a control shows the effect too, or could not be made: nothing is proven
    GRANTED = "granted"  # documented use already does it: a capability
    SEEN = "seen"  # it did not show again, or can't be proven: DYNAMIC or PROTOCOL
    CAPABILITY = "capability"  # there is no boundary to cross


_ENDS = frozenset({Stage.CONFIRMED, Stage.UNCONTROLLED, Stage.GRANTED, Stage.SEEN, Stage.CAPABILITY})


class Need(Record):
    """The call that a case needs next.

    CONTROL: the payload's inert twin in the same place; DOCUMENTED: what the payload smuggles, asked for in the way
    the tool documents (a plain command to a tool that runs commands, a path inside for a tool that reads files);
    CONFIRM: the payload rendered for another world with another nonce; MINIMISE: `value` in the place of the payload,
    the nonce of the case's own call in it replaced by a fresh one. Each carries the effects that the payload would
    have, rendered with its own nonce, and `about`. `clean`: in a new session with a fresh world, before any other
    payload is sent there.
    """

    purpose: Purpose
    about: str
    clean: bool = False
    value: str | None = None


class Case:
    """One seen effect on its way. Make one with `Case.open`; ask `next`, make the call, tell with `take`."""

    def __init__(self, call: Call, seen: tuple[Sighting, ...]) -> None:
        self.call = call
        self.seen = 1
        self.tried = 1
        self._stage = Stage.CONTROL
        self._effects = tuple(sighting.effect for sighting in seen)
        proofs = {sighting.effect.kind for sighting in seen if sighting.proof}
        self._telling = proofs or {effect.kind for effect in self._effects}
        self._worlds = {call.world}
        self._nonces = {call.nonce}
        self._confirmed = 0
        self._retried = False
        self._minimiser: Minimiser | None = None
        if call.payload_class in UNBOUND:
            self._stage = Stage.SEEN
        elif (
            call.payload_class is None
            or call.boundary is None
            or call.boundary.kind not in ADMISSIBLE[call.payload_class]
        ):
            self._stage = Stage.CAPABILITY
        elif all(effect.kind is EffectKind.ACCEPTED for effect in self._effects):
            self._stage = Stage.SEEN  # its control is any call in order, and that is served too
        elif call.step == 1 and not admissible(call):  # a further step may be of an item that it does not bind
            self._stage = Stage.SEEN

    @classmethod
    def open(cls, call: Call, outcome: Outcome, world: World) -> Case | None:
        """A case for a payload call whose outcome shows a predicted effect, else None."""
        seen = sightings(call, outcome, world)
        return cls(call, seen) if seen and call.purpose is Purpose.PAYLOAD else None

    @property
    def stage(self) -> Stage:
        """Where it stands."""
        return self._stage

    @property
    def over(self) -> bool:
        """Whether nothing more is needed."""
        return self._stage in _ENDS

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What was seen of the prediction in the call that opened the case."""
        return self._effects

    @property
    def value(self) -> str | None:
        """The smallest form of the payload that still worked; None before it was made smaller."""
        return self._minimiser.best if self._minimiser is not None else None

    def next(self) -> Need | None:
        """What is needed now, or None when the case is over. Asking again before `take` asks the same."""
        if self._stage is Stage.MINIMISE:
            assert self._minimiser is not None
            if self._asked is None:
                self._asked = self._minimiser.next()
            if self._asked is not None:
                return Need(purpose=Purpose.MINIMISE, about=self.call.id, value=self._asked)
            self._stage = Stage.CONFIRMED
        purpose = {
            Stage.CONTROL: Purpose.CONTROL,
            Stage.DOCUMENTED: Purpose.DOCUMENTED,
            Stage.CONFIRM: Purpose.CONFIRM,
        }.get(self._stage)
        if purpose is None:
            return None
        return Need(purpose=purpose, about=self.call.id, clean=purpose is Purpose.CONFIRM)

    _asked: str | None = None

    def take(self, call: Call, outcome: Outcome, world: World) -> None:
        """What came of the call that was needed. Raises ValueError for a call of another case or purpose."""
        need = self.next()
        if need is None or call.about != self.call.id or call.purpose is not need.purpose:
            raise ValueError(f"this case did not ask for call {call.id}")
        seen = sightings(call, outcome, world)
        shows = any(sighting.effect.kind in self._telling for sighting in seen)
        match self._stage:
            case Stage.CONTROL:
                self._control(outcome, seen=shows, then=Stage.DOCUMENTED, otherwise=Stage.UNCONTROLLED)
            case Stage.DOCUMENTED:
                self._control(outcome, seen=shows, then=Stage.CONFIRM, otherwise=Stage.GRANTED)
            case Stage.CONFIRM:
                self._confirm(call, outcome, seen)
            case _:
                assert self._minimiser is not None
                self._asked = None
                self._minimiser.take(seen=bool(seen))

    def cannot(self) -> None:
        """The planner has no way to make the call that was asked for, or no time left for it."""
        if self._stage is Stage.MINIMISE:
            self._stage = Stage.CONFIRMED
        elif not self.over:
            self._stage = Stage.SEEN if self._stage is Stage.CONFIRM else Stage.UNCONTROLLED

    def _control(self, outcome: Outcome, *, seen: bool, then: Stage, otherwise: Stage) -> None:
        if seen:
            self._stage = otherwise
        elif not conclusive(outcome):
            self._again(Stage.UNCONTROLLED)
        else:
            provable = any(effect.kind in PROVING for effect in self._effects)
            # Effects that prove nothing are not worth clean starts: they are told as they were seen.
            self._stage = then if provable or then is Stage.DOCUMENTED else Stage.SEEN
            self._retried = False

    def _confirm(self, call: Call, outcome: Outcome, seen: tuple[Sighting, ...]) -> None:
        if not seen and outcome.state == "unsent":
            self._again(Stage.SEEN)
            return
        self.tried += 1
        fresh = call.world not in self._worlds and call.nonce not in self._nonces
        if not any(sighting.proof for sighting in seen) or not fresh:
            self.seen += bool(seen)
            self._stage = Stage.SEEN
            return
        self.seen += 1
        self._worlds.add(call.world)
        self._nonces.add(call.nonce)
        self._confirmed += 1
        if self._confirmed < CONFIRMATIONS:
            return
        value = at(call.holder, call.argument)
        self._stage = Stage.CONFIRMED
        if isinstance(value, str) and call.steps == 1 and call.payload_class not in _SMALL:
            # Asked for in the words of the opening call, so that one nonce is to be replaced, whoever asks.
            old, new = (call.nonce, self.call.nonce) if call.nonce and self.call.nonce else ("", "")
            value = value.replace(old, new) if old else value
            keep = [word.replace(old, new) if old else word for word in _words(call)]
            keep = [word for word in keep if word in value]
            self._minimiser = Minimiser(value, keep, MINIMISATIONS)
            self._stage = Stage.MINIMISE

    def _again(self, otherwise: Stage) -> None:
        """One more try for what was no answer; a second one ends the case."""
        if self._retried:
            self._stage = otherwise
        self._retried = True


def conclusive(outcome: Outcome) -> bool:
    """Whether the absence of an effect in this outcome means something: an answer came, and the records are whole."""
    return outcome.state in ("answered", "tool-error", "error") and outcome.complete and not outcome.cut


def _words(call: Call) -> list[str]:
    """What a smaller payload has to keep: the nonce, and the paths and addresses of the prediction."""
    words = [call.nonce]
    for effect in call.effects:
        words += [effect.path, effect.address]
    return [word for word in words if word]


def at(value: JsonValue, pointer: str) -> JsonValue:
    """What stands at a JSON pointer (RFC 6901), or None."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list | tuple) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
