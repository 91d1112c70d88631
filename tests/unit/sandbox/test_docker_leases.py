"""Locks, leases and the state directory, without an engine."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from harness.model.errors import HarnessError
from harness.sandbox.lease import StateDirectory, hold_lease, try_lock

pytestmark = pytest.mark.anyio


def test_an_owner_is_drawn_once(tmp_path: Path) -> None:
    owner = StateDirectory(tmp_path / "a").owner
    assert len(owner) == 16
    assert StateDirectory(tmp_path / "a").owner == owner != StateDirectory(tmp_path / "b").owner
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["leases", "owner", "scratch", "volumes"]


def test_a_directory_that_can_not_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="cache directory"):
        StateDirectory(tmp_path / "file" / "below")


def test_locks_exclude_and_share(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert try_lock(path, create=False) is None
    first, second = try_lock(path, shared=True), try_lock(path, shared=True)
    assert first is not None
    assert second is not None
    assert try_lock(path) is None
    first.release()
    assert not try_lock(path)
    second.release()
    with (whole := try_lock(path)) or pytest.fail("lock is free"):
        assert try_lock(path, shared=True) is None
        assert whole.share()
        with try_lock(path, shared=True) or pytest.fail("lock is shared"):
            pass


def test_a_lock_file_removed_meanwhile_is_made_anew(tmp_path: Path) -> None:
    held = try_lock(tmp_path / "lock")
    assert held is not None
    held.release(unlink=True)
    assert not held.path.exists()
    with try_lock(held.path) or pytest.fail("lock is free"):
        assert held.path.exists()


async def test_a_lease_is_gone_after_its_run_and_unique_while_it_lives(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    async with hold_lease(state, "run") as lease:
        (lease.scratch / "file").write_text("x")
        assert try_lock(state.lease_file("run")) is None
        with pytest.raises(HarnessError):
            async with hold_lease(state, "run"):
                pass
    assert not lease.scratch.exists()
    assert not state.lease_file("run").exists()


async def test_a_killed_process_loses_its_lease(tmp_path: Path) -> None:
    code = """
import anyio, os, sys
from pathlib import Path
from harness.sandbox.lease import *
async def main():
    async with hold_lease(StateDirectory(Path(sys.argv[1])), "run"):
        os.write(1, b"held\\n")
        await anyio.sleep_forever()
anyio.run(main)
"""
    async with await anyio.open_process([sys.executable, "-c", code, str(tmp_path)]) as child:
        assert child.stdout is not None
        assert await child.stdout.receive() == b"held\n"
        lease = StateDirectory(tmp_path).lease_file("run")
        assert try_lock(lease, create=False) is None
        child.kill()
        await child.wait()
        with try_lock(lease, create=False) or pytest.fail("the kernel did not drop the lock"):
            pass
