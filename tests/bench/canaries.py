"""Searching for canaries: a hundred megabytes of other data without a hit, and how fast, raw and decoded."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Iterator

from harness.analyzers.canaries import search
from harness.analyzers.canaries.search import Searcher, Stream
from harness.probing.planting import plant

#: Megabytes a second, on one processor: with the slow engine, with the fast one, and decoded in every way.
RAW_BOUND, FAST_BOUND, DEEP_BOUND = 7, 40, 0.4
MEGABYTES = 100
CHUNK = 1 << 20


def _data() -> Iterator[bytes]:
    """Random bytes, their base64 and hex, and text: a megabyte each in turn."""
    source = random.Random(7)
    words = [base64.b32encode(source.randbytes(source.randint(1, 6))).decode().lower() for _ in range(5000)]
    for number in range(MEGABYTES):
        kind = number % 4
        if kind == 0:
            yield source.randbytes(CHUNK)
        elif kind == 1:
            yield base64.b64encode(source.randbytes(CHUNK * 3 // 4))
        elif kind == 2:
            yield source.randbytes(CHUNK // 2).hex().encode()
        else:
            yield " ".join(source.choices(words, k=CHUNK // 7)).encode()


def _raw(fast: bool) -> tuple[float, int]:
    """The rate, and the number of hits."""
    search.FAST_FROM_BYTES = 1 if fast else 1 << 60
    searcher = Searcher([canary.value for canary in plant("5" * 40).canaries])
    stream = Stream(searcher)
    stream.feed(b"x" * 64)
    seconds, size = 0.0, 0
    for chunk in _data():
        started = time.process_time()
        stream.feed(chunk)
        seconds += time.process_time() - started
        size += len(chunk)
    return size / 1e6 / seconds, len(stream.hits)


def _deep() -> tuple[float, int]:
    searcher = Searcher([canary.value for canary in plant("5" * 40).canaries])
    seconds, size, hits = 0.0, 0, 0
    for chunk in list(_data())[:8]:
        unit = chunk[: search.UNIT_BYTES]
        started = time.process_time()
        hits += len(searcher.deep(unit)[0])
        seconds += time.process_time() - started
        size += len(unit)
    return size / 1e6 / seconds, hits


def rows() -> list[tuple[str, str, bool]]:
    """What was measured, and whether it keeps its bound."""
    told = []
    for name, (rate, hits), bound in (
        ("canaries, searched raw", _raw(False), RAW_BOUND),
        ("canaries, searched raw with hyperscan", _raw(True), FAST_BOUND),
        ("canaries, decoded in every way", _deep(), DEEP_BOUND),
    ):
        said = f"{rate:.1f} MB/s, bound {bound}; {hits} false hits"
        told.append((name, said, rate >= bound and hits == 0))
    return told
