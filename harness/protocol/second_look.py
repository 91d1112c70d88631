"""What a server declares to another client: the tools that the stock client is served, held against the first look.

A server that is clean for who looks first and another for who comes later is seen by this. Pure; fed by the relay.
"""

from __future__ import annotations

from harness.model.base import JsonValue, canonical_json, sha256_hex
from harness.model.options import Limits
from harness.model.surface import Item, ItemKind, ListEnd, ListOutcome, Surface

LOOK = "stock-client"
_METHOD = "tools/list"


class SecondLook:
    """Takes the messages of a session and keeps the tools in it. Items like those of the first look are shared."""

    def __init__(self, first: Surface, limits: Limits) -> None:
        self._first = first
        self._limits = limits
        self._known = {_digest(item.value): item for item in first.of(ItemKind.TOOL)}
        self._asked: set[int | str] = set()
        self._items: list[Item] = []
        self._digests: list[str] = []
        self._pages = 0
        self._values_left = limits.json_values
        self._bytes_left = limits.surface_bytes
        self._end: ListEnd | None = None

    def sent(self, value: JsonValue) -> None:
        """A message to the server."""
        if isinstance(value, dict) and value.get("method") == _METHOD and isinstance(value.get("id"), int | str):
            self._asked.add(value["id"])

    def received(self, value: JsonValue, size: int, values: int, frame: int) -> None:
        """A message of the server, with the bytes and values of its line and the number of its frame."""
        if not isinstance(value, dict) or self._end is not None:
            return
        identifier, result = value.get("id"), value.get("result")
        if not isinstance(identifier, int | str) or identifier not in self._asked or not isinstance(result, dict):
            return
        tools = result.get("tools")
        if not isinstance(tools, list):
            return
        self._asked.discard(identifier)
        self._pages += 1
        self._bytes_left -= size
        self._values_left -= values
        if self._bytes_left < 0 or self._values_left < 0:
            self._end = ListEnd.BYTE_LIMIT
            return
        for tool in tools:
            if len(self._items) >= self._limits.items:
                self._end = ListEnd.ITEM_LIMIT
                return
            digest = _digest(tool)
            known = self._known.get(digest)
            name = tool.get("name") if isinstance(tool, dict) else None
            self._digests.append(digest)
            self._items.append(
                known.model_copy(update={"frame": frame})
                if known is not None
                else Item(kind=ItemKind.TOOL, name=name if isinstance(name, str) else "", value=tool, frame=frame)
            )
        if not result.get("nextCursor"):
            self._end = ListEnd.COMPLETE

    @property
    def surface(self) -> Surface | None:
        """What was declared this time, None when it is the same. Where only a part was read, new tools tell."""
        whole = self._end is ListEnd.COMPLETE and _whole(self._first)
        before = sorted(_digest(item.value) for item in self._first.of(ItemKind.TOOL))
        same = sorted(self._digests) == before if whole else self._known.keys() >= set(self._digests)
        if same or (not whole and not _whole(self._first)):
            return None
        end = self._end or ListEnd.CLOSED
        return Surface(
            look=LOOK,
            era=self._first.era,
            protocol_version=self._first.protocol_version,
            items=tuple(self._items),
            lists=(ListOutcome(kind=ItemKind.TOOL, pages=self._pages, items=len(self._items), end=end),),
        )


def _digest(value: JsonValue) -> str:
    return sha256_hex(canonical_json(value))


def _whole(surface: Surface) -> bool:
    return all(outcome.end is ListEnd.COMPLETE for outcome in surface.lists if outcome.kind is ItemKind.TOOL)
