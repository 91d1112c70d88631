"""Makes one call: announced, marked before and after, sent, and waited for until the records of it are in."""

from __future__ import annotations

import json
from collections.abc import Callable

import anyio

from harness.model.base import JsonObject
from harness.model.call import Call, CallEndEvent, CallEvent, Outcome
from harness.model.options import RunOptions
from harness.model.recording import Event, Phase
from harness.model.surface import Era
from harness.model.world import World
from harness.pipeline.answering import Answerer
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.exchange import exchanged
from harness.pipeline.session import Session
from harness.probing.digest import RESOLVER, Digest, call_phase
from harness.probing.results import bounded, joined
from harness.protocol.http_session import HttpSession
from harness.protocol.outcomes import Answer, Closed, RpcError, TimedOut, Unreadable
from harness.protocol.outcomes import Outcome as Reply
from harness.protocol.session import RawSession

#: How long the closing mark of a call may take to come out of the kernel's record.
MARK_SECONDS = 3.0
#: How long the gateway is waited for to tell what became of a connection.
FLOW_SECONDS = 1.5
#: The same where all that it did was to ask for names: a flow of datagrams is told when it was idle for half a second.
RESOLVER_SECONDS = 0.7
#: How long a notification may take to write.
NOTIFY_SECONDS = 2.0


class Caller:
    """Made for one run, before its first session: the digest must see each session from its start.

    `typed`: what is entered where a form asks for a secret.
    """

    def __init__(self, bundle: BundleWriter, options: RunOptions, typed: Callable[[], str]) -> None:
        self._bundle = bundle
        self._options = options
        self._typed = typed
        self._worlds: dict[str, World] = {}
        self._digest = Digest()
        self._outcomes: dict[str, Outcome] = {}
        self._heard = anyio.Event()
        self.calls = 0
        bundle.listen(self._hear)

    async def call(
        self, call: Call, session: Session, raw: RawSession, era: Era | None, patience: float = 0.0
    ) -> Outcome:
        """Make the call. Never raises for what the target does; HarnessError when our side broke.

        `patience`: seconds to wait instead of the option's, if fewer and not 0; that an answer is missing then is told
        by the outcome alone, and by no missed deadline.
        """
        usual = self._options.call_timeout
        seconds = min(patience or usual, usual)
        phase = call_phase(call)
        self.calls += 1
        self._bundle.record(CallEvent(phase=phase, session=session.name, call=call))
        await session.enter(phase)
        raw.phase = phase
        if isinstance(raw, HttpSession):
            raw.headers = dict(call.headers)
        self.equip(raw)
        answerer = raw.answerer if isinstance(raw.answerer, Answerer) else None
        if answerer is not None:
            answerer.begin(call, self._worlds.get(session.name))
        began = anyio.current_time()
        reply = await exchanged(call, raw, era, seconds=seconds, quiet=seconds < usual)
        if isinstance(raw, HttpSession):
            raw.headers = {}
        seconds = round(anyio.current_time() - began, 3)
        if isinstance(reply, TimedOut) and not reply.blocked:
            await raw.notify(
                "notifications/cancelled", {"requestId": raw.last_id, "reason": "timeout"}, timeout=NOTIFY_SECONDS
            )
        await session.enter(Phase.IDLE)
        raw.phase = Phase.IDLE
        if session.process.recording is not None:
            await self._settle(call)
        end = CallEndEvent.model_validate(
            {"phase": phase, "session": session.name, "call": call.id, "seconds": seconds, **_said(reply)}
        )
        self._bundle.record(end)
        asked = answerer.end() if answerer is not None else ()
        return self._outcomes.pop(call.id).model_copy(update={"asked": asked})

    def equip(self, raw: RawSession) -> None:
        """Have a canary entered where the server asks for a secret, if the session declares that it may ask."""
        if isinstance(raw.answerer, Answerer) and not raw.answerer.typed:
            raw.answerer.typed = self._typed()

    async def _settle(self, call: Call) -> None:
        """Wait, within bounds, until the closing mark is in, and the flows of the call's connections are."""
        with anyio.move_on_after(MARK_SECONDS):
            while not self._digest.closed(call.id):
                await self._next()
        if self._options.network == "none":
            return
        named = all(connection.address == RESOLVER for connection in self._digest.pending(call.id))
        with anyio.move_on_after(RESOLVER_SECONDS if named else FLOW_SECONDS):
            while self._digest.pending(call.id):
                await self._next()

    async def _next(self) -> None:
        self._heard = anyio.Event()
        await self._heard.wait()

    def _hear(self, event: Event) -> None:
        if event.kind == "world":
            self._worlds[event.session] = event.world
        outcome = self._digest.take(event)
        if outcome is not None:
            self._outcomes[outcome.call] = outcome
        if event.kind in ("mark", "flow", "exit", "recorder-end"):
            self._heard.set()


def _said(reply: Reply) -> JsonObject:
    """The fields of a `CallEndEvent` that the answer fills."""
    match reply:
        case Answer(result=result, frame=frame, size=size):
            failed = isinstance(result, dict) and result.get("isError") is True
            state = "tool-error" if failed else "answered"
            return {"state": state, "text": joined(result), "size": size, "frame": frame}
        case RpcError(code=code, message=message, data=data, frame=frame):
            more = "" if data is None else "\n" + (data if isinstance(data, str) else json.dumps(data)[:65536])
            return {"state": "error", "text": bounded(message + more), "code": code, "frame": frame}
        case Unreadable(anomalies=anomalies, frame=frame):
            return {"state": "unreadable", "text": ", ".join(anomalies), "frame": frame}
        case TimedOut():
            return {"state": "timeout"}
        case Closed(reason=reason):
            return {"state": "closed", "text": str(reason)}
