"""The fold over a recording that yields the oracle's findings: what was predicted, what was seen, what is proven.

Memory grows with the number of calls (which the budget bounds), not with that of events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harness.model.base import canonical_json, sha256_hex
from harness.model.call import BoundariesEvent, Call, CallBooksEvent, CallEndEvent, CallEvent, Outcome, Purpose
from harness.model.finding import Finding
from harness.model.flow import GatewayEndEvent
from harness.model.kernel import RecorderEndEvent
from harness.model.payload import Boundary, Effect, EffectKind
from harness.model.probe import ProbeEvent
from harness.model.recording import Event, Grade, Manifest, WorldEvent
from harness.model.result import AnalyzerResult, AnalyzerStatus
from harness.model.world import World
from harness.probing.digest import Digest
from harness.probing.oracle.between import Between
from harness.probing.oracle.cells import coverage_of
from harness.probing.oracle.effects import Sighting, bases_of, late, sightings
from harness.probing.oracle.proof import Judgement, Standing, judge
from harness.probing.oracle.sent import echoes, leaves, names_path, sent_texts, told
from harness.probing.oracle.traces import LIVE, Facts, Group, Trace
from harness.probing.oracle.wording import finding_of

NAME = "confirmation"
VERSION = "1"
#: Grades of a record that the target can't have written itself.
_GROUNDED = frozenset({Grade.TRUSTED, Grade.CONTAINED})
#: So many of the last payload calls of a session are watched for late effects.
WATCHED = 100
MAX_WORLDS = 256
_BY_DESIGN = frozenset({Standing.GRANTED, Standing.CAPABILITY})
_STANDINGS = (Standing.CONFIRMED, Standing.SEEN, Standing.GRANTED, Standing.CAPABILITY, Standing.UNSPECIFIC)


def call_digest(call: Call) -> str:
    """By which a call in the record is found again in the plan."""
    return sha256_hex(canonical_json(call.model_dump(mode="json")))


#: Calls without a payload whose answers tell what anybody may see. (Documented use and controls are judged themselves.)
_BENIGN = frozenset({Purpose.BASELINE, Purpose.PREPARE, Purpose.REFUSAL})


class Confirmation:
    """Feed it every event in order, then ask `finish`.

    `planned`: the digests (`call_digest`) of the calls in the plan; None where there is no plan to compare with, and
    then nothing is CONFIRMED.
    """

    def __init__(self, manifest: Manifest, planned: Collection[str] | None) -> None:
        self._manifest = manifest
        self._planned = planned or ()
        self._facts = Facts(kernel=manifest.grade in _GROUNDED)
        self._digest = Digest()
        self._between = Between()
        self._worlds: dict[str, tuple[World, int, str]] = {}
        self._modes: dict[str, str] = {}
        self._current: dict[str, str] = {}
        self._burned: dict[str, set[str]] = {}
        self._live: dict[str, set[int]] = {}
        self._open: dict[str, tuple[Trace, Group]] = {}
        self._watched: dict[str, list[Trace]] = {}
        self._groups: dict[tuple[str, ...], Group] = {}
        self._root: dict[str, Group] = {}
        self._books: CallBooksEvent | None = None
        self._calls = 0

    def event(self, event: Event) -> None:
        """Take the next event."""
        outcome = self._digest.take(event)
        gap = self._between.take(event)
        if gap is not None:
            self._late(gap[0], gap[1])
        match event:
            case WorldEvent():
                self._world(event)
            case BoundariesEvent():
                for boundary in event.boundaries:
                    self._facts.boundaries.setdefault(boundary, event.seq)
            case CallEvent():
                self._begin(event)
            case CallEndEvent() if outcome is not None:
                self._end(event, outcome)
            case RecorderEndEvent() if not event.complete:
                self._facts.gaps.add(event.session)
            case GatewayEndEvent():
                self._modes.setdefault(event.session, event.mode)
            case ProbeEvent():
                self._live.setdefault(event.session, set()).add(0)
            case CallBooksEvent():
                self._books = event

    def finish(self) -> AnalyzerResult:
        """The findings, one for each class, item and argument, and the coverage of the plan of calls."""
        for session, outcome in self._between.close():
            self._late(session, outcome)
        for group in self._groups.values():
            for trace in group.steps:
                trace.network = trace.network or self._modes.get(trace.session, self._manifest.network)
        findings = tuple(self._finding(judgement) for judgement in self._best())
        return AnalyzerResult(
            name=NAME,
            version=VERSION,
            status=AnalyzerStatus.COMPLETED,
            findings=findings,
            coverage=coverage_of(self._books.books if self._books is not None else None, self._calls),
        )

    def judgements(self) -> tuple[Judgement, ...]:
        """Every payload call whose effect was seen, judged; for reproduction and for tests."""
        return tuple(self._judgements())

    def confirmed(self) -> dict[str, Judgement]:
        """What is proven, by the id of its finding; after `finish`."""
        return {self._finding(j).id: j for j in self._best() if j.standing is Standing.CONFIRMED}

    def world(self, nonce: str) -> World | None:
        """The world of that nonce."""
        known = self._worlds.get(nonce)
        return known[0] if known is not None else None

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        """All that were found."""
        return tuple(self._facts.boundaries)

    def _best(self) -> tuple[Judgement, ...]:
        """For each class and place the payload that is proven best; capabilities only beside no fault."""
        best: dict[tuple[str, ...], Judgement] = {}
        for judgement in self._judgements():
            call = judgement.payload.entry
            key = (str(call.payload_class), call.method, call.item, call.asked, call.argument)
            known = best.get(key)
            if known is None or _rank(judgement) < _rank(known):
                best[key] = judgement
        faults = {key[1:] for key, judgement in best.items() if judgement.standing not in _BY_DESIGN}
        return tuple(best[key] for key in sorted(best) if key[1:] not in faults or best[key].standing not in _BY_DESIGN)

    def _judgements(self) -> Iterator[Judgement]:
        about: dict[int, list[Group]] = {}
        for group in self._groups.values():
            if group.call.purpose is not Purpose.PAYLOAD and (root := self._root.get(group.call.about)) is not None:
                about.setdefault(id(root), []).append(group)
        for group in self._groups.values():
            if group.call.purpose is Purpose.PAYLOAD and group.sightings and group.call.payload_class is not None:
                yield judge(group, about.get(id(group), []), self._facts)

    def _finding(self, judgement: Judgement) -> Finding:
        boundary = judgement.payload.entry.boundary
        told = self._facts.boundaries.get(boundary) if boundary is not None else None
        return finding_of(judgement, analyzer=NAME, boundary_seq=told)

    def _world(self, event: WorldEvent) -> None:
        if len(self._worlds) >= MAX_WORLDS:
            del self._worlds[next(iter(self._worlds))]
        self._worlds[event.world.nonce] = (event.world, event.seq, event.session)
        self._current[event.session] = event.world.nonce
        self._live[event.session] = set()
        self._watched[event.session] = []
        if event.network:
            self._modes[event.session] = event.network

    def _begin(self, event: CallEvent) -> None:
        call = event.call
        self._calls += 1
        texts = sent_texts(call)
        known = self._worlds.get(call.world)
        world_seq = None
        if known is not None and known[2] == event.session and self._current.get(event.session) == call.world:
            world_seq = known[1]
            self._burn(call.world, known[0], texts)
        key = (call.purpose, call.about, call.world, event.session, call.nonce or call.id)
        group = self._groups.setdefault(key, Group(steps=[]))
        live = self._live.setdefault(event.session, set())
        trace = Trace(
            call=call,
            seq=event.seq,
            session=event.session,
            network=self._modes.get(event.session, ""),
            clean=live <= {id(group)},
            planned=call_digest(call) in self._planned,
            world_seq=world_seq,
        )
        group.steps.append(trace)
        if call.purpose is Purpose.PAYLOAD:
            self._root.setdefault(call.id, group)
        if call.purpose in LIVE:
            live.add(id(group))
        self._open[call.id] = (trace, group)

    def _end(self, event: CallEndEvent, outcome: Outcome) -> None:
        found = self._open.pop(event.call, None)
        if found is None:
            return
        trace, group = found
        known = self._worlds.get(trace.call.world)
        seen: tuple[Sighting, ...] = ()
        if known is not None:
            others = [text for step in group.steps if step is not trace for text in sent_texts(step.call)]
            sent = (*others, *sorted(self._burned.get(trace.call.world, ())))
            seen = sightings(trace.call, outcome, known[0], sent=sent, boundaries=tuple(self._facts.boundaries))
            if trace.call.purpose in _BENIGN:  # told without any payload: a payload proves nothing by it
                self._burn(trace.call.world, known[0], [outcome.text])
        trace.finish(outcome, seen, event.seq, event.frame)
        self._late(event.session, outcome, trace.call)
        if _marks(trace.call) and trace.call.purpose is not Purpose.BASELINE and not any(s.proof for s in seen):
            watched = self._watched.setdefault(event.session, [])
            watched.append(trace)
            del watched[:-WATCHED]

    def _burn(self, nonce: str, world: World, texts: Collection[str]) -> None:
        """Remember which of the world's secrets the texts hold."""
        secrets = {item.secret for item in world.items} | {host.secret for host in world.hosts}
        self._burned.setdefault(nonce, set()).update(told(secrets, texts))

    def _late(self, session: str, outcome: Outcome, during: Call | None = None) -> None:
        """Give effects that show now to the earlier call whose nonce they carry.

        `during`: the call that is under way, if any: what that names itself is its own doing.
        """
        watched = self._watched.get(session)
        if not watched or not (outcome.files or outcome.executions or outcome.connections):
            return
        words = [file.path for file in outcome.files if file.how not in ("read", "access")]
        words += [word for run in outcome.executions for word in run.argv]
        words += [w for c in outcome.connections for w in (c.address, *c.names, c.text)]
        text = "\n".join(words)
        named = [trace for trace in watched if any(mark in text for mark in _marks(trace.call))]
        known = self._worlds.get(named[0].call.world) if named else None
        if known is None:
            return
        by_id = {trace.call.id: trace for trace in named}
        for call, sighting in late([trace.call for trace in named], outcome, known[0]):
            if during is not None and _names(during, sighting.effect, known[0]):
                continue
            if sighting not in by_id[call.id].sightings:
                by_id[call.id].sightings.append(sighting)
        self._watched[session] = [trace for trace in watched if not any(s.proof for s in trace.sightings)]


def _marks(call: Call) -> tuple[str, ...]:
    """What an event must hold to be a late effect of this call."""
    drawn = {effect.path for effect in call.effects if effect.kind is EffectKind.CREATED}
    return (*({call.nonce} - {""}), *sorted(drawn - {""}))


def _rank(judgement: Judgement) -> tuple[int, int, int, str]:
    """The best proven first; of equals the one seen most, then the first."""
    return (
        _STANDINGS.index(judgement.standing),
        -judgement.seen,
        judgement.payload.lead.seq,
        judgement.payload.call.id,
    )


def _names(call: Call, effect: Effect, world: World) -> bool:
    """Whether a call itself names what an effect is about."""
    if effect.path and names_path(leaves(call.given), effect.path, bases_of(world)):
        return True
    said = effect.text or effect.address
    return not effect.path and bool(said) and echoes(said, sent_texts(call))
