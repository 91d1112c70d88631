"""What the gateway saw of the network: flows, their payloads, and the readable parts that were found in them.

The gateway frames and forwards; everything here is a fact told by it or by the packet capture. Payload bytes lie in
the bundle's `blobs/` by SHA-256; an event only points there.
"""

from __future__ import annotations

from typing import Literal

from harness.model.base import Record
from harness.model.event import EventBase


class BlobRef(Record):
    """Bytes kept in the bundle: their SHA-256, how many were kept, and how many there were.

    `head` and `tail` are bounds of what was kept of a longer stream: the first `head` bytes, then the last `tail`.
    """

    sha256: str
    kept: int
    size: int
    head: int = 0
    tail: int = 0

    @property
    def whole(self) -> bool:
        """Nothing was cut off."""
        return self.kept == self.size


class FlowPart(Record):
    """One unit with a meaning inside a flow, in the order in which it came.

    `what`: dns-question, http-request (request line and headers), http-body, websocket-message, smtp-command,
    smtp-message, client-hello, credentials, datagram, stream (bytes nobody understood). `text`: short form for people,
    bounded and as the target sent it (escaped at rendering only). `lines`: of an http-request the first 2 KiB, request
    line and headers as they came. `content`: the part's bytes, without TLS and
    transfer coding; `encoding` is the content coding of a body (gzip, br) where one was declared.
    """

    what: str
    text: str = ""
    lines: str = ""
    content: BlobRef | None = None
    encoding: str = ""


class FlowEvent(EventBase):
    """One network flow of the target, told when it ended, or was idle, or the session was over.

    `local` and `remote` are the ends as the target saw them (`203.0.113.1:443`, `[2001:db8::1]:443`; without a port
    where the protocol has none). `names`: under which the fake DNS had given out the remote address. `decoy`: what was
    planted at that end (metadata, loopback, private range …), else empty. `application`: what was spoken
    (dns, dot, doh, http, https, h2, websocket, smtp, tls, quic, stream, datagram …). `sent` and `received` count
    payload bytes from the target's side. `outbound`: blob of what the target sent (TLS plaintext where it could be
    read); `inbound`: what it got. `opaque`: why the payload could not be read, else empty.
    `end`: closed, reset, refused, idle, limit, stop. `began`: kernel-clock nanoseconds since the run's start.
    """

    kind: Literal["flow"] = "flow"
    flow: int
    protocol: str
    application: str = ""
    local: str = ""
    remote: str = ""
    names: tuple[str, ...] = ()
    decoy: str = ""
    sni: str = ""
    alpn: tuple[str, ...] = ()
    ja4: str = ""
    certificate_refused: bool = False
    sent: int = 0
    received: int = 0
    packets: int = 0
    outbound: BlobRef | None = None
    inbound: BlobRef | None = None
    parts: tuple[FlowPart, ...] = ()
    parts_cut: int = 0
    opaque: str = ""
    end: str = ""
    began: int = 0

    @property
    def address(self) -> str:
        """The remote address without its port."""
        return split_end(self.remote)[0]

    @property
    def port(self) -> int:
        """The remote port, 0 where there is none."""
        return split_end(self.remote)[1]

    @property
    def unread(self) -> str:
        """Why something that the target sent could not be read, else empty.

        A client that got no byte back has no keys yet; where it sent no more than its first message, all of it was
        read, whatever became of the handshake (RFC 8446, 2 and 5.1: five bytes go before the message).
        """
        hello = next((part.content.size for part in self.parts if part.what == "client-hello" and part.content), 0)
        said_all = hello and not self.received and self.sent <= hello + 5 and not self.certificate_refused
        return "" if said_all else self.opaque

    @property
    def host(self) -> str:
        """What the target called the other end: the name it asked TLS or DNS for, else the address."""
        return (self.sni or (self.names[0] if self.names else "") or self.address).rstrip(".").lower()


def split_end(text: str) -> tuple[str, int]:
    """An end of a flow or socket (`203.0.113.1:443`, `[2001:db8::1]:443`, `2001:db8::1`) as address and port."""
    if text.startswith("["):
        address, _, port = text[1:].partition("]:")
        return address.rstrip("]"), int(port) if port.isdecimal() and port.isascii() else 0
    address, colon, port = text.rpartition(":")
    if not colon or ":" in address or not (port.isdecimal() and port.isascii()):
        return text, 0
    return address, int(port)


class GatewayEndEvent(EventBase):
    """What the gateway says of itself at the end of a session.

    `early`: it ended before it was told to. `mode`: answer or refuse. `mechanism`: tproxy or redirect.
    `flows` were told, `lost` counts what was not, by kind. `packets` and `captured_bytes` are the capture's,
    `capture_dropped` what it lost, `capture_skipped` packets past its bound (their flows are told all the same);
    `unmatched`: captured flows that no event tells of, and `dissected`: packets that are neither TCP nor UDP, one line
    each (both filled by the cross-check after the run).
    """

    kind: Literal["gateway-end"] = "gateway-end"
    early: bool = False
    reason: str = ""
    mode: str = "answer"
    mechanism: str = "tproxy"
    flows: int = 0
    lost: dict[str, int] = {}
    packets: int = 0
    captured_bytes: int = 0
    capture_dropped: int = 0
    capture_skipped: int = 0
    unmatched: tuple[str, ...] = ()
    dissected: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Everything that crossed was told."""
        return not self.early and not any(self.lost.values()) and not self.unmatched and not self.capture_dropped
