"""Sends one malformed message as bytes, with a request for a sign of life right behind, and waits for what comes.

It judges nothing: the frames are recorded, and whether the server went on.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from pathlib import Path
from statistics import median

import anyio

import harness.probing.malformed
from harness.model.base import JsonObject, JsonValue, canonical_json
from harness.model.options import RunOptions
from harness.model.probe import Family, HttpReply, HttpShape, Must, Probe, Probed, ProbeEndEvent, ProbeEvent
from harness.model.recording import EventSink, Phase
from harness.pipeline.session import Session
from harness.probing.malformed import FILE_NAME, Catalog, parse_catalog, wire_bytes
from harness.probing.malformed.templates import FIRST_ID
from harness.protocol.framing import Line
from harness.protocol.handshake import greet
from harness.protocol.http_session import HttpSession
from harness.protocol.session import RawSession

#: How long a sign of life is waited for: a little, and so many times what this server usually takes, up to a bound; a
#: large message has the longest, and what comes before the handshake, when a server may still be starting. One that was
#: only slow is told from one that stands still by the second time, which has twice as long.
TIMES_USUAL = 10
LEAST_SECONDS = 3.0
MOST_SECONDS = 6.0
#: The same before a server without a sign of life is told that nothing is waited for: one whose reader alone was left
#: ends with the next line that it reads, and is not taken for one that stands still. And between two of these.
NUDGE_SECONDS = 0.5
#: The request that is cancelled then: none of ours has this id.
NOBODY = FIRST_ID - 1
#: Signs of life that the usual time is taken of.
MOST_SIGNS = 50
#: The same while it is found out what the server answers at all: some know no ping, and say nothing.
FIRST_SECONDS = 3.0
#: Of these, how long the head of an answer over HTTP is waited for where a request deviates.
REPLY_SECONDS = 3.0
PHASE = "probe"


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    """The catalog as it is installed. Raises HarnessError when it is broken."""
    folder = Path(harness.probing.malformed.__file__).parent
    return parse_catalog((folder / FILE_NAME).read_text(encoding="utf-8"))


class Prober:
    """Made for one run."""

    def __init__(self, sink: EventSink, options: RunOptions) -> None:
        self._sink = sink
        self._options = options
        self._signs: deque[float] = deque(maxlen=MOST_SIGNS)

    async def probe(self, probe: Probe, session: Session, raw: RawSession) -> Probed:
        """Send it. Never raises for what the target does; HarnessError when our side broke."""
        phase = f"{PHASE}:{probe.id}"
        await session.enter(phase)
        raw.phase = phase
        self._sink.record(ProbeEvent(phase=phase, session=session.name, probe=probe))
        before = await session.process.peak_memory() if probe.family is Family.SIZE else None
        watch = _Watch(probe)
        raw.admit((probe.alive_id, *(int(text.strip('"')) for text in probe.ids if text.strip('"').isdigit())))
        raw.watch = watch.line
        data = wire_bytes(probe)
        size = len(data)
        seconds = self._patience(probe)
        began = anyio.current_time()
        reply = None
        if probe.http is not None and isinstance(raw, HttpSession):
            reply = await self._deviate(probe, probe.http, data, raw)
            data = b""
        with anyio.move_on_after(seconds):
            if await raw.send_bytes(data + probe.alive.encode() + b"\n", timeout=seconds):
                await self._alive(probe, watch, raw)
        took = anyio.current_time() - began
        if watch.alive.is_set() and probe.patience:
            with anyio.move_on_after(probe.patience):
                await self._until(watch.answered, raw)
        raw.watch = None
        if watch.alive.is_set():
            self._signs.append(took)
        peak = await session.process.peak_memory() if probe.family is Family.SIZE else None
        state = "alive" if watch.alive.is_set() else "closed" if raw.closed is not None else "silent"
        probed = Probed.model_validate(
            {
                "probe": probe.id,
                "state": state,
                "closed": str(raw.closed or ""),
                "seconds": round(took, 3),
                "bytes_sent": size,
                "reply": reply,
                "memory_bytes": peak,
                "grown": peak - before if peak is not None and before is not None else None,
            }
        )
        self._sink.record(ProbeEndEvent(phase=phase, session=session.name, probed=probed))
        return probed

    def _usual(self) -> float:
        """How long a sign of life is not out of the ordinary, in seconds."""
        return TIMES_USUAL * median(self._signs) if self._signs else 0.0

    def _patience(self, probe: Probe) -> float:
        """How long its sign of life is waited for, in seconds."""
        if probe.family is Family.ALIVE:
            seconds = FIRST_SECONDS
        elif probe.family is Family.SIZE or probe.family is Family.HANDSHAKE:
            seconds = probe.wait or MOST_SECONDS
        else:
            seconds = (probe.wait or LEAST_SECONDS) + self._usual()
            seconds = min(seconds * probe.attempt, MOST_SECONDS)
        return min(seconds, self._options.call_timeout)

    async def _alive(self, probe: Probe, watch: _Watch, raw: RawSession) -> None:
        """Wait for the sign of life, or the end; where neither comes soon, there is one more line to read."""
        nudges = not isinstance(raw, HttpSession) and probe.family not in (Family.ALIVE, Family.HANDSHAKE)
        while nudges:
            with anyio.move_on_after(max(NUDGE_SECONDS, self._usual())):
                await self._until(watch.alive, raw)
            if watch.alive.is_set() or raw.closed is not None:
                return
            params: JsonObject = {"requestId": NOBODY, "reason": "no answer"}
            await raw.notify("notifications/cancelled", params, timeout=MOST_SECONDS)
        await self._until(watch.alive, raw)

    async def _deviate(self, probe: Probe, shape: HttpShape, data: bytes, raw: HttpSession) -> HttpReply | None:
        """Send it in a request that deviates; the head of the answer, None when none came in time."""
        had = raw.session_id is not None
        about_sessions = shape.session != "kept" or "mcp-session-id" in map(str.lower, shape.headers)
        if not had and about_sessions and probe.must is Must.REJECT:
            raw.note(f"{probe.id} was not sent: the server gives no session ids, and need not look at them")
            return None
        reply = await raw.exchange(data.removesuffix(b"\n"), shape, timeout=REPLY_SECONDS)
        if shape.session == "ended" and had:  # what follows needs a session
            timeout, phase = self._options.call_timeout, raw.phase
            raw.phase = Phase.DISCOVER  # in order, and no part of the probe
            await greet(raw, start_timeout=timeout, call_timeout=timeout)
            raw.phase = phase
        return reply

    async def _until(self, event: anyio.Event, raw: RawSession) -> None:
        """Wait for the event or the end of the session."""
        async with anyio.create_task_group() as tasks:

            async def ended() -> None:
                await raw.ended()
                tasks.cancel_scope.cancel()

            tasks.start_soon(ended)
            await event.wait()
            tasks.cancel_scope.cancel()


class _Watch:
    """Sees the lines that come: `alive` once the sign of life is there, `answered` once all answers are."""

    def __init__(self, probe: Probe) -> None:
        self.alive = anyio.Event()
        self.answered = anyio.Event()
        self._alive_id = probe.alive_id
        self._open = set(probe.ids)
        if not self._open:
            self.answered.set()

    def line(self, line: Line, frame: int) -> None:
        """The next line."""
        if not line.parsed:
            return
        for message in line.value if isinstance(line.value, list) else [line.value]:
            if isinstance(message, dict) and "id" in message and "method" not in message:
                self._answer(message["id"])

    def _answer(self, identifier: JsonValue) -> None:
        if identifier in (self._alive_id, str(self._alive_id)):
            self.alive.set()
            return
        self._open.discard(canonical_json(identifier))
        if not self._open:
            self.answered.set()
