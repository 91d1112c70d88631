"""A source tree or single file of the user, read once into the store, so that what is vetted is what was digested.

Refused are links that lead out of the tree and trees beyond the bounds; special files and links to folders are
left out and counted. Version control and installed dependencies are left out: they are not the source.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from harness.acquisition.limits import METADATA_BYTES, TREE_BYTES, TREE_FILES
from harness.acquisition.store import Store
from harness.model.base import Record, canonical_json, sha256_hex
from harness.model.errors import TargetError, UsageError
from harness.model.target import Artifact, InputFile

LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".mypy_cache"}
    | {".pytest_cache", ".ruff_cache"}
)


class TreeFile(Record):
    """One file: its path in the tree with forward slashes, the stored content, and whether it is executable."""

    path: str
    sha256: str
    size: int
    executable: bool


class SourceTree(Record):
    """A tree as read. `name`: the folder's or file's own name. `passed_over`: what is neither file nor folder."""

    name: str
    files: tuple[TreeFile, ...]
    passed_over: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over all paths, contents and modes (64 hex digits)."""
        return sha256_hex(canonical_json([[f.path, f.sha256, f.executable] for f in self.files]))

    @property
    def size(self) -> int:
        """The sum of all file sizes in bytes."""
        return sum(file.size for file in self.files)

    def has(self, path: str) -> bool:
        """Is there a file at this path?"""
        return any(file.path == path for file in self.files)

    def artifact(self, version: str = "") -> Artifact:
        """The tree as one artifact of the closure."""
        return Artifact(name=self.name, version=version, filename=self.name, sha256=self.digest, size=self.size)

    def input_files(self, store: Store) -> tuple[InputFile, ...]:
        """All files, to be put below `src/`."""
        return tuple(
            InputFile(
                source=store.path(file.sha256),
                destination=f"src/{file.path}",
                mode=0o755 if file.executable else 0o644,
            )
            for file in self.files
        )

    def read(self, store: Store, path: str) -> bytes | None:
        """The content of a small file, or None without one. Raises TargetError when it is not small."""
        found = next((file for file in self.files if file.path == path), None)
        if found is None:
            return None
        if found.size > METADATA_BYTES:
            raise TargetError(f"{path} is larger than {METADATA_BYTES} bytes")
        return store.path(found.sha256).read_bytes()


def read_tree(store: Store, path: Path, *, everything: bool = False) -> SourceTree:
    """Read the folder or file at `path` into the store; with `everything`, installed dependencies too.

    Raises UsageError for what can't be read, TargetError for a link that leads out or a tree beyond the bounds.
    """
    try:
        if path.is_file():
            sha256, size = store.add(path, "copy")
            file = TreeFile(path=path.name, sha256=sha256, size=size, executable=False)
            return SourceTree(name=path.name, files=(file,))
        found, passed_over = _walk(store, path, frozenset() if everything else LEFT_OUT)
    except OSError as error:
        raise UsageError(f"{error.filename or str(path)!a} can't be read: {error.strerror}") from error
    if not found:
        raise UsageError(f"the folder {str(path)!a} holds no files", remedy="give the folder of the server")
    name = path.resolve().name or "root"
    return SourceTree(
        name=name, files=tuple(sorted(found, key=lambda file: file.path)), passed_over=tuple(sorted(passed_over))
    )


def _walk(store: Store, root: Path, left_out: frozenset[str]) -> tuple[list[TreeFile], list[str]]:
    base = root.resolve()
    found: list[TreeFile] = []
    passed_over: list[str] = []
    total = 0
    folders = [base]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                place = Path(entry.path)
                name = place.relative_to(base).as_posix()
                if entry.is_symlink():
                    target = place.resolve()
                    if not target.is_relative_to(base):
                        raise TargetError(f"the link {name[:120]!a} leads out of the tree, which is refused")
                    if not target.is_file() or left_out & set(target.relative_to(base).parts):
                        passed_over.append(name)
                        continue
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in left_out:
                        folders.append(place)
                    continue
                state = entry.stat()
                if not stat.S_ISREG(state.st_mode) or not _portable(name):
                    passed_over.append(name.encode("utf-8", "replace").decode())
                    continue
                total += state.st_size
                if total > TREE_BYTES or len(found) >= TREE_FILES:
                    raise TargetError(f"the tree is larger than {TREE_BYTES >> 20} MB or {TREE_FILES} files")
                sha256, size = store.add(place, "copy")
                found.append(
                    TreeFile(path=name, sha256=sha256, size=size, executable=bool(state.st_mode & stat.S_IXUSR))
                )
    return found, passed_over


def _portable(name: str) -> bool:
    """Can the name be written down? (Names that are not UTF-8 reach us with lone surrogates.)"""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\n" not in name
