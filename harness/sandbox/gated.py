"""A container behind the gate: created, joined to its warden's pid namespace, seeded, and opened by one line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import anyio
import anyio.abc

from harness.model.errors import EngineError
from harness.sandbox.containers import Doomed
from harness.sandbox.engine import Engine
from harness.sandbox.gate import READY_BYTES, exec_line, parse_ready
from harness.sandbox.streams import ContainerStreams, attach
from harness.sandbox.warden import READY_SECONDS, Warden

#: How long the copy of an installation may take: a gigabyte of small files.
COPY_SECONDS = 120.0

#: Called with the id of a container that was created and not yet started.
Preparation: TypeAlias = Callable[[str], Awaitable[None]]


class Gated:
    """A running container whose process has not started yet, or has since `open_gate`."""

    def __init__(self, container: str, streams: ContainerStreams) -> None:
        self.container = container
        self.streams = streams

    async def seed(self, data: bytes) -> None:
        """Send encoded files to the gate. Raises `EngineError`."""
        await self._tell(data)

    async def open_gate(self, nonce: str) -> None:
        """Let the gate become the process. Raises `EngineError`."""
        await self._tell(exec_line(nonce))

    async def _tell(self, data: bytes) -> None:
        try:
            with anyio.fail_after(READY_SECONDS):
                await self.streams.stdin.send(data)
        except TimeoutError:
            raise EngineError("the gate does not listen", remedy="run `harness images build`") from None
        except anyio.BrokenResourceError:
            raise EngineError(await _last_words(self.streams), remedy="run `harness images build`") from None


@asynccontextmanager
async def gated(
    engine: Engine,
    tasks: anyio.abc.TaskGroup,
    collected: Doomed,
    warden: Warden,
    name: str,
    config: dict[str, Any],
    stderr_bytes: int,
    *,
    prepare: Preparation | None = None,
    copies: bool = False,
) -> AsyncIterator[Gated]:
    """Create and start a container as `config` says; yield when gate and warden are ready in the same namespace.

    `copies`: the gate copies what is installed first. `prepare` is called with the created container's id before it
    starts. Raises `EngineError`. The container is removed by whoever collects it; here only the streams are closed.
    """
    container = await collected.create(name, config)
    if prepare is not None:
        await prepare(container)
    streams = await attach(engine, container, stderr_bytes)
    try:
        await warden.started()
        await engine.call(engine.api.start, container)
        tasks.start_soon(streams.pump)
        mine, theirs = await _gate_ready(streams, COPY_SECONDS if copies else READY_SECONDS), await warden.ready()
        if mine != theirs:
            raise EngineError(
                "the target is not in its warden's pid namespace, so it could outlive the harness",
                remedy="use a runtime that can share pid namespaces (runc does)",
            )
        yield Gated(container, streams)
    finally:
        streams.close()


async def _gate_ready(streams: ContainerStreams, seconds: float) -> int:
    try:
        with anyio.fail_after(seconds):
            return parse_ready(await streams.stdout.receive_line(READY_BYTES))
    except anyio.EndOfStream:
        raise EngineError(await _last_words(streams), remedy="run `harness images build`") from None
    except TimeoutError:
        raise EngineError(
            "the sandbox did not start in time", remedy="the machine may be overloaded; try again"
        ) from None


async def _last_words(streams: ContainerStreams) -> str:
    words = b""
    with anyio.move_on_after(1):
        with suppress(anyio.EndOfStream):
            words = await streams.stderr.receive(400)
    text = " ".join(words.decode("utf-8", "replace").split())
    return f"the gate ended before it was opened: {text or 'it said nothing'}"
