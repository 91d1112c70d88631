"""Reading a gzipped tar without trusting it: unpacked to one bounded file, then looked through member by member.

The library that parses tar reads header extensions into memory as large as they say they are, so it gets a file
that refuses large reads. Nothing is extracted; members that are asked for come back as bytes.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from harness.acquisition.archive import safe_member
from harness.acquisition.limits import ARCHIVE_RATIO, METADATA_BYTES, TREE_BYTES, TREE_FILES
from harness.model.errors import TargetError

_CHUNK = 1 << 20
#: A header extension (a long name, a list of attributes) is far smaller.
_LARGEST_READ = 2 * METADATA_BYTES
#: Each member costs a header and padding of at most 1,024 bytes, and a name extension the same again.
_OVERHEAD = 2048 * TREE_FILES

_DAMAGED = (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError, RecursionError, OSError)


def read_tarball(path: Path, work: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The contents of the regular members that are `wanted` by name, of a file that is looked through to its end.

    `work` is a temporary folder. Raises TargetError for names and links that lead out of it, devices, damage, and
    whatever is beyond the bounds on files, bytes and ratio, or wanted and larger than a metadata file may be.
    """
    plain = work / "plain.tar"
    try:
        _unzip(path, plain)
        found: dict[str, bytes] = {}
        with plain.open("rb") as stream, tarfile.open(fileobj=_Guarded(stream), mode="r:") as archive:
            for count, member in enumerate(archive, 1):
                if count > TREE_FILES:
                    raise TargetError(f"the archive has more than {TREE_FILES} files")
                name = check_member(member)
                if member.isreg() and name and wanted(name):
                    found[name] = _content(archive, member, name)
        return found
    except _DAMAGED as error:
        raise TargetError(f"the archive can't be read as a gzipped tar: {type(error).__name__}") from error
    finally:
        plain.unlink(missing_ok=True)


def check_member(member: tarfile.TarInfo) -> str:
    """The name of a member in its normal form ("" for the top). Raises TargetError for one that is refused."""
    if posixpath.normpath(member.name) == ".":
        return ""
    name = str(safe_member(member.name))
    if member.issym():
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
        if member.linkname.startswith("/") or target == ".." or target.startswith("../"):
            raise TargetError(f"a link in the archive leads out of it: {name[:80]!a}")
    elif member.islnk():
        safe_member(member.linkname)
    elif not member.isreg() and not member.isdir():
        raise TargetError(f"the archive holds a device or another special file: {name[:80]!a}")
    return name


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> bytes:
    if member.size > METADATA_BYTES:
        raise TargetError(f"{name[:80]!a} in the archive is larger than {METADATA_BYTES} bytes")
    stream = archive.extractfile(member)
    return stream.read(METADATA_BYTES) if stream is not None else b""


def _unzip(path: Path, into: Path) -> None:
    packed = path.stat().st_size
    most = min(TREE_BYTES + _OVERHEAD, max(packed, 1 << 16) * ARCHIVE_RATIO)
    total = 0
    with gzip.open(path) as source, into.open("xb") as sink:
        while chunk := source.read(_CHUNK):
            total += len(chunk)
            if total > most:
                bound = f"{TREE_BYTES} bytes" if total > TREE_BYTES else f"{ARCHIVE_RATIO} times its size"
                raise TargetError(f"the archive unpacks to more than {bound}")
            sink.write(chunk)


class _Guarded(io.RawIOBase):
    """A file that refuses to read much at once."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LARGEST_READ:
            raise TargetError(f"a header of the archive is larger than {_LARGEST_READ} bytes")
        return self._stream.read(size)
