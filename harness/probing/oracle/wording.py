"""Findings out of judgements: the words, the level, and the evidence that points to the events of the recording."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from harness.model.base import JsonValue, canonical_json
from harness.model.call import Call
from harness.model.finding import Confirmation, Evidence, EvidenceLevel, Finding, Location, Severity, ThreatLevel
from harness.model.payload import EffectKind, PayloadClass
from harness.probing.answers import PLACES, SAMPLING
from harness.probing.oracle.case import at
from harness.probing.oracle.effects import PROVING, Sighting
from harness.probing.oracle.proof import Judgement, Standing
from harness.probing.oracle.rules import CAPABILITIES, CAPABILITY, RULES, FaultRule
from harness.probing.oracle.traces import Group, Trace

EXCERPT = 300
_CHANNELS = {"kernel": "syscall", "egress": "egress", "result": "result", "protocol": "answer"}
_EFFECTS = {
    EffectKind.CREATED: "a file was created there that the prediction names",
    EffectKind.CHANGED: "a planted file was changed",
    EffectKind.OPENED: "a planted file was opened",
    EffectKind.EXECUTED: "a part of the value became an argument of its own in a program that was started",
    EffectKind.STUB_CALLED: "a planted program was started",
    EffectKind.CONNECTED: "a connection was made to the predicted address",
    EffectKind.DISCLOSED: "planted content that was never sent came back in the result",
    EffectKind.COMPUTED: "a value came back that only its evaluation yields",
    EffectKind.ACCEPTED: "what had to be refused was served",
    EffectKind.EXHAUSTED: "no answer came in time, or it took more memory or output than is bounded",
}
_CALLS = {"prompts/get": "prompt", "resources/read": "resource"}


def finding_of(judgement: Judgement, *, analyzer: str, boundary_seq: int | None) -> Finding:
    """The finding of a judged payload. `boundary_seq`: the event in which its boundary was told."""
    call = judgement.payload.entry
    assert call.payload_class is not None
    rule = RULES[call.payload_class]
    if judgement.standing in (Standing.CAPABILITY, Standing.GRANTED):
        return _capability(judgement, call, call.payload_class, analyzer)
    confirmed = judgement.standing is Standing.CONFIRMED
    level = EvidenceLevel.CONFIRMED if confirmed else _level(judgement)
    what = _EFFECTS[_best(judgement).effect.kind]
    place = _place(call)
    said = [f"With a payload in {place}, {what}."]
    if call.boundary is not None:
        where = f" {call.boundary.value}" if call.boundary.value else ""
        said.append(f"That crosses the boundary {call.boundary.kind}{_safe(where)} ({call.boundary.source}).")
    if confirmed:
        said.append(f"Whoever controls {'that answer' if call.asked else 'this argument'} can {rule.impact}.")
        said.append(
            f"Seen {judgement.seen} of {judgement.tried} times, {len(judgement.confirming)} of them from clean starts "
            "with fresh nonces; an inert control and documented use showed nothing."
        )
    else:
        said.append(f"{_times(judgement)}; not confirmed: {'; '.join(judgement.missing)}.")
    return Finding.make(
        rule_id=rule.id,
        title=f"{rule.title} in {place}" if confirmed else f"{rule.title} in {place}, {_times(judgement).lower()}",
        severity=_severity(judgement, rule),
        evidence_level=level,
        threat=rule.threat,
        threat_level=ThreatLevel.DANGEROUS if confirmed else ThreatLevel.WARNING,
        cwe=call.cwe or rule.cwe,
        location=_location(call),
        fact=str(call.payload_class),
        analyzer=analyzer,
        confidence=1.0 if confirmed else 0.7,
        description=" ".join(said),
        remediation=rule.remediation,
        evidence=tuple(_evidence(judgement, boundary_seq)),
        confirmation=_confirmation(judgement) if confirmed else None,
    )


def _capability(judgement: Judgement, call: Call, fault: PayloadClass, analyzer: str) -> Finding:
    name, what = CAPABILITIES[fault]
    granted = judgement.standing is Standing.GRANTED
    why = "documented use of it does the same" if granted else "nothing says that it must not"
    return Finding.make(
        rule_id=f"{CAPABILITY}{name}",
        title=f"By design, {_place(call)} {what}",
        severity=Severity.INFO,
        evidence_level=EvidenceLevel.DYNAMIC,
        threat=RULES[fault].threat,
        threat_level=ThreatLevel.INFO,
        location=_location(call),
        fact=f"{CAPABILITY}{name}",
        analyzer=analyzer,
        description=f"It {what}: {_EFFECTS[_best(judgement).effect.kind]}, and {why}. No fault, and a thing to know "
        "before a model may call it.",
        evidence=tuple(_evidence(judgement, None)),
    )


def _level(judgement: Judgement) -> EvidenceLevel:
    kinds = {sighting.effect.kind for sighting in judgement.payload.sightings}
    return EvidenceLevel.PROTOCOL if kinds == {EffectKind.ACCEPTED} else EvidenceLevel.DYNAMIC


def _severity(judgement: Judgement, rule: FaultRule) -> Severity:
    """As the rule says where a proof was seen or the answer itself is the fault; else at most MEDIUM, or LOW."""
    if judgement.standing is Standing.CONFIRMED:
        return rule.severity
    if judgement.standing is Standing.UNSPECIFIC:
        return Severity.LOW
    if judgement.constant or (judgement.payload.proofs and all(proof.joined for proof in judgement.payload.proofs)):
        return min(rule.severity, Severity.MEDIUM, key=lambda s: s.rank)
    if judgement.payload.proofs:
        return rule.severity
    if _level(judgement) is EvidenceLevel.PROTOCOL and not judgement.controls:
        return min(rule.severity, Severity.MEDIUM, key=lambda s: s.rank)
    if _level(judgement) is EvidenceLevel.PROTOCOL:
        return rule.severity
    return min(rule.severity, Severity.MEDIUM, key=lambda s: s.rank)


def _times(judgement: Judgement) -> str:
    if judgement.seen == 1:
        return "Seen once" if judgement.tried == 1 else f"Seen once of {judgement.tried} times"
    return f"Seen {judgement.seen} of {judgement.tried} times"


def _best(judgement: Judgement) -> Sighting:
    every = judgement.payload.sightings
    return next((s for s in every if s.proof), next((s for s in every if s.effect.kind in PROVING), every[0]))


def _place(call: Call) -> str:
    kind = _CALLS.get(call.method, "tool")
    what = "header" if call.place == "header" else "argument"
    item, named = f"{kind} {_safe(call.item, 80)}", _safe(call.argument.lstrip("/"), 80)
    if call.asked == SAMPLING:
        return f"the answer to sampling of {item}"
    if call.asked:
        return f"{f'field {named} of ' if named else ''}the answer to elicitation of {item}"
    return f"{item}, {what} {named}" if call.argument.strip("/") else item


def _location(call: Call) -> Location:
    field = f"{PLACES[call.asked]}{call.argument}" if call.asked in PLACES else call.argument
    return Location.model_validate({_CALLS.get(call.method, "tool"): call.item, "field": field or None})


def _confirmation(judgement: Judgement) -> Confirmation:
    names = [f"inert control {group.call.id}" for group in judgement.controls]
    names += [f"documented use {group.call.id}" for group in judgement.documented]
    return Confirmation(
        payload=judgement.payload.call.payload,
        nonces=tuple(group.lead.nonce for group in judgement.confirming),
        control=f"{', '.join(names)}: no effect",
        minimal=_safe(_value(judgement.minimal.call)) if judgement.minimal is not None else "",
        network=judgement.confirming[0].lead.network,
    )


def _evidence(judgement: Judgement, boundary_seq: int | None) -> Iterator[Evidence]:
    """The chain in its order: boundary, controls, then for each try the world, the prediction, the effect."""
    boundary = judgement.payload.call.boundary
    if boundary is not None and boundary_seq is not None:
        said = f"{boundary.kind} {boundary.value}: {boundary.text or boundary.source} ({boundary.source})"
        yield Evidence(kind="boundary", seq=boundary_seq, text=_safe(said))
    tries = judgement.confirming or (judgement.payload,)
    for group in tries:
        yield from _try(group)
    for kind, controls in (("control", judgement.controls), ("documented", judgement.documented)):
        for group in controls:
            trace = group.lead
            kinds = {s.effect.kind for s in judgement.payload.proofs or judgement.payload.sightings}
            shows = any(s.effect.kind in kinds for s in group.sightings)
            effect = "the effect shows too" if shows else "no effect"
            text = f"{effect}: {_value(trace.call)}"
            yield Evidence(kind=kind, phase=_phase(trace), call=trace.call.id, seq=trace.seq, text=_safe(text))
    if judgement.minimal is not None:
        trace = judgement.minimal.lead
        yield Evidence(kind="minimal", call=trace.call.id, seq=trace.seq, text=_safe(_value(trace.call)))


def _try(group: Group) -> Iterator[Evidence]:
    for trace in group.steps:
        yield Evidence(
            kind="call", phase=_phase(trace), call=trace.call.id, seq=trace.seq, text=_safe(_value(trace.call))
        )
    for trace in group.steps:
        for sighting in trace.sightings:
            if group.proofs and not sighting.proof:
                continue
            seq = sighting.seqs[0] if sighting.seqs else trace.end
            kind = _CHANNELS[sighting.channel]
            if sighting.witness is not None:
                text = _safe(sighting.witnessed)
                at_call = {"phase": _phase(trace), "call": trace.call.id}
                yield Evidence.model_validate({"kind": "syscall", "seq": sighting.witness, "text": text, **at_call})
            yield Evidence(kind=kind, phase=_phase(trace), call=trace.call.id, seq=seq, text=_safe(sighting.text))
            yield Evidence(
                kind="state",
                phase=_phase(trace),
                call=trace.call.id,
                seq=trace.world_seq,
                text=_safe(_state(sighting)),
            )


def _state(sighting: Sighting) -> str:
    """What the world was before: the ground on which the effect means something."""
    effect = sighting.effect
    match effect.kind:
        case EffectKind.CREATED:
            return f"{effect.path} was not there when the session began"
        case EffectKind.CHANGED | EffectKind.OPENED:
            return f"{effect.path} was planted when the session began"
        case EffectKind.DISCLOSED:
            return f"{effect.text} was planted when the session began and never sent"
        case EffectKind.COMPUTED:
            return f"{effect.text} was never sent"
        case EffectKind.CONNECTED:
            return f"{effect.address} belongs to the session's fake network"
        case _:
            return f"expected: {effect.kind} {effect.path or effect.text or effect.address}".rstrip()


def _phase(trace: Trace) -> str:
    return f"call:{_safe(trace.call.item, 80)}:{trace.call.id}"


def _value(call: Call) -> str:
    """The payload as it was sent, or the whole parameters; of a header, its line, and that it was left out."""
    if call.place == "header":
        given = {name: value for name, value in call.headers.items() if value or name == call.argument}
        lines = [f"{name}: {value}" if value else f"no {name}" for name, value in sorted(given.items())]
        return "; ".join(lines) or "no header of the payload"
    value: JsonValue = at(call.holder, call.argument) if call.argument else None
    if value is None:
        value = call.holder
    return value if isinstance(value, str) else canonical_json(value)


def _safe(text: str, limit: int = EXCERPT) -> str:
    """Printable on one line and bounded."""
    shown = "".join(
        c if c == " " or unicodedata.category(c)[0] not in "CZ" else f"\\u{ord(c):04x}" for c in text[: limit + 1]
    )
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
