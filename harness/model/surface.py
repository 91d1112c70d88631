"""What a server declares: tools, prompts, resources, templates and instructions, as served.

Nothing is normalised: `value` is the item's JSON as parsed by framing (the raw bytes are in the frame with
number `frame`), so unknown fields, odd types and duplicate names all survive.
"""

from __future__ import annotations

from enum import StrEnum

from harness.model.base import JsonObject, JsonValue, Record, canonical_json, sha256_hex


class ItemKind(StrEnum):
    """The four lists of the protocol; the value is the subject's name in coverage and result."""

    TOOL = "tools"
    PROMPT = "prompts"
    RESOURCE = "resources"
    RESOURCE_TEMPLATE = "resource_templates"


class Item(Record):
    """One declared item. `name`: its `name`, or `uri` / `uriTemplate`; "" when it has none of type string."""

    kind: ItemKind
    name: str
    value: JsonValue
    frame: int


class ListEnd(StrEnum):
    """How the reading of one list ended. All but COMPLETE and NOT_OFFERED are gaps."""

    COMPLETE = "complete"
    NOT_OFFERED = "not-offered"
    CURSOR_LOOP = "cursor-loop"
    PAGE_LIMIT = "page-limit"
    ITEM_LIMIT = "item-limit"
    BYTE_LIMIT = "byte-limit"
    BAD_ANSWER = "bad-answer"
    ERROR = "error"
    TIMEOUT = "timeout"
    CLOSED = "closed"


class ListOutcome(Record):
    """How one list was read: number of pages and items taken, and how it ended. `detail`: raw reason, if any."""

    kind: ItemKind
    pages: int
    items: int
    end: ListEnd
    detail: str = ""


class Era(StrEnum):
    """Handshake revisions (2024-11-05 … 2025-11-25) against the stateless one (2026-07-28)."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class Surface(Record):
    """The server's declarations at one look (`start`, `after-calls`, `second-session` …)."""

    look: str = "start"
    era: Era | None = None
    protocol_version: str | None = None
    server_info: JsonObject = {}
    capabilities: JsonObject = {}
    instructions: str | None = None
    items: tuple[Item, ...] = ()
    lists: tuple[ListOutcome, ...] = ()

    def of(self, kind: ItemKind) -> tuple[Item, ...]:
        """The items of one kind, in the order they were served."""
        return tuple(item for item in self.items if item.kind is kind)

    def unlike(self, first: Surface) -> bool:
        """Whether this look shows other declarations than the first, as far as both were read to their end."""
        if (self.instructions or "") != (first.instructions or ""):
            return True
        whole = self._whole() & first._whole()
        return any(_digests(self.of(kind)) != _digests(first.of(kind)) for kind in whole)

    def _whole(self) -> set[ItemKind]:
        return {outcome.kind for outcome in self.lists if outcome.end in (ListEnd.COMPLETE, ListEnd.NOT_OFFERED)}


def _digests(items: tuple[Item, ...]) -> list[str]:
    return sorted(sha256_hex(canonical_json(item.value)) for item in items)
