"""Reading a bundle back as a `Recording`: iterated in the order of its numbers, never loaded whole.

A bundle may be cut off (its run died) or come from somebody else, so every line is bounded and validated.
"""

from __future__ import annotations

import heapq
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import zstandard
from pydantic import TypeAdapter, ValidationError

from harness.analyzers.base import AnalysisFacts
from harness.model.errors import BundleError
from harness.model.flow import BlobRef
from harness.model.recording import EVENT_ADAPTER, Event, Manifest
from harness.model.surface import Surface
from harness.pipeline.seal import check_seal

#: A frame's data is bounded when written; this is twice that with room for escapes.
MAX_LINE_BYTES = 16 << 20
MAX_FILE_BYTES = 256 << 20
CHUNK_BYTES = 1 << 20
_DIGEST = re.compile("[0-9a-f]{64}")

_SURFACES: TypeAdapter[tuple[Surface, ...]] = TypeAdapter(tuple[Surface, ...])


class BundleRecording:
    """A bundle on disk. Raises BundleError where a file is missing, damaged or not what the seal says.

    `trust_unsealed`: True inside the run that writes it, where the seal comes after judging.
    """

    def __init__(self, folder: Path, *, trust_unsealed: bool = False, verify: bool = True) -> None:
        self.folder = folder
        if not (folder / "manifest.json").is_file():
            raise BundleError(f"{folder.name} is not a run bundle", remedy="give the folder that holds manifest.json")
        sealed = check_seal(folder) if verify else (folder / "seal.json").is_file()
        self._manifest = _parse_manifest(folder / "manifest.json")
        self._surfaces = _parse_surfaces(folder / "surface.json")
        self._complete = self._manifest.finished and (sealed or trust_unsealed)

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def surfaces(self) -> tuple[Surface, ...]:
        return self._surfaces

    @property
    def complete(self) -> bool:
        return self._complete

    @property
    def facts(self) -> AnalysisFacts:
        """What an analyzer knows before the first event."""
        return AnalysisFacts(manifest=self._manifest, surfaces=self._surfaces, complete=self._complete, contents=self)

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """The blob of that digest in pieces, nothing where there is none (see `analyzers.base.Contents`)."""
        path = self.folder / "blobs" / sha256
        if not _DIGEST.fullmatch(sha256) or path.is_symlink() or not path.is_file():
            return
        with path.open("rb") as file:
            while piece := file.read(CHUNK_BYTES):
                yield piece

    def events(self) -> Iterator[Event]:
        """All events by number. The tail of an incomplete bundle may be cut; elsewhere damage raises BundleError."""
        return heapq.merge(
            self._lines(self.folder / "messages.jsonl", packed=False),
            self._lines(self.folder / "events.jsonl.zst", packed=True),
            self._lines(self.folder / "flows.jsonl", packed=False, optional=True),
            key=lambda event: event.seq,
        )

    def talk(self) -> Iterator[Event]:
        """Messages and flows alone, by number; also of a bundle that is being written."""
        return heapq.merge(
            self._lines(self.folder / "messages.jsonl", packed=False),
            self._lines(self.folder / "flows.jsonl", packed=False, optional=True),
            key=lambda event: event.seq,
        )

    def blob(self, ref: BlobRef) -> bytes:
        """The bytes that were kept of a payload. Raises BundleError where they are not there."""
        if re.fullmatch("[0-9a-f]{64}", ref.sha256) is None:
            raise BundleError("a flow points to what is no blob", remedy="the bundle is damaged")
        return _read_bounded(self.folder / "blobs" / ref.sha256)

    def _lines(self, path: Path, *, packed: bool, optional: bool = False) -> Iterator[Event]:
        if not path.is_file():
            if self._complete and not optional:
                raise BundleError(f"the bundle lacks {path.name}", remedy="record it again")
            return
        with path.open("rb") as file:
            stream: io.BufferedIOBase | io.BufferedReader = file
            if packed:
                reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file)
                stream = io.BufferedReader(reader)
            number = 0
            while True:
                number += 1
                try:
                    line = stream.readline(MAX_LINE_BYTES)
                    if not line:
                        return
                    yield EVENT_ADAPTER.validate_json(line)
                except (ValidationError, zstandard.ZstdError, OSError) as error:
                    if self._complete:
                        raise BundleError(
                            f"line {number} of {path.name} can't be read", remedy="the bundle is damaged"
                        ) from error
                    return


def _read_bounded(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BundleError(f"{path.name} can't be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise BundleError(f"{path.name} is larger than {MAX_FILE_BYTES >> 20} MiB", remedy="this is no bundle of ours")
    return data


def _parse_manifest(path: Path) -> Manifest:
    try:
        return Manifest.model_validate_json(_read_bounded(path))
    except ValidationError as error:
        raise BundleError(
            "manifest.json does not fit this version's format", remedy="replay it with the version that wrote it"
        ) from error


def _parse_surfaces(path: Path) -> tuple[Surface, ...]:
    if not path.is_file():
        return ()
    try:
        return _SURFACES.validate_python(json.loads(_read_bounded(path)))
    except (ValidationError, ValueError, RecursionError) as error:
        raise BundleError("surface.json can't be read", remedy="the bundle is damaged") from error
