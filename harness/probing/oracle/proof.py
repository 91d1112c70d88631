"""Whether a recording proves a finding: every condition of CONFIRMED, each a function that says what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.model.call import Purpose
from harness.model.payload import EffectKind
from harness.probing.oracle.case import CONFIRMATIONS
from harness.probing.oracle.crossing import UNBOUND, admissible, bounded
from harness.probing.oracle.effects import PROVING, Sighting
from harness.probing.oracle.sent import joins, sent_texts
from harness.probing.oracle.traces import Facts, Group, Trace


class Standing(StrEnum):
    """What the records make of a payload whose effect was seen."""

    CONFIRMED = "confirmed"
    SEEN = "seen"
    GRANTED = "granted"  # documented use shows it too: by design
    CAPABILITY = "capability"  # no boundary is known that it would cross
    UNSPECIFIC = "unspecific"  # an inert control shows it too


@dataclass(frozen=True)
class Judgement:
    """The outcome. `seen` of `tried` tries showed the effect; `missing`: why it is not CONFIRMED, in order.

    `confirming`: the tries that prove it; `controls` and `documented`: the calls that stayed without effect.
    """

    standing: Standing
    payload: Group
    seen: int
    tried: int
    missing: tuple[str, ...] = ()
    confirming: tuple[Group, ...] = ()
    controls: tuple[Group, ...] = ()
    documented: tuple[Group, ...] = ()
    minimal: Group | None = None

    @property
    def constant(self) -> bool:
        """Whether what was seen is the same for every nonce, so that it may stand in an answer by chance."""
        others = (*self.controls, *self.documented, *self.confirming)
        predicted = {e for group in others for trace in group.steps for e in trace.call.effects}
        drawn = [s.effect for s in self.payload.proofs if s.effect.kind in _DRAWN]
        return bool(drawn) and all(effect in predicted for effect in drawn)


#: Effects whose text or path is drawn for each call, not for each world.
_DRAWN = frozenset({EffectKind.CREATED, EffectKind.COMPUTED})
_FRESH = frozenset({EffectKind.CREATED, EffectKind.DISCLOSED, EffectKind.COMPUTED, EffectKind.STUB_CALLED})


def judge(payload: Group, related: Sequence[Group], facts: Facts) -> Judgement:
    """Judge one payload call (or its steps) with all groups that are about it."""
    by: dict[Purpose, list[Group]] = {}
    for group in related:
        by.setdefault(group.call.purpose, []).append(group)
    confirms, controls = by.get(Purpose.CONFIRM, []), by.get(Purpose.CONTROL, [])
    documented = by.get(Purpose.DOCUMENTED, [])
    tried = [group for group in confirms if group.ended]
    seen = 1 + sum(bool(group.sightings) for group in tried)
    kinds = {sighting.effect.kind for sighting in payload.sightings}

    def made(standing: Standing, missing: Sequence[str] = (), confirming: Sequence[Group] = ()) -> Judgement:
        smaller = [group for group in by.get(Purpose.MINIMISE, []) if group.proofs]
        return Judgement(
            standing=standing,
            payload=payload,
            seen=seen,
            tried=1 + len(tried),
            missing=tuple(dict.fromkeys(missing)),
            confirming=tuple(confirming),
            controls=tuple(controls),
            documented=tuple(documented),
            minimal=min(smaller, key=_size, default=None),
        )

    # What proves is compared with what proves: that a control opens the file too takes nothing from what only one read.
    telling = {sighting.effect.kind for sighting in payload.proofs} or kinds
    if any(_shows(group, telling) for group in controls):
        return made(Standing.UNSPECIFIC, ["an inert control of the same shape shows the effect too"])
    if any(_shows(group, telling) for group in documented):
        return made(Standing.GRANTED, ["documented use of the tool grants it already"])
    if not bounded(payload.entry, facts.boundaries):
        return made(Standing.CAPABILITY, ["no boundary is known that it would cross"])
    if kinds == {EffectKind.ACCEPTED}:
        return made(Standing.SEEN, [*_boundary(payload, facts), "that it was served is all that is seen"])
    missing = [*_boundary(payload, facts), *_controlled("control", controls, payload, confirms, facts)]
    missing += _controlled("documented use", documented, payload, confirms, facts)
    best: list[Group] = []
    why: list[str] = []
    for group in confirms:
        problems = [*_boundary(group, facts), *_proves(group, payload, facts)]
        if group.proofs and not telling & {sighting.effect.kind for sighting in group.proofs}:
            problems.append("the tries show different kinds of effect")  # the controls are silent about the first one's
        problems += [problem for other in best for problem in _apart(group, other)]
        problems += [p for control in (*controls, *documented) for p in _same_mode(group, control)]
        if problems:
            why += problems
        else:
            best.append(group)
    if len(best) < CONFIRMATIONS:
        missing += why or [f"it was not seen again in {CONFIRMATIONS} clean starts"]
    if missing:
        return made(Standing.SEEN, missing)
    return made(Standing.CONFIRMED, (), best)


def _shows(group: Group, kinds: set[EffectKind]) -> bool:
    return any(sighting.effect.kind in kinds for sighting in group.sightings)


def _boundary(group: Group, facts: Facts) -> Iterator[str]:
    trace = group.steps[0]
    boundary = trace.call.boundary
    if trace.call.payload_class in UNBOUND:
        yield "it crosses no boundary"
    elif boundary is None or not facts.before(boundary, trace.seq):
        yield "its boundary was not recorded before the call"
    elif not admissible(trace.call):
        yield f"a {boundary.kind} boundary is not one that {trace.call.payload_class} crosses"


def _proves(group: Group, payload: Group, facts: Facts) -> Iterator[str]:
    """What keeps one confirming try from being a proof."""
    if not _same_payload(group, payload):
        yield "what was confirmed is another payload, or in another place"
    one, other = group.call.boundary, payload.call.boundary
    if one is not None and other is not None and (one.kind, one.value) != (other.kind, other.value):
        yield "what was confirmed crosses another boundary"
    if not group.proofs:
        doubts = [sighting.doubt for sighting in group.sightings if sighting.doubt]
        provable = any(sighting.effect.kind in PROVING for sighting in group.sightings)
        if doubts:
            yield doubts[0]
        elif group.sightings and not provable:
            yield "the effect is of a kind that proves nothing"
        else:
            yield "it did not show again in a clean start"
        return
    if not group.ended:
        yield "it came to no end"
    for trace in group.steps:
        if not trace.clean:
            yield "it was not confirmed from a clean start"
        if not trace.planned:
            yield "its prediction is not in the plan"
        if trace.world_seq is None or trace.world_seq > trace.seq:
            yield "the world of its session was not recorded before it"
        if not trace.nonce:
            yield "it carries no nonce"
    if not any(_follows(sighting, trace) for trace in group.steps for sighting in trace.sightings if sighting.proof):
        yield "the effect does not follow its prediction"
    if not facts.kernel and all(sighting.channel != "result" for sighting in group.proofs):
        yield "system calls were not recorded, or in a way that the target could change"


def _follows(sighting: Sighting, trace: Trace) -> bool:
    numbers = sighting.seqs or ((trace.end,) if trace.end is not None else ())
    return bool(numbers) and all(number > trace.seq for number in numbers)


def _same_payload(group: Group, payload: Group) -> bool:
    one, other = group.call, payload.call
    return bool(one.payload) and (
        (one.payload, one.payload_class, one.method, one.item, one.asked, one.argument, one.place)
        == (other.payload, other.payload_class, other.method, other.item, other.asked, other.argument, other.place)
    )


def _apart(group: Group, other: Group) -> Iterator[str]:
    """Two tries count as two only with nonces, worlds and sessions of their own, and effects that tell them apart."""
    one, two = group.lead, other.lead
    if one.nonce == two.nonce or one.call.world == two.call.world or one.session == two.session:
        yield "two tries share a nonce or a start"
    if one.network != two.network:
        yield "the tries were made in different network modes"
    same = {s.effect for s in group.proofs if s.effect.kind in _FRESH} & {s.effect for s in other.proofs}
    if same or _constant(group, other) or _constant(other, group):
        yield "two tries show the very same effect"
    if not {s.effect.kind for s in group.proofs} & {s.effect.kind for s in other.proofs}:
        yield "the tries show different kinds of effect"


def _constant(group: Group, other: Group) -> bool:
    """Whether all that one try shows is predicted for the other as well, and so is drawn for neither."""
    predicted = {effect for trace in other.steps for effect in trace.call.effects}
    return bool(group.proofs) and all(s.effect.kind in _FRESH and s.effect in predicted for s in group.proofs)


def _controlled(
    what: str,
    controls: Sequence[Group],
    payload: Group,
    confirms: Sequence[Group],
    facts: Facts,
) -> Iterator[str]:
    """Why the controls do not say that the effect is the payload's: none was made, or none could have shown it."""
    if not controls:
        yield f"no {what} was tried"
        return
    provable = {s.effect.kind for s in payload.sightings if s.effect.kind in PROVING}
    provable = provable or {s.effect.kind for s in payload.sightings}
    programs = {s.text.split(" ")[0] for s in payload.sightings if s.effect.kind is EffectKind.STUB_CALLED}
    tries = (payload, *confirms)
    proofs = [sighting for group in tries for sighting in group.proofs] or list(payload.sightings)
    joined = any(group.proofs and all(sighting.joined for sighting in group.proofs) for group in tries)
    clear = [group for group in controls if group.ended and all(_silent(t, proofs, facts) for t in group.steps)]
    if not clear:
        yield f"the {what} came to no clear end"
    for group in clear or controls:  # one that timed out was made once more
        call = group.call
        if (call.method, call.item) != (payload.call.method, payload.call.item):
            yield f"the {what} is a call of something else"
        if group.call.purpose is Purpose.CONTROL and not _same_payload(group, payload):
            yield f"the {what} is one of another payload, or in another place"
        if _sent(group) == _sent(payload):
            yield f"the {what} is the payload itself"
        predicted = {effect.kind for trace in group.steps for effect in trace.call.effects}
        if not provable & predicted:
            yield f"the {what} says nothing about this effect"
        if joined and not any(_could_join(trace) for trace in group.steps):
            yield f"the {what} could not have shown a value that was only put together"
        if programs and any(_names(trace.programs) & _names(programs) for trace in group.steps):
            yield f"the {what} starts the same program"


def _sent(group: Group) -> list[tuple[object, object]]:
    return [(trace.call.given, trace.call.headers) for trace in group.steps]


def _could_join(trace: Trace) -> bool:
    """Whether a target that only puts together what it was sent would show this call's value."""
    texts = [effect.text for effect in trace.call.effects if effect.kind is EffectKind.COMPUTED]
    return any(text and joins(text, sent_texts(trace.call)) for text in texts)


def _names(paths: set[str] | frozenset[str]) -> set[str]:
    return {path.rpartition("/")[2] for path in paths}


def _silent(trace: Trace, proofs: Sequence[Sighting], facts: Facts) -> bool:
    """Whether the absence of an effect in this call means something, by where the effects were seen that prove."""
    if trace.cut and any(sighting.channel == "result" for sighting in proofs):
        return False  # it may stand in what is missing
    if all(sighting.channel == "result" for sighting in proofs):
        return trace.state in ("answered", "tool-error", "error")
    return trace.conclusive and trace.session not in facts.gaps and facts.kernel


def _same_mode(group: Group, control: Group) -> Iterator[str]:
    if group.lead.network != control.lead.network:
        yield "the control was made in another network mode"


def _size(group: Group) -> int:
    return len(str(group.call.given))
