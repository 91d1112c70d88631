"""A session over HTTP against a server played from a script: each request as it came, and the bytes that answer it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Ledger

from harness.model.options import Limits
from harness.model.probe import HttpShape
from harness.model.surface import ItemKind
from harness.protocol.discovery import discover
from harness.protocol.handshake import greet
from harness.protocol.http_body import EventReader
from harness.protocol.http_request import header_value
from harness.protocol.http_session import HttpSession, http_session
from harness.protocol.outcomes import Answer, Closed, CloseReason, RpcError, TimedOut, Unreadable

pytestmark = pytest.mark.anyio


class Asked:
    """One request as it came."""

    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = first.split(" ")
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}

    @property
    def message(self) -> Any:
        return json.loads(self.body)


Play = Callable[[Asked], list[bytes] | None]


class Line(anyio.abc.ByteStream):
    """A connection: what is asked on it goes to the script; None as the answer is silence for ever."""

    def __init__(self, script: Script) -> None:
        self._script, self._raw, self._answers = script, b"", list[bytes]()
        self._asked = anyio.Event()
        self._silent = False

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        self._raw += item
        asked = Asked(self._raw)
        self._script.asked.append(asked)
        said = self._script.play(asked)
        self._silent, self._answers = said is None, said or []
        self._asked.set()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        await self._asked.wait()
        if self._answers:
            return self._answers.pop(0)
        if self._silent:
            await anyio.sleep_forever()
        raise anyio.EndOfStream

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None:
        self._script.closed += 1


class Script:
    def __init__(self, play: Play, refusals: int = 0) -> None:
        self.play, self.refusals = play, refusals
        self.asked: list[Asked] = []
        self.closed = 0
        self.slow: anyio.Event | None = None  # connecting takes until then

    async def connect(self) -> anyio.abc.ByteStream:
        await anyio.lowlevel.checkpoint()
        if self.refusals:
            self.refusals -= 1
            raise ConnectionRefusedError
        if self.slow is not None:
            await self.slow.wait()
        return Line(self)

    def of(self, method: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == method]


def http(status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> list[bytes]:
    lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ["\r\n".join(lines).encode() + b"\r\n\r\n", body]


def stream(*pieces: bytes) -> list[bytes]:
    return [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n", *pieces]


def rpc(number: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def server(asked: Asked) -> list[bytes] | None:
    """A server in order: a session, JSON answers, no stream of its own."""
    if asked.method != "POST":
        return http(405)
    message = asked.message
    if "id" not in message:
        return http(202, b"Accepted", "text/plain")
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
            return http(200, rpc(message["id"], result), Mcp_Session_Id="s-1")
        case "tools/list":
            return http(200, rpc(message["id"], {"tools": [{"name": "t", "inputSchema": {}}]}))
        case _:
            error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
            return http(200, json.dumps(error).encode())


@asynccontextmanager
async def spoken(
    play: Play, limits: Limits | None = None, refusals: int = 0, ways: Sequence[tuple[str, str]] = ()
) -> AsyncIterator[tuple[HttpSession, Script, Ledger]]:
    script, ledger = Script(play, refusals), Ledger()
    limits = limits or Limits()
    with anyio.fail_after(20):
        standing = {"X-Standing": "here"}
        async with http_session(
            script.connect, ledger, port=8000, path="/mcp", limits=limits, ways=ways, standing=standing
        ) as session:
            yield session, script, ledger


def always(answer: list[bytes] | None) -> Play:
    return lambda asked: None if answer is None else list(answer)


async def test_a_server_is_greeted_and_read_as_over_two_streams() -> None:
    async with spoken(server, refusals=3) as (session, script, ledger):
        greeting = await greet(session, start_timeout=5, call_timeout=5)
        surface = await discover(session, greeting, ledger, limits=Limits(), call_timeout=5)
    assert [item.name for item in surface.of(ItemKind.TOOL)] == ["t"]
    assert ledger.anomalies() == []
    first, ready, *rest = script.of("POST")
    assert "mcp-session-id" not in first.headers and "mcp-protocol-version" not in first.headers
    assert first.headers["accept"] == "application/json, text/event-stream"
    for asked in (ready, *rest):
        assert asked.headers["mcp-session-id"] == "s-1"
        assert asked.headers["mcp-protocol-version"] == "2025-06-18"
    assert [asked.headers["accept"] for asked in script.of("GET")] == ["text/event-stream"]
    assert [asked.headers["mcp-session-id"] for asked in script.of("DELETE")] == ["s-1"]
    assert script.closed == len(script.asked)
    sent = [json.loads(frame.data) for frame in ledger.of("frame") if frame.direction == "sent"]
    assert [asked.message for asked in script.of("POST")] == sent


async def test_events_come_in_pieces_and_requests_of_the_server_are_answered() -> None:
    def play(asked: Asked) -> list[bytes] | None:
        if asked.message.get("method") != "ping":
            return http(202)
        asks = json.dumps({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}).encode()
        text = json.dumps(json.loads(rpc(1, {"ok": True})), indent=1).encode().replace(b"\n", b"\ndata: ")
        whole = b"\xef\xbb\xbf: hello\r\nid: 7\r\ndata: " + asks + b"\r\n\r\nevent: message\ndata: " + text + b"\n\n"
        return stream(*(whole[at : at + 7] for at in range(0, len(whole), 7)))

    async with spoken(play) as (session, script, ledger):
        outcome = await session.request("ping", timeout=5)
        await anyio.wait_all_tasks_blocked()
    assert isinstance(outcome, Answer) and outcome.result == {"ok": True}
    assert script.asked[1].message["id"] == "s1" and "roots" in script.asked[1].message["result"]
    assert [event.method for event in ledger.of("server-request")] == ["roots/list"]
    assert ledger.anomalies() == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (http(401, b"<h1>no</h1>", "text/html"), RpcError),
        (http(500), RpcError),
        (http(307, Location="http://203.0.113.9/x"), RpcError),
        (http(200, b"<h1>hello</h1>", "text/html"), Unreadable),
        (http(200, b"\x1f\x8b\x08", Content_Encoding="gzip"), Unreadable),
        ([b"SSH-2.0-x\r\n\r\n"], Closed),
        ([], Closed),
        (http(202), TimedOut),
        (None, TimedOut),
        (stream(b": nothing\n\n"), TimedOut),
        (http(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}'), RpcError),
    ],
)
async def test_whatever_answers_is_an_outcome(answer: list[bytes] | None, kind: type) -> None:
    async with spoken(always(answer)) as (session, script, _):
        outcome = await session.request("tools/list", timeout=0.3)
        assert isinstance(outcome, kind)
        assert session.closed is None  # one bad answer ends no session
        assert [asked.target for asked in script.asked] == ["/mcp"]  # a redirect is not followed
    if isinstance(outcome, RpcError):
        assert outcome.frame > 0


async def test_floods_end_the_session_and_are_told() -> None:
    limits = Limits(stdout_bytes=100_000, line_bytes=1000)
    big = b"data: " + b"A" * 5000 + b"\n\n"
    async with spoken(always(stream(*[big] * 100)), limits) as (session, _, ledger):
        assert isinstance(await session.request("ping", timeout=5), Closed)
        assert session.closed is CloseReason.BYTE_LIMIT
    assert [event.what for event in ledger.of("limit")] == ["stdout-bytes"]
    frames = [frame for frame in ledger.of("frame") if frame.direction == "received"]
    assert frames[0].size == 5000 and len(frames[0].raw) == 1000 and frames[0].anomalies == ("too-long",)
    many = b'data: {"jsonrpc":"2.0","method":"n"}\n\n' * 100
    async with spoken(always(stream(many)), Limits(messages=50)) as (session, _, ledger):
        assert isinstance(await session.request("ping", timeout=5), Closed)
        assert session.closed is CloseReason.FLOOD and session.notifications == 50


async def test_a_line_without_end_is_cut_and_counted() -> None:
    pieces = [b"data: " + b"B" * 1000, *[b"B" * 1000] * 20]
    async with spoken(always(stream(*pieces)), Limits(line_bytes=2000)) as (session, _, ledger):
        await session.request("ping", timeout=0.3)
    (frame,) = [frame for frame in ledger.of("frame") if frame.direction == "received"]
    assert frame.size == 21_000 and frame.truncated


async def test_a_stream_that_ends_before_the_answer_is_resumed_where_it_ended() -> None:
    def play(asked: Asked) -> list[bytes] | None:
        if asked.method == "POST":
            return stream(b"id: 4\nretry: 0\ndata: \n\n")
        return stream(b"id: 5\ndata: " + rpc(1, "late") + b"\n\n")

    async with spoken(play) as (session, script, _):
        outcome = await session.request("ping", timeout=5)
    assert isinstance(outcome, Answer) and outcome.result == "late"
    assert [asked.headers["last-event-id"] for asked in script.of("GET")] == ["4"]


async def test_a_stream_that_ends_for_ever_is_not_asked_for_ever() -> None:
    async with spoken(always(stream(b"id: 4\nretry: 0\ndata: \n\n"))) as (session, script, _):
        assert isinstance(await session.request("ping", timeout=1.5), TimedOut)
    assert len(script.of("GET")) <= 5


async def test_a_server_of_the_first_revision_is_spoken_to_at_the_endpoint_it_names() -> None:
    box = anyio.Event()
    waiting: list[Any] = []

    class Older(Script):
        async def connect(self) -> anyio.abc.ByteStream:
            return OlderLine(self)

    class OlderLine(Line):
        async def receive(self, max_bytes: int = 65536) -> bytes:
            if self._answers or not self._script.of("GET") or b"GET" not in self._raw:
                return await super().receive(max_bytes)
            await box.wait()
            await anyio.lowlevel.checkpoint()
            if not waiting:
                await anyio.sleep_forever()
            return b"data: " + json.dumps(waiting.pop(0)).encode() + b"\n\n"

    def play(asked: Asked) -> list[bytes] | None:
        if asked.method == "GET":
            return stream(b"event: endpoint\ndata: /messages?s=1\n\n")
        if asked.target == "/mcp":
            return http(405)
        waiting.append({"jsonrpc": "2.0", "id": asked.message["id"], "result": {"protocolVersion": "2024-11-05"}})
        box.set()
        return http(202, b"Accepted", "text/plain")

    script, ledger = Older(play), Ledger()
    with anyio.fail_after(10):
        async with http_session(script.connect, ledger, port=1, path="/mcp", limits=Limits()) as session:
            outcome = await session.request("initialize", {}, timeout=5)
    assert isinstance(outcome, Answer) and outcome.result == {"protocolVersion": "2024-11-05"}
    assert [asked.target for asked in script.of("POST")] == ["/mcp", "/messages?s=1"]
    assert ledger.anomalies() == []


async def test_a_refusal_need_not_be_json_rpc() -> None:
    async with spoken(always(http(403, b'{"error": "Forbidden"}'))) as (session, _, ledger):
        said = await session.request("tools/list", timeout=5)
        assert isinstance(said, RpcError) and said.message == 'HTTP status 403: {"error": "Forbidden"}'
    assert not any(getattr(event, "anomalies", ()) for event in ledger.events)


async def test_a_session_id_is_given_back_as_it_came_or_not_at_all() -> None:
    def gives(asked: Asked) -> list[bytes] | None:
        said = server(asked)
        return [piece.replace(b"s-1", b"s-\xe9") for piece in said] if said is not None else None

    async with spoken(gives) as (session, script, _):
        assert (await greet(session, start_timeout=5, call_timeout=5)).failure is None
        assert isinstance(await session.request("tools/list", timeout=5), Answer)
        session.headers = {"X-Odd": "\u20ac"}
        assert isinstance(await session.request("tools/list", timeout=5), TimedOut | Closed)
    assert script.asked[-1].headers["mcp-session-id"] == "s-\xe9"


async def test_who_asks_who_we_are_is_shown_the_next_credential_until_one_fits() -> None:
    ways = (("Authorization", "Bearer a"), ("Authorization", "Bearer b"), ("X-API-Key", "c"))

    def asks(asked: Asked) -> list[bytes] | None:
        if asked.headers.get("authorization") != "Bearer b":
            return http(401, b"who are you?", "text/plain")
        return server(asked)

    async with spoken(asks, ways=ways) as (session, script, _):
        greeting = await greet(session, start_timeout=5, call_timeout=5)
        assert greeting.failure is None and session.credentials.header == "Authorization"
        session.headers = {"Host": "elsewhere.example", "authorization": ""}
        refused = await session.request("tools/list", timeout=5)
        assert isinstance(refused, RpcError) and refused.message == "HTTP status 401: who are you?"
        session.headers = {}
        body = b'{"jsonrpc":"2.0","id":77,"method":"tools/list"}'
        statuses = []
        for credential in ("kept", "none", "wrong"):
            shape = HttpShape.model_validate({"credential": credential})
            reply = await session.exchange(body, shape, timeout=5)
            statuses.append(reply.status if reply is not None else 0)
        assert statuses == [200, 401, 401]
    shown = [asked.headers.get("authorization") for asked in script.of("POST")]
    assert shown[:5] == [None, "Bearer a", "Bearer b", "Bearer b", None]
    assert script.of("POST")[4].headers["host"] == "elsewhere.example"
    assert all(asked.headers["x-standing"] == "here" for asked in script.asked)

    async with spoken(always(http(401)), ways=ways) as (session, script, _):
        greeting = await greet(session, start_timeout=5, call_timeout=5)
        assert isinstance(greeting.failure, RpcError) and greeting.failure.code == 401
        assert len(script.asked) < 10


async def test_nobody_listens_and_who_stops_listening() -> None:
    async with spoken(server, refusals=10_000) as (session, _, ledger):
        outcome = await session.request("initialize", {}, timeout=0.3)
        assert isinstance(outcome, TimedOut) and outcome.blocked
    assert "nothing listened on port 8000" in [event.text for event in ledger.of("note")]
    async with spoken(server) as (session, script, _):
        await greet(session, start_timeout=5, call_timeout=5)
        script.refusals = 10_000
        assert isinstance(await session.request("ping", timeout=5), Closed)
        assert session.closed is CloseReason.END_OF_STREAM


@pytest.mark.parametrize("what", ["request", "notify", "send_bytes", "exchange"])
async def test_a_session_that_ends_while_a_message_is_on_its_way_takes_no_answer_to_it(what: str) -> None:
    outcomes: list[object] = []

    async def later(session: HttpSession) -> None:
        if what == "request":
            outcomes.append(await session.request("ping", timeout=5))
        elif what == "notify":
            outcomes.append(await session.notify("notifications/initialized", timeout=5))
        elif what == "send_bytes":
            outcomes.append(await session.send_bytes(b'{"jsonrpc":"2.0","id":900001,"method":"ping"}\n', timeout=5))
        else:
            outcomes.append(await session.exchange(b"{}", HttpShape(), timeout=5))

    flood = stream(b'data: {"jsonrpc":"2.0","method":"n"}\n\n' * 100)
    with anyio.fail_after(20):
        async with (
            spoken(always(flood), Limits(messages=50)) as (session, script, _),
            anyio.create_task_group() as tasks,
        ):
            script.slow = anyio.Event()
            tasks.start_soon(later, session)
            await anyio.wait_all_tasks_blocked()
            session.finish(CloseReason.FLOOD)
            await session.ended()
            script.slow.set()
    assert outcomes == [{"request": Closed(CloseReason.FLOOD), "exchange": None}.get(what, False)]
    assert script.closed == len(script.asked)  # nor is the connection left open


async def test_a_request_that_deviates_says_what_the_answer_was() -> None:
    async with spoken(server) as (session, script, _):
        await greet(session, start_timeout=5, call_timeout=5)
        shape = HttpShape(headers={"Host": "foreign.example", "Accept": None}, session="none")
        reply = await session.exchange(b'{"jsonrpc":"2.0","id":900001,"method":"ping"}', shape, timeout=5)
        assert reply is not None and reply.status == 200
        last = script.of("POST")[-1]
        assert last.headers["host"] == "foreign.example"
        assert "accept" not in last.headers and "mcp-session-id" not in last.headers
        reply = await session.exchange(b"", HttpShape(method="OPTIONS"), timeout=5)
        assert reply is not None and reply.status == 405
        assert await session.exchange(b"{}", HttpShape(headers={"X": "a\r\nB: c"}), timeout=5) is None
        await session.exchange(b"{}", HttpShape(session="ended"), timeout=5)
        assert len(script.of("DELETE")) == 1 and script.of("POST")[-1].headers["mcp-session-id"] == "s-1"
        await greet(session, start_timeout=5, call_timeout=5)
        begun = [asked for asked in script.of("POST") if asked.message.get("method") == "initialize"]
        assert len(begun) == 2 and all("mcp-session-id" not in asked.headers for asked in begun)


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 9))
def test_events_are_the_same_however_they_are_cut(parts: list[bytes], cut: int) -> None:
    data = b"".join(b"data:" + part + b"\n\n" for part in parts) + b"data: x"
    whole, pieces = EventReader(Limits()), EventReader(Limits())
    expected = whole.feed(data)
    got = [event for at in range(0, len(data), cut) for event in pieces.feed(data[at : at + cut])]
    assert got == expected and pieces.finish() == whole.finish()


def test_header_values_outside_of_ascii_are_encoded() -> None:
    assert header_value("add") == "add" and header_value(" a") == "=?base64?IGE=?="
    assert header_value("ä\r\n") == "=?base64?w6QNCg==?="
