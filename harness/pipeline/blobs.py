"""Payload bytes in a bundle: stored once by SHA-256, bounded in all; and the packet captures of its sessions."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from harness.model.flow import BlobRef, FlowEvent, FlowPart

#: All blobs of a bundle together.
MOST_BYTES = 256 << 20
CAPTURE = "egress.pcap"
#: The packets of all sessions together.
MOST_CAPTURE_BYTES = 256 << 20
#: Of a request, what is told of its lines without a look at the blob.
LINES_BYTES = 2 << 10
#: The head of a pcap file, which the files of all sessions have in common.
_PCAP_HEADER = 24


class BlobStore:
    """A folder of blobs. `seen` counts all bytes that came, `overflowed` tells that some were not kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[str] = set()
        self._kept = 0
        self.seen = 0
        self.overflowed = False

    def keep(self, data: bytes) -> str:
        """Store bytes unless they are there; returns their SHA-256. Past the bound nothing is written."""
        digest = hashlib.sha256(data).hexdigest()
        if digest in self._known:
            return digest
        self.seen += len(data)
        if self._kept + len(data) > MOST_BYTES:
            self.overflowed = True
            return digest
        self._kept += len(data)
        self._known.add(digest)
        (self._folder / digest).write_bytes(data)
        return digest


def repointed(event: FlowEvent, renamed: Mapping[str, str]) -> FlowEvent:
    """The event with its blobs under other names, where redaction changed them."""
    if all(old == new for old, new in renamed.items()):
        return event

    def other(ref: BlobRef | None) -> BlobRef | None:
        return None if ref is None else ref.model_copy(update={"sha256": renamed.get(ref.sha256, ref.sha256)})

    parts = tuple(part.model_copy(update={"content": other(part.content)}) for part in event.parts)
    update = {"outbound": other(event.outbound), "inbound": other(event.inbound), "parts": parts}
    return event.model_copy(update=update)


def with_lines(event: FlowEvent, blobs: Mapping[str, bytes]) -> FlowEvent:
    """The event with the lines of its requests, out of the blobs by their names: readers of events read no blobs."""
    if not any(part.what == "http-request" for part in event.parts):
        return event

    def told(part: FlowPart) -> FlowPart:
        data = blobs.get(part.content.sha256, b"") if part.what == "http-request" and part.content else b""
        return part.model_copy(update={"lines": data[:LINES_BYTES].decode("latin-1")}) if data else part

    return event.model_copy(update={"parts": tuple(told(part) for part in event.parts)})


def join_capture(whole: Path, part: Path) -> int:
    """Append the packets in `part` to `whole` and remove it. Blocking.

    Past the bound they are dropped: then it returns how many bytes both have, else 0.
    """
    try:
        if not part.is_file() or part.stat().st_size < _PCAP_HEADER:
            return 0
        present = whole.stat().st_size if whole.is_file() else 0
        both = present + part.stat().st_size
        if both > MOST_CAPTURE_BYTES:
            return both
        with part.open("rb") as source, whole.open("ab") as target:
            if present:
                source.seek(_PCAP_HEADER)
            shutil.copyfileobj(source, target)
        return 0
    finally:
        part.unlink(missing_ok=True)
