"""The `protocol` analyzer: how the server kept to the protocol, over what it sent. What we sent is trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from harness.analyzers.base import AnalysisFacts, AnalyzerBase
from harness.analyzers.evidence import render_safe
from harness.analyzers.lists import unread_rest
from harness.analyzers.messages import rules
from harness.analyzers.messages.notebook import STOCK_CLIENT, Notebook
from harness.analyzers.messages.rules import ANOMALIES, OTHER_ANOMALY, RULES, SILENT, Kind
from harness.analyzers.messages.sessions import SessionState, ending_of, read_messages, silence_of
from harness.analyzers.messages.shapes import Violation, check_entries, check_error, check_result
from harness.analyzers.messages.tally import ProtocolTally
from harness.model.base import JsonObject
from harness.model.coverage import Skip, SkipReason
from harness.model.recording import (
    Anomaly,
    AttemptEvent,
    DeadlineEvent,
    Direction,
    Event,
    EventBase,
    ExitEvent,
    FrameEvent,
    LimitEvent,
    ListEvent,
    Phase,
    PhaseEvent,
)
from harness.model.result import AnalyzerResult, AnalyzerStatus
from harness.model.surface import Item, ItemKind, ListEnd, ListOutcome

#: Sessions are few; a recording with more is not one of ours.
MAX_SESSIONS = 64
#: Bounds after which nothing more of stdout was read.
_CUT_OFF = frozenset({"stdout-bytes", "stdout-lines"})
#: Bounds on what we keep, which say nothing about the target.
_OURS = ("stderr", "bundle", "frame")
#: Client features by the method that uses them; `ping` is always allowed.
_FEATURES = {"roots/list": "roots", "sampling/createMessage": "sampling", "elicitation/create": "elicitation"}
_METHODS = {
    ItemKind.TOOL: "tools/list",
    ItemKind.PROMPT: "prompts/list",
    ItemKind.RESOURCE: "resources/list",
    ItemKind.RESOURCE_TEMPLATE: "resources/templates/list",
}


class ProtocolAnalyzer(AnalyzerBase):
    """Judges received frames, ends of lists, deadlines, limits and exits."""

    name = "protocol"
    version = "1"
    description = "malformed messages, schema violations, noise on stdout, floods, hangs and crashes"
    rules = RULES

    def start(self, facts: AnalysisFacts) -> ProtocolFold:
        """Begin; duplicate names are looked for in the surfaces."""
        return ProtocolFold(facts)


class ProtocolFold:
    """State bounded by the number of sessions and of kinds of deviation."""

    def __init__(self, facts: AnalysisFacts) -> None:
        self._facts = facts
        self._book = Notebook(ProtocolAnalyzer.name)
        self._sessions: dict[str, SessionState] = {}
        self._tally = ProtocolTally()
        self._served: dict[int, list[Item]] = {}
        for surface in facts.surfaces:
            for item in surface.items:
                self._served.setdefault(item.frame, []).append(item)
        self._handlers: dict[type[EventBase], Callable[[Any], None]] = {
            AttemptEvent: self._attempt,
            PhaseEvent: self._phase,
            FrameEvent: self._frame,
            ListEvent: self._list,
            DeadlineEvent: self._deadline,
            LimitEvent: self._limit,
            ExitEvent: self._exit,
        }

    def event(self, event: Event) -> None:
        """Take the next event."""
        handler = self._handlers.get(type(event))
        if handler is not None and event.session != Phase.INSTALL.value:
            handler(event)

    def finish(self) -> AnalyzerResult:
        """Judge how the sessions ended, and close the books."""
        for state in self._sessions.values():
            self._judge_exit(state)
        self._duplicate_names()
        sessions = [state for state in self._sessions.values() if state.name != STOCK_CLIENT]
        reason = self._reason(sessions)
        return AnalyzerResult(
            name=ProtocolAnalyzer.name,
            version=ProtocolAnalyzer.version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=reason,
            findings=self._book.findings(),
            coverage=self._tally.coverage(sessions),
        )

    def _state(self, event: EventBase) -> SessionState:
        name = event.session if event.session in self._sessions or len(self._sessions) < MAX_SESSIONS else "others"
        return self._sessions.setdefault(name, SessionState(name))

    def _attempt(self, event: AttemptEvent) -> None:
        # A new start in the same session: how the one before ended is told by the attempts, not as a fault.
        name = self._state(event).name
        self._sessions[name] = SessionState(name)

    def _phase(self, event: PhaseEvent) -> None:
        if event.session in self._sessions and event.phase != Phase.STOP:
            self._sessions[event.session].phase = event.phase.partition(":")[0]

    def _frame(self, event: FrameEvent) -> None:
        state = self._state(event)
        messages = read_messages(event)
        if event.direction is Direction.SENT:
            for message in messages:
                state.sent(message)
            return
        self._tally.received += 1
        if event.truncated and not self._checked_in_surface(event):
            self._tally.truncated += 1
        self._anomalies(event, messages)
        for message in messages:
            if isinstance(message.get("method"), str):
                if "id" in message:
                    self._request(event, state, message["method"])
            elif "id" in message:
                self._response(event, state, message)

    def _checked_in_surface(self, event: FrameEvent) -> bool:
        """Check a list's answer that was too long to keep by its items, which were: True when there are some."""
        items = self._served.get(event.seq, [])
        for kind, method in _METHODS.items():
            for violation in check_entries(method, [item.value for item in items if item.kind is kind]):
                self._violation(violation, event)
        return bool(items)

    def _anomalies(self, event: FrameEvent, messages: tuple[JsonObject, ...]) -> None:
        blank = not event.raw.strip()
        told = any(_members_clash(m) and m.get("jsonrpc") == "2.0" for m in messages)  # by its schema violation
        about_nothing = all(m.get("id") is None and "error" in m for m in messages) and bool(messages)
        for anomaly in event.anomalies:
            if anomaly.value in SILENT or blank or (told and anomaly is Anomaly.NOT_JSONRPC):
                continue
            if anomaly is Anomaly.NO_NEWLINE_AT_END and event.phase == Phase.STOP:
                continue
            if anomaly is Anomaly.WRONG_ID_TYPE and about_nothing:
                continue  # an error without id answers what could not be read, as JSON-RPC 2.0 wants it
            kind = ANOMALIES.get(anomaly, OTHER_ANOMALY)
            self._book.note(kind, f"anomaly:{anomaly.value}", event, event.raw[:400].decode("utf-8", "replace"))

    def _request(self, event: FrameEvent, state: SessionState, method: str) -> None:
        if method == "ping":
            return
        feature = _FEATURES.get(method)
        if feature is None or feature not in state.offered:
            fact = f"uninvited:{feature or 'unknown method'}"
            self._book.note(rules.UNINVITED, fact, event, method)

    def _response(self, event: FrameEvent, state: SessionState, message: JsonObject) -> None:
        method = state.method_of(message.get("id"))
        if _members_clash(message):
            both = "result" in message
            text = "An answer has both a result and an error." if both else "An answer has no result and no error."
            self._violation(Violation("answer: members", rules.HANG.severity, text, method or "answer"), event)
        elif "error" in message:
            for violation in check_error(message["error"]):
                self._violation(violation, event)
        elif method is not None:
            for violation in check_result(method, message["result"], state.era):
                self._violation(violation, event)
        if method is not None:
            state.greeted(method, ok=isinstance(message.get("result"), dict) and "error" not in message)

    def _violation(self, violation: Violation, event: EventBase) -> None:
        kind = Kind("protocol.schema", violation.severity, violation.description)
        self._book.note(kind, f"schema:{violation.code}", event, f"{violation.description} In: {violation.where}")

    def _list(self, event: ListEvent) -> None:
        outcome = ListOutcome(kind=event.list, pages=event.pages, items=event.items, end=event.end, detail=event.detail)
        skip = unread_rest(outcome, f"list of {event.list.value}")
        if event.end is ListEnd.COMPLETE:
            self._tally.lists_read += 1
        if skip is not None and len(self._tally.list_skips) < MAX_SESSIONS:
            self._tally.list_skips.append(skip)

    def _deadline(self, event: DeadlineEvent) -> None:
        if event.what == "run":
            self._tally.cut_off["run"] = Skip(
                item="run", reason=SkipReason.LIMIT, detail="the time of the run was over"
            )
        elif event.what != "server/discover" and event.phase != Phase.STOP:  # silence there only tells the era
            kind = rules.BLOCKED if event.blocked else rules.HANG
            method = event.what.partition(":")[0] if "/" in event.what or event.what.isalpha() else "other"
            fact = f"{'blocked' if event.blocked else 'hang'}:{method[:40]}"
            self._book.note(kind, fact, event, f"{event.what}: no answer in {event.seconds:g} s", place=_place(event))

    def _limit(self, event: LimitEvent) -> None:
        if event.what.startswith(_OURS):
            return
        text = f"{event.what}: at least {event.seen}, at most {event.bound} are read"
        self._book.note(rules.FLOOD, f"flood:{event.what[:40]}", event, text)
        if event.what in _CUT_OFF and event.session != STOCK_CLIENT:
            detail = "nothing after this bound was read"
            self._tally.cut_off[event.what] = Skip(item=event.what[:40], reason=SkipReason.LIMIT, detail=detail)

    def _exit(self, event: ExitEvent) -> None:
        self._state(event).exit = event

    def _judge_exit(self, state: SessionState) -> None:
        event = state.exit
        if event is None:
            return
        if event.oom_killed:
            self._book.note(rules.OUT_OF_MEMORY, "exit:oom", event, ending_of(event), place=state.phase)
        elif state.ended_early:
            failed = event.signal is not None or event.code != 0
            if event.signal is None and not state.answered:
                self._book.note(rules.FAILED_START, "exit:start", event, ending_of(event), place=state.phase)
            elif failed:
                fact = f"exit:signal {event.signal}" if event.signal is not None else f"exit:code {event.code}"
                self._book.note(rules.CRASH, fact, event, ending_of(event), place=state.phase)
            else:
                self._book.note(rules.EARLY_EXIT, "exit:0", event, ending_of(event), place=state.phase)

    def _reason(self, sessions: list[SessionState]) -> str:
        manifest = self._facts.manifest
        if manifest is not None and manifest.problems:
            return render_safe(manifest.problems[0])
        if not self._facts.complete:
            return "the recording is incomplete"
        if not sessions:
            return "the target was never started"
        silent = next((state for state in sessions if not state.answered), None)
        return f"the server never answered the handshake: {silence_of(silent)}" if silent is not None else ""

    def _duplicate_names(self) -> None:
        for surface in self._facts.surfaces:
            counts: Counter[tuple[str, str]] = Counter((item.kind.value, item.name) for item in surface.items)
            for item in surface.items:
                if item.name and counts[item.kind.value, item.name] > 1:
                    event = EventBase(phase=Phase.DISCOVER, seq=item.frame)
                    self._book.note(rules.DUPLICATE_NAME, f"duplicate:{item.kind.value}", event, item.name)


def _members_clash(message: JsonObject) -> bool:
    answers = "id" in message and "method" not in message
    return answers and ("result" in message) == ("error" in message)


def _place(event: EventBase) -> str:
    return event.phase.partition(":")[0]
