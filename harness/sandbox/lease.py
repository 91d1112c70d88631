"""Leases and locks: who is alive, told by locks that the kernel drops when their holder dies.

A run holds a lock on its lease file for its whole life; whatever it makes carries the lease's name. A volume in use
is held with a shared lock. State lies in the user's cache directory: containers of another user, or of another cache
directory, carry another owner and are not ours to judge.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType

import anyio
import anyio.to_thread

from harness.model.errors import HarnessError
from harness.sandbox.cache import cache_dir


class StateDirectory:
    """The directory of leases, volume locks and seals, made when first used.

    `owner` names this directory on the engine: 16 hex digits, drawn once.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_dir() / "sandbox"
        self.leases = self.root / "leases"
        self.scratch = self.root / "scratch"
        self.volumes = self.root / "volumes"
        try:
            for folder in (self.leases, self.scratch, self.volumes):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.owner = self._owner()
        except OSError as error:
            raise HarnessError(
                f"can't write to the cache directory {self.root}: {error.strerror}",
                remedy="set HARNESS_CACHE to a folder that can be written",
            ) from error

    def _owner(self) -> str:
        path = self.root / "owner"
        with suppress(FileExistsError):
            fresh = self.root / f"owner.{secrets.token_hex(8)}"
            if not path.exists():
                fresh.write_text(secrets.token_hex(8))
                try:
                    os.link(fresh, path)  # atomic, and fails if another process was first
                finally:
                    fresh.unlink()
        return path.read_text().strip()

    def lease_file(self, name: str) -> Path:
        """Where the lease `name` is locked."""
        return self.leases / f"{name}.lock"

    def volume_lock(self, volume: str) -> Path:
        """Where uses of a volume are locked."""
        return self.volumes / f"{volume}.lock"

    def seal_file(self, volume: str) -> Path:
        """Where a sealed volume's record is kept."""
        return self.volumes / f"{volume}.json"


class HeldLock:
    """A lock on a file; dropped by `release`, at exit of a `with`, or by the kernel when this process dies."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def share(self) -> bool:
        """Turn an exclusive lock into a shared one; False if someone came in between."""
        return _flock(self._descriptor, fcntl.LOCK_SH)

    def release(self, *, unlink: bool = False) -> None:
        """Drop the lock; with `unlink` (exclusive locks only) remove the file first."""
        if unlink:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def __enter__(self) -> HeldLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def try_lock(path: Path, *, shared: bool = False, create: bool = True) -> HeldLock | None:
    """Lock `path` without waiting; None when it is held elsewhere (or, without `create`, does not exist)."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
        except FileNotFoundError:
            if create:
                raise
            return None
        if not _flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            os.close(descriptor)
            return None
        if _is_file(path, descriptor):
            return HeldLock(path, descriptor)
        os.close(descriptor)  # removed by its last holder while we locked it: take the new one


class Lease:
    """A living run's lease: its name, and a scratch directory that goes with it."""

    def __init__(self, name: str, scratch: Path) -> None:
        self.name = name
        self.scratch = scratch


@asynccontextmanager
async def hold_lease(state: StateDirectory, name: str) -> AsyncIterator[Lease]:
    """Hold the lease `name` while in the context; lease file and scratch directory are gone afterwards.

    Raises `HarnessError` when a living run holds a lease of that name.
    """
    held = await anyio.to_thread.run_sync(try_lock, state.lease_file(name))
    if held is None:
        raise HarnessError(f"another living run is called {name}")
    scratch = state.scratch / name
    try:
        await anyio.to_thread.run_sync(_describe, held.path, scratch)
        yield Lease(name, scratch)
    finally:
        with anyio.CancelScope(shield=True), suppress(OSError):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(scratch, ignore_errors=True))
            held.release(unlink=True)


def _describe(lease_file: Path, scratch: Path) -> None:
    lease_file.write_text(json.dumps({"pid": os.getpid()}))  # for people; the lock is what counts
    scratch.mkdir(mode=0o700, exist_ok=True)


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
