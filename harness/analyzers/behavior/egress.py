"""`behavior.egress`: every destination that the gateway saw, by name, phase and call, and what is odd about it.

Severity says how unusual a destination is, not that harm was done: what left is `behavior.canaries`' to say.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import NamedTuple

from harness.analyzers.base import AnalysisFacts, AnalyzerBase, Fold, Rule
from harness.analyzers.behavior import egress_kinds as kinds
from harness.analyzers.behavior.addresses import Reach, destination
from harness.analyzers.behavior.attribution import CALL, FOLLOWED, Attribution, Where
from harness.analyzers.behavior.books import INSTALL
from harness.analyzers.behavior.flows import (
    SOCKET_CALLS,
    GatewayBooks,
    Joiner,
    gateway_declined,
    shown_phase,
    unprompted,
)
from harness.analyzers.behavior.hosts import REGISTRIES, TELEMETRY, Expectations, site, steady, vendor
from harness.analyzers.behavior.ledger import Kind, Ledger
from harness.analyzers.behavior.mail import Envelope, Named
from harness.analyzers.behavior.tunnel import Questions, steady_gap
from harness.analyzers.evidence import render_safe
from harness.model.call import CallEvent
from harness.model.coverage import Coverage, Skip, SkipReason, Tally
from harness.model.finding import Location
from harness.model.recording import AttemptEvent, Event, FlowEvent, SyscallEvent
from harness.model.result import AnalyzerResult, AnalyzerStatus

NOT_ASKED = "not asked for: the run had no gateway, so nothing was let out and nothing of it is known"
#: Flows kept to be joined at the end; those past the bound are judged by what is known then.
MAX_FLOWS = 4096
#: So many different local or private ends are a scan.
SCAN_ENDS = 12
MAX_ENDS = 256
MAX_TIMES = 64
_ENCRYPTED_DNS = frozenset({"dot", "doh"})


class _Flow(NamedTuple):
    """What is kept of a flow."""

    event: FlowEvent
    question: str
    envelope: Envelope | None = None


class EgressFold:
    """Memory: the flows of the run without their parts, bounded; ports by session; times by destination."""

    def __init__(self, analyzer: EgressAnalyzer, facts: AnalysisFacts) -> None:
        self._analyzer = analyzer
        self._facts = facts
        self._attribution = Attribution()
        self._joiner = Joiner(self._attribution)
        self._books = GatewayBooks()
        self._ledger = Ledger(analyzer.name)
        self._expected = Expectations(facts)
        self._questions = Questions()
        self._named = Named()
        self._flows: list[_Flow] = []
        self._asked: list[tuple[FlowEvent, str]] = []
        self._unread: list[FlowEvent] = []
        self._unread_more = 0
        self._ends: dict[str, set[tuple[str, int]]] = {}
        self._ends_where: dict[str, tuple[FlowEvent, Where]] = {}
        self._times: dict[tuple[str, str], list[tuple[int, FlowEvent, Where]]] = {}

    def event(self, event: Event) -> None:
        """Take the next event."""
        if type(event) is SyscallEvent:
            if event.call in FOLLOWED:
                return  # whose folder a process is in does not matter here
            if event.call in SOCKET_CALLS:
                self._joiner.take(event)
            return
        self._attribution.take(event)
        self._joiner.take(event)
        self._books.take(event)
        if isinstance(event, FlowEvent):
            self._flow(event)
        elif isinstance(event, AttemptEvent):
            self._expected.learn(event.argv)
        elif isinstance(event, CallEvent):
            self._named.take(event)
            self._questions.named(json.dumps([event.call.given, event.call.headers], ensure_ascii=False))

    def _flow(self, event: FlowEvent) -> None:
        for part in event.parts:
            if part.what == "dns-question":
                name = part.text.split()[0] if part.text.split() else ""
                self._questions.add(event.session, name, len(self._asked))
                if len(self._asked) < MAX_FLOWS:
                    self._asked.append((_bare(event), name))
        if event.unread:
            if len(self._unread) < MAX_FLOWS:
                self._unread.append(_bare(event))
            else:
                self._unread_more += 1
        question = next((part.text for part in event.parts if part.what == "dns-question"), "")
        envelope = Envelope(event) if event.application == "smtp" else None
        flow = _Flow(_bare(event), question, envelope)
        if len(self._flows) < MAX_FLOWS:
            self._flows.append(flow)
        else:
            self._judge(flow)

    def finish(self) -> AnalyzerResult:
        """Say what was found."""
        for flow in self._flows:
            self._judge(flow)
        self._attempts()
        self._tunnels()
        self._pulses()
        self._scans()
        self._opaque()
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
            findings=self._ledger.findings(),
            coverage=coverage,
            warnings=(f"{self._analyzer.name}: {more} more destinations are not listed",) if more else (),
        )

    def _coverage(self) -> Coverage:
        tallies = self._books.tallies()
        skips = [
            Skip(item=render_safe(f"what was sent to {event.host}", 80), reason=SkipReason.TARGET, detail=_why(event))
            for event in self._unread
        ]
        if self._unread_more:
            skips.append(Skip(item="further flows", reason=SkipReason.TARGET, detail="opaque", count=self._unread_more))
        flows = self._books.flows
        unread = sum(skip.count for skip in skips)
        payloads = Tally(discovered=flows, analyzed=flows - unread, skipped=tuple(skips))
        return Coverage(subjects={**tallies, "payloads of flows": payloads})

    def _judge(self, flow: _Flow) -> None:
        event = flow.event
        where = self._joiner.where(event)
        to = destination(event.remote)
        text = _shown(event, where)
        if flow.question or event.application in ("dns", *_ENCRYPTED_DNS):
            self._lookup(flow, where, text)
            return
        if flow.envelope is not None and where.phase == CALL:
            self._mail(event, flow.envelope, where)
        if to.reach is Reach.PUBLIC and not event.decoy:
            self._beat(event.host, event, where)
        if where.phase == INSTALL:
            self._note(kinds.INSTALL, event.host, event, where, text)
        elif (to.reach is Reach.METADATA or event.decoy == "metadata") and not where.attacked:
            self._note(kinds.METADATA, event.host, event, where, text)
        elif event.decoy or to.reach in (Reach.LOCAL, Reach.PRIVATE, Reach.METADATA):
            self._near(event, where, text)
        elif where.phase == CALL:
            self._note(kinds.IN_CALL, event.host, event, where, text)
        else:
            self._far(event, where, text, to.reach)

    def _far(self, event: FlowEvent, where: Where, text: str, reach: Reach) -> None:
        """A public destination that nobody asked for."""
        host = event.host
        why = self._expected.why(host)
        who = vendor(host, TELEMETRY)
        if event.application == "smtp":
            self._note(kinds.MAIL, host, event, where, text)
        elif who is not None:
            self._note(kinds.TELEMETRY, host, event, where, text, extra=f"It is {who}'s.")
        elif why is not None:
            self._note(kinds.EXPECTED, host, event, where, text, extra=f"{why[0].upper()}{why[1:]}.")
        elif not event.sni and not event.names and reach is Reach.PUBLIC:
            self._note(kinds.LITERAL, host, event, where, text)
        elif reach is not Reach.NOWHERE or event.sni or event.names:
            registry = vendor(host, REGISTRIES)
            self._note(kinds.PUBLIC, host, event, where, text, extra=f"It is {registry}." if registry else "")

    def _mail(self, event: FlowEvent, envelope: Envelope, where: Where) -> None:
        """A mail that a call sent: did all who got it stand in what was asked for?"""
        beyond = envelope.unnamed(self._named.ever)
        if beyond:
            asked = self._named.readers(where.call, envelope.recipients)
            kind = kinds.HIDDEN_COPY if asked else kinds.FIXED_RECIPIENT
            text = f"mail to {', '.join(beyond[:8])}"
            self._note(kind, event.host, event, where, f"{text}; named was {', '.join(asked[:8]) or 'nobody'}")

    def _near(self, event: FlowEvent, where: Where, text: str) -> None:
        """A local or private destination; those of calls with payloads are ours, and the oracle's to judge."""
        if not where.attacked:
            ends = self._ends.setdefault(where.session, set())
            if len(ends) < MAX_ENDS:
                ends.add((event.address, event.port))
            self._ends_where.setdefault(where.session, (event, where))
        if where.phase == CALL:
            self._note(kinds.IN_CALL, "private", event, where, text)
        else:
            self._note(kinds.PRIVATE, f"port {event.port}", event, where, text)

    def _lookup(self, flow: _Flow, where: Where, text: str) -> None:
        event = flow.event
        if where.phase == INSTALL:
            name = site(flow.question.split()[0]) if flow.question.split() else event.host
            self._note(kinds.INSTALL, name, event, where, f"looked up {flow.question}")
        elif event.application in _ENCRYPTED_DNS:
            self._note(kinds.OWN_RESOLVER, event.host, event, where, text)
        elif where.phase != CALL and flow.question.split():
            self._note(kinds.LOOKUP, site(flow.question.split()[0]), event, where, f"looked up {flow.question}")

    def _note(self, kind: Kind, host: str, event: FlowEvent, where: Where, text: str, *, extra: str = "") -> None:
        at = steady(host)
        base = Location(phase=INSTALL) if where.phase == INSTALL else Location()
        if where.tool is not None:
            base = Location(tool=where.tool, phase="call")
        place = base.model_copy(update={"destination": render_safe(at, 100)})
        self._ledger.note(kind, at, event, where, text, extra=extra, location=place)

    def _attempts(self) -> None:
        """Connections that were tried and that the gateway tells nothing of."""
        for use in self._joiner.attempts():
            where, to = use.where, destination(use.remote)
            if use.event.session == INSTALL or use.event.denied:
                continue
            event = FlowEvent(
                seq=use.event.seq, t=use.t, phase=use.event.phase, session=use.event.session, flow=0, protocol="tcp",
                remote=use.remote, began=use.t,
            )  # fmt: skip
            text = f"connect to {use.remote}, of which the gateway saw nothing"
            if to.reach is Reach.PUBLIC:
                self._beat(event.host, event, where)
            if to.reach is Reach.METADATA and not where.attacked:
                self._note(kinds.METADATA, event.host, event, where, text)
            elif to.reach in (Reach.PRIVATE, Reach.METADATA):
                self._near(event, where, text)
            elif to.reach is Reach.PUBLIC and where.phase != CALL:
                self._far(event, where, text, to.reach)

    def _tunnels(self) -> None:
        for domain, parent in self._questions.tunnels():
            event, name = self._asked[min(parent.first, len(self._asked) - 1)]
            where = self._joiner.where(event)
            text = f"{len(parent.labels)} labels with {parent.characters} characters of data, the first in {name}"
            self._note(kinds.TUNNEL, domain, event, where, text)

    def _beat(self, host: str, event: FlowEvent, where: Where) -> None:
        times = self._times.setdefault((where.session, site(host)), [])
        if len(times) < MAX_TIMES:
            times.append((event.began or event.t, event, where))

    def _pulses(self) -> None:
        """Regular times from before the first call on. What calls set off is as regular as they are: it is left out.

        A first call may come before the first beat. Then another life tells, in which the same host was talked to
        before anything was asked.
        """
        unasked: dict[str, tuple[FlowEvent, Where]] = {}
        for (_, host), seen in self._times.items():
            seen.sort(key=lambda beat: beat[0])
            if (first := next((beat for beat in seen if unprompted(beat[2])), None)) is not None:
                unasked.setdefault(host, first[1:])
        for (_, host), seen in self._times.items():
            quiet = [
                later[0] - earlier[0]
                for earlier, later in pairwise(seen)
                if CALL not in (earlier[2].phase, later[2].phase) and earlier[2].after == later[2].after
            ]
            gap = steady_gap(quiet) if host in unasked else None
            if gap is not None:
                event, where = unasked[host]
                times = f"{len(seen)} times, every {gap:.1f} s"
                kind = kinds.TELEMETRY if vendor(host, TELEMETRY) else kinds.BEACON
                self._note(kind, host, event, where, f"{times}: {_shown(event, where)}")

    def _scans(self) -> None:
        for session, ends in self._ends.items():
            if len(ends) >= SCAN_ENDS:
                event, where = self._ends_where[session]
                self._ledger.note(kinds.SCAN, "scan", event, where, f"{len(ends)} local or private ends were tried")

    def _opaque(self) -> None:
        for event in self._unread:
            where = self._joiner.where(event)
            self._note(kinds.OPAQUE, event.host, event, where, f"{_shown(event, where)}: {_why(event)}")


def _bare(event: FlowEvent) -> FlowEvent:
    """A flow without what takes memory."""
    return event.model_copy(update={"parts": (), "outbound": None, "inbound": None})


def _why(event: FlowEvent) -> str:
    return render_safe(event.opaque, 120)


def _shown(event: FlowEvent, where: Where) -> str:
    """One line about a flow."""
    name = f" ({event.remote})" if event.host != event.address else ""
    port = f":{event.port}" if event.port and not name else ""
    said = f"{event.application or event.protocol} to {event.host}{port}{name}"
    moved = f"{event.sent} bytes sent, {event.received} received"
    return f"{said}, {moved}, {shown_phase(where)}"


class _Declined:
    """There was no gateway: every event passes by."""

    def __init__(self, name: str, version: str) -> None:
        self._name, self._version = name, version

    def event(self, event: Event) -> None:
        """Pass by."""

    def finish(self) -> AnalyzerResult:
        """Skipped, and said so."""
        return AnalyzerResult(name=self._name, version=self._version, status=AnalyzerStatus.SKIPPED, reason=NOT_ASKED)


class EgressAnalyzer(AnalyzerBase):
    """Judges destinations."""

    name = "behavior.egress"
    description = "where the server talks to: vendors, bare addresses, local ports, tunnels, regular calls home"
    light = True
    rules = tuple(Rule(id=kind.rule, title=kind.title) for kind in kinds.KINDS)

    def passes(self, facts: AnalysisFacts) -> bool:
        """True where there was no gateway by choice."""
        return gateway_declined(facts.manifest)

    def start(self, facts: AnalysisFacts) -> Fold:
        """Begin, or pass where there was no gateway by choice."""
        return _Declined(self.name, self.version) if self.passes(facts) else EgressFold(self, facts)
