"""Making a confirmed payload smaller: which pieces can go with the effect still there. Pure, a question at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Words, runs of spaces and each other character: what an exploit is made of.
_PIECE = re.compile(r"[A-Za-z0-9_.]+|\s+|.", re.DOTALL)


class Minimiser:
    """Delta debugging (Zeller and Hildebrandt 2002) over the pieces of one text.

    `keep`: texts that must stay whole (nonce, planted path, marker). Ask `next`, try it, tell with `take`.
    """

    def __init__(self, value: str, keep: Sequence[str], tries: int) -> None:
        self._pieces = _pieces(value, keep)
        self._keep = tuple(keep)
        self._left = tries
        self._parts = 2
        self._place = 0
        self._asked: list[str] | None = None
        self._tried = {value}

    @property
    def best(self) -> str:
        """The smallest form with the effect so far."""
        return "".join(self._pieces)

    def next(self) -> str | None:
        """A smaller form to try, or None when there is none left."""
        while self._left > 0 and len(self._pieces) > 1:
            size = -(-len(self._pieces) // self._parts)
            start = self._place * size
            if start >= len(self._pieces):
                if self._parts >= len(self._pieces):
                    return None
                self._parts, self._place = min(self._parts * 2, len(self._pieces)), 0
                continue
            shorter = self._pieces[:start] + self._pieces[start + size :]
            text = "".join(shorter)
            if text in self._tried or not all(word in text for word in self._keep):
                self._place += 1
                continue
            self._tried.add(text)
            self._left -= 1
            self._asked = shorter
            return text
        return None

    def take(self, *, seen: bool) -> None:
        """What came of the last question. Raises ValueError when none was asked."""
        if self._asked is None:
            raise ValueError("nothing was asked")
        if seen:
            self._pieces = self._asked
            self._parts, self._place = max(2, self._parts - 1), 0
        else:
            self._place += 1
        self._asked = None


def _pieces(value: str, keep: Sequence[str]) -> list[str]:
    words = [re.escape(word) for word in sorted(keep, key=len, reverse=True) if word]
    pattern = re.compile("|".join([*words, _PIECE.pattern]), re.DOTALL)
    return pattern.findall(value)
