"""The least-privilege profile of a run is enough for the same run: five real servers, started again under it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.assessment.profile import seccomp_profile
from harness.model.options import RecorderChoice, RunOptions
from harness.model.recording import ImageFact
from harness.model.result import ScanResult
from harness.pipeline import recorder
from harness.pipeline.entropy import Entropy
from harness.pipeline.policy_file import load_policy
from harness.pipeline.progress import Silent
from harness.pipeline.run import RunRequest, run_target
from harness.sandbox.base import Sandbox
from harness.sandbox.docker import docker_sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.images import ensure_image

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.registry]

REAL = [
    ("pypi:mcp-server-time",),
    ("pypi:mcp-server-git",),
    ("npm:@modelcontextprotocol/server-everything",),
    ("npm:@modelcontextprotocol/server-memory",),
    ("npm:@modelcontextprotocol/server-filesystem", "{workspace}"),
]


async def discovered(bundle: Path, target: str, *arguments: str) -> ScanResult:
    options = RunOptions(recorder=RecorderChoice.AUTO, arguments=arguments, stock_client=False)
    request = RunRequest(
        target=target,
        command=(),
        options=options,
        secrets={},
        selection=None,
        policy=load_policy("balanced"),
        bundle=bundle,
    )
    return await run_target(request, Entropy(), Silent())


def narrowed(profile: str) -> Any:
    """`open_sandbox`, with that seccomp profile for all that runs in it."""

    @asynccontextmanager
    async def opened(
        run_id: str, progress: Callable[[str], None], *, nonce: Callable[[], str] | None = None
    ) -> AsyncIterator[Sandbox]:
        async def images(name: str) -> ImageFact:
            return await ensure_image(engine, name, progress)

        async with Engine() as engine, docker_sandbox(engine, run_id, images, nonce=nonce, seccomp=profile) as sandbox:
            yield sandbox

    return opened


@pytest.mark.parametrize("server", REAL, ids=lambda server: server[0].rpartition("/")[2])
async def test_a_run_passes_under_its_own_profile(
    server: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await discovered(tmp_path / "first", *server)
    assert first.verdict == "SAFE", first.reasons
    profile = first.behavior.profile["seccomp"]
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert len(allowed) < 150 and allowed.isdisjoint({"ptrace", "mount", "unshare", "bpf", "io_uring_setup"})

    monkeypatch.setattr(recorder, "open_sandbox", narrowed(json.dumps(profile)))
    again = await discovered(tmp_path / "again", *server)
    assert (again.status, again.verdict) == ("COMPLETED", "SAFE"), again.reasons
    assert again.surface == first.surface
    assert again.findings == first.findings
    if server == REAL[0]:  # and it binds: without what its event loop needs it does not come up
        less = seccomp_profile(sorted(allowed - {"epoll_create1", "socketpair"}))
        monkeypatch.setattr(recorder, "open_sandbox", narrowed(json.dumps(less)))
        assert (await discovered(tmp_path / "bound", *server)).verdict != "SAFE"
