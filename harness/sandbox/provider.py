"""The sandbox that runs use: today always Docker's, with the images of the folders below `sandboxes/`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from harness.model.recording import ImageFact
from harness.sandbox.base import Sandbox
from harness.sandbox.docker import docker_sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.images import ensure_image


@asynccontextmanager
async def open_sandbox(
    run_id: str, progress: Callable[[str], None], *, nonce: Callable[[], str] | None = None
) -> AsyncIterator[Sandbox]:
    """Yield a sandbox for one run; missing images are made when first asked for, and `progress` is told.

    `nonce` draws the marks that gates make. Raises `EngineError` when no engine answers, `HarnessError`.
    """

    async def images(name: str) -> ImageFact:
        return await ensure_image(engine, name, progress)

    async with Engine() as engine, docker_sandbox(engine, run_id, images, nonce=nonce) as sandbox:
        yield sandbox
