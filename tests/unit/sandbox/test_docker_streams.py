"""The engine's attach stream taken apart, and the bounded streams behind it."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import EngineError
from harness.sandbox.streams import FrameDecoder, HeldStream

pytestmark = pytest.mark.anyio


def frame(stream: int, payload: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40))),
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
)
def test_frames_come_out_whole_however_the_stream_is_cut(frames: list[tuple[int, bytes]], cuts: list[int]) -> None:
    wire = b"".join(frame(stream, payload) for stream, payload in frames)
    decoder = FrameDecoder()
    got = {1: b"", 2: b""}
    at = turn = 0
    while at < len(wire):
        size = cuts[turn % len(cuts)]
        for stream, piece in decoder.feed(wire[at : at + size]):
            got[stream] += piece
        at, turn = at + size, turn + 1
    assert got == {wanted: b"".join(p for stream, p in frames if stream == wanted) for wanted in (1, 2)}


@given(st.integers(0, 255).filter(lambda n: n not in (1, 2)))
def test_an_unknown_stream_is_an_engine_error(number: int) -> None:
    with pytest.raises(EngineError):
        list(FrameDecoder().feed(frame(number, b"x")))


async def test_a_full_stream_makes_its_writer_wait() -> None:
    stream = HeldStream(10, lossy=False)
    await stream.put(b"0123456789")
    with anyio.move_on_after(0.05) as scope:
        await stream.put(b"more")
    assert scope.cancelled_caught
    assert await stream.receive(4) == b"0123"
    await stream.put(b"ab")
    stream.end()
    assert [await stream.receive(), await stream.receive()] == [b"456789", b"ab"]
    with pytest.raises(anyio.EndOfStream):
        await stream.receive()


async def test_a_full_lossy_stream_counts_what_it_drops() -> None:
    stream = HeldStream(10, lossy=True)
    for _ in range(5):
        await stream.put(b"0123")
    assert stream.dropped == 10
    assert [await stream.receive() for _ in range(3)] == [b"0123", b"0123", b"01"]
    await stream.put(b"again")
    assert await stream.receive() == b"again"


async def test_a_writer_that_is_not_to_wait_any_more_loses_what_finds_no_room() -> None:
    stream = HeldStream(10, lossy=False)
    await stream.put(b"0123456789")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.put, b"waits")
        await anyio.wait_all_tasks_blocked()
        stream.stop_waiting()
    await stream.put(b"late")
    stream.end()
    assert await stream.receive() == b"0123456789"
    assert stream.dropped == 4
    assert await stream.receive() == b"waits"


async def test_closing_a_stream_frees_its_writer_and_its_reader() -> None:
    stream = HeldStream(1, lossy=False)
    await stream.put(b"xx")

    async def close_soon() -> None:
        await anyio.sleep(0.02)
        await stream.aclose()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close_soon)
            await stream.put(b"y")
    with pytest.raises(anyio.ClosedResourceError):
        await stream.receive()


async def test_a_line_is_taken_off_and_the_rest_stays() -> None:
    stream = HeldStream(100, lossy=False)
    await stream.put(b"rea")
    await stream.put(b"dy 5\nrest")
    assert await stream.receive_line(64) == b"ready 5"
    assert await stream.receive() == b"rest"
    await stream.put(b"x" * 65)
    with pytest.raises(EngineError):
        await stream.receive_line(64)
