"""Values that results hand out and later calls take: ids, handles, names, paths, by the name that they had. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from harness.model.base import JsonObject, JsonValue
from harness.probing.calls.subjects import Subject

#: Bounds of what is remembered.
MOST_NAMES = 100
MOST_VALUES = 8
MOST_CHARACTERS = 512
#: Parsed at most; a longer answer is only searched.
MOST_TEXT = 256 << 10

_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,39})[\"'`]?\s*[:=]\s*[\"'`]?([A-Za-z0-9][A-Za-z0-9_./:-]{2,127})")
#: Words at the end of a name that say that its value stands for something.
_HANDLE = re.compile(
    r"(?:^|[_-]|(?<=[a-z0-9]))(?:id|ids|uuid|guid|key|handle|ref|name|path|uri|url|slug|sha|hash|session)$", re.I
)
_ID = re.compile(r"(?:^|[_-]|(?<=[a-z0-9]))(?:id|uuid|guid|handle|ref|key|session)$", re.I)


class Carried:
    """What earlier results gave, by name in one form (`output_id`), newest first."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """By name; the newest value first."""
        return {name: tuple(values) for name, values in self._values.items()}

    def learn(self, text: str) -> int:
        """Remember the values in an answer; returns how many were new."""
        new = 0
        for name, value in handed_out(text):
            if len(self._values) >= MOST_NAMES and name not in self._values:
                continue
            known = self._values.setdefault(name, [])
            if value in known:
                continue
            known.insert(0, value)
            del known[MOST_VALUES:]
            new += 1
        return new

    def forget(self) -> None:
        """A new life of the target: nothing that it handed out before holds."""
        self._values.clear()


def handed_out(text: str) -> Iterator[tuple[str, str]]:
    """Names and values in a result that look like handles, in their order."""
    seen: set[tuple[str, str]] = set()
    for name, value in (*_structured(text[:MOST_TEXT]), *_written(text[:MOST_TEXT])):
        pair = plain(name), value
        if _HANDLE.search(name) and 1 <= len(value) <= MOST_CHARACTERS and pair not in seen:
            seen.add(pair)
            yield pair


def followers(subjects: Iterable[Subject], given: Iterable[tuple[str, str]]) -> Iterator[tuple[Subject, str, str]]:
    """Subjects that take one of these values under the same name: the subject, its argument, the value.

    `id` alone fits no other name but `id`; the names of ids count, not those of everything that a result tells.
    """
    values = {name: value for name, value in given if _ID.search(name)}
    for subject in subjects:
        properties = subject.schema.get("properties") if isinstance(subject.schema, dict) else None
        for argument in properties if isinstance(properties, dict) else ():
            value = values.get(plain(argument))
            if value is not None:
                yield subject, argument, value


def plain(name: str) -> str:
    """A name in one form: `outputId`, `output-id` and `Output_ID` are `output_id`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", parted.casefold()).strip("_")


def _structured(text: str) -> Iterator[tuple[str, str]]:
    """From JSON: the whole text, or lines that are objects or lists."""
    for piece in (text, *(line for line in text.splitlines() if line.lstrip()[:1] in ("{", "["))):
        try:
            value: JsonValue = json.loads(piece)
        except (ValueError, RecursionError):
            continue
        yield from _members(value)
        if piece is text:
            return


def _members(value: JsonValue) -> Iterator[tuple[str, str]]:
    stack: list[JsonValue] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            stack.extend(reversed(list(node.values())))
            yield from _pairs(node)
        elif isinstance(node, list):
            stack.extend(reversed(node[:100]))


def _pairs(node: JsonObject) -> Iterator[tuple[str, str]]:
    for name, value in node.items():
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            yield name, str(value)


def _written(text: str) -> Iterator[tuple[str, str]]:
    for found in _NAMED.finditer(text):
        yield found[1], found[2]
