"""One life of the target as the `protocol` analyzer sees it: its frames, lists, deadlines, limits and end, judged.

A session that was started several times has several lives, of which one counts: what the others did was asked for by
what they were started with.
"""

from __future__ import annotations

from harness.analyzers.evidence import render_safe
from harness.analyzers.lists import unread_rest
from harness.analyzers.messages import rules
from harness.analyzers.messages.notebook import STOCK_CLIENT, Notebook
from harness.analyzers.messages.rules import ANOMALIES, OTHER_ANOMALY, SILENT, Kind
from harness.analyzers.messages.sessions import SessionState, ending_of, read_messages
from harness.analyzers.messages.shapes import Violation, check_entries, check_error, check_result
from harness.analyzers.messages.tally import ProtocolTally
from harness.model.base import JsonObject
from harness.model.coverage import Skip, SkipReason
from harness.model.finding import Evidence
from harness.model.recording import (
    Anomaly,
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
    StderrEvent,
)
from harness.model.surface import Item, ItemKind, ListEnd, ListOutcome

PROBE = "probe:"
#: Skips of lists that are kept.
MAX_SKIPS = 64
#: How much of the end of standard error is shown with an early end.
STDERR_CHARS = 500
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


class Life:
    """State bounded by the kinds of deviation. `guess`: nothing the target said asked for how it was started."""

    def __init__(self, session: str, book: Notebook, served: dict[int, list[Item]], *, guess: bool = False) -> None:
        self.state = SessionState(session)
        self.guess = guess
        self.book = book
        self.tally = ProtocolTally()
        self._served = served
        self._stderr: StderrEvent | None = None

    def event(self, event: Event) -> None:
        """Take the next event of this life; what comes of malformed messages has an analyzer of its own."""
        if event.phase.startswith(PROBE) and isinstance(event, (FrameEvent, DeadlineEvent)):
            return
        match event:  # no table of bound methods: it would keep a life that does not count from being freed at once
            case FrameEvent():
                self._frame(event)
            case PhaseEvent():
                self._phase(event)
            case ListEvent():
                self._list(event)
            case DeadlineEvent():
                self._deadline(event)
            case LimitEvent():
                self._limit(event)
            case ExitEvent():
                self._exit(event)
            case StderrEvent():
                self._keep_stderr(event)
            case _:
                pass

    @staticmethod
    def takes(event: Event) -> bool:
        """Whether an event is part of a life; one that is not never begins one."""
        return isinstance(event, (PhaseEvent, FrameEvent, ListEvent, DeadlineEvent, LimitEvent, ExitEvent))

    def outweighs(self, other: Life) -> bool:
        """Whether this life, the later one, counts instead of `other`: it was answered, or neither it nor a guess."""
        if self.state.answered or other.state.answered:
            return self.state.answered
        return not self.guess

    def _phase(self, event: PhaseEvent) -> None:
        self.state.probed = self.state.probed or event.phase.startswith(PROBE)
        if event.phase != Phase.STOP:
            self.state.phase = event.phase.partition(":")[0]
        if event.phase == Phase.DISCOVER and self.state.name != STOCK_CLIENT:
            self.state.answered = True  # it begins with the answer, also with one that is too long to be read here

    def _frame(self, event: FrameEvent) -> None:
        state = self.state
        messages = read_messages(event)
        if event.direction is Direction.SENT:
            for message in messages:
                state.sent(message)
            return
        self.tally.received += 1
        if event.truncated and not self._checked_in_surface(event):
            self.tally.truncated += 1
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
        blank = not event.truncated and not event.raw.strip()
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
            self.book.note(kind, f"anomaly:{anomaly.value}", event, event.raw[:400].decode("utf-8", "replace"))

    def _request(self, event: FrameEvent, state: SessionState, method: str) -> None:
        if method == "ping":
            return
        feature = _FEATURES.get(method)
        if feature is None or feature not in state.offered:
            fact = f"uninvited:{feature or 'unknown method'}"
            self.book.note(rules.UNINVITED, fact, event, method)

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
        self.book.note(kind, f"schema:{violation.code}", event, f"{violation.description} In: {violation.where}")

    def _list(self, event: ListEvent) -> None:
        outcome = ListOutcome(kind=event.list, pages=event.pages, items=event.items, end=event.end, detail=event.detail)
        skip = unread_rest(outcome, f"list of {event.list.value}")
        if event.end is ListEnd.COMPLETE:
            self.tally.lists_read += 1
        if skip is not None and len(self.tally.list_skips) < MAX_SKIPS:
            self.tally.list_skips.append(skip)

    def _deadline(self, event: DeadlineEvent) -> None:
        if event.what == "run":
            self.tally.cut_off["run"] = Skip(item="run", reason=SkipReason.LIMIT, detail="the time of the run was over")
        elif event.what != "server/discover" and event.phase != Phase.STOP:  # silence there only tells the era
            kind = rules.BLOCKED if event.blocked else rules.HANG
            method = event.what.partition(":")[0] if "/" in event.what or event.what.isalpha() else "other"
            fact = f"{'blocked' if event.blocked else 'hang'}:{method[:40]}"
            self.book.note(kind, fact, event, f"{event.what}: no answer in {event.seconds:g} s", place=_place(event))

    def _limit(self, event: LimitEvent) -> None:
        if event.what.startswith(_OURS):
            return
        text = f"{event.what}: at least {event.seen}, at most {event.bound} are read"
        self.book.note(rules.FLOOD, f"flood:{event.what[:40]}", event, text)
        if event.what in _CUT_OFF and event.session != STOCK_CLIENT:
            detail = "nothing after this bound was read"
            self.tally.cut_off[event.what] = Skip(item=event.what[:40], reason=SkipReason.LIMIT, detail=detail)

    def _exit(self, event: ExitEvent) -> None:
        self.state.exit = event

    def judge_exit(self) -> None:
        """Judge how it ended; an early end comes with the last that it wrote on standard error."""
        state = self.state
        event = state.exit
        if event is None or state.felled or state.phase == Phase.PROBE:
            return
        if event.oom_killed:
            self.book.note(rules.OUT_OF_MEMORY, "exit:oom", event, ending_of(event), place=state.phase)
        elif state.ended_early:
            failed = event.signal is not None or event.code != 0
            if event.signal is None and not state.answered:
                if state.obstacle is None:  # else it is the sandbox that lacks something
                    self.book.note(
                        rules.FAILED_START,
                        "exit:start",
                        event,
                        ending_of(event),
                        place=state.phase,
                        more=self._last_words(),
                    )
            elif failed:
                fact = f"exit:signal {event.signal}" if event.signal is not None else f"exit:code {event.code}"
                words = self._last_words()
                self.book.note(rules.CRASH, fact, event, ending_of(event), place=state.phase, more=words)
            else:
                self.book.note(rules.EARLY_EXIT, "exit:0", event, ending_of(event), place=state.phase)

    def _keep_stderr(self, event: StderrEvent) -> None:
        self._stderr = event

    def _last_words(self) -> Evidence | None:
        if self._stderr is None or not self._stderr.tail.strip():
            return None
        text = self._stderr.tail.strip()[-STDERR_CHARS:]
        return Evidence(
            kind="stderr", phase=self._stderr.phase, seq=self._stderr.seq, text=render_safe(text, STDERR_CHARS)
        )


def _members_clash(message: JsonObject) -> bool:
    answers = "id" in message and "method" not in message
    return answers and ("result" in message) == ("error" in message)


def _place(event: EventBase) -> str:
    return event.phase.partition(":")[0]
