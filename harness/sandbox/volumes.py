"""Volumes with installed targets: named by what is in them, sealed when the install succeeded, few enough.

A volume counts as sealed when a seal file here names it together with the random mark that was drawn when the volume
was created and is a label on it. So a volume left by a died install, or made anew by somebody else under the same
name, is never taken for an installed target. Sealed volumes are mounted read-only and by nobody else than us.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import ValidationError

from harness.model.base import Record, sha256_hex
from harness.model.errors import EngineError, HarnessError
from harness.model.recording import ImageFact
from harness.model.target import InstallPlan
from harness.sandbox.base import StepReport
from harness.sandbox.engine import Engine, EngineNotFound
from harness.sandbox.hardening import LABEL_NONCE, LABEL_OWNER, LABEL_ROLE, ROLE_APP
from harness.sandbox.install_record import InstallRecord
from harness.sandbox.lease import HeldLock, StateDirectory, try_lock

#: How many installed targets are kept; the least recently used go first.
DEFAULT_KEPT = 64
KEPT_VARIABLE = "HARNESS_KEPT_INSTALLS"


class Seal(Record):
    """The record of a finished install: the volume's random mark, the image, and every step with its output."""

    format: int = 1
    volume: str
    mark: str
    image: ImageFact
    steps: tuple[StepReport, ...]
    seconds: float
    record: InstallRecord | None = None

    @property
    def whole(self) -> bool:
        """False when events of the install were lost, which another install may well not lose."""
        return self.record is None or self.record.end.complete


def volume_name(plan: InstallPlan, image: ImageFact, owner: str, *, recorder: str | None = None) -> str:
    """The name of the volume for this plan on this image; users of one engine don't share volumes.

    An install that `recorder` watched is another one: a record is worth what its recorder's are, and one of strace's
    sealed earlier must not lower what a run is told that asks for eBPF.
    """
    how = f" recorded by {recorder}" if recorder else ""
    return f"harness-app-{sha256_hex(f'{plan.cache_key} {image.id} {owner}{how}')[:16]}"


async def read_seal(engine: Engine, state: StateDirectory, volume: str) -> Seal | None:
    """The seal of a volume that exists and is the one that was sealed; else None. Raises `EngineError`."""
    seal = await anyio.to_thread.run_sync(load_seal, state, volume)
    if seal is None:
        return None
    try:
        found = await engine.ask(engine.api.inspect_volume, volume)
    except EngineNotFound:
        return None
    return seal if (found.get("Labels") or {}).get(LABEL_NONCE) == seal.mark else None


def load_seal(state: StateDirectory, volume: str) -> Seal | None:
    """Read a seal file; None when there is none or it is damaged. Blocking."""
    try:
        return Seal.model_validate_json(state.seal_file(volume).read_bytes())
    except (OSError, ValidationError):
        return None


def write_seal(state: StateDirectory, seal: Seal) -> None:
    """Write a seal file whole or not at all. Blocking. Raises `HarnessError`."""
    path = state.seal_file(seal.volume)
    fresh = path.with_suffix(f".{secrets.token_hex(4)}.new")
    try:
        with fresh.open("w") as file:
            file.write(seal.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise HarnessError(
            f"can't keep the record of an install: {error.strerror}", remedy="free some space"
        ) from error


def touch_seal(state: StateDirectory, volume: str) -> None:
    """Note that the volume was used now. Blocking."""
    with suppress(OSError):
        os.utime(state.seal_file(volume))


async def create_volume(engine: Engine, name: str, labels: Mapping[str, str]) -> str:
    """Create an empty volume, dropping what had its name before; returns its random mark. Raises `EngineError`."""
    mark = secrets.token_hex(16)
    await remove_volume(engine, name)
    await engine.call(engine.api.create_volume, name, labels={**labels, LABEL_NONCE: mark})
    return mark


async def remove_volume(engine: Engine, name: str) -> None:
    """Remove a volume if it exists. Raises `EngineError` (`EngineConflict` while a container has it)."""
    with suppress(EngineNotFound):
        await engine.call(engine.api.remove_volume, name)


async def list_volumes(engine: Engine, owner: str) -> list[dict[str, Any]]:
    """All volumes of ours, as the engine describes them."""
    answer = await engine.ask(engine.api.volumes, filters={"label": f"{LABEL_OWNER}={owner}"})
    return list(answer.get("Volumes") or [])


def kept_installs() -> int:
    """The bound on kept installs: HARNESS_KEPT_INSTALLS, else 64."""
    value = os.environ.get(KEPT_VARIABLE, "")
    return max(1, int(value)) if value.isdigit() else DEFAULT_KEPT


async def evict(engine: Engine, state: StateDirectory, keep: int) -> tuple[str, ...]:
    """Remove the least recently used sealed volumes beyond `keep`, never one in use; returns those removed."""
    names = [
        volume["Name"]
        for volume in await list_volumes(engine, state.owner)
        if (volume.get("Labels") or {}).get(LABEL_ROLE) == ROLE_APP
    ]
    aged = await anyio.to_thread.run_sync(_by_last_use, state, names)
    return await drop_unused(engine, state, aged[: max(0, len(aged) - keep)])


async def drop_unused(engine: Engine, state: StateDirectory, names: list[str]) -> tuple[str, ...]:
    """Remove those of the volumes, with their seals, that no living run holds; returns their names."""
    removed = []
    for name in names:
        held = await anyio.to_thread.run_sync(try_lock, state.volume_lock(name))
        if held is None:
            continue
        gone = False
        try:
            await remove_volume(engine, name)
            gone = True
        except EngineError:
            continue  # a container still has it: the reaper first, then another time
        finally:
            if gone:
                state.seal_file(name).unlink(missing_ok=True)
            held.release(unlink=gone)
        removed.append(name)
    return tuple(removed)


def _by_last_use(state: StateDirectory, names: list[str]) -> list[str]:
    """Sealed volumes, the longest unused first."""

    def last_use(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return -1.0

    aged = [(last_use(state.seal_file(name)), name) for name in names]
    return [name for when, name in sorted(aged) if 0 <= when <= time.time() + 60]


class HeldVolumes:
    """The volumes one sandbox uses, each with a shared lock until the sandbox is closed."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._held: dict[str, HeldLock] = {}

    def __contains__(self, volume: str) -> bool:
        return volume in self._held

    def add(self, volume: str, held: HeldLock) -> None:
        """Keep a shared lock; a second one for the same volume is dropped."""
        if volume in self._held:
            held.release()
        else:
            self._held[volume] = held

    def close(self) -> None:
        """Drop all locks."""
        while self._held:
            self._held.popitem()[1].release()
