"""Both sides of the relay joined by their frames, with a real server on loopback behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest
from anyio.abc import SocketAttribute
from sinkhole import relay as inside

from harness.model.errors import EngineError
from harness.sandbox.gateway_frames import FrameReader
from harness.sandbox.relay import WINDOW, Relay

pytestmark = pytest.mark.anyio

BIG = bytes(range(256)) * 8192


class Joined:
    """A relay of the gateway, and the harness' side of it."""

    def __init__(self, tasks: anyio.abc.TaskGroup, own: int = 9) -> None:
        self.frames: list[dict[str, Any]] = []
        self.gateway = inside.Relay(self._up, own)
        self.harness = Relay(self._down)
        self._tasks = tasks
        self._reader = FrameReader()

    async def _down(self, message: dict[str, Any], body: bytes = b"") -> None:
        self.gateway.order(message, body, self._tasks)

    async def _up(self, frame: bytes) -> None:
        for message, body in self._reader.feed(frame):
            self.frames.append(message)
            self.harness.hear(message, body)


@asynccontextmanager
async def joined(handler: Any) -> AsyncIterator[tuple[Joined, int]]:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handler)
        with anyio.fail_after(20):
            yield Joined(tasks), listener.extra(SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


async def echo(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        try:
            while True:
                await stream.send(await stream.receive())
        except anyio.EndOfStream:
            await stream.send_eof()


async def test_bytes_go_both_ways_in_windows_and_the_end_of_one_way_passes() -> None:
    async with joined(echo) as (both, port), anyio.create_task_group() as tasks:
        async with await both.harness.connect(port) as stream:

            async def write() -> None:
                await stream.send(BIG)
                await stream.send_eof()

            tasks.start_soon(write)
            got = b""
            async for piece in stream:
                got += piece
        assert got == BIG
    ends = both.harness.ends
    assert len(ends) == 1 and next(iter(ends))[2] == f"127.0.0.1:{port}"
    assert not both.gateway.ends  # forgotten with the connection


async def test_who_reads_slowly_holds_up_the_sender_and_nothing_grows() -> None:
    sent = 0

    async def flood(stream: anyio.abc.SocketStream) -> None:
        nonlocal sent
        async with stream:
            with anyio.move_on_after(5):
                while sent < 64 << 20:
                    await stream.send(bytes(1 << 16))
                    sent += 1 << 16

    async with joined(flood) as (both, port), await both.harness.connect(port) as stream:
        first = await stream.receive(10)
        await anyio.wait_all_tasks_blocked()
        told = sum(1 for frame in both.frames if frame["kind"] == "data")
        assert len(first) == 10 and 0 < told <= 2 * WINDOW // 1024
        assert stream._held <= WINDOW  # type: ignore[attr-defined]
        assert sent < 64 << 20


async def test_a_port_without_a_listener_and_the_gateways_own_are_refused() -> None:
    async with joined(echo) as (both, port):
        with pytest.raises(ConnectionRefusedError):
            await both.harness.connect(1)
        both.gateway._own = port
        with pytest.raises(ConnectionRefusedError):
            await both.harness.connect(port)


async def test_all_connections_end_with_the_gateway() -> None:
    async with joined(echo) as (both, port), await both.harness.connect(port) as stream:
        both.harness.end()
        with pytest.raises(anyio.EndOfStream):
            await stream.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await stream.send(b"x")
        with pytest.raises(EngineError):
            await both.harness.connect(port)


def test_where_a_listener_is_reached() -> None:
    head = "  sl  local_address rem_address   st\n"
    line = "   0: {}:1F90 00000000:0000 {} 00000000:00000000\n"
    assert inside.reached_at([head + line.format("0100007F", "0A")], 8080) == "127.0.0.1"
    assert inside.reached_at([head + line.format("0100007F", "01")], 8080) is None
    assert inside.reached_at([head, head + line.format("0" * 32, "0A")], 8080) == "::1"
    assert inside.reached_at([head + line.format("1801A8C0", "0A")], 8080) == "192.168.1.24"
    assert inside.reached_at([head + line.format("00000000", "0A")], 8081) is None
