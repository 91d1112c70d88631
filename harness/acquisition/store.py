"""The cache on disk: fetched files by content, remembered resolutions, and locks.

Everything appears by an atomic rename, so a reader sees a whole file or none. What was not used for longest goes when
the cache is larger than its bound. No target ever sees any of it: what a sandbox gets is copied there.
Layout below the cache folder:
`files/ab/<sha256>` (content), `links/<algorithm>-<hex>` (a registry's own digest to size and SHA-256),
`resolutions/<key>.json`, `locks/`, `work/` (temporary, one folder a use), and the tools' own folders.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Literal

import anyio

from harness.acquisition.limits import CACHE_BYTES, FILE_BYTES, IN_USE_SECONDS, RESOLUTION_SECONDS
from harness.model.base import JsonObject
from harness.model.errors import TargetError

#: Overrides the bound on the cache, in bytes.
BOUND_VARIABLE = "HARNESS_CACHE_BYTES"


class Store:
    """The cache below `root`; folders are made when first needed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name: str) -> Path:
        """A folder of the cache, made if missing, readable by its owner only."""
        path = self.root / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    @contextmanager
    def work(self) -> Iterator[Path]:
        """A new temporary folder on the cache's file system, removed at exit, or by `sweep` after a sudden death."""
        from filelock import FileLock  # here: a cache hit takes no lock and pays no import

        path = self.folder("work") / uuid.uuid4().hex
        lock = path.with_suffix(".lock")
        with FileLock(lock, thread_local=False):
            try:
                path.mkdir(mode=0o700)
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
                lock.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove the temporary folders of processes that died; those of living ones are locked."""
        from filelock import FileLock, Timeout

        for lock in self.folder("work").glob("*.lock"):
            with suppress(Timeout, OSError), FileLock(lock, blocking=False):
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink(missing_ok=True)

    def path(self, sha256: str) -> Path:
        """Where the file with this digest lies, or would lie."""
        return self.root / "files" / sha256[:2] / sha256

    def add(self, source: Path, how: Literal["move", "link", "copy"] = "move") -> tuple[str, int]:
        """Take the file `source` in and return its SHA-256 and size.

        "link" shares the content with a file of another tool's cache, which must never be written in place;
        "copy" is for files of the user.

        Raises TargetError when it is larger than the bound for one file.
        """
        size = source.stat().st_size
        if size > FILE_BYTES:
            raise TargetError(f"{source.name} has {size} bytes, more than the bound of {FILE_BYTES} for one file")
        sha256 = _digest(source)
        target = self.path(sha256)
        if self.has(sha256, size):
            return sha256, size
        with self.work() as work:
            staged = work / "file"
            if how == "move":
                source.replace(staged)
            elif how == "copy" or not _linked(source, staged):
                shutil.copyfile(source, staged)
                sha256, size = _digest(staged), staged.stat().st_size  # the user may have written meanwhile
                target = self.path(sha256)
            staged.chmod(0o600)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            staged.replace(target)
        return sha256, size

    def add_bytes(self, data: bytes) -> tuple[str, int]:
        """Take `data` in as a file; returns its SHA-256 and size."""
        with self.work() as work:
            source = work / "data"
            source.write_bytes(data)
            return self.add(source)

    def link(self, algorithm: str, digest: str, sha256: str, size: int) -> None:
        """Remember that the content with a registry's `digest` (hex) is the stored file `sha256`."""
        self._write(self.folder("links") / f"{algorithm}-{digest}", f"{sha256} {size}")

    def linked(self, algorithm: str, digest: str) -> tuple[str, int] | None:
        """SHA-256 and size of the stored content with a registry's `digest`, or None when it is not stored."""
        try:
            sha256, size = (self.root / "links" / f"{algorithm}-{digest}").read_text().split()
        except (OSError, ValueError):
            return None
        if not self.has(sha256, int(size)):
            return None
        with suppress(OSError):
            os.utime(self.path(sha256))  # used now: it goes last
        return sha256, int(size)

    def has(self, sha256: str, size: int) -> bool:
        """Is this content stored, whole? (Content is checked when it came in, and again by the installer.)"""
        try:
            return self.path(sha256).stat().st_size == size
        except OSError:
            return False

    def trim(self, limit: int | None = None) -> int:
        """Remove the files that were not used for longest until all take at most `limit` bytes; how many were removed.

        Files used within the last hour stay, however many: another run may be about to install them. Blocking.
        """
        bound = _cache_bytes() if limit is None else limit
        found: list[tuple[float, int, Path]] = []
        # npm keeps the same content under another name (a hard link where the file system has them).
        for folder in (self.root / "files", self.root / "npm" / "_cacache" / "content-v2"):
            for path in folder.rglob("*") if folder.is_dir() else ():
                with suppress(OSError):
                    state = path.lstat()
                    if stat.S_ISREG(state.st_mode):
                        found.append((state.st_mtime, state.st_size, path))
        total, removed = sum(size for _, size, _ in found), 0
        fresh = time.time() - IN_USE_SECONDS
        for used, size, path in sorted(found):
            if total <= bound or used > fresh:
                break
            with suppress(OSError):
                path.unlink()
                total -= size
                removed += 1
        if removed:
            self._forget()
        return removed

    def _forget(self) -> None:
        """Remove links and resolutions that lead to nothing any more, or are too old to be believed."""
        for path in (self.root / "links").glob("*"):
            with suppress(OSError, ValueError):
                if not self.path(path.read_text().split()[0]).exists():
                    path.unlink()
        for path in (self.root / "resolutions").glob("*.json"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > RESOLUTION_SECONDS:
                    path.unlink()

    def remember(self, key: str, value: JsonObject) -> None:
        """Keep a resolution under `key` (hex)."""
        path = self.folder("resolutions") / f"{key}.json"
        self._write(path, json.dumps({"at": time.time(), "value": value}))

    def recall(self, key: str) -> tuple[float, JsonObject] | None:
        """A resolution and its age in seconds; None when there is none, or it is too old or damaged."""
        try:
            data = json.loads((self.root / "resolutions" / f"{key}.json").read_bytes())
            age = time.time() - float(data["at"])
            value = data["value"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return (age, value) if isinstance(value, dict) and 0 <= age < RESOLUTION_SECONDS else None

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Hold the cache's lock `name` against other processes; waiting is cancellable."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.folder("locks") / f"{name}.lock", thread_local=False)
        while True:
            try:
                lock.acquire(blocking=False)
                break
            except Timeout:
                await anyio.sleep(0.05)
        try:
            yield
        finally:
            lock.release()

    def _write(self, path: Path, text: str) -> None:
        with self.work() as work:
            staged = work / path.name
            staged.write_text(text)
            os.replace(staged, path)  # noqa: PTH105


def _cache_bytes() -> int:
    value = os.environ.get(BOUND_VARIABLE, "")
    return int(value) if value.isdigit() else CACHE_BYTES


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        return False
    return True
