"""The disguises in which a canary is looked for in raw bytes: one entry each, with a test that lists them all.

An entry turns a value into the byte strings that it becomes. Where an encoding works in groups of bytes, what a value
becomes depends on how many bytes stand before it: each such alignment gives a string, without the characters at its
ends that the neighbours have a part in. What needs real decoding (compression, escapes among plain text) is in
`decoders`; a single-byte XOR is found in the differences of neighbouring bytes, where its key falls out.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: Of a longer value only its end is looked for: it is the random part of every shape (a token's tail, a signature).
CORE_BYTES = 32
#: Shorter strings than these would be found by chance.
SHORTEST = 10

_ROT13 = bytes.maketrans(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", b"nopqrstuvwxyzabcdefghijklmNOPQRSTUVWXYZABCDEFGHIJKLM"
)
#: Base85 of ZeroMQ (RFC 32 of that project) beside Python's, which is that of RFC 1924.
_Z85 = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)
#: What may stand between the characters of a value that was taken apart; see `decoders.joined`.
SEPARATORS = b" \t\r\n\0.,:;|/\\\"'`+-_=&#~!()[]{}<>"

Forms = Callable[[bytes], Iterator[bytes]]


@dataclass(frozen=True)
class Encoding:
    """One disguise. `folded`: the case of letters does not count."""

    name: str
    forms: Forms
    folded: bool = False


def core(value: str) -> bytes:
    """The part of a value that is looked for."""
    return value.encode("utf-8", "surrogatepass")[-CORE_BYTES:]


def _aligned(encode: Callable[[bytes], bytes], bits: int, alignments: int) -> Forms:
    """The strings for every alignment of an encoding that gives one character for `bits` bits."""

    def forms(value: bytes) -> Iterator[bytes]:
        for before in range(alignments):
            encoded = encode(b"\0" * before + value)
            yield encoded[-(-before * 8 // bits) : (before + len(value)) * 8 // bits]

    return forms


def _grouped(encode: Callable[[bytes], bytes]) -> Forms:
    """The same for base85, where only whole groups of four bytes have characters of their own."""

    def forms(value: bytes) -> Iterator[bytes]:
        for skipped in range(4):
            whole = value[skipped : skipped + (len(value) - skipped) // 4 * 4]
            yield encode(whole)

    return forms


def _spelled(piece: str, between: str = "") -> Forms:
    """Every byte written out by a format, with `between` in the middle of two."""

    def forms(value: bytes) -> Iterator[bytes]:
        yield between.join(piece.format(byte) for byte in value).encode()

    return forms


def _once(change: Callable[[bytes], bytes]) -> Forms:
    def forms(value: bytes) -> Iterator[bytes]:
        yield change(value)

    return forms


def _then(first: Callable[[bytes], bytes], second: Forms) -> Forms:
    """`second` of what `first` makes of the value."""

    def forms(value: bytes) -> Iterator[bytes]:
        yield from second(first(value))

    return forms


def _twice(inner: Forms, outer: Forms) -> Forms:
    """`outer` of every form of `inner`."""

    def forms(value: bytes) -> Iterator[bytes]:
        for form in inner(value):
            yield from outer(form)

    return forms


def bare(value: bytes) -> bytes:
    """The value without the characters that `decoders.joined` takes out of data."""
    return value.translate(None, SEPARATORS)


def wide(value: bytes) -> bytes:
    """UTF-16 without its outermost zero byte: the string is the same in both byte orders."""
    return b"\0".join(bytes((byte,)) for byte in value)


def differences(data: bytes) -> bytes:
    """Each byte XOR the next: a whole number at a time, so that it is fast; one byte shorter than `data`."""
    if len(data) < 2:
        return b""
    number = int.from_bytes(data, "little")
    return (number ^ (number >> 8)).to_bytes(len(data), "little")[:-1]


_BASE64 = _aligned(base64.b64encode, 6, 3)

ENCODINGS: tuple[Encoding, ...] = (
    Encoding("plain", _once(lambda v: v), folded=True),
    Encoding("taken apart", _once(bare), folded=True),
    Encoding("reversed", _once(lambda v: v[::-1]), folded=True),
    Encoding("rot13", _once(lambda v: v.translate(_ROT13)), folded=True),
    Encoding("utf-16", _once(wide), folded=True),
    Encoding("hex", _spelled("{:02x}"), folded=True),
    Encoding("hex, reversed", _then(lambda v: v[::-1], _spelled("{:02x}")), folded=True),
    Encoding("hex with colons", _spelled("{:02x}", ":"), folded=True),
    Encoding("hex with dashes", _spelled("{:02x}", "-"), folded=True),
    Encoding("hex with spaces", _spelled("{:02x}", " "), folded=True),
    Encoding("hex with 0x", _spelled("0x{:02x}", ","), folded=True),
    Encoding("hex with 0x and spaces", _spelled("0x{:02x}", ", "), folded=True),
    Encoding("hex with \\x", _spelled("\\x{:02x}"), folded=True),
    Encoding("decimal numbers", _spelled("{:d}", ","), folded=True),
    Encoding("decimal numbers with spaces", _spelled("{:d}", ", "), folded=True),
    Encoding("percent", _spelled("%{:02x}"), folded=True),
    Encoding("percent, twice", _spelled("%25{:02x}"), folded=True),
    Encoding("json escapes", _spelled("\\u{:04x}"), folded=True),
    Encoding("html numbers", _spelled("&#{:d};"), folded=True),
    Encoding("html hex numbers", _spelled("&#x{:x};"), folded=True),
    Encoding("quoted-printable", _spelled("={:02x}"), folded=True),
    Encoding("base32", _aligned(base64.b32encode, 5, 5), folded=True),
    Encoding("base32hex", _aligned(base64.b32hexencode, 5, 5), folded=True),
    Encoding("base64", _BASE64),
    Encoding("base64, url-safe", _aligned(base64.urlsafe_b64encode, 6, 3)),
    Encoding("base64, reversed value", _then(lambda v: v[::-1], _BASE64)),
    Encoding("base64 of utf-16", _then(lambda v: wide(v) + b"\0", _BASE64)),
    Encoding("base64 of hex", _then(lambda v: v.hex().encode(), _BASE64)),
    Encoding("base64, twice", _twice(_BASE64, _BASE64)),
    Encoding("ascii85", _grouped(base64.a85encode)),
    Encoding("base85", _grouped(base64.b85encode)),
    Encoding("z85", _grouped(lambda v: base64.b85encode(v).translate(_Z85))),
)
#: Looked for in `differences` of the data.
XOR = Encoding("xor with one byte", _once(differences))
