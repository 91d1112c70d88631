"""The stock-client check: the real SDK in its child, against the sample servers, and what its child may say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest

from harness.model.options import Limits
from harness.model.recording import Direction, Event, FrameEvent, LimitEvent, StockClientEvent
from harness.model.surface import Era
from harness.protocol.stock_client import _verdict, check, prestart
from harness.protocol.stock_http import HttpPlace

pytestmark = pytest.mark.anyio

SERVERS = Path(__file__).parents[1] / "servers"


class Ledger:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> int:
        self.events.append(event)
        return len(self.events)


@asynccontextmanager
async def started(file: str, *arguments: str, stderr: int | None = None) -> AsyncIterator[anyio.abc.Process]:
    process = await anyio.open_process([sys.executable, str(SERVERS / file), *arguments], stderr=stderr)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


async def over_http(
    mode: str, *, older: bool = False, path: str = "/mcp", file: str = "honest_http.py", limits: Limits | None = None
) -> tuple[StockClientEvent, Ledger]:
    """What the SDK makes of the sample server over HTTP, and what passed."""
    async with started(file, "--port", "0", "--path", path, mode, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        said = b""
        while b"\n" not in said:
            said += await server.stderr.receive()
        port = int(said.split(b"127.0.0.1:")[1].split(b"/")[0])

        async def connect() -> anyio.abc.ByteStream:
            return await anyio.connect_tcp("127.0.0.1", port)

        ledger = Ledger()
        async with prestart(limits) as client:
            place = HttpPlace(connect, port, path, older=older)
            event = await client.check(place, timeout=5 if limits else 30, era=Era.HANDSHAKE, sink=ledger)
        return event, ledger


@pytest.mark.parametrize("mode", ["json", "sse", "older"])
async def test_it_works_over_http_too(mode: str) -> None:
    event, ledger = await over_http(mode, older=mode == "older", path="/sse" if mode == "older" else "/mcp")
    assert (event.works, event.tools, event.error) == (True, 1, "")
    frames = [frame for frame in ledger.events if isinstance(frame, FrameEvent)]
    sent = [frame.raw for frame in frames if frame.direction is Direction.SENT]
    received = [frame.raw for frame in frames if frame.direction is Direction.RECEIVED]
    assert any(b'"tools/list"' in raw for raw in sent) and any(b'"add"' in raw for raw in received)


@pytest.mark.parametrize("mode", ["deaf", "flood"])
async def test_over_http_a_hostile_server_is_bounded(mode: str) -> None:
    limits = Limits(stdout_bytes=1 << 20)
    event, ledger = await over_http(mode, file="faulty_http.py", limits=limits)
    assert event.works is False and event.error
    seen = [limit.seen for limit in ledger.events if isinstance(limit, LimitEvent)]
    assert bool(seen) is (mode == "flood") and all(limits.stdout_bytes < size < 4 << 20 for size in seen)


async def test_over_http_a_server_that_is_gone_is_no_working_one() -> None:
    async def refused() -> anyio.abc.ByteStream:
        await anyio.lowlevel.checkpoint()
        raise anyio.BrokenResourceError

    async with prestart() as client:
        event = await client.check(HttpPlace(refused, 9, "/mcp"), timeout=20, era=Era.HANDSHAKE)
    assert event.works is False and event.error


async def tried(file: str, *arguments: str, timeout: float = 30, era: Era | None = None) -> StockClientEvent:
    async with started(file, *arguments) as server:
        assert server.stdin is not None and server.stdout is not None
        return await check((server.stdin, server.stdout), timeout=timeout, era=era)


@pytest.mark.parametrize("era", [None, Era.HANDSHAKE])
async def test_it_works_with_an_honest_handshake_server(era: Era | None) -> None:
    event = await tried("honest_handshake.py", era=era)
    assert (event.works, event.protocol_version, event.tools, event.error) == (True, "2025-11-25", 3, "")
    assert event.client.startswith("mcp 2.")


async def test_it_works_with_an_honest_stateless_server() -> None:
    event = await tried("honest_stateless.py")
    assert (event.works, event.protocol_version, event.tools) == (True, "2026-07-28", 1)


@pytest.mark.parametrize(
    ("file", "mode", "part"),
    [
        ("faulty_frames.py", "bad-utf8", "UnicodeDecodeError"),
        ("faulty_lists.py", "no-list", "ValidationError"),
        ("faulty_lives.py", "exit-at-once", "Connection closed"),
        ("faulty_lives.py", "exit-at-list", "Connection closed"),
    ],
)
async def test_what_breaks_it_is_said(file: str, mode: str, part: str) -> None:
    event = await tried(file, mode)
    assert event.works is False
    assert part in event.error
    twin = await tried(file, f"{mode}-benign")
    assert (twin.works, twin.error) == (True, "")


async def test_a_silent_server_costs_the_timeout_and_no_more() -> None:
    event = await tried("faulty_lives.py", "silent", timeout=3)
    assert (event.works, event.error) == (False, "no usable answer in 3 s")


async def test_a_flood_ends_with_the_child() -> None:
    event = await tried("faulty_lives.py", "request-flood", timeout=1)
    assert event.works is False


async def test_a_prestarted_client_records_both_ways() -> None:
    ledger = Ledger()
    async with prestart(Limits()) as client, started("honest_handshake.py") as server:
        assert server.stdin is not None and server.stdout is not None
        event = await client.check((server.stdin, server.stdout), timeout=30, sink=ledger)
    assert event.works
    frames = [event for event in ledger.events if event.kind == "frame"]
    assert {frame.direction for frame in frames} == {Direction.SENT, Direction.RECEIVED}
    assert {frame.session for frame in frames} == {"stock-client"}
    assert all(frame.anomalies == () for frame in frames)


async def test_a_client_that_is_never_used_leaves_nothing() -> None:
    async with prestart() as client:
        process = client._process
    assert process.returncode is not None


@pytest.mark.parametrize(
    ("stderr", "killed", "works"),
    [
        (b'noise\n{"works": true, "tools": 2}\n', False, True),
        (b'{"works": false, "error": "x"}', False, False),
        (b'{"works": "yes"}', False, None),
        (b"[" * 100_000, False, None),
        (b"\xff\xfe", False, None),
        (b"", False, None),
        (b'{"works": true}', True, False),
    ],
)
def test_the_childs_words_are_read_strictly(stderr: bytes, killed: bool, works: bool | None) -> None:
    event = _verdict(stderr, killed=killed, timeout=1, phase="discover", session="stock-client")
    assert event.works is works
    assert works or event.error


def test_the_sdk_is_imported_by_the_child_only() -> None:
    code = (
        "import sys, pkgutil, importlib, harness.protocol as p\n"
        "names = [m.name for m in pkgutil.iter_modules(p.__path__) if m.name != 'stock_child']\n"
        "assert len(names) > 5\n"
        "for name in names: importlib.import_module('harness.protocol.' + name)\n"
        "assert not {'mcp', 'mcp_types', 'docker', 'httpx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
