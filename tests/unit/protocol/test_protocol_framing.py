"""Bytes to lines, within bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.model.options import Limits
from harness.model.recording import Anomaly
from harness.protocol.framing import Line, LineFramer

SMALL = Limits(line_bytes=16, stdout_bytes=1000, messages=100)


def test_lines_come_out_when_their_newline_is_there() -> None:
    framer = LineFramer(Limits())
    assert framer.feed(b'{"a"') == []
    [first, second] = framer.feed(b':1}\n[2]\r\n{"c"')
    assert (first.value, second.value, second.raw) == ({"a": 1}, [2], b"[2]\r")
    assert framer.finish()[0].anomalies == (Anomaly.NOT_JSON, Anomaly.NO_NEWLINE_AT_END)


def test_blank_lines_are_nothing() -> None:
    framer = LineFramer(Limits())
    assert framer.feed(b"\n\r\n  \t\n") == []
    assert framer.finish() == []


def test_an_over_long_line_keeps_its_ends_and_the_next_line_is_read() -> None:
    framer = LineFramer(SMALL)
    lines = framer.feed(b'{"x":"' + b"A" * 50) + framer.feed(b"B" * 200) + framer.feed(b'","id":7}\n{"ok":1}\n')
    assert lines[0].anomalies == (Anomaly.TOO_LONG,)
    assert (lines[0].raw, lines[0].size, lines[0].truncated) == (b'{"x":"' + b"A" * 10, 265, True)
    assert lines[0].tail.endswith(b'BBB","id":7}')
    assert len(lines[0].tail) == 128
    assert lines[1].value == {"ok": 1}


def test_a_line_at_the_bound_is_whole() -> None:
    [line] = LineFramer(SMALL).feed(b'"' + b"A" * 14 + b'"\n')
    assert (line.anomalies, line.truncated) == ((), False)


def test_the_bound_on_bytes_ends_reading_and_is_tagged() -> None:
    framer = LineFramer(Limits(stdout_bytes=10))
    [first, last] = framer.feed(b"[1]\n[222222222222]\n")
    assert first.value == [1]
    assert (last.raw, last.anomalies) == (b"[22222", (Anomaly.BYTE_LIMIT,))
    assert framer.exhausted is Anomaly.BYTE_LIMIT
    assert framer.feed(b"[3]\n") == framer.finish() == []


def test_the_bound_on_lines_ends_reading_and_is_tagged() -> None:
    framer = LineFramer(Limits(messages=2))
    lines = framer.feed(b"1\n2\n3\n4\n")
    assert [line.anomalies for line in lines] == [(), (), (Anomaly.FLOOD,)]
    assert framer.exhausted is Anomaly.FLOOD
    assert framer.feed(b"5\n") == []


def _cut(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks, at = [], 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    return [*chunks, data[at:]]


def _all(framer: LineFramer, chunks: list[bytes]) -> list[Line]:
    return [line for chunk in chunks for line in framer.feed(chunk)] + framer.finish()


@given(
    st.binary(max_size=300) | st.lists(st.sampled_from([b"\n", b"{}", b"[", b"A" * 20]), max_size=60).map(b"".join),
    st.lists(st.integers(0, 40), max_size=20),
)
def test_how_the_bytes_are_cut_makes_no_difference(data: bytes, sizes: list[int]) -> None:
    limits = Limits(line_bytes=16, stdout_bytes=200, messages=20)
    whole, cut = LineFramer(limits), LineFramer(limits)
    assert _all(whole, [data]) == _all(cut, _cut(data, sizes))
    assert whole.exhausted == cut.exhausted


@given(st.binary(max_size=400))
def test_no_byte_is_lost_below_the_bounds(data: bytes) -> None:
    lines = _all(LineFramer(Limits()), [data])
    assert [line.raw for line in lines] == [raw for raw in data.split(b"\n") if raw.strip(b" \t\r")]


def test_many_small_chunks_and_many_blank_lines_are_cheap() -> None:
    framer = LineFramer(Limits())
    for _ in range(100_000):
        framer.feed(b"x" * 40)
    assert framer.feed(b"\n" * 1_000_000)[0].size == 4_000_000
    assert framer.exhausted is Anomaly.FLOOD
