"""The tar stream in which install inputs go to the engine: made piece by piece, never whole in memory."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from harness.model.errors import HarnessError
from harness.model.target import InputFile
from harness.sandbox.hardening import USER_ID

CHUNK_BYTES = 1 << 20


def input_archive(files: Iterable[InputFile]) -> Iterator[bytes]:
    """Yield a tar of `files` and their folders, all owned by the sandbox's user.

    Blocking: reads the files. Raises `HarnessError` for a destination that leaves the folder, or a file that can't
    be read or changes meanwhile.
    """
    made: set[PurePosixPath] = set()
    for file in files:
        path = PurePosixPath(file.destination)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in file.destination:
            raise HarnessError(f"an install input can't be called {file.destination!r}")
        for parent in reversed(path.parents[:-1]):
            if parent not in made:
                made.add(parent)
                yield _folder(parent)
        yield from _content(file, path)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _content(file: InputFile, path: PurePosixPath) -> Iterator[bytes]:
    try:
        with file.source.open("rb") as source:
            size = source.seek(0, 2)
            source.seek(0)
            yield _header(path, file.mode, size=size)
            left = size
            while left:
                piece = source.read(min(CHUNK_BYTES, left))
                if not piece:
                    raise HarnessError(f"{file.source} was cut while it was read")
                left -= len(piece)
                yield piece
    except OSError as error:
        raise HarnessError(f"can't read {file.source}: {error.strerror}") from error
    yield bytes(-size % tarfile.BLOCKSIZE)


def _folder(path: PurePosixPath) -> bytes:
    return _header(path, 0o755, kind=tarfile.DIRTYPE)


def _header(path: PurePosixPath, mode: int, *, size: int = 0, kind: bytes = tarfile.REGTYPE) -> bytes:
    entry = tarfile.TarInfo(str(path))
    entry.type, entry.mode, entry.size = kind, mode & 0o777, size
    entry.uid = entry.gid = USER_ID
    return entry.tobuf(tarfile.PAX_FORMAT)
