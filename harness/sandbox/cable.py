"""The container at the target's end of a cable: its namespace is the target's, with an interface and nothing of ours.

Without it a target shares the gateway's network namespace, and can read there that something listens to everything.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import anyio.abc

from harness.model.errors import EngineError
from harness.sandbox.containers import Doomed
from harness.sandbox.engine import Engine
from harness.sandbox.streams import ContainerStreams, attach

READY_SECONDS = 30.0
STDERR_BYTES = 4096
LINE_BYTES = 512


class Cable:
    """One end of a cable, made by `start_cable`. Its container is removed by whoever collects it."""

    def __init__(self, engine: Engine, name: str, streams: ContainerStreams) -> None:
        self.name = name
        self._engine, self._streams = engine, streams
        self._ready = anyio.Event()
        self._said = ""

    async def ready(self) -> None:
        """Return when the interface is there and its configuration done. Raises `EngineError`."""
        with anyio.move_on_after(READY_SECONDS):
            await self._ready.wait()
        if self._said != "ready":
            said = self._said.removeprefix("failed: ") or "it did not answer in time"
            raise EngineError(f"no interface could be made for the target: {said[:300]}", remedy="leave out --stealth")

    def close(self) -> None:
        """Hang up: the container ends, and with it the namespace once the target has left it."""
        self._streams.close()

    async def run(self) -> None:
        """Listen until it ends."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._streams.pump)
                with suppress(anyio.EndOfStream, EngineError):
                    self._said = (await self._streams.stdout.receive_line(LINE_BYTES)).decode("utf-8", "replace")
                    self._ready.set()
                    while True:
                        await self._streams.stdout.receive_line(LINE_BYTES)
                tasks.cancel_scope.cancel()
        finally:
            self._streams.close()
            self._ready.set()


async def start_cable(
    engine: Engine, tasks: anyio.abc.TaskGroup, collected: Doomed, name: str, config: dict[str, Any]
) -> Cable:
    """Create and start the container, so that a gateway can join its pid namespace. Raises `EngineError`."""
    container = await collected.create(name, config)
    streams = await attach(engine, container, STDERR_BYTES)
    try:
        await engine.call(engine.api.start, container)
    except EngineError:
        streams.close()
        raise
    cable = Cable(engine, name, streams)
    tasks.start_soon(cable.run)
    return cable
