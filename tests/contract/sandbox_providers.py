"""How the conformance suite opens each sandbox provider, and small programs to run in it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.abc

from harness.model.recording import ImageFact
from harness.sandbox.base import ExitReport, LaunchSpec, Sandbox
from harness.sandbox.docker import DockerSandbox, docker_sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.hardening import LABEL_OWNER
from harness.sandbox.images import ensure_image
from harness.sandbox.lease import StateDirectory

Opener: TypeAlias = Callable[[Path], AbstractAsyncContextManager[Sandbox]]
IMAGE = "python313"


@asynccontextmanager
async def docker_provider(root: Path, host: str | None = None) -> AsyncIterator[DockerSandbox]:
    """A Docker sandbox with its state below `root`; leaves nothing of that state on the engine."""
    state = StateDirectory(root)
    async with Engine(host) as engine:

        async def images(name: str) -> ImageFact:
            return await ensure_image(engine, name, lambda _: None)

        async with docker_sandbox(engine, "conformance", images, state=state) as sandbox:
            yield sandbox


async def things_left(root: Path) -> dict[str, list[str]]:
    """Everything on the engine that carries the owner label of the state below `root`."""
    label = {"label": f"{LABEL_OWNER}={StateDirectory(root).owner}"}
    async with Engine() as engine:
        containers = await engine.ask(engine.api.containers, all=True, filters=label)
        volumes = await engine.ask(engine.api.volumes, filters=label)
    return {
        "containers": [c["Names"][0].lstrip("/") for c in containers],
        "volumes": [v["Name"] for v in volumes.get("Volumes") or []],
    }


async def running(root: Path) -> list[str]:
    """The names of those containers that run."""
    label = {"label": f"{LABEL_OWNER}={StateDirectory(root).owner}"}
    async with Engine() as engine:
        return [c["Names"][0].lstrip("/") for c in await engine.ask(engine.api.containers, filters=label)]


async def drop_volumes(root: Path) -> None:
    """Remove all volumes of the state below `root`."""
    async with Engine() as engine:
        for name in (await things_left(root))["volumes"]:
            await engine.call(engine.api.remove_volume, name, force=True)


PROVIDERS: dict[str, Opener] = {"docker": docker_provider}


def python(code: str, **fields: Any) -> LaunchSpec:
    """A launch of `python3 -c CODE`."""
    return LaunchSpec(image=IMAGE, volume=None, argv=("python3", "-c", code), **fields)


@dataclass
class Outcome:
    """What a program printed and how it ended."""

    report: ExitReport
    stdout: bytes = b""
    stderr: bytes = b""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


async def read_all(stream: anyio.abc.ByteReceiveStream) -> bytes:
    pieces = []
    try:
        while True:
            pieces.append(await stream.receive())
    except anyio.EndOfStream:
        return b"".join(pieces)


async def run(sandbox: Sandbox, spec: LaunchSpec, stdin: bytes = b"") -> Outcome:
    """Launch, send `stdin` and its end, read everything, wait."""
    async with sandbox.launch(spec) as process:
        outcome: dict[str, bytes] = {}

        async def read(name: str, stream: anyio.abc.ByteReceiveStream) -> None:
            outcome[name] = await read_all(stream)

        async def write() -> None:
            if stdin:
                await process.stdin.send(stdin)
            await process.stdin.aclose()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read, "stdout", process.stdout)
                tasks.start_soon(read, "stderr", process.stderr)
                tasks.start_soon(write)
            return Outcome(report=await process.wait(), **outcome)
