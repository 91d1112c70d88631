"""The one place for the clock and for randomness in the recording half (law 6).

Everything else gets an `Entropy` handed in, so that a test can repeat a run.
"""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime


class Entropy:
    """Wall clock, monotonic clock and random identifiers of one run."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.now(UTC)

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC in nanoseconds, the clock of the kernel's records too."""
        return time.monotonic_ns()

    def nonce(self) -> str:
        """80 random bits as 20 hex digits, fit for a path, a host label and an argument."""
        return secrets.token_hex(10)

    def seed(self) -> str:
        """256 random bits as 64 hex digits."""
        return secrets.token_hex(32)

    def run_id(self) -> str:
        """An identifier for a run: sortable by time, unique among runs of a machine."""
        return f"{self.now():%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
