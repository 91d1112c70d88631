"""The state of each session while its events pass: what was asked, what was offered, how it went. All bounded."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from harness.analyzers.evidence import render_safe
from harness.model.base import JsonObject, JsonValue
from harness.model.plan import Obstacle
from harness.model.recording import Anomaly, ExitEvent, FrameEvent, ObstacleEvent, Phase
from harness.model.surface import Era

#: More requests than this are never open at once; the oldest is then forgotten.
OPEN_REQUESTS = 512
_UNREADABLE = frozenset({Anomaly.NOT_JSON, Anomaly.TOO_LONG, Anomaly.TOO_DEEP, Anomaly.TOO_MANY_VALUES})
_HANDSHAKES = frozenset({"initialize", "server/discover"})

_OBSTACLES = {
    Obstacle.NATIVE_ADDON: "its native add-on does not load here",
    Obstacle.PROGRAM: "a program that it needs is not in the sandbox",
    Obstacle.LIBRARY: "a shared library that it needs is not in the sandbox",
    Obstacle.NETWORK: "it needs the network to start",
    Obstacle.PLATFORM: "it is not made for this platform",
    Obstacle.SEALED: "it writes into its own installation, which is sealed",
}


@dataclass
class SessionState:
    """One life of the target. `offered`: client capabilities that our last handshake declared.

    `probed`: it was sent malformed messages.
    """

    name: str
    open: dict[int, str] = field(default_factory=dict)
    offered: frozenset[str] = frozenset()
    era: Era | None = None
    answered: bool = False
    refused: str = ""
    phase: str = Phase.START.value
    exit: ExitEvent | None = None
    obstacle: ObstacleEvent | None = None
    probed: bool = False

    @property
    def felled(self) -> bool:
        """True when malformed messages came before a handshake that was then not answered: no ordinary session."""
        return self.probed and not self.answered

    def sent(self, message: JsonObject) -> None:
        """Remember a request of ours."""
        method, identifier = message.get("method"), message.get("id")
        if not isinstance(method, str):
            return
        if method in _HANDSHAKES:
            self.offered = _offered(message)
        if isinstance(identifier, int):
            self.open[identifier] = method
            if len(self.open) > OPEN_REQUESTS:
                del self.open[next(iter(self.open))]

    def method_of(self, identifier: JsonValue) -> str | None:
        """The method of the open request with this id, which is open no longer; ids as text count too."""
        if isinstance(identifier, str) and identifier.isascii() and identifier.isdigit() and len(identifier) < 10:
            identifier = int(identifier)
        if isinstance(identifier, float) and identifier.is_integer():
            identifier = int(identifier)
        return self.open.pop(identifier, None) if isinstance(identifier, int) else None

    def greeted(self, method: str, *, ok: bool) -> None:
        """The answer to a handshake came; `ok` when it was a result."""
        if method in _HANDSHAKES:
            if ok:
                self.answered = True
                self.era = Era.STATELESS if method == "server/discover" else Era.HANDSHAKE
            else:
                self.refused = method

    @property
    def ended_early(self) -> bool:
        """True when the target ended by itself: a process that still runs when it is told to stop ends by the harness.

        The phase does not say it, because an exit is recorded after the phase `stop` has begun.
        """
        return self.exit is not None and self.exit.ended_by == "target"


def read_messages(event: FrameEvent) -> tuple[JsonObject, ...]:
    """The messages in a frame, several for a batch; none when it can't be read (its anomalies say why)."""
    if event.truncated or not _UNREADABLE.isdisjoint(event.anomalies):
        return ()
    try:
        value = json.loads(event.raw.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return ()
    entries = value if isinstance(value, list) else [value]
    return tuple(entry for entry in entries if isinstance(entry, dict))


def silence_of(state: SessionState) -> str:
    """Why no handshake was answered, in words."""
    if state.obstacle is not None:
        what = f" ({render_safe(state.obstacle.what, 80)})" if state.obstacle.what else ""
        return f"{_OBSTACLES[state.obstacle.obstacle]}{what}"
    if state.refused:
        return f"it answered {state.refused} with an error"
    if state.exit is not None and state.ended_early:
        return ending_of(state.exit)
    return "no answer came"


def ending_of(event: ExitEvent) -> str:
    """How a process ended, in words."""
    how = f"signal {event.signal}" if event.signal is not None else f"exit code {event.code}"
    memory = ", out of memory" if event.oom_killed else ""
    return f"the process ended with {how}{memory}"


def _offered(message: JsonObject) -> frozenset[str]:
    params = message.get("params")
    if not isinstance(params, dict):
        return frozenset()
    meta = params.get("_meta")
    declared = params.get("capabilities")
    if isinstance(meta, dict) and declared is None:
        declared = meta.get("io.modelcontextprotocol/clientCapabilities")
    return frozenset(declared) if isinstance(declared, dict) else frozenset()
