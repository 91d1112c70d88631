"""Where things are kept on this machine: caches, bundles, crash reports. XDG folders, each overridable.

`HARNESS_CACHE` holds fetched files and locks and may be deleted at any time; `HARNESS_STATE` holds bundles and
crash reports.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import platformdirs

from harness.sandbox.cache import cache_dir

#: How many bundles made without `--bundle` are kept.
KEEP_BUNDLES = 50


def state_dir() -> Path:
    """The folder for bundles and crash reports."""
    return Path(os.environ.get("HARNESS_STATE") or platformdirs.user_state_dir("harness", appauthor=False))


def default_bundle(run_id: str, name: str) -> Path:
    """A fresh folder name for a run's bundle; `name` is the target's and may hold anything."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "target"
    return state_dir() / "bundles" / f"{run_id}-{plain}"


def bundle_of(run_id: str | None, given: Path | None) -> Path:
    """Where the bundle of a run lies: the folder of `--bundle`, or the default one with its identifier."""
    if given is not None or run_id is None:
        return given or state_dir() / "bundles"
    found = sorted((state_dir() / "bundles").glob(f"{run_id}-*"))
    return found[0] if found else state_dir() / "bundles"


def forget_old_bundles() -> None:
    """Remove the oldest default bundles above `KEEP_BUNDLES`. Blocking; failures are ignored."""
    folder = state_dir() / "bundles"
    if folder.is_dir():
        old = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
        for path in old[:-KEEP_BUNDLES]:
            shutil.rmtree(path, ignore_errors=True)


def packages_dir() -> Path:
    """The part of the cache that holds fetched packages."""
    return cache_dir() / "packages"


def forget_fetched() -> None:
    """Remove all fetched packages. Blocking; failures are ignored. Call it only when no run is alive."""
    shutil.rmtree(packages_dir(), ignore_errors=True)
