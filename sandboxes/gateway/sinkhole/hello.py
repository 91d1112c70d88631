"""A TLS ClientHello: server name, protocols, and its JA4 fingerprint. Pure.

Layout: RFC 8446 section 4.1.2 and RFC 6066 (server name), RFC 7301 (ALPN). JA4: FoxIO's technical details of the TLS
client fingerprint (`ja4/technical_details/JA4.md`, BSD 3-Clause).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

HANDSHAKE, CLIENT_HELLO = 22, 1
MOST_BYTES = 64 << 10
_VERSIONS = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3", 0x0002: "s2"}


@dataclass(frozen=True)
class ClientHello:
    """What a client said of itself before anything was encrypted."""

    sni: str = ""
    alpn: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    ciphers: tuple[int, ...] = ()
    extensions: tuple[int, ...] = ()
    signatures: tuple[int, ...] = ()

    def ja4(self, transport: str = "t") -> str:
        """The fingerprint; `transport` is t for TCP and q for QUIC."""
        ciphers = [value for value in self.ciphers if not _grease(value)]
        extensions = [value for value in self.extensions if not _grease(value)]
        versions = [value for value in self.versions if not _grease(value)]
        version = _VERSIONS.get(max(versions, default=0), "00")
        first = self.alpn[0].encode("latin-1") if self.alpn else b""
        marks = "00"
        if first:
            ends = chr(first[0]), chr(first[-1])
            marks = (
                "".join(ends) if all(e.isascii() and e.isalnum() for e in ends) else first.hex()[0] + first.hex()[-1]
            )
        head = f"{transport}{version}{'d' if self.sni else 'i'}{min(len(ciphers), 99):02}{min(len(extensions), 99):02}"
        kinds = _listed(sorted(value for value in extensions if value not in (0x0000, 0x0010)))
        signatures = _listed([value for value in self.signatures if not _grease(value)])
        last = f"{kinds}_{signatures}" if signatures else kinds
        return f"{head}{marks}_{_short(_listed(sorted(ciphers)))}_{_short(last)}"


def _grease(value: int) -> bool:
    return value & 0x0F0F == 0x0A0A and value >> 8 == value & 0xFF


def _listed(values: list[int]) -> str:
    return ",".join(f"{value:04x}" for value in values)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else "0" * 12


def looks_like_tls(data: bytes) -> bool:
    """Whether a stream that begins so is TLS; three bytes tell."""
    return len(data) >= 3 and data[0] == HANDSHAKE and data[1] == 3 and data[2] <= 4


def handshake_bytes(records: bytes) -> bytes | None:
    """The first handshake message out of TLS records (without its header's records), None while it is not whole.

    Raises ValueError for what is no ClientHello.
    """
    message, at = b"", 0
    while at + 5 <= len(records):
        if records[at] != HANDSHAKE:
            raise ValueError("not a handshake record")
        size = int.from_bytes(records[at + 3 : at + 5], "big")
        message += records[at + 5 : at + 5 + size]
        at += 5 + size
        if len(message) >= 4:
            if message[0] != CLIENT_HELLO:
                raise ValueError("not a ClientHello")
            if len(message) >= 4 + int.from_bytes(message[1:4], "big"):
                return message
    if len(records) > MOST_BYTES:
        raise ValueError("too large for a ClientHello")
    return None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise ValueError("a ClientHello that ends early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))

    def __bool__(self) -> bool:
        return self.at < len(self.data)


def parse(message: bytes) -> ClientHello:
    """Read a handshake message as `handshake_bytes` gives it. Raises ValueError for what is none."""
    whole = _Reader(message)
    if whole.number(1) != CLIENT_HELLO:
        raise ValueError("not a ClientHello")
    body = _Reader(whole.vector(3))
    legacy = body.number(2)
    body.take(32)
    body.vector(1)
    ciphers = _pairs(body.vector(2))
    body.vector(1)
    sni, kinds = "", []
    alpn: tuple[str, ...] = ()
    versions: tuple[int, ...] = (legacy,)
    signatures: tuple[int, ...] = ()
    extensions = _Reader(body.vector(2)) if body else _Reader(b"")
    while extensions:
        kind = extensions.number(2)
        inner = _Reader(extensions.vector(2))
        kinds.append(kind)
        if kind == 0 and inner:
            names = _Reader(inner.vector(2))
            names.take(1)
            sni = names.vector(2).decode("utf-8", "backslashreplace")
        elif kind == 16 and inner:
            alpn = _protocols(inner.vector(2))
        elif kind == 43 and inner:
            versions = _pairs(inner.vector(1))
        elif kind == 13 and inner:
            signatures = _pairs(inner.vector(2))
    return ClientHello(sni, alpn, versions, ciphers, tuple(kinds), signatures)


def _pairs(data: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data) - 1, 2))


def _protocols(data: bytes) -> tuple[str, ...]:
    reader, found = _Reader(data), []
    while reader:
        found.append(reader.vector(1).decode("latin-1"))
    return tuple(found)
