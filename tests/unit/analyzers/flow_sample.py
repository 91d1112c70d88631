"""Records of flows made by hand, with their payloads, beside the kernel's and the client's records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from behavior_sample import Record, rules
from recordings_sample import TOOL, manifest, surface

from harness.analyzers import registry
from harness.analyzers.base import AnalysisFacts, RecordingInput
from harness.analyzers.engine import run_analyzer
from harness.model.canary import Canary
from harness.model.flow import BlobRef, FlowPart
from harness.model.recording import (
    Direction,
    FlowEvent,
    FrameEvent,
    GatewayEndEvent,
    Grade,
    PhaseEvent,
    PredictionEvent,
    StderrEvent,
)
from harness.model.result import AnalyzerResult
from harness.probing.planting import plant

PLANTING = plant("11" * 20)
SECOND = plant("22" * 20, session="second-look")
__all__ = ["PLANTING", "SECOND", "Net", "behind", "rules", "secret"]


def secret(name: str, planting: Any = PLANTING) -> str:
    """The value of a planted canary by its name."""
    return next(canary.value for canary in planting.canaries if canary.name == name)


class Blobs:
    """Contents in memory."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    def keep(self, data: bytes, *, size: int | None = None) -> BlobRef:
        digest = hashlib.sha256(data).hexdigest()
        self.data[digest] = data
        return BlobRef(sha256=digest, kept=len(data), size=len(data) if size is None else size)

    def chunks(self, sha256: str) -> Iterator[bytes]:
        data = self.data.get(sha256, b"")
        for at in range(0, len(data), 1000):
            yield data[at : at + 1000]


class Net(Record):
    """A recording with a gateway. Flows come from ports that count up; `connect` of one comes before it."""

    def __init__(self, session: str = "main", phase: str = "start") -> None:
        super().__init__(session, phase)
        self.blobs = Blobs()
        self.canaries: tuple[Canary, ...] = PLANTING.canaries
        self._port = 40000
        self._flows = 0

    def flow(self, host: str, data: bytes = b"", *parts: FlowPart, address: str = "93.184.215.14", port: int = 443,
             seen: bool = True, **more: Any) -> Net:  # fmt: skip
        """One flow; `host` empty: no name. `seen`: the kernel saw the connection."""
        self._port += 1
        self._flows += 1
        local, remote = f"10.0.0.9:{self._port}", f"{address}:{port}"
        if seen:
            self.connect(remote, result=0, remote=remote, local=local)
        fields: dict[str, Any] = {
            "phase": self.phase, "session": self.session, "flow": self._flows, "protocol": "tcp",
            "application": "https" if port == 443 else "stream", "local": local, "remote": remote,
            "names": (host,) if host else (), "sni": host if port == 443 else "", "sent": len(data), "received": 10,
            "parts": parts, "outbound": self.blobs.keep(data) if data else None, "began": len(self.events) * 1000,
        }  # fmt: skip
        return self.told(FlowEvent(**(fields | more)))

    def told(self, event: Any) -> Net:
        self.add(event)
        return self

    def post(
        self, host: str, body: bytes, *, path: str = "/", encoding: str = "", headers: str = "", **more: Any
    ) -> Net:
        """An HTTPS request as the gateway tells it."""
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        request = FlowPart(what="http-request", text=head)
        sent = FlowPart(what="http-body", text="", content=self.blobs.keep(body), encoding=encoding)
        return self.flow(host, head.encode() + body, request, sent, **more)

    def ask_name(self, name: str, **more: Any) -> Net:
        """A DNS question."""
        part = FlowPart(what="dns-question", text=f"{name} A")
        fields: dict[str, Any] = {"application": "dns", "protocol": "udp", "names": (), "seen": False}
        return self.flow("", b"", part, address="10.0.0.1", port=53, **{**fields, **more})

    def said(self, data: str, *, direction: Direction = Direction.RECEIVED, **more: Any) -> Net:
        fields = {"phase": self.phase, "session": self.session, "direction": direction, "data": data, "size": len(data)}
        return self.told(FrameEvent(**{**fields, **more}))

    def stderr(self, text: str) -> Net:
        fields = {"phase": "stop", "session": self.session, "size": len(text), "kept": len(text), "sha256": "0" * 64}
        return self.told(StderrEvent(**fields, tail=text))

    def begin(self, *argv: str, **more: Any) -> Net:
        super().begin(*argv, **more)
        return self.told(PhaseEvent(phase="start", session=self.session, nonce="p"))

    def enter(self, phase: str) -> Net:
        super().enter(phase)
        return self.told(PhaseEvent(phase=phase, session=self.session, nonce="p"))

    def closed(self, **more: Any) -> Net:
        """The recorder's and the gateway's own accounts."""
        self.end()
        return self.told(GatewayEndEvent(phase="stop", session=self.session, flows=self._flows, **more))

    def second_life(self, *predicted: str) -> Net:
        """A life with other canaries begins."""
        self.session, self.phase = "second-look", "start"
        self.canaries = (*PLANTING.canaries, *SECOND.canaries)
        self.told(PredictionEvent(phase="start", session=self.session, findings=predicted))
        return self.begin()

    def judge(self, name: str, *tools: dict[str, Any], **facts: Any) -> AnalyzerResult:
        known: dict[str, Any] = {
            "manifest": manifest(
                recorder="ebpf", grade=Grade.TRUSTED, network="answer", canaries=self.canaries, name="clock"
            ),
            "surfaces": (surface(*(tools or (TOOL,))),),
            "contents": self.blobs,
        }
        analyzer = registry.find(name)
        assert analyzer is not None
        return run_analyzer(analyzer, RecordingInput(AnalysisFacts(**(known | facts)), iter(self.events)))


def behind() -> Net:
    """A target behind a gateway has just begun."""
    return Net().begin()
