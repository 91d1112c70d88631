"""Git repositories that a target makes: what `git init` and `git clone` write into their own is no persistence."""

from __future__ import annotations

from harness.analyzers.behavior.made import PathMemory

_FOLDER = "/.git"
_MAKING = frozenset({"mkdir", "mkdirat"})
_SETTINGS = frozenset({"config", "config.lock"})


class Repositories:
    """Memory: the repositories made so far, bounded."""

    def __init__(self) -> None:
        self._made = PathMemory()

    def wrote(self, call: str, path: str) -> None:
        """A system call made or changed `path`."""
        if call in _MAKING and path.endswith(_FOLDER):
            self._made.add(path)

    def usual(self, path: str, program: str) -> bool:
        """True for what the program `git` writes into any repository that it makes.

        The templates of hooks end in `.sample`, and so never run (githooks(5)); settings are those of a repository
        that was not there before.
        """
        folder, found, rest = path.rpartition(f"{_FOLDER}/")
        if not found or program != "git":
            return False
        if rest == "hooks" or (rest.startswith("hooks/") and rest.endswith(".sample")):
            return True
        return rest in _SETTINGS and folder + _FOLDER in self._made
