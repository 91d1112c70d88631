"""Searching bytes for thousands of strings at once: Aho-Corasick, or for much data hyperscan where it is installed.

Measured with 3,000 strings: ahocorasick_rs is built in 6 ms and searches 0.13 to 0.4 GB/s, hyperscan in 52 ms, and it
searches 2.7 to 3.8 GB/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

from ahocorasick_rs import BytesAhoCorasick, Implementation


class Engine(Protocol):
    """Finds which of its strings occur."""

    def find(self, data: bytes) -> set[int]:
        """The numbers of the strings that occur in `data`."""
        ...


class AhoCorasick:
    """By an automaton over bytes."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        self._automaton = BytesAhoCorasick(patterns, implementation=Implementation.ContiguousNFA)

    def find(self, data: bytes) -> set[int]:
        """The numbers of the strings that occur in `data`."""
        return {number for number, _, _ in self._automaton.find_matches_as_indexes(data, overlapping=True)}


class Hyperscan:
    """By hyperscan. Its patterns are C strings, so every byte is written as an escape."""

    def __init__(self, library: Any, patterns: Sequence[bytes]) -> None:
        self._database = library.Database()
        self._database.compile(
            expressions=[b"".join(b"\\x%02x" % byte for byte in pattern) for pattern in patterns],
            ids=list(range(len(patterns))),
            elements=len(patterns),
            flags=[library.HS_FLAG_SINGLEMATCH] * len(patterns),
        )

    def find(self, data: bytes) -> set[int]:
        """The numbers of the strings that occur in `data`."""
        found: set[int] = set()
        if data:
            self._database.scan(data, match_event_handler=lambda number, *_: found.add(number))
        return found


@cache
def _hyperscan() -> Any:
    try:
        import hyperscan
    except ImportError:
        return None
    return hyperscan


def fast_engine(patterns: Sequence[bytes]) -> Engine | None:
    """The engine that is worth its longer building where there is much to search; None where it is not installed."""
    library = _hyperscan()
    return Hyperscan(library, patterns) if library is not None else None
