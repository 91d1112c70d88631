"""Children begun before anything is loaded: the right ones for a command line, usable as any other, and gone after."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from harness.model.options import Limits
from harness.pipeline import early
from harness.pipeline.adopted import adopt
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
