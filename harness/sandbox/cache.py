"""Where this machine keeps what can be made again: leases, seals, locks, image parts, fetched packages."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """HARNESS_CACHE, else the user's cache folder for `harness`. Runs with different ones don't see each other."""
    return Path(os.environ.get("HARNESS_CACHE") or platformdirs.user_cache_dir("harness", appauthor=False))
