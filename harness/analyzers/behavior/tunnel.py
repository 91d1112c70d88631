"""The shapes of data in DNS questions, and of a pulse in time. Bounded memories, pure arithmetic."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import unquote

from harness.analyzers.behavior.hosts import site

#: Parent domains watched at a time, and questions remembered of one.
MOST_PARENTS = 512
MOST_QUESTIONS = 2048
#: Names that calls gave which are remembered, and characters of a call that are read.
MOST_NAMED = 8192
NAMED_CHARACTERS = 64 << 10
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+")
#: Labels of names that people give are short and look like words: a label is data from this length and entropy on,
#: where it has digits in it too, or is longer than words are.
DATA_CHARACTERS = 14
DATA_BITS = 2.9
LONG_CHARACTERS = 24
#: So many different data labels below one domain, or so many characters in them, are a tunnel.
TUNNEL_LABELS = 6
TUNNEL_CHARACTERS = 120
#: So many gaps of nearly the same length are a pulse; nearly: their standard deviation within this part of the mean.
BEATS = 4
JITTER = 0.15
#: Or of so many gaps this part is near the middle one.
MANY_BEATS = 8
MOSTLY = 0.75
_NS = 1_000_000_000


def entropy(text: str) -> float:
    """Bits a character, by how often each occurs in the text itself."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values()) if text else 0.0


def is_data(label: str) -> bool:
    """True for a label that nobody would give a host."""
    text = label.lower()
    if len(text) < DATA_CHARACTERS or text.startswith("xn--") or entropy(text) < DATA_BITS:
        return False
    return len(text) >= LONG_CHARACTERS or sum(character.isdigit() for character in text) >= 2


@dataclass
class Parent:
    """What was asked below one domain. `first`: number of the first question that holds data."""

    labels: set[str] = field(default_factory=set)
    characters: int = 0
    first: int = -1


class Questions:
    """DNS questions by domain."""

    def __init__(self) -> None:
        self.parents: dict[tuple[str, str], Parent] = {}
        self._named: set[str] = set()

    def named(self, text: str) -> None:
        """What was sent to the server: who looks up a name in it does as asked, and carries nothing."""
        said = text[:NAMED_CHARACTERS].lower()
        for name in (*_NAME.findall(said), *_NAME.findall(unquote(said))):
            if len(self._named) < MOST_NAMED:
                self._named.add(name)

    def add(self, owner: str, name: str, number: int) -> None:
        """One more question; `number` is handed back with a tunnel."""
        domain = site(name)
        name = name.rstrip(".").lower()
        rest = name.removesuffix(domain).strip(".")
        data = [label for label in rest.split(".") if is_data(label)]
        if not data or name in self._named:
            return
        key = (owner, domain)
        if key not in self.parents and len(self.parents) >= MOST_PARENTS:
            del self.parents[next(iter(self.parents))]
        parent = self.parents.setdefault(key, Parent())
        if parent.first < 0:
            parent.first = number
        for label in data:
            if label not in parent.labels and len(parent.labels) < MOST_QUESTIONS:
                parent.labels.add(label)
                parent.characters += len(label)

    def tunnels(self) -> list[tuple[str, Parent]]:
        """The domains below which data was carried."""
        return [
            (domain, parent)
            for (_, domain), parent in self.parents.items()
            if len(parent.labels) >= TUNNEL_LABELS
            or (len(parent.labels) > 1 and parent.characters >= TUNNEL_CHARACTERS)
        ]


def pulse(times: Sequence[int]) -> float | None:
    """The gap in seconds at which something recurs; None where it is not regular. `times` in nanoseconds."""
    return steady_gap([later - earlier for earlier, later in pairwise(sorted(times))])


def steady_gap(gaps: Sequence[int]) -> float | None:
    """Their length in seconds where they are nearly the same, in nanoseconds; a busy machine may delay some of many."""
    if len(gaps) < BEATS:
        return None
    mean = sum(gaps) / len(gaps)
    if mean < _NS / 4:
        return None  # one burst
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    if deviation <= JITTER * mean:
        return mean / _NS
    middle = sorted(gaps)[len(gaps) // 2]
    alike = sum(abs(gap - middle) <= JITTER * middle for gap in gaps)
    return middle / _NS if len(gaps) >= MANY_BEATS and alike >= MOSTLY * len(gaps) else None
