"""Law 7: a target is dead at most ten seconds after its harness, and nothing of a dead run stays."""

from __future__ import annotations

import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from sandbox_providers import docker_provider, drop_volumes, python, running, things_left

from harness.model.options import Limits
from harness.model.target import InstallPlan
from harness.sandbox.base import InstalledTarget, LaunchSpec
from harness.sandbox.engine import Engine
from harness.sandbox.lease import StateDirectory
from harness.sandbox.reaper import reap

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.alone]

LAW_SECONDS = 10
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


async def kill_a_run_at(point: str, state: Path, number: int = signal.SIGKILL) -> None:
    """Start a run in a child, send it a signal when it got to `point`, and wait for its end."""
    program = Path(__file__).with_name("dying_run.py")
    command = [sys.executable, str(program), str(state), point]
    async with await anyio.open_process(command, stderr=DEVNULL) as child:
        assert child.stdout is not None
        try:
            with anyio.fail_after(60):
                assert await child.stdout.receive() == b"reached\n"
        finally:
            with suppress(ProcessLookupError):
                os.kill(child.pid, number)
        with anyio.fail_after(60):
            await child.wait()


@pytest.mark.parametrize("point", ["created", "watched", "gate", "running", "install", "launch"])
async def test_kill_minus_nine_leaves_no_process_and_the_reaper_spares_the_living(tmp_path: Path, point: str) -> None:
    state = tmp_path / "state"
    async with docker_provider(state) as living, living.launch(python(ECHO)) as process:
        mine = {*await running(state)}
        await kill_a_run_at(point, state)
        with anyio.fail_after(LAW_SECONDS):
            while {*await running(state)} != mine:
                await anyio.sleep(0.2)
        async with Engine() as engine:
            report = await reap(engine, StateDirectory(state))
            assert (report.living, len(report.leases), report.left) == (1, 1, ())
            assert len(report.containers) == 2
            assert (await reap(engine, StateDirectory(state))).empty
        assert {*(await things_left(state))["containers"]} == mine
        await process.stdin.send(b"still here\n")
        assert await process.stdout.receive() == b"still here\n"
        assert (await process.stop(5)).code == 0
    left = await things_left(state)
    assert left["containers"] == []
    assert len(left["volumes"]) == (1 if point == "launch" else 0)  # a sealed install is kept
    assert [*(state / "leases").iterdir()] == [*(state / "scratch").iterdir()] == []
    await drop_volumes(state)


@pytest.mark.parametrize("point", ["created", "watched", "gate", "running", "install"])
async def test_ctrl_c_leaves_nothing_at_all(tmp_path: Path, point: str) -> None:
    state = tmp_path / "state"
    await kill_a_run_at(point, state, signal.SIGINT)
    assert await things_left(state) == {"containers": [], "volumes": []}
    assert [*(state / "leases").iterdir()] == [*(state / "scratch").iterdir()] == []


async def test_an_install_that_died_is_done_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    await kill_a_run_at("install", state)
    async with docker_provider(state) as sandbox:
        assert await things_left(state) == {"containers": [], "volumes": []}  # opening reaps
        plan = InstallPlan(image="python313", steps=(("touch", "/app/x"),), closure_digest="again")
        made = await sandbox.install(plan, timeout=60, limits=Limits())
        assert isinstance(made, InstalledTarget)
        assert not made.cached
    await drop_volumes(state)


async def test_installs_beyond_the_bound_go_the_least_recently_used_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_KEPT_INSTALLS", "2")
    state = tmp_path / "state"

    async def install(name: str) -> InstalledTarget:
        plan = InstallPlan(image="python313", steps=(("touch", f"/app/{name}"),), closure_digest=name)
        async with docker_provider(state) as sandbox:
            made = await sandbox.install(plan, timeout=60, limits=Limits())
            assert isinstance(made, InstalledTarget)
            return made

    first, second = await install("1"), await install("2")
    assert (await install("1")).cached
    third = await install("3")
    assert {*(await things_left(state))["volumes"]} == {first.volume, third.volume}
    assert not StateDirectory(state).seal_file(second.volume).exists()
    async with docker_provider(state) as sandbox:
        plan = InstallPlan(image="python313", steps=(("touch", "/app/1"),), closure_digest="1")
        assert (await sandbox.install(plan, timeout=60, limits=Limits())) == first.model_copy(
            update={"cached": True, "seconds": pytest.approx(0, abs=60)}
        )
        await install("4")
        await install("5")
        assert first.volume in (await things_left(state))["volumes"]  # in use
        async with Engine() as engine:
            dropped = await reap(engine, StateDirectory(state), cache=True)
            assert first.volume not in dropped.volumes
            async with sandbox.launch(
                LaunchSpec(image="python313", volume=first.volume, argv=("ls", "/app"))
            ) as process:
                assert await process.stdout.receive() == b"1\n"
    async with Engine() as engine:
        assert (await reap(engine, StateDirectory(state), cache=True)).volumes == (first.volume,)
    assert await things_left(state) == {"containers": [], "volumes": []}
