"""Children begun before anything is loaded: the right ones for a command line, usable as any other, and gone after."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import anyio
import psutil
import pytest

from harness.model.options import Limits
from harness.pipeline import early
from harness.pipeline.adopted import _Output, adopt
from harness.pipeline.workers import worker_pool
from harness.protocol.stock_client import prestart

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def nothing_left() -> object:
    yield
    for begun in list(early._begun.values()):
        begun.process.kill()
        begun.process.wait()
        begun.close()
    early._begun.clear()


@pytest.mark.parametrize(
    ("arguments", "children"),
    [
        (["run", "pypi:mcp-server-time"], {early.WORKER, early.STOCK_CHILD}),
        (["run", "--no-stock-client", "pypi:mcp-server-time"], {early.WORKER}),
        (["run", "--help"], set()),
        (["run"], set()),
        (["replay", "bundle"], set()),
        ([], set()),
    ],
)
def test_a_command_line_begins_what_it_will_need(arguments: list[str], children: set[tuple[str, ...]]) -> None:
    early.begin(arguments)
    assert set(early._begun) == children


async def test_what_was_begun_is_taken_once_and_is_gone_after(tmp_path: Path) -> None:
    early.begin(["run", "x"])
    pids = {command: begun.process.pid for command, begun in early._begun.items()}
    async with worker_pool(2, Limits()) as pool, prestart(Limits(), await adopt(early.STOCK_CHILD)) as client:
        assert pool._process.pid == pids[early.WORKER]
        assert client._process.pid == pids[early.STOCK_CHILD]
        assert await adopt(early.WORKER) is None
        result = await pool.run("protocol", tmp_path, True)
        assert "its process ended with code 1" in (result.reason or "")  # it works, and there is no bundle
    assert not any(map(psutil.pid_exists, pids.values()))


async def test_one_that_died_meanwhile_is_started_again(tmp_path: Path) -> None:
    early.begin(["run", "--no-stock-client", "x"])
    dead = early._begun[early.WORKER].process
    dead.kill()
    dead.wait()
    async with worker_pool(2, Limits()) as pool:
        assert pool._process.pid != dead.pid
        assert "code 1" in ((await pool.run("protocol", tmp_path, True)).reason or "")


async def test_cancelled_while_something_arrives_nothing_is_told_to_the_loop() -> None:
    """What anyio's own stream over a socket does then ends up as a traceback on standard error."""
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    ours, theirs = socket.socketpair()
    stream = _Output(ours)
    for _ in range(200):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.receive)
            await anyio.wait_all_tasks_blocked()
            theirs.send(b"x")
            asyncio.get_running_loop().call_soon(tasks.cancel_scope.cancel)
    theirs.close()
    await stream.aclose()
    with pytest.raises(anyio.ClosedResourceError):
        await stream.receive()
    assert told == []
