"""The `probes` analyzer: what a server did with the malformed messages that it was sent. What we sent is trusted.

Each message has a sign of life behind it, so an end, a standstill and an effect belong to one; answers are told by
their ids, whenever they come.
"""

from __future__ import annotations

from harness.analyzers.base import AnalysisFacts, AnalyzerBase
from harness.analyzers.evidence import render_safe
from harness.analyzers.messages import probes_rules as rules
from harness.analyzers.messages.probes_answers import (
    Kind,
    judged_acceptance,
    kind_of,
    leak_of,
    rounded,
    same_number,
)
from harness.analyzers.messages.probes_effects import Effect, ProbeEffects
from harness.analyzers.messages.probes_http import judge_reply
from harness.analyzers.messages.probes_ledger import ProbeLedger
from harness.analyzers.messages.probes_rules import RULES
from harness.analyzers.messages.probes_sessions import Case, ProbedSession, normal, of_a_probe, probe_of
from harness.analyzers.messages.probes_traces import died_in_sdk
from harness.analyzers.messages.sessions import ending_of, read_messages
from harness.model.base import JsonObject, canonical_json
from harness.model.coverage import Coverage, Skip, SkipReason, Tally
from harness.model.finding import Severity
from harness.model.options import ActiveLevel
from harness.model.probe import Family, Must, Probe, ProbeBooks, Probed
from harness.model.recording import (
    Anomaly,
    AttemptEvent,
    Direction,
    Event,
    EventBase,
    ExitEvent,
    FrameEvent,
    LimitEvent,
    ProbeBooksEvent,
    ProbeEndEvent,
    ProbeEvent,
    RecorderEndEvent,
    StderrEvent,
)
from harness.model.result import AnalyzerResult, AnalyzerStatus

#: Sessions with probes: one, one more for each death, and one before a handshake.
MAX_SESSIONS = 128
#: Memory may rise by so much, whatever was sent, and by so many times what was sent.
USUAL_GROWTH = 48 << 20
GROWTH_FACTOR = 32
#: The same for what comes back.
USUAL_ANSWER = 1 << 20
ANSWER_FACTOR = 16

#: Why nothing more was read, where that is our doing: the bound has a finding of its own.
_OUR_BOUNDS = frozenset({"byte limit", "message limit"})

#: What the Python SDK puts in place of an id in errors about a request over HTTP as a whole (1.x, 2025).
_IN_PLACE_OF_AN_ID = "server-error"

PHASE = "probe:"


class ProbesAnalyzer(AnalyzerBase):
    """Judges what came of malformed messages."""

    name = "probes"
    version = "1"
    description = "malformed messages: crashes, hangs, effects, leaks, and what is accepted that must be rejected"
    rules = RULES
    light = True

    def passes(self, facts: AnalysisFacts) -> bool:
        """True where the operator asked for no probes."""
        return facts.manifest is not None and facts.manifest.options.active is ActiveLevel.NONE

    def start(self, facts: AnalysisFacts) -> ProbesFold:
        """Begin."""
        return ProbesFold(facts, asked=not self.passes(facts))


class ProbesFold:
    """State bounded by the number of probes."""

    def __init__(self, facts: AnalysisFacts, *, asked: bool = True) -> None:
        self._facts = facts
        self._asked = asked
        manifest = facts.manifest
        self._secrets = tuple(canary.value for canary in manifest.canaries if canary.value) if manifest else ()
        self._sessions: dict[str, ProbedSession] = {}
        self._effects = ProbeEffects()
        self._ledger = ProbeLedger(ProbesAnalyzer.name)
        self._note = self._ledger.note
        self._done: dict[tuple[str, int], Probed] = {}
        self._probes: dict[str, Probe] = {}
        self._exits: dict[tuple[str, int], ExitEvent] = {}
        self._in_sdk: set[tuple[str, int]] = set()
        self._books: ProbeBooks | None = None
        self._recorded = False

    def event(self, event: Event) -> None:
        """Take the next event."""
        self._effects.take(event)
        match event:
            case FrameEvent():
                self._frame(event)
            case ProbeEvent():
                self._begin(event)
            case ProbeEndEvent():
                self._end(event)
            case ProbeBooksEvent():
                self._books = event.books
            case ExitEvent():
                self._exit(event)
            case StderrEvent():
                self._last_words(event)
            case LimitEvent():
                self._limit(event)
            case AttemptEvent():
                self._sessions.pop(event.session, None)
            case RecorderEndEvent():
                self._recorded = self._recorded or event.loaded
            case _:
                pass

    def finish(self) -> AnalyzerResult:
        """Judge what only the end tells, and close the books."""
        if not self._asked:
            return AnalyzerResult(
                name=ProbesAnalyzer.name,
                version=ProbesAnalyzer.version,
                status=AnalyzerStatus.SKIPPED,
                reason="not asked for: --active none sends no malformed messages",
            )
        for effect in self._effects.found():
            self._effect(effect)
        self._deaths()
        coverage = self._coverage()
        reason = self._reason(coverage)
        return AnalyzerResult(
            name=ProbesAnalyzer.name,
            version=ProbesAnalyzer.version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=reason,
            findings=self._ledger.findings(),
            coverage=coverage,
        )

    # Events

    def _begin(self, event: ProbeEvent) -> None:
        if event.session not in self._sessions and len(self._sessions) >= MAX_SESSIONS:
            return
        session = self._sessions.setdefault(event.session, ProbedSession())
        case = session.current = session.last = Case(event.probe)
        self._probes[event.probe.id] = event.probe
        session.alive[str(event.probe.alive_id)] = 0
        for text in event.probe.ids:
            session.cases[normal(text)] = case

    def _end(self, event: ProbeEndEvent) -> None:
        session = self._sessions.get(event.session)
        case = session.current if session is not None else None
        if session is None or case is None:
            return
        session.current = None
        case.end = probed = event.probed
        self._done[probed.probe, case.probe.attempt] = probed
        grown = probed.grown
        if grown is not None and grown > USUAL_GROWTH + GROWTH_FACTOR * probed.bytes_sent:
            text = f"{grown >> 20} MiB more after {probed.bytes_sent} bytes"
            self._note(rules.MEMORY, "memory", case.probe, event, text)
        if case.received > USUAL_ANSWER + ANSWER_FACTOR * probed.bytes_sent:
            text = f"{case.received} bytes came back for {probed.bytes_sent}"
            self._note(rules.OUTPUT, "output", case.probe, event, text)
        if probed.reply is not None:
            for fault, text in judge_reply(case.probe, probed.reply):
                self._note(fault, f"http:{fault.rule}:{case.probe.id}", case.probe, event, text)

    def _exit(self, event: ExitEvent) -> None:
        session = self._sessions.get(event.session)
        case = session.last if session is not None else None
        if case is not None and case.end is not None and case.end.state == "closed":
            self._exits[case.probe.id, case.probe.attempt] = event

    def _last_words(self, event: StderrEvent) -> None:
        session = self._sessions.get(event.session)
        case = session.last if session is not None else None
        if case is not None and case.end is not None and case.end.state == "closed" and died_in_sdk(event.tail):
            self._in_sdk.add((case.probe.id, case.probe.attempt))

    def _limit(self, event: LimitEvent) -> None:
        session = self._sessions.get(event.session)
        if session is None or session.current is None or not event.what.startswith("stdout"):
            return
        text = f"{event.what}: at least {event.seen}, at most {event.bound} are read"
        self._note(rules.OUTPUT, "output", session.current.probe, event, text)

    def _frame(self, event: FrameEvent) -> None:
        session = self._sessions.get(event.session)
        if event.direction is Direction.SENT:
            if not event.phase.startswith(PHASE):
                self._ours(event)
            return
        if session is None:
            return
        case = session.current
        if case is not None:
            case.received += event.size
            if Anomaly.NOT_JSON in event.anomalies and event.raw.strip() and not _starting(case.probe):
                self._note(rules.NOISE, "noise", case.probe, event, event.raw[:400].decode("utf-8", "replace"))
        if case is None and not event.phase.startswith(PHASE) and not session.cases:
            return
        for message in read_messages(event):
            if "method" not in message and ("id" in message or "result" in message or "error" in message):
                self._answer(event, session, message)

    def _ours(self, event: FrameEvent) -> None:
        """Remember the ids of requests that are no probes, to which answers may come late."""
        for message in read_messages(event):
            identifier = message.get("id")
            if type(identifier) is int and "method" in message:
                session = self._sessions.setdefault(event.session, ProbedSession())
                session.own = max(session.own, identifier)

    # Answers

    def _answer(self, event: FrameEvent, session: ProbedSession, message: JsonObject) -> None:
        identifier = message.get("id")
        key = canonical_json(identifier)
        if not event.phase.startswith(PHASE) and not of_a_probe(key):
            return
        if key in session.alive:
            session.alive[key] += 1
            if session.alive[key] == 2:
                self._note(rules.TWICE, "twice", probe_of(session), event, f"id {key}")
            self._leaks(event, session, message, None)
            return
        case = session.cases.get(key)
        if case is not session.current and not of_a_probe(key):
            case = None  # an odd id is the answer to the message that had it, while that one is at hand
        if case is not None and not (identifier is None and kind_of(message, None) is Kind.ERROR):
            case.answers += 1
            if case.answers == case.probe.answers * len(case.probe.ids) + 1:
                self._note(rules.TWICE, "twice", case.probe, event, f"id {key}")
            self._accepted(event, case.probe, message)
            self._leaks(event, session, message, case.probe)
            return
        self._leaks(event, session, message, session.current.probe if session.current else None)
        if identifier is None:
            self._about_nothing(event, session, message)
        elif event.phase.startswith(PHASE) and not (type(identifier) is int and 1 <= identifier <= session.own):
            self._stray(event, session, message)

    def _accepted(self, event: FrameEvent, probe: Probe, message: JsonObject) -> None:
        severity = judged_acceptance(message, probe)
        if severity is None:
            return
        text = f"{probe.id}, {probe.title}: answered with a result ({probe.source})"
        if severity is Severity.INFO:
            self._note(rules.LENIENT, "lenient", probe, event, text)
        else:
            fault = rules.accepted(severity, probe.fault)
            self._note(fault, f"accepted:{probe.family}:{severity}", probe, event, text)

    def _about_nothing(self, event: FrameEvent, session: ProbedSession, message: JsonObject) -> None:
        """An answer without an id: in order as an error about what could not be read, and as nothing else."""
        case = session.current
        if case is None:
            return
        failed = kind_of(message, case.probe) is Kind.ERROR
        if case.probe.must is Must.IGNORE:
            fault = rules.ERROR_FOR_NOTIFICATION if failed else rules.RESULT_FOR_NOTIFICATION
            self._note(fault, f"notification:{'error' if failed else 'result'}", case.probe, event, _excerpt(event))
        elif not failed and case.probe.must is Must.REJECT:
            self._accepted(event, case.probe, message)

    def _stray(self, event: FrameEvent, session: ProbedSession, message: JsonObject) -> None:
        identifier = message["id"]
        probe = probe_of(session)
        if any(same_number(identifier, wanted) for wanted in (*session.alive, *session.cases)):
            self._note(rules.ID_TYPE, "id:type", probe, event, f"id {canonical_json(identifier)}")
        elif any(rounded(identifier, wanted) for wanted in session.cases):
            text = f"{probe.id}, {probe.title}: the id came back rounded"
            self._note(rules.LENIENT, "lenient", probe, event, text)
        elif identifier == _IN_PLACE_OF_AN_ID and message.get("error") is not None:
            text = f"{probe.id}, {probe.title}: id {canonical_json(identifier)}, where there is none to answer with"
            self._note(rules.LENIENT, "lenient", probe, event, text)
        else:
            self._note(rules.UNKNOWN_ID, "id:unknown", probe, event, f"id {canonical_json(identifier)[:80]}")

    def _leaks(self, event: FrameEvent, session: ProbedSession, message: JsonObject, probe: Probe | None) -> None:
        if (leak := leak_of(message, probe, self._secrets)) is not None:
            fault, text = leak
            about = probe or probe_of(session)
            self._note(fault, f"leak:{fault.severity}:{fault.cwe}", about, event, text)

    # Effects and ends

    def _effect(self, effect: Effect) -> None:
        probe = self._probes.get(effect.phase.removeprefix(PHASE))
        if probe is not None and not _starting(probe):
            names = (phase.removeprefix(PHASE) for phase in (effect.phase, *effect.before))
            calls = [call for name in names if (call := self._probes.get(name)) is not None and call.tool]
            passed_on = effect.public and any(call.must is Must.REJECT for call in calls)
            fault = rules.PASSED_ON if passed_on else rules.EFFECT
            self._note(
                fault, f"effect:{effect.fact}", probe, effect.event, f"{probe.id}, {probe.title}: {effect.words}"
            )

    def _deaths(self) -> None:
        """A message that did it twice is to blame; one that did it once may have been there by chance."""
        confirmed = {
            (self._probes[name].family, probed.state)
            for (name, attempt), probed in self._done.items()
            if attempt == 2 and probed.state != "alive"
        }
        for (name, attempt), probed in self._done.items():
            probe = self._probes[name]
            if attempt != 1 or probed.state not in ("silent", "closed") or probe.family is Family.ALIVE:
                continue
            again = self._done.get((name, 2))
            sure = again.state != "alive" if again is not None else (probe.family, probed.state) in confirmed
            event = EventBase(phase=f"{PHASE}{name}", seq=0)
            if probed.state == "silent":
                self._standstill(probe, event, sure=sure)
                continue
            exit_event = self._exits.get((name, 1))
            if probed.closed in _OUR_BOUNDS or exit_event is None or exit_event.ended_by not in ("target", "harness"):
                continue
            how = ending_of(exit_event) if exit_event.ended_by == "target" else "it closed its stdout"
            fault, fact = rules.CRASH_ONCE, f"crash:{probe.family}:once"
            if exit_event.oom_killed:
                fault, fact = rules.OUT_OF_MEMORY, f"oom:{probe.family}"
            elif (name, 1) in self._in_sdk:
                fault, fact = rules.CRASH_IN_SDK, "crash:sdk"
            elif sure:
                fault, fact = rules.CRASH, f"crash:{probe.family}:twice"
            self._note(fault, fact, probe, exit_event, f"{probe.id}, {probe.title}: {how}")

    def _standstill(self, probe: Probe, event: EventBase, *, sure: bool) -> None:
        fault = rules.HANG if sure else rules.HANG_ONCE
        if sure and probe.family is Family.FRAMING:
            fault = rules.DESYNC
        fact = f"{fault.rule}:{probe.family}:{'twice' if sure else 'once'}"
        self._note(fault, fact, probe, event, f"{probe.id}, {probe.title}")

    # Books

    def _coverage(self) -> Coverage:
        sent = {name for name, attempt in self._done if self._probes[name].family is not Family.ALIVE}
        unsent = [u for u in (self._books.unsent if self._books is not None else ()) if u.probe not in sent]
        skips = tuple(
            Skip(item=render_safe(u.probe, 40), reason=SkipReason(u.reason), detail=render_safe(u.detail, 80))
            for u in unsent
        )
        subjects = {"probes": Tally(discovered=len(sent) + len(skips), analyzed=len(sent), skipped=skips)}
        manifest = self._facts.manifest
        if sent and not self._recorded and manifest is not None and manifest.recorder == "none":
            why = "no recorder was chosen"
            skip = Skip(item="effects of probes", reason=SkipReason.OPERATOR, detail=why, count=len(sent))
            subjects["effects"] = Tally(discovered=len(sent), analyzed=0, skipped=(skip,))
        return Coverage(subjects=subjects)

    def _reason(self, coverage: Coverage) -> str:
        manifest = self._facts.manifest
        if manifest is not None and manifest.problems:
            return render_safe(manifest.problems[0])
        if not self._facts.complete:
            return "the recording is incomplete"
        if self._books is None:
            return "no malformed message was sent: there was no session that was answered"
        gaps = coverage.gaps()
        return render_safe(gaps[0]) if gaps else ""


def _starting(probe: Probe) -> bool:
    """Whether the server may still be starting: what it does then is no answer to the message."""
    return probe.family is Family.HANDSHAKE and probe.must is Must.LIVE


def _excerpt(event: FrameEvent) -> str:
    return event.raw[:400].decode("utf-8", "replace")
