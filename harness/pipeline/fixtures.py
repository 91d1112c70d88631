"""The folder of fixtures, read, and what its special files become: databases, repositories, links, archives.

Blocking, and quick: some milliseconds for all of it. The folder's README says what each kind of file is.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import sqlite3
import stat
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.model.base import Record
from harness.model.errors import HarnessError

FOLDER = Path(__file__).parent / "planted"
#: Files of a fixed date, the same as in the repositories: 2026-01-05 09:00 UTC.
MOMENT = 1767603600
_AUTHOR = b"Alice Example <alice@example.com>"
_PLACEHOLDER = re.compile(rb"@([A-Z]+)@")

Word = Callable[[str], str]


class Fixture(Record):
    """One file of the folder: its path below the area, and its bytes."""

    path: str
    data: bytes


class Made(Record):
    """What one fixture became: `path` below the area, its kind, and files (below the area), or a link's target.

    `secret` is the never-sent value in it, `new` the path that reading or unpacking it carelessly would create.
    """

    path: str
    kind: str
    files: dict[str, bytes] = {}
    link: str = ""
    secret: str = ""
    new: str = ""


@lru_cache(maxsize=8)
def fixtures(area: str) -> tuple[Fixture, ...]:
    """The files of one area (`inside`, `outside` …), by path. Raises HarnessError when the folder is missing."""
    folder = FOLDER / area
    if not folder.is_dir():
        raise HarnessError(f"the fixtures {area} are missing", remedy="install the program again")
    return tuple(
        Fixture(path=str(path.relative_to(folder)), data=path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    )


def make(fixture: Fixture, words: Mapping[str, Word]) -> Made:
    """Fill in `@WORD@`s (each function gets the fixture's path and is asked once for each word), and make what the
    name says. Raises HarnessError for a file that can't be made.
    """
    known: dict[str, str] = {}

    def word(name: str) -> str | None:
        if name in words and name not in known:
            known[name] = words[name](fixture.path)
        return known.get(name)

    def fill(found: re.Match[bytes]) -> bytes:
        value = word(found[1].decode())
        return found[0] if value is None else value.encode()

    data = _PLACEHOLDER.sub(fill, fixture.data)
    path = _PLACEHOLDER.sub(fill, fixture.path.encode()).decode()
    secret, new = known.get("SECRET", ""), known.get("NEW", known.get("MADE", ""))
    try:
        for suffix, maker in _MAKERS.items():
            if path.endswith(suffix):
                made = maker(path.removesuffix(suffix), data)
                return made.model_copy(update={"secret": secret, "new": new})
    except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
        raise HarnessError(f"the fixture {fixture.path} can't be made: {error}") from error
    return Made(path=path, kind=kind_of(path), files={path: data}, secret=secret, new=new)


def kind_of(path: str) -> str:
    """The kind of a planted file, by its name."""
    suffix = path.rpartition(".")[2]
    if suffix in ("db", "sqlite", "sqlite3"):
        return "database"
    if suffix in ("zip", "tar", "gz"):
        return "archive"
    return "document" if suffix in ("pdf", "xlsx", "docx", "pptx", "png", "wav", "ipynb") else "file"


def _database(path: str, data: bytes) -> Made:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(data.decode())
        return Made(path=path, kind="database", files={path: connection.serialize()})
    finally:
        connection.close()


def _link(path: str, data: bytes) -> Made:
    return Made(path=path, kind="link", link=data.decode().strip())


def _slip(path: str, data: bytes) -> Made:
    names = data.decode().split()
    made = io.BytesIO()
    if path.endswith(".zip"):
        with zipfile.ZipFile(made, "w") as packed:
            for name in names:
                packed.writestr(zipfile.ZipInfo(name, (2026, 1, 5, 9, 0, 0)), f"{name}\n")
        return Made(path=path, kind="archive", files={path: made.getvalue()})
    with tarfile.open(fileobj=made, mode="w") as tape:
        for name in names:
            member = tarfile.TarInfo(name)
            member.mtime, member.size = MOMENT, len(name)
            tape.addfile(member, io.BytesIO(name.encode()))
    packed_bytes = gzip.compress(made.getvalue(), mtime=MOMENT) if path.endswith(".gz") else made.getvalue()
    return Made(path=path, kind="archive", files={path: packed_bytes})


def _repository(path: str, data: bytes) -> Made:
    """Loose objects, one branch, an index with the last commit and what is staged, and the working files."""
    from dulwich.index import IndexEntry, write_index_dict
    from dulwich.objects import Blob, Commit, Tree

    said: dict[str, Any] = tomllib.loads(data.decode())
    branch = said["branch"]
    git: dict[str, bytes] = {
        "HEAD": f"ref: refs/heads/{branch}\n".encode(),
        "config": b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
        b"[user]\n\tname = Alice Example\n\temail = alice@example.com\n",
        "description": b"A small project.\n",
        "refs/tags/first": b"",
    }
    objects: list[Blob | Tree | Commit] = []
    state: dict[str, bytes] = {}
    parents: list[Any] = []
    index: dict[bytes, Any] = {}

    def stage(name: str, content: bytes) -> Blob:
        if "/" in name:
            raise ValueError("files of a repository lie at its top")
        blob = Blob.from_string(content)
        index[name.encode()] = IndexEntry(0, 0, 0, 0, stat.S_IFREG | 0o644, 0, 0, len(content), blob.id)
        return blob

    for number, commit in enumerate(said["commit"]):
        state.update({name: text.encode() for name, text in commit["files"].items()})
        tree = Tree()
        index.clear()
        for name, content in sorted(state.items()):
            blob = stage(name, content)
            tree.add(name.encode(), stat.S_IFREG | 0o644, blob.id)
            objects.append(blob)
        made = Commit()
        made.tree, made.parents = tree.id, parents
        made.author = made.committer = _AUTHOR
        made.author_time = made.commit_time = MOMENT + 3600 * number
        made.author_timezone = made.commit_timezone = 0
        made.message = commit["message"].encode() + b"\n"
        objects += [tree, made]
        parents = [made.id]
        if not git["refs/tags/first"]:
            git["refs/tags/first"] = made.id + b"\n"
    git[f"refs/heads/{branch}"] = parents[0] + b"\n"
    staged = {name: text.encode() for name, text in said.get("staged", {}).items()}
    objects += [stage(name, content) for name, content in staged.items()]
    state.update(staged)
    for item in objects:
        name = item.id.decode()
        raw = item.as_raw_string()
        git[f"objects/{name[:2]}/{name[2:]}"] = zlib.compress(item.type_name + b" %d\0" % len(raw) + raw)
    git["index"] = _index(index, write_index_dict)
    state.update({name: text.encode() for name, text in said.get("working", {}).items()})
    files = {f"{path}/.git/{name}": content for name, content in git.items()}
    return Made(path=path, kind="repository", files={**files, **{f"{path}/{n}": c for n, c in state.items()}})


def _index(entries: dict[bytes, Any], write: Callable[[Any, Any], None]) -> bytes:
    buffer = io.BytesIO()
    write(buffer, entries)
    return buffer.getvalue() + hashlib.sha1(buffer.getvalue(), usedforsecurity=False).digest()


_MAKERS: dict[str, Callable[[str, bytes], Made]] = {
    ".repository.toml": _repository,
    ".sql": _database,
    ".link": _link,
    ".slip": _slip,
}

#: Endings that make more of a fixture than a file.
SPECIAL = tuple(_MAKERS)
