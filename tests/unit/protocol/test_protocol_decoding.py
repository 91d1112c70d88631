"""One line to a value: every oddity tagged, nothing unprintable handed on, nothing raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.recording import Anomaly
from harness.protocol.decoding import count_values, decode, nests_deeper

DEPTH = 64


@pytest.mark.parametrize(
    ("raw", "value", "anomalies"),
    [
        (b'{"a":[1,2.5,"x",true,null]}', {"a": [1, 2.5, "x", True, None]}, ()),
        (b' {"a":1}\r', {"a": 1}, ()),
        ('{"ž":"😀"}'.encode(), {"ž": "😀"}, ()),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}, (Anomaly.BYTE_ORDER_MARK,)),
        (b'{"a":"\xff"}', {"a": "\ufffd"}, (Anomaly.INVALID_UTF8,)),
        (b'{"a":"\xed\xa0\x80"}', {"a": "\ufffd\ufffd\ufffd"}, (Anomaly.INVALID_UTF8,)),
        (b'{"a":1,"a":2}', {"a": 2}, (Anomaly.DUPLICATE_KEY,)),
        (b"[NaN,-Infinity]", ["NaN", "-Infinity"], (Anomaly.NON_FINITE,)),
        (b'"NaN"', "NaN", ()),
        (b"1e999", "1e999", (Anomaly.HUGE_NUMBER,)),
        (b"18446744073709551615", 2**64 - 1, ()),
        (b"18446744073709551616", "18446744073709551616", (Anomaly.HUGE_NUMBER,)),
        (b'"\\ud83d\\ude00"', "😀", ()),
        (b'{"\\ud800":"\\udc00x"}', {"\ufffd": "\ufffdx"}, (Anomaly.LONE_SURROGATE,)),
        (b'{"\\ud800":1,"\\ud801":2}', {"\ufffd": 2}, (Anomaly.LONE_SURROGATE, Anomaly.DUPLICATE_KEY)),
    ],
)
def test_reads_and_names_what_is_odd(raw: bytes, value: object, anomalies: tuple[Anomaly, ...]) -> None:
    decoded = decode(raw, depth=DEPTH)
    assert decoded.parsed
    assert decoded.value == value
    assert decoded.anomalies == anomalies


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"hello", b"{'a':1}", b'{"a":1}{"b":2}', b'"\x01"', b"\x00", b'{"a":1,"a":2']
)
def test_what_is_no_json_is_tagged_once(raw: bytes) -> None:
    assert decode(raw, depth=DEPTH).anomalies == (Anomaly.NOT_JSON,)
    assert not decode(raw, depth=DEPTH).parsed


def test_values_are_counted_outside_of_strings_only() -> None:
    dense = b"[" + b",".join([b'{"":0}'] * 20_000) + b"]"
    assert count_values(dense) == 60_001
    assert decode(dense, depth=64, values=60_000).anomalies == (Anomaly.TOO_MANY_VALUES,)
    assert decode(dense, depth=64, values=60_001).parsed
    assert count_values(b'["' + b"[{,:" * 20_000 + b'"]') == 2
    assert count_values(b'["' + b"[{,:" * 20_000) == 2


@pytest.mark.parametrize("padding", range(6))
@pytest.mark.parametrize("unit", [b'"[",', rb'"\"[",', rb'"\\",', rb'"[\\\"[",'])
def test_blocks_are_cut_without_losing_count(unit: bytes, padding: int) -> None:
    text = b'["' + b"x" * padding + b'",' + unit * 40_000 + b"[[0]]]"
    json.loads(text)
    assert not nests_deeper(text, 3)
    assert nests_deeper(text, 2)
    assert count_values(text) == 40_000 + 1 + 1 + 2 + 1


def test_depth_counts_brackets_outside_of_strings_only() -> None:
    at_bound, beyond = b"[" * 64 + b"]" * 64, b"[" * 65 + b"]" * 65
    assert decode(at_bound, depth=64).anomalies == ()
    assert decode(beyond, depth=64).anomalies == (Anomaly.TOO_DEEP,)
    assert decode(b'["' + b"[{" * 500 + b'\\"[[["]', depth=64).anomalies == ()
    assert decode(b"[" + b"[],{}," * 500 + b"0]", depth=64).anomalies == ()


@pytest.mark.parametrize(
    "raw",
    [
        b'["' + b'\\"' * 2_000_000,
        b'"' * 4_000_000,
        b"[" * 4_000_000,
        b"{" * 70 + b"\\" * 4_000_000,
        b"9" * 4_000_000,
        b"[0." + b"9" * 4_000_000 + b"]",
        b"[1e" + b"9" * 4_000_000 + b"]",
        b'["' + b"\\ud800" * 600_000 + b'"]',
        b'[{"a":' * 80 + b'"' + b'\\\\"' * 1_000_000,
    ],
    ids=["quotes-escaped", "quotes", "deep", "backslashes", "digits", "fraction", "exponent", "surrogates", "open"],
)
def test_big_lines_made_to_be_slow_are_read(raw: bytes) -> None:
    decode(raw, depth=DEPTH)  # quadratic work on any of these would take hours


@given(st.binary(max_size=200))
def test_no_bytes_raise(raw: bytes) -> None:
    decoded = decode(raw, depth=DEPTH)
    assert decoded.parsed or decoded.anomalies


SCRAPS = st.sampled_from(
    [
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"\\",
        b":",
        b",",
        b"NaN",
        b"1e999",
        b"-",
        b"9" * 5000,
        b'"a":1',
        b"\\ud800",
        b"\xff",
    ]
)


@given(st.lists(SCRAPS | st.binary(max_size=3), max_size=40).map(b"".join))
def test_no_scraps_of_json_raise_and_what_is_read_can_be_printed(raw: bytes) -> None:
    decoded = decode(raw, depth=8)
    json.dumps(decoded.value, ensure_ascii=False, allow_nan=False).encode()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_proper_json_comes_back_without_a_tag(value: Any, ascii_only: bool) -> None:
    decoded = decode(json.dumps(value, ensure_ascii=ascii_only).encode(), depth=DEPTH)
    assert decoded.value == value
    assert decoded.anomalies == ()


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


@given(JSON, st.integers(0, 6))
def test_the_depth_scan_agrees_with_the_value(value: Any, bound: int) -> None:
    assert nests_deeper(json.dumps(value).encode(), bound) == (_depth(value) > bound)
