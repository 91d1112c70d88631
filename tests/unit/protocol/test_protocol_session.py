"""A session with a scripted server: outcomes are values, frames are recorded, nothing hangs."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Ledger, ScriptedServer, conversation, echo, reply

from harness.model.errors import EngineError
from harness.model.options import Limits
from harness.model.recording import Anomaly, Direction
from harness.protocol.frames import frame_event
from harness.protocol.outcomes import Answer, Closed, CloseReason, RpcError, TimedOut, Unreadable
from harness.protocol.session import raw_session

pytestmark = pytest.mark.anyio

SOON = 0.05


async def test_an_answer_names_its_frame_and_both_ways_are_recorded() -> None:
    async with conversation() as (session, _, ledger):
        session.phase = "probe"
        outcome = await session.request("a/b", {"x": 1}, timeout=5)
    assert isinstance(outcome, Answer)
    assert outcome.result == {"method": "a/b"}
    sent, received = ledger.of("frame")
    assert (sent.direction, received.direction) == (Direction.SENT, Direction.RECEIVED)
    assert json.loads(sent.data) == {"jsonrpc": "2.0", "id": 1, "method": "a/b", "params": {"x": 1}}
    assert received.seq == outcome.frame
    assert received.phase == "probe"
    assert received.anomalies == ()


async def test_an_error_is_an_outcome_even_when_it_is_misshapen() -> None:
    script = iter([{"code": -32601, "message": "no", "data": [1]}, {"code": "x", "message": 5}, "broken"])
    async with conversation(lambda m: reply(m["id"], error=next(script))) as (session, _, ledger):
        assert await session.request("a", timeout=5) == RpcError(-32601, "no", [1], 2)
        assert await session.request("a", timeout=5) == RpcError(None, "", None, 4)
        assert await session.request("a", timeout=5) == RpcError(None, "", None, 6)
    assert ledger.anomalies() == [Anomaly.NOT_JSONRPC]


@pytest.mark.parametrize(("answer_id", "tag"), [("1", Anomaly.WRONG_ID_TYPE), (1.0, Anomaly.WRONG_ID_TYPE), (1, None)])
async def test_an_id_of_another_type_is_tagged_and_still_matched(answer_id: Any, tag: Anomaly | None) -> None:
    async with conversation(lambda _: reply(answer_id, result=7)) as (session, _, ledger):
        outcome = await session.request("a", timeout=5)
    assert isinstance(outcome, Answer)
    assert ledger.anomalies() == ([tag] if tag else [])


@pytest.mark.parametrize("answer_id", [99, 0, -1, "x", None, True, [1], {"a": 1}, 1.5])
async def test_an_id_that_is_none_of_ours_answers_nothing(answer_id: Any) -> None:
    async with conversation(lambda _: reply(answer_id, result=7)) as (session, _, ledger):
        assert isinstance(await session.request("a", timeout=SOON), TimedOut)
    assert ledger.anomalies() in ([Anomaly.UNKNOWN_ID], [Anomaly.WRONG_ID_TYPE])


async def test_a_null_id_error_belongs_to_the_only_request_there_is() -> None:
    async with conversation(lambda _: reply(None, error={"code": -32700, "message": "?"})) as (session, _, ledger):
        assert await session.request("a", timeout=5) == RpcError(-32700, "?", None, 2)
    assert ledger.anomalies() == [Anomaly.WRONG_ID_TYPE]


async def test_a_second_answer_is_tagged_and_ignored() -> None:
    async with conversation(lambda m: reply(m["id"], result=1) + reply(m["id"], result=2)) as (session, _, ledger):
        outcome = await session.request("a", timeout=5)
        await session.request("b", timeout=5)
    assert isinstance(outcome, Answer)
    assert outcome.result == 1
    assert set(ledger.anomalies()) == {Anomaly.REPEATED_ID}


async def test_answers_in_another_order_find_their_requests() -> None:
    held: list[bytes] = []

    def play(message: dict[str, Any]) -> bytes | None:
        held.append(reply(message["id"], result=message["method"]))
        return b"".join(reversed(held)) if len(held) == 2 else None

    async with conversation(play) as (session, _, ledger):
        got: dict[str, Any] = {}

        async def ask(method: str) -> None:
            got[method] = await session.request(method, timeout=5)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "a")
            tasks.start_soon(ask, "b")
    assert {method: outcome.result for method, outcome in got.items()} == {"a": "a", "b": "b"}
    assert ledger.anomalies() == []


async def test_silence_times_out_and_a_late_answer_is_no_anomaly() -> None:
    async with conversation(lambda m: None if m["method"] == "a" else echo(m)) as (session, server, ledger):
        assert await session.request("a", timeout=SOON) == TimedOut(SOON)
        assert await session.request("a", timeout=SOON, quiet=True) == TimedOut(SOON)
        server.say(reply(1, result=1))
        assert isinstance(await session.request("b", timeout=5), Answer)
    [deadline] = ledger.of("deadline")
    assert (deadline.what, deadline.blocked) == ("a", False)
    assert ledger.anomalies() == []


async def test_a_write_that_does_not_go_through_is_on_the_clock() -> None:
    async with conversation() as (session, server, ledger):
        server.frozen = True
        assert await session.request("a", timeout=SOON) == TimedOut(SOON, blocked=True)
        server.frozen = False
        # The stream may hold half a frame: nothing more is written to it, and nobody waits for it.
        assert await session.request("b", timeout=600) == TimedOut(600, blocked=True)
        assert not await session.notify("c", timeout=600)
    assert [event.blocked for event in ledger.of("deadline")] == [True, True]
    assert server.sent == []


async def test_end_of_stream_ends_what_waits_and_what_comes_after() -> None:
    async with conversation(lambda _: None) as (session, server, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.lowlevel.checkpoint)
            server.play = lambda _: server.hang_up()  # type: ignore[func-returns-value]
            assert await session.request("a", timeout=5) == Closed(CloseReason.END_OF_STREAM)
        assert await session.request("b", timeout=5) == Closed(CloseReason.END_OF_STREAM)
        assert session.closed is CloseReason.END_OF_STREAM


async def test_when_stdin_is_gone_the_last_words_are_still_read() -> None:
    async with conversation() as (session, server, ledger):
        server.gone = True
        server.say(b"fatal: no configuration\n")
        server.hang_up()
        assert await session.request("a", timeout=5) == Closed(CloseReason.END_OF_STREAM)
    assert ledger.anomalies() == [Anomaly.NOT_JSON]


async def test_what_a_dying_server_leaves_without_a_newline_is_kept() -> None:
    async with conversation(lambda _: None) as (session, server, ledger):
        server.say(b"Segmentation fau")
        server.hang_up()
        await session.request("a", timeout=5)
    assert ledger.anomalies() == [Anomaly.NOT_JSON, Anomaly.NO_NEWLINE_AT_END]


async def test_a_half_line_counts_only_where_an_answer_was_missed() -> None:
    async with conversation(lambda m: reply(m["id"], result=1)[:-1]) as (session, _, ledger):
        assert isinstance(await session.request("a", timeout=SOON), TimedOut)
    assert ledger.anomalies() == [Anomaly.NO_NEWLINE_AT_END]
    async with conversation(lambda m: reply(m["id"], result=1) + b'{"jsonrpc"') as (session, _, ledger):
        assert isinstance(await session.request("a", timeout=5), Answer)
    assert ledger.anomalies() == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":"' + b"A" * 2000 + b'"}\n',
        b'{"result":"' + b"A" * 2000 + b'","jsonrpc":"2.0","id":1}\n',
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100 + b"]" * 100 + b"}\n",
        b'{"jsonrpc":"2.0","id":1}\n',
    ],
    ids=["long-id-first", "long-id-last", "deep", "neither"],
)
async def test_an_answer_that_can_not_be_read_is_not_waited_for(line: bytes) -> None:
    async with conversation(lambda _: line, Limits(line_bytes=1000)) as (session, _, _):
        assert isinstance(await session.request("a", timeout=60), Unreadable)


async def test_a_logged_request_is_not_taken_for_its_answer() -> None:
    def play(message: dict[str, Any]) -> bytes:
        return b"DEBUG got " + json.dumps(message).encode() + b"\n" + reply(message["id"], result=1)

    async with conversation(play) as (session, _, ledger):
        assert isinstance(await session.request("a", timeout=5), Answer)
    assert ledger.anomalies() == [Anomaly.NOT_JSON]


async def test_bounds_close_the_session_and_are_recorded() -> None:
    async with conversation(lambda _: b"[]\n" * 50, Limits(messages=20)) as (session, _, ledger):
        assert await session.request("a", timeout=5) == Closed(CloseReason.FLOOD)
    assert [(event.what, event.bound) for event in ledger.of("limit")] == [("stdout-lines", 20)]
    async with conversation(lambda _: b"[]\n" * 50, Limits(stdout_bytes=40)) as (session, _, ledger):
        assert await session.request("a", timeout=5) == Closed(CloseReason.BYTE_LIMIT)
    assert [(event.what, event.bound, event.seen) for event in ledger.of("limit")] == [("stdout-bytes", 40, 150)]


def _ask(number: Any, method: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method}).encode() + b"\n"


async def test_server_requests_are_answered_up_to_a_bound_between_two_of_ours() -> None:
    def play(message: dict[str, Any]) -> bytes | None:
        if message.get("method") != "a":
            return echo(message)
        return b"".join(_ask(f"q{number}", "ping") for number in range(10)) + reply(message["id"], result=1)

    async with conversation(play, Limits(queued_server_requests=4)) as (session, server, ledger):
        for _ in range(2):
            assert isinstance(await session.request("a", timeout=5), Answer)
            await anyio.wait_all_tasks_blocked()
            await session.request("b", timeout=5)
    assert len([message for message in server.sent if message.get("result") == {}]) == 8
    assert [event.answered for event in ledger.of("server-request")] == ["result"] * 8
    assert [(event.what, event.bound) for event in ledger.of("limit")] == [("server-requests", 4)] * 2


async def test_a_server_that_asks_and_does_not_read_stalls_only_itself() -> None:
    async with conversation() as (session, server, ledger):
        server.frozen = True
        for number in range(100):
            server.say(_ask(number, "ping"))
        assert await session.request("a", timeout=SOON) == TimedOut(SOON, blocked=True)
    assert len(ledger.of("server-request")) == 32


async def test_notifications_are_counted() -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/message"}\n'
    async with conversation(lambda m: note * 3 + reply(m["id"], result=1)) as (session, _, _):
        await session.request("a", timeout=5)
        assert session.notifications == 3


async def test_an_engine_that_breaks_is_raised_bare() -> None:
    class Broken(ScriptedServer):
        async def receive(self, max_bytes: int = 65536) -> bytes:
            raise EngineError("the engine is gone")

    server = Broken(echo)
    with pytest.raises(EngineError):
        async with raw_session(server, server, Ledger(), limits=Limits()) as session:
            await session.request("a", timeout=5)
    await server.aclose()


async def test_a_session_that_is_cancelled_leaves_nothing_open() -> None:
    with anyio.move_on_after(SOON) as scope:
        async with conversation(lambda _: None) as (session, _, _):
            await session.request("a", timeout=60)
    assert scope.cancelled_caught


async def test_what_the_body_raises_comes_out_unwrapped() -> None:
    with pytest.raises(ZeroDivisionError):
        async with conversation():
            _ = 1 / 0


ENVELOPE = [b'"jsonrpc":"2.0",', b'"id":1', b'"id":null', b'"id":1e0', b'"result":{}', b'"error":{}', b'"method":"a"']
SCRAPS = [b"{", b"}", b"[", b"]", b",", b"\n", b"\xff", b'"\\ud800"', b"9" * 5000, b"NaN"]
PARTS = st.sampled_from([*ENVELOPE, *SCRAPS])


@given(st.lists(PARTS | st.binary(max_size=4), max_size=30).map(b"".join))
def test_no_bytes_of_a_server_raise(data: bytes) -> None:
    async def talk() -> Ledger:
        limits = Limits(line_bytes=200, stdout_bytes=2000, messages=9)
        async with conversation(lambda _: data, limits) as (session, server, ledger):
            await session.request("a", timeout=0)
            server.hang_up()
            await session.request("b", timeout=5)
        return ledger

    for event in anyio.run(talk).events:
        event.model_dump_json().encode()


@pytest.mark.parametrize(
    ("raw", "keep", "data", "encoding", "truncated"),
    [
        (b"abc", 10, "abc", "utf-8", False),
        (b"abc", 2, "ab", "utf-8", True),
        ("až".encode(), 2, "a", "utf-8", True),
        (b"\xff", 10, "/w==", "base64", False),
        (b"a\xc5", 10, "YcU=", "base64", False),
    ],
)
def test_frames_keep_at_most_the_bound(raw: bytes, keep: int, data: str, encoding: str, truncated: bool) -> None:
    event = frame_event(Direction.RECEIVED, raw, len(raw), (), phase="p", session="s", keep=keep)
    assert (event.data, event.encoding, event.truncated, event.size) == (data, encoding, truncated, len(raw))
