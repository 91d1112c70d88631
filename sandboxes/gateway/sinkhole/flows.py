"""What is kept of a flow: counts, names, head and tail of both directions, and the readable parts. Pure.

Everything is bounded: per direction, per part, per flow, and over all living flows by one `Budget`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from sinkhole.wire import Message, encode

OUT_HEAD, OUT_TAIL = 1 << 20, 256 << 10
IN_HEAD, IN_TAIL = 64 << 10, 16 << 10
PART_HEAD, PART_TAIL = 256 << 10, 64 << 10
MOST_PARTS = 200
MOST_PART_BYTES = 2 << 20
MOST_TEXT = 2048
#: What a direction may always keep, however little is left for all.
FLOOR = 2048


class Budget:
    """Bytes that all living flows may hold together."""

    def __init__(self, total: int) -> None:
        self.left = total

    def take(self, wanted: int) -> int:
        """Take up to `wanted` bytes; returns how many were granted."""
        granted = max(0, min(wanted, self.left))
        self.left -= granted
        return granted


class Kept:
    """The first `head` and the last `tail` bytes of a stream; less where the budget has none left."""

    def __init__(self, budget: Budget, head: int, tail: int) -> None:
        self.size = 0
        self._budget = budget
        self._head_limit, self._tail_limit = head, tail
        self._head = bytearray()
        self._tail = bytearray()
        self._open = True  # the head still grows
        self._taken = 0

    def add(self, data: bytes) -> None:
        """Append bytes to the stream."""
        self.size += len(data)
        if self._open:
            piece = data[: self._head_limit - len(self._head)]
            granted = self._grant(len(piece), max(0, FLOOR - len(self._head)))
            self._head += piece[:granted]
            data = data[granted:]
            if not data:
                return
            self._open = False
            if granted < len(piece):
                self._tail_limit = min(self._tail_limit, FLOOR)
            self._tail_limit = self._grant(self._tail_limit, FLOOR)
        if self._tail_limit:
            self._tail += data[-self._tail_limit :]
            if len(self._tail) > 2 * self._tail_limit:
                del self._tail[: -self._tail_limit]

    def _grant(self, wanted: int, free: int) -> int:
        granted = self._budget.take(max(0, wanted - free))
        self._taken += granted
        return min(wanted, free) + granted

    @property
    def parts(self) -> tuple[bytes, bytes]:
        """Head and tail as bytes; without a gap between them where everything was kept."""
        return bytes(self._head), bytes(self._tail[-self._tail_limit :]) if self._tail_limit else b""

    def release(self) -> None:
        """Give back what was taken."""
        self._budget.left += self._taken
        self._taken = 0

    def describe(self, bodies: list[bytes]) -> Message | None:
        """Append the bytes to `bodies`, and say where they are; None when there were none."""
        if not self.size:
            return None
        head, tail = self.parts
        whole = len(head) + len(tail) >= self.size
        bodies.append(head + tail)
        return {
            "kept": len(head) + len(tail),
            "size": self.size,
            "head": 0 if whole else len(head),
            "tail": 0 if whole else len(tail),
        }


@dataclass
class Part:
    """One readable unit; `content` grows while it is read."""

    what: str
    text: str = ""
    content: Kept | None = None
    encoding: str = ""


@dataclass
class Flow:
    """One flow of the target; ends are `address:port` texts as the target saw them."""

    number: int
    protocol: str
    local: str
    remote: str
    budget: Budget
    names: tuple[str, ...] = ()
    decoy: str = ""
    application: str = ""
    sni: str = ""
    alpn: tuple[str, ...] = ()
    ja4: str = ""
    certificate_refused: bool = False
    sent: int = 0
    received: int = 0
    packets: int = 0
    parts: list[Part] = field(default_factory=list)
    parts_cut: int = 0
    opaque: str = ""
    end: str = ""
    began: int = field(default_factory=time.monotonic_ns)

    def __post_init__(self) -> None:
        self.outbound = Kept(self.budget, OUT_HEAD, OUT_TAIL)
        self.inbound = Kept(self.budget, IN_HEAD, IN_TAIL)

    def sends(self, data: bytes) -> None:
        """The target sent this."""
        self.sent += len(data)
        self.outbound.add(data)

    def gets(self, data: bytes) -> None:
        """The target got this."""
        self.received += len(data)
        self.inbound.add(data)

    def part(self, what: str, text: str = "", content: bytes | None = None, encoding: str = "") -> Part:
        """Add a part; past the bounds it is only counted (and the returned one is not kept)."""
        made = Part(what, text[:MOST_TEXT], encoding=encoding)
        held = sum(part.content.size for part in self.parts if part.content is not None)
        if len(self.parts) >= MOST_PARTS or held > MOST_PART_BYTES:
            self.parts_cut += 1
            made.content = Kept(Budget(0), 0, 0)
            return made
        made.content = Kept(self.budget, PART_HEAD, PART_TAIL)
        if content is not None:
            made.content.add(content)
        self.parts.append(made)
        return made

    def frame(self) -> bytes:
        """The flow as a frame, once it ended; gives back what it held."""
        bodies: list[bytes] = []
        told: Message = {
            name: getattr(self, name)
            for name in (
                "number", "protocol", "application", "local", "remote", "decoy", "sni", "ja4", "certificate_refused",
                "sent", "received", "packets", "parts_cut", "opaque", "end", "began",
            )
        }  # fmt: skip
        told["names"], told["alpn"] = list(self.names), list(self.alpn)
        told["outbound"] = self.outbound.describe(bodies)
        told["inbound"] = self.inbound.describe(bodies)
        told["parts"] = [
            {
                "what": part.what,
                "text": part.text,
                "encoding": part.encoding,
                "content": part.content.describe(bodies) if part.content is not None else None,
            }
            for part in self.parts
        ]
        frame = encode({"kind": "flow", **told}, b"".join(bodies))
        for kept in (self.outbound, self.inbound, *(part.content for part in self.parts)):
            if kept is not None:
                kept.release()
        return frame


def end_text(address: str, port: int) -> str:
    """`203.0.113.1:443` or `[2001:db8::1]:443`; an IPv4 address in IPv6 clothes is shown as what it is."""
    if address.startswith("::ffff:") and "." in address:
        address = address[7:]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
