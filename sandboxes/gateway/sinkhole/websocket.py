"""WebSocket as a server (RFC 6455): messages are told unmasked; pings and closes are answered."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from sinkhole.channel import Channel
from sinkhole.flows import Part
from sinkhole.world import World

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

#: How long a client may be silent before its messages so far are told.
QUIET_SECONDS = 0.5


def upgrade(key: str, headers: dict[str, str]) -> list[tuple[str, str]]:
    """The headers that accept an upgrade; of the protocols offered the first is taken."""
    digest = hashlib.sha1(key.encode("latin-1") + _GUID.encode()).digest()  # noqa: S324 - the protocol's
    made = [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-accept", base64.b64encode(digest).decode()),
    ]
    offered = headers.get("sec-websocket-protocol", "").split(",")[0].strip()
    return [*made, ("sec-websocket-protocol", offered)] if offered else made


@dataclass
class Piece:
    """Some payload of one frame, unmasked; `last`: the frame ends with it, `final`: so does its message."""

    opcode: int
    data: bytes
    last: bool
    final: bool
    compressed: bool


class FrameReader:
    """Takes frames apart as they come; a frame may be larger than memory, so payload comes in pieces. Pure."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._left = -1
        self._mask = b""
        self._at = 0
        self._opcode, self._final, self._compressed = 0, False, False

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces that `data` brings."""
        self._held += data
        pieces: list[Piece] = []
        while self._left >= 0 or self._header():
            take = min(self._left, len(self._held))
            if take == 0 and self._left > 0:
                break
            payload = bytes(self._held[:take])
            del self._held[:take]
            self._left -= take
            if self._mask:
                payload = _unmask(payload, self._mask, self._at)
                self._at = (self._at + take) % 4
            last = self._left == 0
            pieces.append(Piece(self._opcode, payload, last, last and self._final, self._compressed))
            if last:
                self._left = -1
        return pieces

    def _header(self) -> bool:
        held = self._held
        if len(held) < 2:
            return False
        size, at = held[1] & 0x7F, 2
        more = {126: 2, 127: 8}.get(size, 0)
        masked = bool(held[1] & 0x80)
        if len(held) < at + more + 4 * masked:
            return False
        if more:
            size = int.from_bytes(held[at : at + more], "big")
            at += more
        self._mask = bytes(held[at : at + 4]) if masked else b""
        self._opcode, self._final, self._compressed = held[0] & 0x0F, bool(held[0] & 0x80), bool(held[0] & 0x40)
        self._at, self._left = 0, size
        del held[: at + 4 * masked]
        return True


def _unmask(data: bytes, mask: bytes, at: int) -> bytes:
    turned = mask[at:] + mask[:at]
    key = (turned * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(len(data), "big")


def frame(opcode: int, payload: bytes) -> bytes:
    """A frame from the server (never masked); for payloads under 64 KiB."""
    size = bytes([len(payload)]) if len(payload) < 126 else b"\x7e" + len(payload).to_bytes(2, "big")
    return bytes([0x80 | opcode]) + size + payload


async def serve(world: World, channel: Channel) -> None:
    """Read messages until the connection ends. Raises what the channel raises."""
    reader = FrameReader()
    message: Part | None = None
    control = b""
    while data := await channel.read(300.0):
        for piece in reader.feed(data):
            if piece.opcode in (PING, CLOSE, PONG):
                control = (control + piece.data)[:125]
                if piece.last:
                    if piece.opcode != PONG:
                        await channel.send(frame(PONG if piece.opcode == PING else CLOSE, control))
                    if control:
                        channel.flow.part(
                            "websocket-message", {PING: "ping", CLOSE: "close"}.get(piece.opcode, "pong"), control
                        )
                    control = b""
                    if piece.opcode == CLOSE:
                        return
                continue
            if message is None:
                kind = "text" if piece.opcode == TEXT else "binary"
                message = channel.flow.part("websocket-message", kind, encoding="deflate" if piece.compressed else "")
            assert message.content is not None
            message.content.add(piece.data)
            if piece.final:
                message = None
        if message is None:
            await channel.peek(1, QUIET_SECONDS)
            if channel.waiting:
                await world.part_of(channel)
