"""Removes what dead runs left on the engine and on disk, and never touches what a living run holds.

Whose containers: those that carry our state directory's owner label. Dead: nobody holds the lock of their lease.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from harness.model.base import Record
from harness.model.errors import EngineError
from harness.sandbox.containers import remove_container
from harness.sandbox.engine import Engine
from harness.sandbox.hardening import LABEL_LEASE, LABEL_NONCE, LABEL_OWNER, LABEL_ROLE, ROLE_APP
from harness.sandbox.lease import HeldLock, StateDirectory, try_lock
from harness.sandbox.volumes import drop_unused, list_volumes, load_seal, read_seal, remove_volume


class ReapReport(Record):
    """What was removed; `left` names what should have been and could not, `living` counts runs left alone."""

    containers: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    leases: tuple[str, ...] = ()
    living: int = 0
    left: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """True when there was nothing to do."""
        return not (self.containers or self.volumes or self.leases or self.left)


async def reap(engine: Engine, state: StateDirectory | None = None, *, cache: bool = False) -> ReapReport:
    """Remove containers, unsealed volumes, locks and scratch files of dead runs.

    With `cache`, sealed volumes that no living run uses go as well. Costs two list calls when there is nothing to
    do. Raises `EngineError` when the engine is gone.
    """
    where = state if state is not None else await anyio.to_thread.run_sync(StateDirectory)
    label = f"{LABEL_OWNER}={where.owner}"
    remains: dict[str, _Remains] = defaultdict(_Remains)
    for container in await engine.ask(engine.api.containers, all=True, filters={"label": label}):
        remains[container["Labels"].get(LABEL_LEASE, "")].containers.append(container["Id"])
    sealed: list[str] = []
    for volume in await list_volumes(engine, where.owner):
        labels, name = volume.get("Labels") or {}, str(volume["Name"])
        of_app = labels.get(LABEL_ROLE) == ROLE_APP
        seal = await anyio.to_thread.run_sync(load_seal, where, name) if of_app else None
        if seal is not None and seal.mark == labels.get(LABEL_NONCE):
            sealed.append(name)
        else:
            remains[labels.get(LABEL_LEASE, "")].volumes.append((name, of_app))
    on_disk = await anyio.to_thread.run_sync(_leases_on_disk, where)

    total = _Remains()
    leases: list[str] = []
    left: list[str] = []
    living = 0
    for lease in sorted({*remains, *on_disk}):
        # A lock file that isn't there is made and locked too, so that two reapers don't work on the same lease.
        held = await anyio.to_thread.run_sync(try_lock, where.lease_file(lease or "nameless"))
        if held is None:
            living += 1
            continue
        stuck = ["unknown"]
        try:
            stuck = await _remove(engine, where, remains[lease], total)
            left += stuck
        finally:
            await anyio.to_thread.run_sync(_bury, where, lease, held, not stuck)
        if lease in on_disk and not stuck:
            leases.append(lease)
    dropped = await drop_unused(engine, where, sealed) if cache else ()
    return ReapReport(
        containers=tuple(total.containers),
        volumes=(*(name for name, _ in total.volumes), *dropped),
        leases=tuple(leases),
        living=living,
        left=tuple(left),
    )


@dataclass
class _Remains:
    """What carries one lease: container ids; volumes by name, and whether they are for installed targets."""

    containers: list[str] = field(default_factory=list)
    volumes: list[tuple[str, bool]] = field(default_factory=list)


async def _remove(engine: Engine, state: StateDirectory, remains: _Remains, total: _Remains) -> list[str]:
    """Remove a dead lease's remains and add them to `total`; returns what could not be removed."""
    gone = await _remove_containers(engine, remains.containers)
    total.containers += gone
    stuck = [container for container in remains.containers if container not in gone]
    for name, of_app in remains.volumes:
        try:
            if await (_remove_unsealed(engine, state, name) if of_app else _remove_input(engine, name)):
                total.volumes.append((name, of_app))
        except EngineError:
            stuck.append(name)
    return stuck


async def _remove_input(engine: Engine, name: str) -> bool:
    await remove_volume(engine, name)
    return True


async def _remove_unsealed(engine: Engine, state: StateDirectory, name: str) -> bool:
    """Remove an install that never finished; not if another run is at the same one, or finished it since we looked."""
    held = await anyio.to_thread.run_sync(try_lock, state.volume_lock(name))
    if held is None:
        return False
    with held:
        if await read_seal(engine, state, name) is not None:
            return False
        await remove_volume(engine, name)
    return True


async def _remove_containers(engine: Engine, containers: list[str]) -> list[str]:
    gone: list[str] = []

    async def remove(container: str) -> None:
        if await remove_container(engine, container):
            gone.append(container)

    async with anyio.create_task_group() as tasks:
        for container in containers:
            tasks.start_soon(remove, container)
    return gone


def _leases_on_disk(state: StateDirectory) -> set[str]:
    locks = {path.stem for path in state.leases.glob("*.lock")}
    return locks | {path.name for path in state.scratch.iterdir()}


def _bury(state: StateDirectory, lease: str, held: HeldLock, done: bool) -> None:
    if done and lease:
        shutil.rmtree(state.scratch / lease, ignore_errors=True)
    with suppress(OSError):
        held.release(unlink=done)
