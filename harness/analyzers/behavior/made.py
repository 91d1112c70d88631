"""Files that a target made itself, and such that were there before it: two bounded memories by path."""

from __future__ import annotations

#: Paths remembered of each kind; the oldest go first.
MAX_PATHS = 8192


class PathMemory:
    """A set of paths that forgets its oldest. `forgot` is True once it has, so that absence proves nothing any more."""

    def __init__(self) -> None:
        self._bound = MAX_PATHS
        self._paths: dict[str, None] = {}
        self.forgot = False

    def add(self, path: str) -> None:
        """Remember a path."""
        if path not in self._paths:
            if len(self._paths) >= self._bound:
                del self._paths[next(iter(self._paths))]
                self.forgot = True
            self._paths[path] = None

    def discard(self, path: str) -> None:
        """Forget a path that is gone."""
        self._paths.pop(path, None)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def __len__(self) -> int:
        return len(self._paths)
