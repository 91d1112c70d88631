"""What every container of ours goes through: created under a known name, started, and removed whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc

from harness.model.errors import EngineError
from harness.sandbox.engine import Engine, EngineNotFound

CLEANUP_SECONDS = 15.0


class Doomed:
    """Names of containers to be removed together; a name is put here before its container is created."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.names: list[str] = []

    async def create(self, name: str, config: dict[str, Any]) -> str:
        """Create a container and return its id. Raises `EngineError`."""
        self.names.append(name)
        made = await self._engine.call(self._engine.api.create_container_from_config, config, name)
        return str(made["Id"])


@asynccontextmanager
async def doomed(engine: Engine) -> AsyncIterator[Doomed]:
    """Yield a `Doomed`; at exit its containers are removed, at most 15 s long and even when cancelled.

    What the engine can't remove now, the reaper of a later run will.
    """
    collected = Doomed(engine)
    try:
        yield collected
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLEANUP_SECONDS):
            await remove_containers(engine, collected.names)


async def remove_containers(engine: Engine, containers: Iterable[str]) -> None:
    """Kill and remove containers and their anonymous volumes, all at once; failures are left to the reaper."""
    async with anyio.create_task_group() as tasks:
        for container in containers:
            tasks.start_soon(remove_container, engine, container)


async def remove_container(engine: Engine, container: str) -> bool:
    """Kill and remove one container; True when it is gone."""
    try:
        await engine.ask(engine.api.remove_container, container, v=True, force=True)
    except EngineNotFound:
        return True
    except EngineError:
        return False
    return True


async def kill_container(engine: Engine, container: str) -> None:
    """Have the engine kill a container; one that ended already is fine. Raises `EngineError` if the engine is gone."""
    try:
        await engine.ask(engine.api.kill, container)
    except EngineError:
        with suppress(EngineNotFound):
            await engine.ask(engine.api.inspect_container, container)  # still raises when nobody answers


@asynccontextmanager
async def background() -> AsyncIterator[anyio.abc.TaskGroup]:
    """A task group for helpers that never raise, cancelled at exit; the body's own exception comes out unwrapped."""
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise
