"""Recordings made by hand: a short notation for the conversations that the tests speak about."""

from __future__ import annotations

import base64
import json
from typing import Any

from harness.analyzers.base import AnalysisFacts, RecordingInput
from harness.model.options import RecorderChoice, RunOptions
from harness.model.recording import (
    Anomaly,
    AttemptEvent,
    Direction,
    Event,
    ExitEvent,
    FrameEvent,
    ListEvent,
    Manifest,
    PhaseEvent,
)
from harness.model.surface import Item, ItemKind, ListEnd, ListOutcome, Surface
from harness.model.target import TargetKind, TargetRef

TOOL = {"name": "now", "description": "Gives the time.", "inputSchema": {"type": "object", "properties": {}}}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": False}},
    "serverInfo": {"name": "clock", "version": "1.0"},
}


def manifest(**more: Any) -> Manifest:
    """A manifest of a finished run."""
    fields: dict[str, Any] = {
        "harness_version": "0.1.0",
        "run_id": "r1",
        "target": TargetRef(text="pypi:clock", kind=TargetKind.PYPI),
        "options": RunOptions(recorder=RecorderChoice.NONE),
        "finished": True,
    }
    return Manifest(**(fields | more))


def surface(*tools: dict[str, Any], **more: Any) -> Surface:
    """What a server with these tools declares."""
    items = tuple(
        Item(kind=ItemKind.TOOL, name=tool.get("name", ""), value=tool, frame=n) for n, tool in enumerate(tools, 1)
    )
    lists = (ListOutcome(kind=ItemKind.TOOL, pages=1, items=len(items), end=ListEnd.COMPLETE),)
    return Surface(**({"items": items, "lists": lists} | more))


class Tape:
    """Records events with running numbers. `ask` and `answer` are one exchange; `line` is any received bytes."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.session = "main"
        self.phase = "start"
        self._ids = 0

    def add(self, event: Event) -> Tape:
        number = len(self.events) + 1
        self.events.append(event.model_copy(update={"seq": number, "t": number * 1000}))
        return self

    def start(self, session: str = "main") -> Tape:
        self.session, self.phase = session, "start"
        self.add(AttemptEvent(phase="start", session=session, number=1, argv=("clock",)))
        return self.enter("start")

    def enter(self, phase: str) -> Tape:
        self.phase = phase
        return self.add(PhaseEvent(phase=phase, session=self.session, nonce=f"n{len(self.events)}"))

    def frame(self, direction: Direction, data: bytes, *anomalies: Anomaly, truncated: bool = False) -> Tape:
        try:
            text, encoding = data.decode(), "utf-8"
        except UnicodeDecodeError:
            text, encoding = base64.b64encode(data).decode(), "base64"
        return self.add(
            FrameEvent(
                phase=self.phase,
                session=self.session,
                direction=direction,
                data=text,
                encoding=encoding,  # type: ignore[arg-type]
                size=len(data),
                truncated=truncated,
                anomalies=anomalies,
            )
        )

    def line(self, data: bytes, *anomalies: Anomaly, truncated: bool = False) -> Tape:
        return self.frame(Direction.RECEIVED, data, *anomalies, truncated=truncated)

    def say(self, message: Any, *anomalies: Anomaly) -> Tape:
        return self.line(json.dumps(message).encode(), *anomalies)

    def ask(self, method: str, params: Any = None) -> Tape:
        self._ids += 1
        message = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params or {}}
        return self.frame(Direction.SENT, json.dumps(message).encode())

    def answer(self, result: Any) -> Tape:
        return self.say({"jsonrpc": "2.0", "id": self._ids, "result": result})

    def refuse(self, code: Any = -32601, message: Any = "Method not found") -> Tape:
        return self.say({"jsonrpc": "2.0", "id": self._ids, "error": {"code": code, "message": message}})

    def handshake(self, result: Any = None) -> Tape:
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        return self.answer(INITIALIZED if result is None else result)

    def tools(self, *tools: Any, **more: Any) -> Tape:
        self.ask("tools/list").answer({"tools": list(tools or (TOOL,)), **more})
        return self.add(ListEvent(phase=self.phase, list=ItemKind.TOOL, pages=1, items=1, end=ListEnd.COMPLETE))

    def stop(self, code: int | None = 0, signal: int | None = None, by: str = "harness", **more: Any) -> Tape:
        self.enter("stop")
        return self.add(
            ExitEvent(phase="stop", session=self.session, code=code, signal=signal, ended_by=by, **more)  # type: ignore[arg-type]
        )

    def input(self, *surfaces: Surface, **facts: Any) -> RecordingInput:
        known = AnalysisFacts(**({"manifest": manifest(), "surfaces": surfaces or (surface(TOOL),)} | facts))
        return RecordingInput(known, iter(self.events))


def healthy() -> Tape:
    """A run in which nothing is wrong."""
    return Tape().start().handshake().enter("discover").tools().stop()
