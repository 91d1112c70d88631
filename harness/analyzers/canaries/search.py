"""Searching for all canaries of a run: raw over any amount of bytes, deep over bounded units.

Raw passes look at the bytes as they are, without white space, in one case, and at their differences. Deep search
decodes a unit in every way there is, and what comes out again, within a budget that is told when it runs out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.analyzers.canaries.decoders import DECODERS, joined, noise
from harness.analyzers.canaries.encodings import ENCODINGS, SHORTEST, XOR, core, differences
from harness.analyzers.canaries.engines import AhoCorasick, Engine, fast_engine

#: A unit is searched deep up to this size; a larger one in pieces of it that overlap.
UNIT_BYTES = 256 << 10
OVERLAP_BYTES = 2048
#: Decoding is applied to what decoding gave, so many times in all.
DEPTH = 4
#: So many layers are always taken off, or the unit counts as not searched; more of what is small, in the budget.
SURE_DEPTH = 2
SMALL_BYTES = 32 << 10
#: Of one unit, what decoding may give in all: pieces, and bytes beyond 16 times its size.
MOST_VIEWS = 400
VIEW_BYTES = 4 << 20
#: After so much data the engine is worth its building that is slower to build and faster to search.
FAST_FROM_BYTES = 16 << 20
#: Digests of values and units where the one showed none of the other, at most so many: who looks at a recording again
#: once more of it is there need not decode the same once more. It changes no answer.
MOST_CLEAN = 8192
clean: set[bytes] = set()
_SPACE = b" \t\r\n\0"
#: Put between views that are searched as one: no encoding gives these bytes, and nothing takes them out of data.
_BETWEEN = b"\xff\xfe\xff"


class Hit(NamedTuple):
    """The canary with this number occurs, in this disguise (`gzip, base64`: outermost first)."""

    canary: int
    encoding: str


class _Lane:
    """One engine, and what a number that it finds means."""

    def __init__(self) -> None:
        self._meaning: dict[bytes, list[Hit]] = {}
        self._hits: list[list[Hit]] = []
        self._engine: Engine | None = None
        self._left = FAST_FROM_BYTES
        self.longest = 0

    def add(self, pattern: bytes, hit: Hit) -> None:
        if len(pattern) >= SHORTEST:
            known = self._meaning.setdefault(pattern, [])
            if all(other.canary != hit.canary for other in known):  # the first disguise of equal ones is its name
                known.append(hit)

    def build(self) -> None:
        self._hits = list(self._meaning.values())
        self.longest = max(map(len, self._meaning), default=0)
        self._engine = AhoCorasick(list(self._meaning)) if self._meaning else None

    def find(self, data: bytes) -> Iterator[Hit]:
        if self._engine is not None:
            if self._left > 0:
                self._left -= len(data)
                if self._left <= 0:
                    self._engine = fast_engine(list(self._meaning)) or self._engine
            for number in sorted(self._engine.find(data)):
                yield from self._hits[number]


class Searcher:
    """Looks for `values`; hits carry their numbers. Building takes about half a millisecond a value."""

    def __init__(self, values: Sequence[str]) -> None:
        self._values = hashlib.sha256("\0".join(values).encode("utf-8", "surrogatepass"))
        self._exact, self._folded, self._different = _Lane(), _Lane(), _Lane()
        for number, value in enumerate(values):
            inner = core(value)
            for encoding in ENCODINGS:
                lane = self._folded if encoding.folded else self._exact
                for form in encoding.forms(inner):
                    lane.add(form.lower() if encoding.folded else form, Hit(number, encoding.name))
            for form in XOR.forms(inner):
                self._different.add(form, Hit(number, XOR.name))
        for lane in (self._exact, self._folded, self._different):
            lane.build()
        #: Bytes to keep of one chunk so that nothing is missed that reaches into the next.
        self.reach = 2 * max(self._exact.longest, self._folded.longest, 1)

    def raw(self, data: bytes) -> set[Hit]:
        """What occurs in `data` as it is; the first disguise by which a canary is found counts."""
        found: dict[int, Hit] = {}
        lower = data.lower()
        self._note(found, self._folded.find(lower))
        self._note(found, self._exact.find(data))
        squeezed = data.translate(None, _SPACE)
        if len(squeezed) != len(data):
            self._note(found, self._exact.find(squeezed))
            self._note(found, self._folded.find(lower.translate(None, _SPACE)))
        self._note(found, self._different.find(differences(data)))
        return set(found.values())

    def _any(self, joined: bytes) -> bool:
        """Whether `raw` may find something in one of many views: a match in one is a match in all of them together."""
        return bool(self.raw(joined))

    @staticmethod
    def _note(found: dict[int, Hit], hits: Iterable[Hit]) -> None:
        for hit in hits:
            found.setdefault(hit.canary, hit)

    def deep(self, unit: bytes) -> tuple[set[Hit], bool]:
        """What occurs in a unit, decoded in every way; and whether all of it was looked at."""
        found: dict[int, Hit] = {}
        whole = True
        both = self._values.copy()
        both.update(unit)
        key = both.digest()
        if key in clean:
            return set(), True
        for at in range(0, max(1, len(unit)), UNIT_BYTES - OVERLAP_BYTES):
            piece = unit[at : at + UNIT_BYTES]
            whole = self._deep(piece, found) and whole
            if at + UNIT_BYTES >= len(unit):
                break
        if whole and not found and len(clean) < MOST_CLEAN:
            clean.add(key)
        return set(found.values()), whole

    def _deep(self, unit: bytes, found: dict[int, Hit]) -> bool:
        seen: set[bytes] = {unit}
        level: list[tuple[bytes, str]] = [(unit, "")]
        views, room = 0, 16 * len(unit) + VIEW_BYTES
        for depth in range(DEPTH + 1):
            following: list[tuple[bytes, str]] = []
            anything = len(level) == 1 or self._any(_BETWEEN.join(data for data, _ in level))
            for data, path in level:
                for hit in self.raw(data) if anything else ():
                    name = f"{path}, {hit.encoding}" if path else hit.encoding
                    found.setdefault(hit.canary, Hit(hit.canary, name))
                if depth == DEPTH or len(data) < SHORTEST or (depth >= SURE_DEPTH and len(data) > SMALL_BYTES):
                    continue
                for decoder in DECODERS:
                    if depth and decoder.views is joined and noise(data):
                        continue  # what was sent is put together whatever it is, what came of decoding if it is text
                    for view in decoder.views(data):
                        if len(view) < SHORTEST or view in seen:
                            continue
                        views, room = views + 1, room - len(view)
                        if views > MOST_VIEWS or room < 0:
                            return depth >= SURE_DEPTH
                        seen.add(view)
                        following.append((view, f"{path}, {decoder.name}" if path else decoder.name))
            level = following
        return True


class Stream:
    """Raw search over chunks of one stream, as if they were one piece."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self._tail = b""
        self.hits: set[Hit] = set()

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk."""
        data = self._tail + chunk
        self.hits |= self._searcher.raw(data)
        self._tail = data[-self._searcher.reach :]
