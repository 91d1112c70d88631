"""Turning a bounded unit of data into what it may stand for: one entry a way, each total on any bytes, and bounded.

Deep search applies these again to what they give (see `search`), so that a compressed body in base64 in JSON is found.
"""

from __future__ import annotations

import base64
import binascii
import html
import quopri
import re
import string
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

import brotli

from harness.analyzers.canaries.encodings import SEPARATORS, SHORTEST

#: Of one compressed piece at most so much is unpacked.
MOST_UNPACKED = 4 << 20
#: At most so many marks of compression are tried in one unit.
MARKS = 256
_FEW = 8

_ESCAPE = re.compile(rb"\\(?:u00([0-9a-fA-F]{2})|x([0-9a-fA-F]{2})|([0-3]?[0-7]{2})|([nrtbf\"'/\\]))")
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/_-]{16,}")
_BASE32_RUN = re.compile(rb"[A-Za-z2-7]{26,}")
_HEX_RUN = re.compile(rb"[0-9a-fA-F]{24,}")
_BASE85_RUN = re.compile(rb"[!-~]{20,}")
#: The headers of a window of 32 KiB at every level, which all libraries write (RFC 1950, section 2.2).
_ZLIB = re.compile(rb"x[\x01\x5e\x9c\xda]")
#: The digits of base32 (RFC 4648) as those of Python's integers to that base.
_BASE32_DIGITS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghijklmnopqrstuv")
#: What each base85 is written with; nothing else can be decoded.
_BASE85 = (
    (base64.a85decode, bytes(range(ord("!"), ord("u") + 1)) + b"yz"),
    (base64.b85decode, string.digits.encode() + string.ascii_letters.encode() + b"!#$%&()*+-;<=>?@^_`{|}~"),
)
_PRINTABLE = string.printable.encode() + b"\0"
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")


@dataclass(frozen=True)
class Decoder:
    """One way to read a unit. `views` gives what the unit may stand for; nothing where it does not look like it."""

    name: str
    views: Callable[[bytes], Iterator[bytes]]


def percent(data: bytes) -> Iterator[bytes]:
    """Percent escapes (RFC 3986), and `+` for a space."""
    if b"%" in data:
        yield unquote_to_bytes(data)


def escapes(data: bytes) -> Iterator[bytes]:
    """Escapes of JSON and of most programming languages."""
    if b"\\" in data:
        yield _ESCAPE.sub(_unescaped, data)


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits = match[1] or match[2]
    if digits:
        return bytes((int(digits, 16),))
    if match[3]:
        return bytes((int(match[3], 8),))
    return _LETTERS.get(match[4], match[4])


def entities(data: bytes) -> Iterator[bytes]:
    """Character references of HTML and XML."""
    if b"&" in data and b";" in data:
        yield html.unescape(data.decode("latin-1")).encode("latin-1", "replace")


def quoted_printable(data: bytes) -> Iterator[bytes]:
    """Quoted-printable (RFC 2045)."""
    if re.search(rb"=(?:[0-9A-Fa-f]{2}|\r?\n)", data):
        yield quopri.decodestring(data)


def joined(data: bytes) -> Iterator[bytes]:
    """The unit without what may stand between the pieces of a value that was taken apart."""
    squeezed = data.translate(None, SEPARATORS)
    if len(squeezed) != len(data):
        yield squeezed


def noise(data: bytes) -> bool:
    """Whether most of it is no text: as what comes out when something is decoded that was not encoded."""
    return len(data.translate(None, _PRINTABLE)) * 2 > len(data)


def gzipped(data: bytes) -> Iterator[bytes]:
    """Streams of gzip (RFC 1952), wherever they begin."""
    yield from _together(_inflate(data[m.start() :], 31) for m in _some(re.finditer(rb"\x1f\x8b\x08", data), MARKS))


def zlibbed(data: bytes) -> Iterator[bytes]:
    """Streams of zlib (RFC 1950), wherever they begin."""
    yield from _together(_inflate(data[m.start() :], 15) for m in _some(_ZLIB.finditer(data), MARKS))


def deflated(data: bytes) -> Iterator[bytes]:
    """Bare deflate (RFC 1951), which has no mark: only a unit that is one from its start."""
    yield _inflate(data, -15)


def brotlied(data: bytes) -> Iterator[bytes]:
    """Brotli (RFC 7932), which has no mark either."""
    try:
        yield brotli.Decompressor().process(data, output_buffer_limit=MOST_UNPACKED)
    except (brotli.error, TypeError, ValueError):
        return


def _inflate(data: bytes, bits: int) -> bytes:
    """What could be unpacked, also of a stream that is cut or ends in something else."""
    unpacker, out = zlib.decompressobj(bits), bytearray()
    view, at, size = memoryview(data), 0, 64  # what is no stream fails within its first bytes
    try:
        while at < len(view) and not unpacker.eof and len(out) < MOST_UNPACKED:
            out += unpacker.decompress(view[at : at + size], MOST_UNPACKED - len(out))
            at, size = at + size, 1 << 14
    except zlib.error:
        pass
    return bytes(out)


def base64_runs(data: bytes) -> Iterator[bytes]:
    """Runs of the alphabets of base64, from each of their first four characters on."""
    yield from _base64(data)
    squeezed = data.translate(None, b" \t\r\n")
    if len(squeezed) != len(data) and b" " not in data.strip():
        yield from _base64(squeezed)  # wrapped, as in mail


def _base64(data: bytes) -> Iterator[bytes]:
    runs = [run.translate(_TO_STANDARD) for run in _BASE64_RUN.findall(data)]
    for start in range(4):
        yield from _together(_unpad(run[start:]) for run in runs)
    for run in sorted(runs, key=len, reverse=True)[:_FEW]:  # alone: some compressions only show at a beginning
        yield _unpad(run)


def _unpad(text: bytes) -> bytes:
    whole = len(text) // 4 * 4
    if len(text) - whole > 1:
        return base64.b64decode(text + b"=" * (-len(text) % 4))
    return base64.b64decode(text[:whole])


def base32_runs(data: bytes) -> Iterator[bytes]:
    """Runs of base32's alphabet, in any case, from each of their first eight characters on."""
    runs = [run.upper().translate(_BASE32_DIGITS) for run in _BASE32_RUN.findall(data)]
    for start in range(8 if runs else 0):
        yield from _together(_groups32(run[start : start + (len(run) - start) // 8 * 8]) for run in runs)


def _groups32(digits: bytes) -> bytes:
    """Whole groups of eight digits, five bytes each: as one integer, which is many times quicker than by group."""
    return int(digits, 32).to_bytes(len(digits) // 8 * 5, "big") if digits else b""


def hex_runs(data: bytes) -> Iterator[bytes]:
    """Runs of hex digits, from their first and their second on."""
    runs = _HEX_RUN.findall(data)
    yield from _together(binascii.unhexlify(run[: len(run) // 2 * 2]) for run in runs)
    yield from _together(binascii.unhexlify(run[1 : 1 + (len(run) - 1) // 2 * 2]) for run in runs)


def base85_runs(data: bytes) -> Iterator[bytes]:
    """Long runs of base85, with Adobe's frame or without, from each of their first five characters on."""
    for run in sorted(_BASE85_RUN.findall(data), key=len, reverse=True)[:_FEW]:
        text = run.partition(b"<~")[2] or run
        text = text.partition(b"~>")[0]
        fitting = [decode for decode, alphabet in _BASE85 if not text.translate(None, alphabet)]
        for start in range(5 if len(text) < 4096 else 1):
            for decode in fitting:
                with suppress(ValueError):
                    yield decode(text[start:])


def _together(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """All pieces as one view, so that their number costs nothing further on."""
    together = b"\n".join(piece for piece in pieces if len(piece) >= SHORTEST)
    if together:
        yield together[:MOST_UNPACKED]


def _some(matches: Iterator[re.Match[bytes]], most: int) -> Iterator[re.Match[bytes]]:
    for number, match in enumerate(matches):
        if number >= most:
            return
        yield match


DECODERS: tuple[Decoder, ...] = (
    Decoder("percent", percent),
    Decoder("escapes", escapes),
    Decoder("entities", entities),
    Decoder("quoted-printable", quoted_printable),
    Decoder("joined", joined),
    Decoder("gzip", gzipped),
    Decoder("zlib", zlibbed),
    Decoder("deflate", deflated),
    Decoder("brotli", brotlied),
    Decoder("base64", base64_runs),
    Decoder("base32", base32_runs),
    Decoder("hex", hex_runs),
    Decoder("base85", base85_runs),
)
