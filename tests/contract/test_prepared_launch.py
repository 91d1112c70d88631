"""Launches that are made ahead: taken by what fits, left alone by what does not, and gone with the sandbox."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from harness.sandbox.base import Sandbox
from tests.contract.sandbox_providers import PROVIDERS, python, run, running, things_left

pytestmark = [pytest.mark.anyio, pytest.mark.docker]

READ = "print(open('/home/user/note').read())"


@pytest.fixture(params=sorted(PROVIDERS))
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Sandbox]:
    return PROVIDERS[request.param](tmp_path / "state")


async def target_made(root: Path) -> str:
    """The name of the one target that runs, once it does."""
    with anyio.fail_after(60):
        while True:
            names = [name for name in await running(root) if name.endswith("-target")]
            if names:
                assert len(names) == 1
                return names[0]
            await anyio.sleep(0.1)


async def test_a_launch_made_ahead_is_taken_once_by_what_differs_in_what_is_told_only(
    provider: AbstractAsyncContextManager[Sandbox], tmp_path: Path
) -> None:
    root = tmp_path / "state"
    spec = python(READ)
    async with provider as sandbox:
        began = anyio.current_time()
        await sandbox.prepare(spec)
        ahead = await target_made(root)
        # another program would be another container
        other = await run(sandbox, python("print('other')"))
        assert other.stdout == b"other\n"
        # and one that is to live longer would be ended too early
        late = await run(sandbox, spec.model_copy(update={"seed": {"note": b"late"}, "deadline_seconds": 900.0}))
        assert late.stdout == b"late\n"
        assert await target_made(root) == ahead
        left = spec.deadline_seconds - (anyio.current_time() - began)  # the same moment
        told = {"seed": {"note": b"told"}, "session": "second", "deadline_seconds": left}
        with anyio.fail_after(60):
            async with sandbox.launch(spec.model_copy(update=told)) as process:
                assert await process.stdout.receive() == b"told\n"
                assert (await process.wait()).code == 0
                assert ahead in (await things_left(root))["containers"]  # it was that one
        assert not [name for name in await running(root) if name.endswith("-target")]
        again = await run(sandbox, spec.model_copy(update={"seed": {"note": b"again"}}))
        assert again.stdout == b"again\n"
    assert await things_left(root) == {"containers": [], "volumes": []}


@pytest.mark.parametrize("seconds", [0.0, 0.1, 1.0])
async def test_a_launch_that_nobody_takes_is_gone_with_the_sandbox(
    provider: AbstractAsyncContextManager[Sandbox], tmp_path: Path, seconds: float
) -> None:
    async with provider as sandbox:
        await sandbox.prepare(python(READ))
        await anyio.sleep(seconds)
    assert await things_left(tmp_path / "state") == {"containers": [], "volumes": []}
