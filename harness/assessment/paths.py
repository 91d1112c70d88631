"""A bounded set of file paths that grows coarser instead of larger: files become folders, folders their parents."""

from __future__ import annotations

#: Folders kept while events pass, and shown at the end.
MAX_KEPT = 512
MAX_SHOWN = 64


class FolderSet:
    """Folders of files, each with a slash at its end. Deterministic for a given sequence of paths."""

    def __init__(self, kept: int = MAX_KEPT) -> None:
        self._kept = kept
        self._folders: set[str] = set()
        self._known: str = ""

    def add(self, path: str) -> None:
        """Take in the folder of an absolute path; other paths are left out."""
        folder = path[: path.rfind("/") + 1]
        if folder == "/":
            folder = path  # the top stands for nothing
        if folder == self._known or not folder.startswith("/"):
            return
        self._known = folder
        self._folders.add(folder)
        if len(self._folders) > self._kept:
            self._folders = _coarser(self._folders, self._kept // 2)

    def shown(self, most: int = MAX_SHOWN) -> tuple[str, ...]:
        """At most `most` folders that hold all paths taken in, sorted; a folder stands for all below it."""
        folders = _absorbed(self._folders)
        return tuple(sorted(_absorbed(_coarser(folders, most)) if len(folders) > most else folders))


def _coarser(folders: set[str], most: int) -> set[str]:
    """Replace the deepest folders by their parents until `most` are left, or only top ones."""
    while len(folders) > most:
        deepest = max(folder.count("/") for folder in folders)
        if deepest <= 2:
            break
        folders = {
            folder if folder.count("/") < deepest else folder[: folder.rstrip("/").rfind("/") + 1] for folder in folders
        }
    return folders if len(folders) <= most else set(sorted(folders)[:most])


def _absorbed(folders: set[str]) -> set[str]:
    """Without those that lie below another one; top folders such as /usr/ do not absorb."""
    kept: set[str] = set()
    for folder in sorted(folders):
        parts = folder.rstrip("/").split("/")
        parents = ("/".join(parts[:depth]) + "/" for depth in range(3, len(parts)))
        if not any(parent in kept for parent in parents):
            kept.add(folder)
    return kept
