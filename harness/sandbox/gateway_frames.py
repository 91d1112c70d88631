"""What the gateway says on its stdout, taken apart with bounds; its flows become `FlowEvent`s. Pure.

The format is described in sandboxes/gateway/sinkhole/wire.py. The gateway reads what a target sent, so nothing it says
is believed to be well-formed: what is not is counted.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import ValidationError

from harness.model.errors import EngineError
from harness.model.flow import BlobRef, FlowEvent, FlowPart

_SIZES = struct.Struct("!II")
MAX_HEADER = 4 << 20
MAX_BODY = 16 << 20

Message: TypeAlias = dict[str, Any]

_COPIED = (
    "protocol", "application", "local", "remote", "decoy", "sni", "ja4", "certificate_refused", "sent", "received",
    "packets", "parts_cut", "opaque", "end",
)  # fmt: skip


@dataclass(frozen=True)
class SeenFlow:
    """A flow and the bytes that its event points to, by SHA-256."""

    event: FlowEvent
    blobs: dict[str, bytes]


class FrameReader:
    """Takes the gateway's stream apart, however it was cut into reads."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Message, bytes]]:
        """Yield what `data` completes. Raises `EngineError` for what can't be the gateway's."""
        self._held += data
        while len(self._held) >= _SIZES.size:
            header, body = _SIZES.unpack_from(self._held)
            if header > MAX_HEADER or body > MAX_BODY:
                raise EngineError("the gateway's stream is out of order", remedy="run `harness images build`")
            end = _SIZES.size + header + body
            if len(self._held) < end:
                return
            frame = bytes(self._held[_SIZES.size : end])
            del self._held[:end]
            try:
                message = json.loads(frame[:header])
            except (ValueError, RecursionError):
                message = None
            yield message if isinstance(message, dict) else {}, frame[header:]


def encode(message: Message, body: bytes = b"") -> bytes:
    """One frame for the gateway."""
    header = json.dumps(message, separators=(",", ":")).encode()
    return _SIZES.pack(len(header), len(body)) + header + body


def flow_of(message: Message, body: bytes, *, session: str, phase: str, epoch: int) -> SeenFlow | None:
    """The flow that a frame tells of; None when it is not well-formed. Times become nanoseconds since `epoch`."""
    blobs: dict[str, bytes] = {}
    rest = memoryview(body)

    def blob(said: Any) -> BlobRef | None:
        nonlocal rest
        if said is None:
            return None
        data = bytes(rest[: int(said["kept"])])
        rest = rest[len(data) :]
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return BlobRef(
            sha256=digest, kept=len(data), size=int(said["size"]), head=int(said["head"]), tail=int(said["tail"])
        )

    try:
        fields = {name: message[name] for name in _COPIED}
        outbound, inbound = blob(message["outbound"]), blob(message["inbound"])
        parts = tuple(
            FlowPart(
                what=part["what"], text=_text(part["text"]), encoding=part["encoding"], content=blob(part["content"])
            )
            for part in message["parts"]
        )
        event = FlowEvent.model_validate(
            {
                **{name: _text(value) if isinstance(value, str) else value for name, value in fields.items()},
                "phase": phase,
                "session": session,
                "flow": message["number"],
                "names": [_text(name) for name in message["names"]],
                "alpn": [_text(name) for name in message["alpn"]],
                "outbound": outbound,
                "inbound": inbound,
                "parts": parts,
                "began": max(0, int(message["began"]) - epoch),
            }
        )
    except (KeyError, TypeError, ValueError, ValidationError):
        return None
    return SeenFlow(event, blobs)


def _text(value: str) -> str:
    """Text that can be written down: half surrogate pairs are escaped."""
    return value.encode("utf-8", "backslashreplace").decode()
