"""Reading packages without trusting them: single members with a bound, and unpacking with limits.

Refused are members that lead out of the archive, links, devices, and archives beyond the bounds on files,
bytes and ratio. Nothing here executes, and nothing is written outside the folder given.
"""

from __future__ import annotations

import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from harness.acquisition.limits import ARCHIVE_RATIO, METADATA_BYTES, TREE_BYTES, TREE_FILES, ZIP_DIRECTORY_BYTES
from harness.model.errors import TargetError

_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)

# The end record of a zip file (with room for a comment of 64 KiB before the file's end), and the 64-bit locator.
_END = b"PK\x05\x06"
_LOCATOR_64 = b"PK\x06\x07"
_END_SEARCH = (1 << 16) + 22


def safe_member(name: str) -> PurePosixPath:
    """The path of a member inside its archive. Raises TargetError when it leads anywhere else."""
    path = PurePosixPath(name)
    if "\\" in name or "\x00" in name or path.is_absolute() or ".." in path.parts or not path.parts:
        raise TargetError(f"a member of the archive leads out of it: {name[:80]!a}")
    return path


def check_zip_directory(path: Path) -> None:
    """Raise TargetError when reading the archive's table of contents would take more than its bound.

    zipfile reads and parses all of it on opening, as large as the end record says. No archive within our bounds
    needs the 64-bit form.
    """
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        start = max(size - _END_SEARCH, 0)
        stream.seek(start)
        tail = stream.read(_END_SEARCH)
    plain = tail[-22:].startswith(_END) and tail.endswith(b"\0\0")
    place = len(tail) - 22 if plain else tail.rfind(_END)
    if place < 0 or len(tail) < place + 22:
        raise TargetError("the package file can't be read as a zip archive: it has no end record")
    (directory,) = struct.unpack_from("<L", tail, place + 12)
    if directory > ZIP_DIRECTORY_BYTES or tail[max(place - 20, 0) : place].startswith(_LOCATOR_64):
        raise TargetError("the package file holds more entries than the bound")


def zip_names(path: Path) -> list[str]:
    """The member names of a zip file (a wheel), bounded. Raises TargetError when it is damaged or too large."""
    check_zip_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (*_DAMAGED, OSError) as error:
        raise TargetError(f"the package file can't be read as a zip archive: {error}") from error
    if len(members) > TREE_FILES:
        raise TargetError(f"the package has {len(members)} files, more than the bound of {TREE_FILES}")
    return [member.filename for member in members]


def read_zip_member(path: Path, name: str, limit: int = METADATA_BYTES) -> bytes | None:
    """The content of one member of a zip file, or None when there is none of that name.

    Raises TargetError when it is larger than `limit` or damaged; the declared size is not believed.
    """
    check_zip_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            try:
                member = archive.getinfo(name)
            except KeyError:
                return None
            with archive.open(member) as stream:
                data = stream.read(limit + 1)
    except (*_DAMAGED, OSError) as error:
        raise TargetError(f"{name[:80]!a} in the package file can't be read: {error}") from error
    if len(data) > limit:
        raise TargetError(f"{name[:80]!a} in the package is larger than {limit} bytes")
    return data


def unpack_zip(path: Path, into: Path, *, prefix: str = "") -> None:
    """Unpack the regular files of a zip file whose names begin with `prefix` into the folder `into`.

    Raises TargetError for outward names, links, special files and sizes beyond the bounds.
    """
    packed = path.stat().st_size
    total = 0
    check_zip_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            for count, member in enumerate(members, 1):
                kind = stat.S_IFMT(member.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise TargetError(f"the archive holds a link or a device: {member.filename[:80]!a}")
                name = safe_member(member.filename)
                if member.is_dir() or not member.filename.startswith(prefix):
                    continue
                total += member.file_size  # zipfile reads no byte beyond the declared size
                _check_totals(count, total, packed)
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("xb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
                target.chmod(0o755 if member.external_attr >> 16 & 0o100 else 0o644)
    except (*_DAMAGED, OSError) as error:
        raise TargetError(f"the archive can't be unpacked: {error}") from error


def _check_totals(count: int, total: int, packed: int) -> None:
    if count > TREE_FILES:
        raise TargetError(f"the archive has more than {TREE_FILES} files")
    if total > TREE_BYTES:
        raise TargetError(f"the archive unpacks to more than {TREE_BYTES} bytes")
    if total > max(packed, 1 << 16) * ARCHIVE_RATIO:
        raise TargetError(f"the archive unpacks to more than {ARCHIVE_RATIO} times its size")
