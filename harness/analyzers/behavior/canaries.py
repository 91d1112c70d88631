"""`behavior.canaries`: planted secrets that leave the machine, or are told to the client, in whatever disguise.

Each finding is DYNAMIC. One that was predicted for a life with other canaries, and was seen there with those, is
CONFIRMED: what left is what was planted, whatever was planted, and the values of the other life, which are of the
same shape and lay nowhere in this one, stayed away.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.analyzers.base import AnalysisFacts, AnalyzerBase, Fold, Rule
from harness.analyzers.behavior import canary_kinds as kinds
from harness.analyzers.behavior.addresses import Reach, destination
from harness.analyzers.behavior.attribution import CALL, MAX_SESSIONS, Attribution, Where
from harness.analyzers.behavior.canary_search import Looker, Sent
from harness.analyzers.behavior.flows import SOCKET_CALLS, GatewayBooks, Joiner, gateway_declined, shown_phase
from harness.analyzers.behavior.hosts import Expectations, named_after, site, within, words
from harness.analyzers.behavior.ledger import Key, Kind, Ledger
from harness.analyzers.behavior.requests import Request, Requests, declared_in, location_of
from harness.analyzers.canaries.search import Hit, Searcher
from harness.analyzers.evidence import render_safe
from harness.model.canary import Canary, CanaryPlace
from harness.model.coverage import Coverage
from harness.model.finding import Confirmation, EvidenceLevel, Finding, Location, ThreatLevel
from harness.model.recording import (
    AttemptEvent,
    Direction,
    Event,
    EventBase,
    FlowEvent,
    FrameEvent,
    Origin,
    PredictionEvent,
    ProcessEvent,
    StderrEvent,
    SyscallEvent,
)
from harness.model.result import AnalyzerResult, AnalyzerStatus

NOTHING_PLANTED = "no canaries were planted"
#: Canaries that left are remembered with their flows until all is known; more than these say nothing new.
MAX_SENT = 2048
MAX_ARGUMENTS = 2000


@dataclass
class _Proof:
    """Values of one finding by the life that they were seen in, and whether one was seen in a life of others."""

    values: dict[str, str] = field(default_factory=dict)
    foreign: bool = False


class CanariesFold:
    """Memory: what `Looker`, `Joiner` and `Requests` keep, and what left, all bounded."""

    def __init__(self, analyzer: CanariesAnalyzer, facts: AnalysisFacts, canaries: tuple[Canary, ...]) -> None:
        self._analyzer = analyzer
        self._facts = facts
        self._canaries = canaries
        self._lives = frozenset(canary.session for canary in canaries)
        self._looker = Looker(Searcher([canary.value for canary in canaries]), facts.contents)
        self._attribution = Attribution()
        self._joiner = Joiner(self._attribution)
        self._gateways = GatewayBooks()
        self._expected = Expectations(facts)
        self._requests = Requests()
        self._ledger = Ledger(analyzer.name)
        self._given: set[int] = set()
        self._left: list[Sent] = []
        self._arguments = 0
        self._later: set[str] = set()
        self._proofs: dict[Key, _Proof] = {}
        self._predicted: dict[str, frozenset[str]] = {}

    def event(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, SyscallEvent):
            if event.call in SOCKET_CALLS:
                self._joiner.take(event)
            return
        self._attribution.take(event)
        self._joiner.take(event)
        self._gateways.take(event)
        if isinstance(event, FlowEvent):
            self._flow(event)
        elif isinstance(event, FrameEvent):
            self._frame(event)
        elif isinstance(event, ProcessEvent):
            if event.what == "exec" and event.by is Origin.TARGET:
                self._process(event)
        elif isinstance(event, StderrEvent):
            self._stderr(event)
        elif isinstance(event, AttemptEvent):
            self._expected.learn(event.argv)
            if event.days and len(self._later) < MAX_SESSIONS:
                self._later.add(event.session)
        elif isinstance(event, PredictionEvent):
            self._predicted[event.session] = frozenset(event.findings)

    def _flow(self, event: FlowEvent) -> None:
        for sent in self._looker.flow(event):
            if len(self._left) < MAX_SENT:
                self._left.append(sent)

    def _frame(self, event: FrameEvent) -> None:
        if event.direction is Direction.SENT:
            self._requests.sent(event)
            self._given.update(hit.canary for hit in self._looker.raw(event.raw))
            return
        what = f"message {event.seq}"
        hits = self._looker.unit(event.raw, what, truncated=event.truncated)
        if not hits:
            return
        request, message = self._requests.answered(event)
        where = _where(event, self._attribution)
        places = [
            (place, {hit.canary for hit in self._looker.unit(text.encode("utf-8", "surrogatepass"), what)})
            for place, text in declared_in(message)
        ]
        for hit in sorted(hits):
            if hit.canary in self._given:
                continue  # we said it first
            found = [place for place, inside in places if hit.canary in inside]
            place = found[0] if found else location_of(request)
            self._disclosed(event, where, hit, request, place)

    def _disclosed(
        self, event: FrameEvent, where: Where, hit: Hit, request: Request | None, place: Location | None
    ) -> None:
        canary = self._canaries[hit.canary]
        kind = self._shown(canary, request)
        if kind is None:
            return
        said = f"answer to {request.method}" if request is not None else "message"
        text = f"{canary.name} in an {said}" if request is not None else f"{canary.name} in a {said}"
        text = f"{text}, as {hit.encoding}"
        at = place if place is not None else Location(phase="call") if where.phase == CALL else Location()
        self._note(kind, canary, "", event, where, text, at)

    def _shown(self, canary: Canary, request: Request | None) -> Kind | None:
        """How bad it is that a canary is told in an answer to `request`; None where it is no disclosure."""
        if canary.place is CanaryPlace.DECOY and request is not None and location_of(request) is not None:
            return None  # a call that led there: proved or not by what judges calls
        if request is not None and location_of(request) is not None:
            wanted = _mentions(request, canary)
            if canary.place is CanaryPlace.ARGUMENT or (canary.place is CanaryPlace.WORKSPACE and wanted):
                return None
            if canary.place is CanaryPlace.WORKSPACE or wanted or self._is_for(request, canary):
                return kinds.SHOWN_CAPABILITY
        if canary.place is CanaryPlace.ARGUMENT or canary.asked:
            return kinds.SHOWN_ASKED
        return kinds.SHOWN_UNASKED

    def _is_for(self, request: Request, canary: Canary) -> bool:
        """True when the called tool says that it shows the environment."""
        if canary.place is not CanaryPlace.ENVIRONMENT:
            return False
        for surface in self._facts.surfaces[:1]:
            for item in surface.items:
                if item.name == request.item:
                    text = f"{item.name} {item.value}".lower()
                    return "environment" in text or "env var" in text
        return False

    def _process(self, event: ProcessEvent) -> None:
        if self._arguments >= MAX_ARGUMENTS or self._attribution.noise(event):
            return
        self._arguments += 1
        data = "\0".join(event.argv).encode("utf-8", "surrogatepass")
        where = self._attribution.where(event, *event.argv)
        for hit in sorted(self._looker.unit(data, f"arguments of event {event.seq}")):
            canary = self._canaries[hit.canary]
            if canary.place in (CanaryPlace.ARGUMENT, CanaryPlace.DECOY) or hit.canary in self._given:
                continue  # they are arguments that we gave, or what it read by itself
            kind = kinds.ARGUMENTS_ASKED if canary.asked else kinds.ARGUMENTS
            program = (event.path or event.requested).rpartition("/")[2]
            self._note(kind, canary, "", event, where, f"{canary.name} in arguments of {program}, as {hit.encoding}")

    def _stderr(self, event: StderrEvent) -> None:
        data = event.tail.encode("utf-8", "surrogatepass")
        for hit in sorted(self._looker.unit(data, f"error output of {event.session}")):
            canary = self._canaries[hit.canary]
            if hit.canary in self._given or canary.place in (CanaryPlace.ARGUMENT, CanaryPlace.DECOY):
                continue  # a decoy's error pages hold its nonce too
            kind = kinds.LOGGED_ASKED if canary.asked else kinds.LOGGED
            where = _where(event, self._attribution)
            self._note(kind, canary, "", event, where, f"{canary.name} in its error output, as {hit.encoding}")

    def finish(self) -> AnalyzerResult:
        """Say what was found."""
        for sent in (*self._left, *self._looker.rest()):
            self._judge(sent)
        findings = tuple(self._confirmed(key, finding) for key, finding in self._ledger.by_key())
        coverage = self._coverage()
        gaps = coverage.gaps()
        manifest = self._facts.manifest
        reason = gaps[0] if gaps else ""
        if not self._facts.complete:
            reason = "the recording is incomplete"
        if manifest is not None and manifest.problems:
            reason = manifest.problems[0]
        more = self._ledger.overflow
        return AnalyzerResult(
            name=self._analyzer.name,
            version=self._analyzer.version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=render_safe(reason),
            findings=findings,
            coverage=coverage,
            warnings=(f"{self._analyzer.name}: {more} more hits are not listed",) if more else (),
        )

    def _coverage(self) -> Coverage:
        tallies = {} if gateway_declined(self._facts.manifest) else self._gateways.tallies()
        return Coverage(subjects={**tallies, "searched data": self._looker.books.tally()})

    def _judge(self, sent: Sent) -> None:
        """A canary left."""
        canary, flow = self._canaries[sent.hit.canary], sent.flow
        if canary.place is CanaryPlace.DECOY and flow.decoy == "metadata" and not sent.domain:
            return  # its token goes back to the service that gave it out
        where = self._joiner.where(flow)
        host, near = self._destination(sent)
        kind = self._leaving(canary, host, where, near=near)
        text = f"{canary.name} to {host} ({flow.application or flow.protocol}, {sent.in_what}), as {sent.hit.encoding}"
        when = ", with a later clock" if flow.session in self._later else ""
        self._note(kind, canary, site(host), flow, where, f"{text}, {shown_phase(where)}{when}")

    def _destination(self, sent: Sent) -> tuple[str, bool]:
        """Where it went, and whether that is near. A DNS question goes to whoever owns the domain."""
        flow = sent.flow
        if sent.domain:
            return sent.domain, False
        near = bool(flow.decoy) and flow.decoy != "metadata"
        return flow.host, near or destination(flow.remote).reach in (Reach.LOCAL, Reach.PRIVATE)

    def _leaving(self, canary: Canary, host: str, where: Where, *, near: bool) -> Kind:
        typed = canary.place is CanaryPlace.FORM
        if within(host, canary.services) or (canary.asked and not typed and self._belongs(canary, host)):
            return kinds.USED
        if typed:
            return kinds.USED if near or self._expected.why(host) is not None else kinds.LEAVES_FORM
        if canary.place is CanaryPlace.ARGUMENT and where.phase == CALL:
            return kinds.USED  # a tool does with its arguments what it was called for
        if near:
            return kinds.USED if canary.asked else kinds.LEAVES_NEAR
        if canary.asked:
            return kinds.LEAVES_ASKED if canary.services else kinds.LEAVES_SOMEWHERE
        if canary.place is CanaryPlace.WORKSPACE and where.phase == CALL:
            return kinds.LEAVES_IN_CALL
        return kinds.LEAVES_UNASKED

    def _belongs(self, canary: Canary, host: str) -> bool:
        """True when nothing says who a credential is for, and its name or the target's words speak of this host."""
        return not canary.services and (named_after(host, words(canary.name)) or self._expected.why(host) is not None)

    def _note(
        self,
        kind: Kind,
        canary: Canary,
        to: str,
        event: EventBase,
        where: Where,
        text: str,
        location: Location | None = None,
    ) -> None:
        if to:
            base = Location(tool=where.tool, phase="call") if where.tool is not None else Location()
            location = base.model_copy(update={"destination": render_safe(to, 100)})
        key = self._ledger.note(kind, canary.name, event, where, text, location=location)
        if key is None:
            return
        life = event.session if event.session in self._lives else "main"
        proof = self._proofs.setdefault(key, _Proof())
        if canary.session == life:
            proof.values.setdefault(life, canary.value)
        else:
            proof.foreign = True

    def _confirmed(self, key: Key, finding: Finding) -> Finding:
        """The finding, raised where the life with other canaries proved it."""
        proof = self._proofs[key]
        predicted = [life for life, ids in self._predicted.items() if finding.id in ids and life in proof.values]
        if proof.foreign or not predicted or "main" not in proof.values or finding.severity is kinds.USED.severity:
            return finding
        nonces = (proof.values["main"], proof.values[predicted[0]])
        if finding.rule_id not in kinds.WORTH_A_SECOND_LOOK or nonces[0] == nonces[1]:
            return finding
        name = key[1]
        return finding.model_copy(
            update={
                "evidence_level": EvidenceLevel.CONFIRMED,
                "threat_level": ThreatLevel.DANGEROUS,
                "confirmation": Confirmation(payload=f"canary {name}", nonces=nonces, control=CONTROL),
            }
        )


CONTROL = (
    "in each of the two lives the other life's value, of the same shape and planted nowhere in it, was looked for in "
    "the same ways and did not occur"
)


def wants_second_look(result: AnalyzerResult) -> tuple[str, ...]:
    """The findings (by id) that a life with other canaries could confirm: what to predict for it. Empty: none.

    Only what happens without calls is repeated by starting and looking again.
    """
    return tuple(
        finding.id
        for finding in result.findings
        if finding.rule_id in kinds.WORTH_A_SECOND_LOOK
        and finding.evidence_level is EvidenceLevel.DYNAMIC
        and finding.location.phase is None
    )


def _mentions(request: Request, canary: Canary) -> bool:
    """True when a request names the file that a canary lies in, or the variable."""
    path = canary.name.removeprefix("environment ").split(" ")[0].lower()
    names = {path.removeprefix("~/"), path.rpartition("/")[2]}
    return any(len(name) > 3 and name in request.text for name in names)


def _where(event: EventBase, attribution: Attribution) -> Where:
    """What a message belongs to, by its own phase."""
    if event.phase.startswith("call:"):
        tool, _, nonce = event.phase[len("call:") :].rpartition(":")
        return Where(event.session, CALL, attribution.nobody, tool, nonce)
    return Where(event.session, event.phase, attribution.nobody)


class _Passed:
    """Nothing was planted: every event passes by."""

    def __init__(self, analyzer: CanariesAnalyzer) -> None:
        self._analyzer = analyzer

    def event(self, event: Event) -> None:
        """Pass by."""

    def finish(self) -> AnalyzerResult:
        """Skipped, and said so."""
        return AnalyzerResult(
            name=self._analyzer.name,
            version=self._analyzer.version,
            status=AnalyzerStatus.SKIPPED,
            reason=NOTHING_PLANTED,
        )


class CanariesAnalyzer(AnalyzerBase):
    """Judges what becomes of planted secrets."""

    name = "behavior.canaries"
    description = "planted secrets that leave, or are told to the client, in any disguise"
    rules = tuple({kind.rule: Rule(id=kind.rule, title=kind.title) for kind in reversed(kinds.KINDS)}.values())

    def passes(self, facts: AnalysisFacts) -> bool:
        """True where nothing was planted."""
        return facts.manifest is None or not facts.manifest.canaries

    def start(self, facts: AnalysisFacts) -> Fold:
        """Begin, or pass where nothing was planted."""
        if facts.manifest is None or not facts.manifest.canaries:
            return _Passed(self)
        return CanariesFold(self, facts, facts.manifest.canaries)
