"""The text of a target's own source, and the environment variables that it reads: nothing is executed or unpacked.

Asked for variables only after a start failed for a reason that the output does not tell.
"""

from __future__ import annotations

import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from harness.acquisition.archive import check_zip_directory
from harness.model.errors import TargetError
from harness.model.target import Acquired

#: Bounds on what is read, in bytes: one file, all files; and the number of files. A bundled server has some megabytes.
FILE_BYTES = 12 << 20
TOTAL_BYTES = 48 << 20
MOST_FILES = 4000
MOST_NAMES = 400

_SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts")
_DOCUMENTS = (".md", ".rst", ".txt", "METADATA", "PKG-INFO", "package.json", "server.json")
_NAME = r"([A-Z][A-Z0-9_]{2,79})"
_READS = re.compile(
    rf"\benv\.{_NAME}\b|\benv\[\s*[\"'`]{_NAME}[\"'`]|\benviron(?:\.get|\.pop|\.setdefault)?[\[(]\s*[\"']{_NAME}[\"']"
    rf"|\bgetenv\(\s*[\"']{_NAME}[\"']|\b(?:env|envvar|alias|validation_alias|env_var|envVar|envName)\s*[=:(]\s*[\"'`]{_NAME}[\"'`]"
    rf"|\b(?:get_?[eE]nv\w*|read_?[eE]nv\w*|require_?[eE]nv\w*|env_?(?:str|int|bool|get)?)\(\s*[\"'`]{_NAME}[\"'`]"
    r"|\benv_prefix\s*[=:]\s*[\"']([A-Z][A-Z0-9_]{1,40}_)[\"']"
)
_DESTRUCTURED = re.compile(r"\{([A-Za-z0-9_,:\s]{3,2000})\}\s*=\s*process\.env\b")


def source_variables(acquired: Acquired) -> tuple[str, ...]:
    """The names, in the order of how often they are read; a name that ends with `_` is a prefix. Blocking.

    Empty when the source can't be read: a damaged archive is told elsewhere.
    """
    counts: dict[str, int] = {}
    for text in source_texts(acquired):
        for match in _READS.finditer(text):
            name = next(group for group in match.groups() if group)
            counts[name] = counts.get(name, 0) + 1
        for match in _DESTRUCTURED.finditer(text):
            for name in re.findall(rf"\b{_NAME}\b", match[1]):
                counts[name] = counts.get(name, 0) + 1
        if len(counts) > 4 * MOST_NAMES:
            break
    return tuple(sorted(counts, key=lambda name: (-counts[name], name))[:MOST_NAMES])


def source_texts(acquired: Acquired, *, documents: bool = False) -> Iterator[str]:
    """The files of the target's own source one by one, and what is written beside it where `documents`. Blocking.

    What can't be read or is over a bound is left out.
    """
    suffixes = _SUFFIXES + _DOCUMENTS if documents else _SUFFIXES
    own = {artifact.sha256 for artifact in acquired.closure.artifacts if artifact.name == acquired.name}
    total = files = 0
    for file in acquired.install.files:
        if file.source.name in own or file.destination.startswith("src/"):
            for data in _members(file.source, file.destination, suffixes):
                total, files = total + len(data), files + 1
                if total > TOTAL_BYTES or files > MOST_FILES:
                    return
                yield data.decode("utf-8", "replace")


def _members(path: Path, destination: str, suffixes: tuple[str, ...]) -> Iterator[bytes]:
    """The texts in a wheel or an npm tarball, or a plain source file."""
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
        if head.startswith(b"PK"):
            check_zip_directory(path)
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist()[:MOST_FILES]:
                    if member.filename.endswith(suffixes) and 0 < member.file_size <= FILE_BYTES:
                        with archive.open(member) as content:
                            yield content.read(FILE_BYTES)
        elif head.startswith(b"\x1f\x8b"):
            with tarfile.open(path, "r|gz") as tar:
                for number, entry in enumerate(tar):
                    if number > MOST_FILES:
                        return
                    if entry.isfile() and entry.name.endswith(suffixes) and 0 < entry.size <= FILE_BYTES:
                        opened = tar.extractfile(entry)
                        if opened is not None:
                            yield opened.read(FILE_BYTES)
        elif destination.endswith(suffixes) and path.stat().st_size <= FILE_BYTES:
            yield path.read_bytes()
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError, TargetError, ValueError, RuntimeError):
        return
