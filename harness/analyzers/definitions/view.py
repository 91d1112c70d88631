"""The declarations of one or more servers, as the checks see them: every text with its place, computed once.

An item is a tool, prompt, resource or resource template, or the server's own words (its instructions and the
description of its implementation), whose kind is `server`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from harness.analyzers.base import AnalysisFacts, ServerSurface
from harness.analyzers.definitions.frame_rules import lexicon, rules_and_frames
from harness.analyzers.definitions.frames import Span, find_spans
from harness.analyzers.definitions.text import Prose, read_prose
from harness.model.base import JsonValue, canonical_json, sha256_hex
from harness.model.finding import Location
from harness.model.surface import ItemKind, Surface

#: Characters of prose matched for phrases, for each item and over all items; the raw scan has no such bound.
ITEM_CHARS = 200_000
TOTAL_CHARS = 4_000_000

SERVER = "server"
_DATA_URI = re.compile(r"data:[\w.+/-]*(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=\s]*")
_SPACED_KEY = re.compile(r"[\s_-]|(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class Text:
    """One string of an item. `path` is its place (`$.inputSchema.properties.a.description`); keys end in `~`."""

    path: str
    raw: str
    key: bool = False

    @property
    def prose(self) -> bool:
        """False for what can't hold a phrase: embedded data, and keys and values of a single word."""
        return (bool(_SPACED_KEY.search(self.raw)) and not _DATA_URI.fullmatch(self.raw)) or not self.raw.isascii()


@dataclass
class ItemView:
    """One declared item: its kind (a subject of coverage), where it is, and its texts in order."""

    kind: str
    name: str
    location: Location
    texts: tuple[Text, ...]
    budget: int = ITEM_CHARS
    value: JsonValue = None
    frame: int | None = None
    _cut: bool = field(default=False, init=False)

    @cached_property
    def proses(self) -> tuple[tuple[Text, Prose], ...]:
        """The normalised texts within the budget. `cut` tells afterwards whether it was enough."""
        room = self.budget
        done: list[tuple[Text, Prose]] = []
        for text in self.texts:
            if not text.prose:
                continue
            if len(text.raw) > room:
                self._cut = True
            if room <= 0:
                break
            done.append((text, read_prose(text.raw[:room])))
            room -= len(text.raw)
        return tuple(done)

    @cached_property
    def spans(self) -> tuple[dict[str, list[Span]], ...]:
        """For each of `proses` the occurrences of concepts and frames."""
        rules, _ = rules_and_frames()
        return tuple(find_spans(prose, lexicon(), rules) for _, prose in self.proses)

    def forget(self) -> None:
        """Drop the normalised texts and what was found in them: they take many times the room of the raw ones."""
        for name in ("proses", "spans"):
            self.__dict__.pop(name, None)

    @property
    def cut(self) -> bool:
        """True when there was more text than what is matched for phrases."""
        _ = self.proses
        return self._cut


@dataclass(frozen=True)
class RegistryView:
    """Every item of every server, in the order served, and an index of tools by name."""

    items: tuple[ItemView, ...]
    by_name: dict[str, tuple[ItemView, ...]]


def build_view(facts: AnalysisFacts) -> RegistryView:
    """Take the items out of all looks; an item that a later look repeats unchanged is not taken twice."""
    looks = facts.declared or tuple(ServerSurface(surface) for surface in facts.surfaces)
    items: list[ItemView] = []
    taken: Counter[tuple[str | None, str, str]] = Counter()
    for look in looks:
        here: Counter[tuple[str | None, str, str]] = Counter()
        for item in _items(look):
            key = (look.server, item.kind, sha256_hex(canonical_json([item.name, item.value])))
            here[key] += 1
            if here[key] > taken[key]:
                taken[key] += 1
                items.append(item)
    by_name: dict[str, list[ItemView]] = {}
    room = TOTAL_CHARS
    for item in items:
        item.budget = max(0, min(ITEM_CHARS, room))
        room -= min(item.budget, sum(len(text.raw) for text in item.texts if text.prose))
        if item.kind == ItemKind.TOOL:
            by_name.setdefault(item.name, []).append(item)
    return RegistryView(tuple(items), {name: tuple(views) for name, views in by_name.items()})


def _items(look: ServerSurface) -> Iterator[ItemView]:
    surface = look.surface
    words = _server_words(surface)
    if words:
        yield ItemView(SERVER, SERVER, Location(server=look.server, field=SERVER), tuple(walk(words)), value=words)
    for item in surface.items:
        yield ItemView(
            kind=item.kind.value,
            name=item.name,
            location=_location(look.server, item.kind, item.name),
            texts=tuple(walk(item.value)),
            value=item.value,
            frame=item.frame,
        )


def _server_words(surface: Surface) -> dict[str, JsonValue]:
    words: dict[str, JsonValue] = {}
    if surface.instructions:
        words["instructions"] = surface.instructions
    if surface.server_info:
        words["serverInfo"] = surface.server_info
    if surface.capabilities:
        words["capabilities"] = surface.capabilities
    return words


def _location(server: str | None, kind: ItemKind, name: str) -> Location:
    match kind:
        case ItemKind.TOOL:
            return Location(server=server, tool=name)
        case ItemKind.PROMPT:
            return Location(server=server, prompt=name)
        case ItemKind.RESOURCE:
            return Location(server=server, resource=name)
        case ItemKind.RESOURCE_TEMPLATE:
            return Location(server=server, resource_template=name)


def walk(value: JsonValue) -> Iterator[Text]:
    """Every string anywhere in `value`, keys included, in document order; no recursion, so depth does no harm."""
    stack: list[tuple[str, JsonValue, bool]] = [("$", value, False)]
    while stack:
        path, node, key = stack.pop()
        if isinstance(node, str):
            yield Text(path, node, key)
        elif isinstance(node, dict):
            for name, child in reversed(node.items()):
                place = f"{path}.{str(name)[:80]}" if len(path) < 400 else path
                stack.append((place, child, False))
                stack.append((place + "~", str(name), True))
        elif isinstance(node, list | tuple):
            stack.extend(
                (f"{path}[{i}]" if len(path) < 400 else path, node[i], False) for i in reversed(range(len(node)))
            )
