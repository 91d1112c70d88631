"""Reading a saved tool list (`FILE.tools.json`): what one or several servers declared, as somebody kept it.

Either the result of `tools/list` as it came (alone, in its JSON-RPC answer, or with the other lists beside it), or
`{"servers": {NAME: {…}}}`. The file is the operator's, what is in it is the servers': bounded like what is served.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.analyzers.base import ServerSurface
from harness.model.base import JsonObject, JsonValue, Record, sha256_hex
from harness.model.errors import UsageError
from harness.model.options import Limits
from harness.model.surface import Item, ItemKind, ListEnd, ListOutcome, Surface
from harness.protocol.decoding import decode

#: Parsed, hostile JSON takes up to 25 times its size, and an analyzer has 1 GiB.
MAX_FILE_BYTES = 16 << 20
MAX_SERVERS = 1_000

#: The member that holds each list, and what names its items (as in the protocol's results).
_LISTS = (
    (ItemKind.TOOL, ("tools",), "name"),
    (ItemKind.PROMPT, ("prompts",), "name"),
    (ItemKind.RESOURCE, ("resources",), "uri"),
    (ItemKind.RESOURCE_TEMPLATE, ("resourceTemplates", "resource_templates"), "uriTemplate"),
)
_FORMS = 'give {"tools": [...]} or {"servers": {"NAME": {"tools": [...]}}}'


class Declarations(Record):
    """A saved tool list as read. `oddities`: what of its JSON was not read as it stands."""

    servers: tuple[tuple[str | None, Surface], ...]
    sha256: str
    size: int
    oddities: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[ServerSurface, ...]:
        """For the analyzers."""
        return tuple(ServerSurface(surface, server) for server, surface in self.servers)

    @property
    def combined(self) -> Surface:
        """All servers as one surface, for the report."""
        if len(self.servers) == 1:
            return self.servers[0][1]
        return Surface(items=tuple(item for _, surface in self.servers for item in surface.items))


def read_declarations(path: Path, limits: Limits) -> Declarations:
    """Read the file. Blocking. Raises UsageError when it is no tool list, too large or nested too deeply."""
    shown = ascii(path.name[:80])
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{shown} can't be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{shown} is larger than {MAX_FILE_BYTES >> 20} MiB", remedy="split it by server")
    decoded = decode(data, depth=limits.json_depth)
    if not decoded.parsed:
        why = ", ".join(decoded.anomalies) or "it is not JSON"
        raise UsageError(f"{shown} can't be read as JSON: {why}", remedy="mend the file")
    servers = tuple(_servers(decoded.value, shown, limits))
    return Declarations(
        servers=servers, sha256=sha256_hex(data), size=len(data), oddities=tuple(str(a) for a in decoded.anomalies)
    )


def _servers(value: JsonValue, shown: str, limits: Limits) -> Iterator[tuple[str | None, Surface]]:
    named = value.get("servers") if isinstance(value, dict) else None
    if not isinstance(named, dict):
        yield None, _surface(value, shown, limits)
        return
    if not named or len(named) > MAX_SERVERS:
        raise UsageError(f"{shown} holds {len(named)} servers, and 1 to {MAX_SERVERS} can be scanned")
    for name, declared in named.items():
        yield str(name), _surface(declared, shown, limits)


def _surface(value: JsonValue, shown: str, limits: Limits) -> Surface:
    """One server's lists. A list that goes on elsewhere (`nextCursor`) is told to be incomplete."""
    declared: JsonValue = value
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        declared = value["result"]
    if isinstance(declared, list):
        declared = {"tools": declared}
    if not isinstance(declared, dict):
        raise UsageError(f"{shown} holds no tool list", remedy=_FORMS)
    items: list[Item] = []
    outcomes: list[ListOutcome] = []
    for kind, members, naming in _LISTS:
        member = next((name for name in members if name in declared), None)
        if member is None:
            outcomes.append(ListOutcome(kind=kind, pages=0, items=0, end=ListEnd.NOT_OFFERED))
            continue
        listed = declared[member]
        if not isinstance(listed, list):
            raise UsageError(f"{member} in {shown} is no list", remedy=_FORMS)
        kept = listed[: limits.items]
        items += [Item(kind=kind, name=_name(entry, naming), value=entry, frame=0) for entry in kept]
        outcomes.append(_outcome(kind, declared, listed, kept))
    if all(outcome.end is ListEnd.NOT_OFFERED for outcome in outcomes):
        raise UsageError(f"{shown} holds no tool list", remedy=_FORMS)
    info = declared.get("serverInfo")
    instructions = declared.get("instructions")
    return Surface(
        look="saved",
        server_info=info if isinstance(info, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
        items=tuple(items),
        lists=tuple(outcomes),
    )


def _outcome(kind: ItemKind, declared: JsonObject, listed: list[JsonValue], kept: list[JsonValue]) -> ListOutcome:
    end, detail = ListEnd.COMPLETE, ""
    if len(kept) < len(listed):
        end, detail = ListEnd.ITEM_LIMIT, f"more than {len(kept)} items"
    elif kind is ItemKind.TOOL and declared.get("nextCursor"):
        end, detail = ListEnd.PAGE_LIMIT, "the file holds one page of several"
    return ListOutcome(kind=kind, pages=1, items=len(kept), end=end, detail=detail)


def _name(entry: JsonValue, member: str) -> str:
    name = entry.get(member) if isinstance(entry, dict) else None
    return name if isinstance(name, str) else ""
