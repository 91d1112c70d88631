"""The first packet of QUIC: protected with keys that anybody can derive, so its ClientHello can be read. Pure.

RFC 9000 (packets, frames), RFC 9001 sections 5.2 to 5.4 (Initial secrets, packet and header protection), RFC 9369
(version 2).
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from sinkhole.hello import ClientHello, parse

_V1, _V2 = 0x00000001, 0x6B3343CF
_SALTS = {
    _V1: bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"),
    _V2: bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9"),
}
_LABELS = {_V1: "quic ", _V2: "quicv2 "}
_INITIAL = {_V1: 0, _V2: 1}
SMALLEST = 1200


def looks_like_initial(data: bytes) -> bool:
    """Whether a datagram is a client's Initial packet of a version that is known."""
    if len(data) < SMALLEST or data[0] & 0xC0 != 0xC0:
        return False
    version = int.from_bytes(data[1:5], "big")
    return version in _SALTS and (data[0] >> 4) & 3 == _INITIAL[version]


def client_hello(data: bytes) -> tuple[ClientHello, bytes] | None:
    """The ClientHello in an Initial packet and its bytes; None where it can't be had (or is spread over several)."""
    if not looks_like_initial(data):
        return None
    try:
        return _client_hello(data)
    except (ValueError, IndexError, InvalidTag):
        return None


def _client_hello(data: bytes) -> tuple[ClientHello, bytes] | None:
    version = int.from_bytes(data[1:5], "big")
    at = 5
    destination = data[at + 1 : at + 1 + data[at]]
    at += 1 + data[at]
    at += 1 + data[at]
    size, at = _number(data, at)
    at += size
    length, at = _number(data, at)
    key, iv, mask_key = _keys(version, destination)
    encryptor = Cipher(algorithms.AES(mask_key), modes.ECB()).encryptor()  # noqa: S305 - as header protection says
    mask = encryptor.update(data[at + 4 : at + 20])
    first = data[0] ^ (mask[0] & 0x0F)
    width = (first & 3) + 1
    number = bytes(a ^ b for a, b in zip(data[at : at + width], mask[1:], strict=False))
    header = bytes([first]) + data[1:at] + number
    nonce = bytes(a ^ b for a, b in zip(iv, number.rjust(12, b"\0"), strict=True))
    plain = AESGCM(key).decrypt(nonce, data[at + width : at + length], header)
    message = _crypto(plain)
    if len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
        return None
    return parse(message), message


def _keys(version: int, destination: bytes) -> tuple[bytes, bytes, bytes]:
    extract = HMAC(_SALTS[version], hashes.SHA256())
    extract.update(destination)
    secret = _expand(extract.finalize(), "client in", 32)
    label = _LABELS[version]
    return _expand(secret, f"{label}key", 16), _expand(secret, f"{label}iv", 12), _expand(secret, f"{label}hp", 16)


def _expand(secret: bytes, label: str, size: int) -> bytes:
    full = b"tls13 " + label.encode()
    info = size.to_bytes(2, "big") + bytes([len(full)]) + full + b"\0"
    return HKDFExpand(hashes.SHA256(), size, info).derive(secret)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer, and where it ends."""
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size


def _crypto(plain: bytes) -> bytes:
    """The bytes of the CRYPTO frames, put in order from offset 0 as far as they go."""
    pieces: dict[int, bytes] = {}
    at = 0
    while at < len(plain):
        kind = plain[at]
        at += 1
        if kind in (0, 1):  # PADDING, PING
            continue
        if kind != 6:
            break
        offset, at = _number(plain, at)
        size, at = _number(plain, at)
        pieces[offset] = plain[at : at + size]
        at += size
    message = b""
    while len(message) in pieces and pieces[len(message)]:
        message += pieces[len(message)]
    return message
