"""Looking for a run's canaries in what its events hold, within a budget whose end is told as a gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.analyzers.base import Contents
from harness.analyzers.behavior.hosts import site
from harness.analyzers.canaries.search import Hit, Searcher, Stream
from harness.analyzers.canaries.series import Messages, Names, Whole
from harness.analyzers.evidence import render_safe
from harness.model.base import sha256_hex
from harness.model.coverage import Skip, SkipReason, Tally
from harness.model.flow import BlobRef
from harness.model.recording import FlowEvent

#: Bytes that are decoded in every way, in all: decoding takes about a second a megabyte, and the longest run measured,
#: 4,200 calls of 37 tools, has 14 MB.
DEEP_BYTES = 24 << 20
#: What a unit costs at least: a flood of short messages has its end too.
UNIT_BYTES = 2048
#: Digests of what was searched already: two lives of a server say the same.
MOST_KNOWN = 8192
MOST_GAPS = 256


class Sent(NamedTuple):
    """A canary in a flow. `in_what`: the part that held it; `domain`: whose name was asked for, in a DNS question."""

    hit: Hit
    flow: FlowEvent
    in_what: str
    domain: str = ""


@dataclass
class Books:
    """What was searched. `gaps` by what they are about; `more`: those that have no line of their own."""

    discovered: int = 0
    gaps: list[Skip] = field(default_factory=list)
    more: int = 0

    def miss(self, item: str, reason: SkipReason, detail: str) -> None:
        """One thing that was not searched whole."""
        if len(self.gaps) < MOST_GAPS:
            self.gaps.append(Skip(item=render_safe(item, 80), reason=reason, detail=detail))
        else:
            self.more += 1

    def tally(self) -> Tally:
        """The books, closed."""
        rest = (Skip(item="further data", reason=SkipReason.LIMIT, count=self.more),) if self.more else ()
        skips = (*self.gaps, *rest)
        return Tally(discovered=self.discovered, analyzed=self.discovered - sum(s.count for s in skips), skipped=skips)


class Looker:
    """Searches units and flows. Memory: digests, series and books, all bounded."""

    def __init__(self, searcher: Searcher, contents: Contents) -> None:
        self._searcher = searcher
        self._contents = contents
        self._left = DEEP_BYTES
        self._known: dict[str, frozenset[Hit]] = {}
        self._names = Names()
        self._messages = Messages()
        self._flows: dict[int, FlowEvent] = {}
        self.books = Books()

    def unit(self, data: bytes, item: str, *, truncated: bool = False) -> frozenset[Hit]:
        """Everything found in one unit, raw and deep. `truncated`: more of it was not kept."""
        self.books.discovered += 1
        hits, problem = self._search(data)
        if truncated:
            self.books.miss(item, SkipReason.LIMIT, "it was not kept whole")
        elif problem:
            self.books.miss(item, SkipReason.LIMIT, problem)
        return hits

    def raw(self, data: bytes) -> set[Hit]:
        """What is found without decoding; for what is no evidence itself."""
        return self._searcher.raw(data)

    def _search(self, data: bytes) -> tuple[frozenset[Hit], str]:
        key = sha256_hex(data)
        known = self._known.get(key)
        if known is not None:
            return known, ""
        if max(len(data), UNIT_BYTES) > self._left:
            return frozenset(self._searcher.raw(data)), "it was searched as it is, and not decoded: too much data"
        self._left -= max(len(data), UNIT_BYTES)
        found, whole = self._searcher.deep(data)
        if len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        hits = self._known[key] = frozenset(found)
        return hits, "" if whole else "it could not be decoded in every way: too many layers"

    def flow(self, event: FlowEvent) -> Iterator[Sent]:
        """Everything found in what one flow sent; what only several flows together hold comes from `rest`."""
        self.books.discovered += 1
        problem = "some of its parts were not kept" if event.parts_cut and event.outbound is None else ""
        found: dict[int, Sent] = {}
        bare = event.model_copy(update={"parts": (), "inbound": None})
        if event.outbound is not None:
            streamed, why = self._stream(event.outbound)
            problem = problem or why
            for hit in sorted(streamed):
                found.setdefault(hit.canary, Sent(hit, bare, _STREAM))
            if not event.parts and event.outbound.kept <= self._left:
                whole = b"".join(self._contents.chunks(event.outbound.sha256))
                for hit in sorted(self._search(whole)[0]):
                    found.setdefault(hit.canary, Sent(hit, bare, _STREAM))
        self._flows[event.seq] = bare
        while len(self._flows) > MOST_KNOWN:
            del self._flows[next(iter(self._flows))]
        for number, part in enumerate(event.parts, 1):
            data, why = self._part(part.content, part.text)
            domain = ""
            if part.what == "dns-question":
                name = (part.text.split() or [""])[0]
                data, domain = name.encode("utf-8", "surrogatepass"), site(name)
                self._collect(self._names.add(event.session, name, event.seq, event.began), found)
            elif part.what in _SERIES:
                owner = (event.session, event.host)
                self._collect(self._messages.add(owner, part.what, data, event.seq, event.began), found)
            hits, unsearched = self._search(data)
            problem = problem or why or unsearched
            for hit in sorted(hits):
                known = found.get(hit.canary)
                if known is None or known.in_what == _STREAM:
                    found[hit.canary] = Sent(hit, bare, f"{part.what} {number}", domain)
        if event.unread:
            self.books.miss(f"what was sent to {event.host}", SkipReason.TARGET, render_safe(event.opaque, 120))
        elif problem:
            self.books.miss(f"what was sent to {event.host}", SkipReason.LIMIT, problem)
        yield from found.values()

    def rest(self) -> Iterator[Sent]:
        """What only several messages or questions together hold."""
        for pieces in (self._names.rest(), self._messages.rest()):
            found: dict[int, Sent] = {}
            self._collect(pieces, found)
            yield from found.values()

    def _collect(self, wholes: Iterator[Whole], found: dict[int, Sent]) -> None:
        for whole in wholes:
            flow = self._flows.get(whole.seq)
            if flow is None:
                continue
            domain = whole.key[1] if isinstance(whole.key[0], str) else ""
            for hit in sorted(self._search(whole.data)[0]):
                found.setdefault(hit.canary, Sent(hit, flow, "several messages", site(domain) if domain else ""))

    def _stream(self, ref: BlobRef) -> tuple[set[Hit], str]:
        stream, size = Stream(self._searcher), 0
        for chunk in self._contents.chunks(ref.sha256):
            size += len(chunk)
            stream.feed(chunk)
        if size < ref.kept:
            return stream.hits, "its payload is missing in the recording"
        return stream.hits, "" if ref.whole else f"{ref.size - ref.kept} of {ref.size} bytes were not kept"

    def _part(self, ref: BlobRef | None, text: str) -> tuple[bytes, str]:
        if ref is None:
            return text.encode("utf-8", "surrogatepass"), ""
        data, size = bytearray(), 0
        for chunk in self._contents.chunks(ref.sha256):
            size += len(chunk)
            if len(data) <= self._left:
                data += chunk
        if size < ref.kept:
            return bytes(data), "its payload is missing in the recording"
        return bytes(data), "" if ref.whole else f"{ref.size - ref.kept} of {ref.size} bytes were not kept"


_STREAM = "what was sent"
_SERIES = frozenset({"http-request", "http-body", "websocket-message", "datagram", "stream", "smtp-message"})
