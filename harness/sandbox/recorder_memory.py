"""What is remembered of the recorder: that it worked here, so that a run need not wait to learn it again.

A run that knows it beforehand lets the recorder start beside everything else. What is remembered holds for one
engine, kernel and recorder image; a recorder that then fails all the same is forgotten, and the next run looks again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress

from harness.model.base import canonical_json, sha256_hex
from harness.sandbox.lease import StateDirectory

#: What of the engine's facts decides whether a recorder works.
_FACTS = ("host", "version", "kernel", "os", "arch", "security", "default_runtime", "cgroup_version")


class RecorderMemory:
    """Remembers in the state directory. Reads and writes one small file; a file that can't be written is no memory."""

    def __init__(self, state: StateDirectory, facts: Mapping[str, str], image: str) -> None:
        """`facts` are the engine's, `image` is the engine's id of the recorder image."""
        self._path = state.root / "recorder-worked"
        known = [image, *(facts.get(name, "") for name in _FACTS)]
        self._key = sha256_hex(canonical_json(known))

    def worked(self) -> bool:
        """Did it work the last time, on the same engine, kernel and image?"""
        try:
            return self._path.read_text().strip() == self._key
        except (OSError, ValueError):
            return False

    def remember(self) -> None:
        """It worked."""
        if self.worked():
            return
        fresh = self._path.with_name(f"recorder-worked.{secrets.token_hex(8)}")
        with suppress(OSError):
            fresh.write_text(self._key + "\n")
            fresh.replace(self._path)

    def forget(self) -> None:
        """It did not work, or no longer does."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
