"""Every disguise in the list is found, in the middle of other bytes; other data never holds a canary."""

from __future__ import annotations

import base64
import codecs
import gzip
import html
import json
import platform
import quopri
import re
import zlib
from collections.abc import Callable
from hashlib import sha256

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analyzers.canaries.decoders import DECODERS
from harness.analyzers.canaries.encodings import ENCODINGS, XOR
from harness.analyzers.canaries.engines import AhoCorasick, fast_engine
from harness.analyzers.canaries.search import Searcher, Stream
from harness.analyzers.canaries.series import Messages, Names

ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def made(label: str, length: int, alphabet: str = ALNUM) -> str:
    number = int.from_bytes(b"".join(sha256(f"{label}{n}".encode()).digest() for n in range(4)), "big")
    text = ""
    for _ in range(length):
        number, place = divmod(number, len(alphabet))
        text += alphabet[place]
    return text


#: A value of each shape: what stands behind `AKIA`, a GitHub token, base64 of a key, a password, one with signs.
VALUES = (
    made("aws", 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "ghp_" + made("github", 36),
    made("pem", 70, ALNUM + "+/"),
    made("password", 20),
    made("signs", 24, ALNUM + "-_.!"),
)
SEARCHER = Searcher(VALUES)
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data: bytes) -> bytes:
    out = ""
    for at in range(0, len(data) // 4 * 4, 4):
        number = int.from_bytes(data[at : at + 4], "big")
        out += "".join(Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return out.encode()


def spell(form: str, between: str = "") -> Callable[[bytes], bytes]:
    return lambda v: between.join(form % byte for byte in v).encode()


#: By the name in the list: an encoder written here, of some bytes around the value too where it works in groups.
RAW: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda v: v,
    "taken apart": lambda v: re.sub(rb"[-_.!+/]", b"", v),
    "reversed": lambda v: v[::-1],
    "rot13": lambda v: codecs.encode(v.decode(), "rot13").encode(),
    "utf-16": lambda v: v.decode().encode("utf-16-le"),
    "hex": lambda v: v.hex().upper().encode(),
    "hex, reversed": lambda v: v[::-1].hex().encode(),
    "hex with colons": lambda v: v.hex(":").encode(),
    "hex with dashes": lambda v: v.hex("-").upper().encode(),
    "hex with spaces": lambda v: v.hex(" ").encode(),
    "hex with 0x": spell("0x%02x", ","),
    "hex with 0x and spaces": spell("0x%02X", ", "),
    "hex with \\x": spell("\\x%02x"),
    "decimal numbers": spell("%d", ","),
    "decimal numbers with spaces": spell("%d", ", "),
    "percent": spell("%%%02X"),
    "percent, twice": spell("%%25%02x"),
    "json escapes": spell("\\u%04x"),
    "html numbers": spell("&#%d;"),
    "html hex numbers": spell("&#x%x;"),
    "quoted-printable": spell("=%02X"),
    "base32": lambda v: base64.b32encode(b"ab" + v + b"yz").rstrip(b"=").lower(),
    "base32hex": lambda v: base64.b32hexencode(b"a" + v + b"z"),
    "base64": lambda v: base64.b64encode(b"a" + v + b"bc"),
    "base64, url-safe": lambda v: base64.urlsafe_b64encode(b"ab" + v + b"c??>"),
    "base64, reversed value": lambda v: base64.b64encode(b"a" + v[::-1]),
    "base64 of utf-16": lambda v: base64.b64encode(b"a\0" + v.decode().encode("utf-16-le") + b"z\0"),
    "base64 of hex": lambda v: base64.b64encode(b"x" + v.hex().encode()),
    "base64, twice": lambda v: base64.b64encode(b"a" + base64.b64encode(b"k=" + v) + b"z"),
    "ascii85": lambda v: base64.a85encode(b"abc" + v + b"xyz"),
    "base85": lambda v: base64.b85encode(b"a" + v + b"xy"),
    "z85": lambda v: z85(b"ab" + v + b"xyzxyz"),
    "xor with one byte": lambda v: bytes(byte ^ 0x5A for byte in v),
}
#: By the name of the decoder.
DEEP: dict[str, Callable[[bytes], bytes]] = {
    "percent": lambda v: v[:3] + b"%%%02x" % v[3] + v[4:],
    "escapes": lambda v: b'{"a": "%s\\u%04x%s"}' % (v[:9], v[9], v[10:]),
    "entities": lambda v: html.escape("<b>").encode() + v[:8] + b"&#%d;" % v[8] + v[9:],
    "quoted-printable": lambda v: quopri.encodestring(b"x" * 70 + v + b"=\xff"),
    "joined": lambda v: json.dumps([v[:5].decode(), v[5:12].decode(), v[12:].decode()]).encode(),
    "gzip": lambda v: b"POST\r\n\r\n" + gzip.compress(b"hello " + v),
    "zlib": lambda v: b"--" + zlib.compress(b"hello " * 9 + v),
    "deflate": lambda v: zlib.compress(b"hello " * 9 + v)[2:-4],
    "brotli": lambda v: brotli.compress(b"hello " * 9 + v),
    "base64": lambda v: b"d=" + base64.b64encode(gzip.compress(v)),
    "base32": lambda v: base64.b32encode(gzip.compress(v)),
    "hex": lambda v: gzip.compress(v).hex().encode(),
    "base85": lambda v: base64.b85encode(zlib.compress(v)),
}
#: Several layers.
NESTED: dict[str, Callable[[bytes], bytes]] = {
    "base64 of zlib": lambda v: base64.b64encode(zlib.compress(b"zz" + v)),
    "base64 of deflate": lambda v: base64.b64encode(zlib.compress(b"zz" + v)[2:-4]),
    "base64 of brotli": lambda v: base64.b64encode(brotli.compress(b"zz" * 9 + v)),
    "base64 of xor": lambda v: base64.b64encode(bytes(byte ^ 0xA7 for byte in v)),
    "base64 of gzip in JSON in gzip": lambda v: gzip.compress(
        json.dumps({"data": base64.b64encode(gzip.compress(v)).decode()}).encode()
    ),
    "hex of base64 of gzip": lambda v: base64.b64encode(gzip.compress(v)).hex().encode(),
    "base64 in the lines of mail": lambda v: base64.encodebytes(b"x" * 50 + v + b"y" * 50),
    "base64 in lines in JSON": lambda v: json.dumps({"d": base64.encodebytes(b"x" * 50 + v).decode()}).encode(),
    "hex in lines": lambda v: b"\n".join(re.findall(rb".{1,20}", v.hex().encode())),
    "base64 in a query": lambda v: b"GET /?q=" + base64.b64encode(b"a" + v).replace(b"=", b"%3D") + b" HTTP/1.1",
    "an upper-case value in base64": lambda v: base64.b64encode(b"x" + v.upper()),
    "one letter a line": lambda v: b"\n".join(bytes((byte,)) for byte in v),
}


def test_every_entry_of_the_lists_has_a_test() -> None:
    assert [encoding.name for encoding in (*ENCODINGS, XOR)] == list(RAW)
    assert [decoder.name for decoder in DECODERS] == list(DEEP)


@pytest.mark.parametrize("number", range(len(VALUES)))
@pytest.mark.parametrize("name", RAW)
def test_every_encoding_is_found_in_raw_bytes(name: str, number: int) -> None:
    disguised = RAW[name](VALUES[number].encode())
    data = bytes(range(256)) * 9 + disguised + b"\xfe\x00 more " * 99
    assert {hit.canary for hit in SEARCHER.raw(data)} == {number}


@pytest.mark.parametrize("number", range(len(VALUES)))
@pytest.mark.parametrize("name", DEEP)
def test_every_decoder_is_needed_and_finds(name: str, number: int) -> None:
    data = DEEP[name](VALUES[number].encode())
    hits, whole = SEARCHER.deep(data)
    assert {hit.canary for hit in hits} == {number}
    assert whole


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("number", range(len(VALUES)))
def test_layers_are_taken_off(name: str, number: int) -> None:
    hits, whole = SEARCHER.deep(NESTED[name](VALUES[number].encode()))
    assert {hit.canary for hit in hits} == {number}
    assert whole


@pytest.mark.parametrize("alignment", range(5))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.b32encode, base64.a85encode, base64.b85encode])
def test_every_alignment_is_found(encode: Callable[[bytes], bytes], alignment: int) -> None:
    data = encode(b"q" * alignment + VALUES[1].encode() + b"rest!")
    assert {hit.canary for hit in SEARCHER.raw(data)} == {1}


@pytest.mark.parametrize("key", [1, 0x20, 0x7F, 0xFF])
def test_every_key_of_xor_is_found(key: int) -> None:
    assert {hit.canary for hit in SEARCHER.raw(bytes(b ^ key for b in b"some " + VALUES[0].encode()))} == {0}


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_nothing_is_lost_between_chunks(size: int) -> None:
    for encode in (RAW["plain"], RAW["json escapes"], RAW["base64, twice"], NESTED["base64 in the lines of mail"]):
        data = b"x" * 999 + encode(VALUES[1].encode()) + b"y" * 999
        stream = Stream(SEARCHER)
        for at in range(0, len(data), size):
            stream.feed(data[at : at + size])
        assert {hit.canary for hit in stream.hits} == {1}


def numbered(pieces: list[str]) -> list[str]:
    order = sorted(range(len(pieces)), key=lambda n: sha256(str(n).encode()).digest())
    return [f"{n}-{pieces[n]}.t.collector.test" for n in order]


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: [f"{piece}.collector.test" for piece in p],
        lambda p: [f"{piece}.x1.collector.test" for piece in p],
        lambda p: [f"{n}-{piece}.t.collector.test" for n, piece in enumerate(p)],
        lambda p: [f"{piece}.{n}.collector.test" for n, piece in enumerate(p)],
        lambda p: [f"{n}.{piece}.collector.test" for n, piece in enumerate(p)],
        numbered,
        lambda p: [".".join(p) + ".collector.test"],
        lambda p: [name for piece in p for name in (f"{piece}.collector.test", f"{piece}.collector.test")],
    ],
)
@pytest.mark.parametrize(
    "encode",
    [lambda v: v.hex(), lambda v: base64.b32encode(b"k" + v).decode().rstrip("=").lower(), lambda v: v.decode()],
)
def test_a_value_over_dns_questions(ask: Callable[[list[str]], list[str]], encode: Callable[[bytes], str]) -> None:
    text = encode(VALUES[1].replace("_", "").encode())
    names, found = Names(), set()
    for seq, name in enumerate(ask(re.findall(".{1,11}", text))):
        assert not list(names.add("main", name, 99 - seq, seq))
    for whole in names.rest():
        found |= {hit.canary for hit in SEARCHER.deep(whole.data)[0]}
    assert found == {1}


@pytest.mark.parametrize(
    ("what", "form"),
    [
        ("http-body", '{"n": 1, "part": "%s"}'),
        ("http-body", "%s"),
        ("http-request", "GET /c?seq=1&d=%s HTTP/1.1\r\nHost: collector.test\r\n\r\n"),
        ("http-request", "GET /x/%s HTTP/1.1\r\nHost: collector.test\r\n\r\n"),
        ("datagram", "%s"),
    ],
)
def test_a_value_over_several_messages(what: str, form: str) -> None:
    text = base64.urlsafe_b64encode(VALUES[3].encode()).decode().rstrip("=")
    messages, found = Messages(), set()
    for seq, piece in enumerate(re.findall(".{1,6}", text)):
        assert not list(messages.add("collector.test", what, (form % piece).encode(), seq, seq))
    for whole in messages.rest():
        found |= {hit.canary for hit in SEARCHER.deep(whole.data)[0]}
    assert found == {3}


def test_other_data_holds_no_canary() -> None:
    """A megabyte each of random bytes, of their base64 and hex, of text and of JSON; `make bench` takes a hundred."""
    random = b"".join(sha256(b"%d" % n).digest() for n in range(1 << 15))
    words = [word for word in _words().split() if word]
    text = " ".join(words[int.from_bytes(random[n : n + 2], "big") % len(words)] for n in range(0, 1 << 18, 2)).encode()
    for data in (random, base64.b64encode(random), random.hex().encode(), text, json.dumps(text.decode()).encode()):
        stream = Stream(SEARCHER)
        for at in range(0, len(data), 1 << 18):
            stream.feed(data[at : at + (1 << 18)])
        assert stream.hits == set()
        hits, whole = SEARCHER.deep(data[: 1 << 18])
        assert (hits, whole) == (set(), True)


def _words() -> str:
    import harness.analyzers.definitions.concepts as concepts

    return " ".join(str(value) for value in vars(concepts).values())


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=4000) | st.text(max_size=2000).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_searched_without_an_error_and_hold_nothing(data: bytes) -> None:
    assert SEARCHER.deep(data) == (set(), True)
    for decoder in DECODERS:
        list(decoder.views(data))


@settings(deadline=None, max_examples=60)
@given(
    st.binary(max_size=300),
    st.integers(0, len(VALUES) - 1),
    st.sampled_from(sorted({*DEEP, *NESTED} - {"deflate", "brotli"})),
)
def test_anything_may_stand_around(noise: bytes, number: int, name: str) -> None:
    disguised = (DEEP.get(name) or NESTED[name])(VALUES[number].encode())
    hits, _ = SEARCHER.deep(noise + b"\n" + disguised + b"\n" + noise)
    assert number in {hit.canary for hit in hits}


def test_the_engines_find_the_same() -> None:
    patterns = [form for e in ENCODINGS for v in VALUES for form in e.forms(v.encode()) if len(form) > 9]
    data = b"\0".join(patterns[::7])
    fast = fast_engine(patterns)
    assert fast is not None or platform.machine() != "x86_64", "hyperscan belongs to the development set-up there"
    if fast is not None:
        assert fast.find(data) == AhoCorasick(patterns).find(data) != set()


def test_a_bomb_is_bounded() -> None:
    bomb = gzip.compress(gzip.compress(bytes(64 << 20)))
    hits, _ = SEARCHER.deep(bomb + gzip.compress(VALUES[0].encode()))
    assert {hit.canary for hit in hits} == {0}
