"""Reading what a server declares: its four lists to the last page, within bounds, each with a typed end.

Declared lists are read one after the other. Lists that aren't declared are asked for too, all at once and briefly:
many clients ask without looking at the capabilities, so what comes then is reachable, and worth knowing. Servers
need not answer those, so neither silence nor a refusal is held against them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio

from harness.model.base import JsonObject, JsonValue
from harness.model.options import Limits
from harness.model.recording import EventSink, ListEvent
from harness.model.surface import Item, ItemKind, ListEnd, ListOutcome, Surface
from harness.protocol.handshake import Greeting
from harness.protocol.messages import METHOD_NOT_FOUND
from harness.protocol.outcomes import Answer, Closed, CloseReason, Outcome, RpcError, TimedOut, Unreadable, describe
from harness.protocol.session import RawSession

#: How long a list that was not declared is waited for.
UNDECLARED_SECONDS = 1.0

#: All lists together may take this many times the limit of one call: a server that answers each page just in time
#: would otherwise hold a run for 100 pages.
CALLS_IN_ALL = 3

NOT_DECLARED = "not declared"


@dataclass(frozen=True, slots=True)
class Listing:
    """One of the protocol's lists: its method, the member with the items, the capability, what names an item."""

    kind: ItemKind
    method: str
    member: str
    capability: str
    name: str
    optional: bool = False


#: In the order of asking. Templates have no capability of their own, so a server with resources need not have them.
LISTINGS = (
    Listing(ItemKind.TOOL, "tools/list", "tools", "tools", "name"),
    Listing(ItemKind.PROMPT, "prompts/list", "prompts", "prompts", "name"),
    Listing(ItemKind.RESOURCE, "resources/list", "resources", "resources", "uri"),
    Listing(
        ItemKind.RESOURCE_TEMPLATE,
        "resources/templates/list",
        "resourceTemplates",
        "resources",
        "uriTemplate",
        optional=True,
    ),
)


@dataclass(slots=True)
class _Reading:
    """One list while it is read."""

    listing: Listing
    declared: bool
    pages: int = 0
    items: list[Item] = field(default_factory=list)
    end: ListEnd = ListEnd.COMPLETE
    detail: str = ""

    def outcome(self) -> ListOutcome:
        return ListOutcome(
            kind=self.listing.kind, pages=self.pages, items=len(self.items), end=self.end, detail=self.detail
        )


class _Budget:
    """What all lists share with the greeting: bytes and values of answers; and time."""

    def __init__(self, limits: Limits, call_timeout: float, greeting: Greeting) -> None:
        self.bytes_left = limits.surface_bytes - greeting.size
        self.values_left = limits.json_values - greeting.values
        self._deadline = anyio.current_time() + CALLS_IN_ALL * call_timeout
        self._call_timeout = call_timeout

    def seconds(self) -> float:
        """How long the next answer may take."""
        return max(0.0, min(self._call_timeout, self._deadline - anyio.current_time()))


async def discover(
    session: RawSession,
    greeting: Greeting,
    sink: EventSink,
    *,
    limits: Limits,
    call_timeout: float,
    look: str = "start",
) -> Surface:
    """Read all lists of a greeted server. Whatever it does, the surface read so far comes back, with typed ends.

    After a failed greeting nothing is asked and each list ends the way the greeting did.
    """
    readings = [_Reading(listing, listing.capability in (greeting.capabilities or {})) for listing in LISTINGS]
    if greeting.failure is not None:
        for reading in readings:
            reading.end, reading.detail = _end_of(greeting.failure)
    else:
        budget = _Budget(limits, call_timeout, greeting)
        for reading in readings:
            if reading.declared:
                await _read_list(session, greeting, reading, budget, limits)
        async with anyio.create_task_group() as tasks:
            for reading in readings:
                if not reading.declared:
                    tasks.start_soon(_read_list, session, greeting, reading, budget, limits)
    for reading in readings:
        outcome = reading.outcome()
        sink.record(
            ListEvent(
                phase=session.phase,
                session=session.name,
                list=outcome.kind,
                pages=outcome.pages,
                items=outcome.items,
                end=outcome.end,
                detail=outcome.detail,
            )
        )
    return Surface(
        look=look,
        era=greeting.era,
        protocol_version=greeting.protocol_version,
        server_info=greeting.server_info or {},
        capabilities=greeting.capabilities or {},
        instructions=greeting.instructions,
        items=tuple(item for reading in readings for item in reading.items),
        lists=tuple(reading.outcome() for reading in readings),
    )


async def _read_list(
    session: RawSession, greeting: Greeting, reading: _Reading, budget: _Budget, limits: Limits
) -> None:
    listing, cursors = reading.listing, set[str]()
    params: JsonObject = {}
    if not reading.declared:
        reading.detail = NOT_DECLARED
    while True:
        unasked = not reading.declared and reading.pages == 0
        timeout = min(UNDECLARED_SECONDS, budget.seconds()) if unasked else budget.seconds()
        answer = await session.request(listing.method, greeting.params(params), timeout=timeout, quiet=unasked)
        if not isinstance(answer, Answer):
            _refused(reading, answer)
            return
        result = answer.result
        served = result.get(listing.member) if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(served, list):
            reading.end, reading.detail = ListEnd.BAD_ANSWER, _shape(result, listing.member)
            return
        reading.pages += 1
        budget.bytes_left -= answer.size
        if budget.bytes_left < 0:
            reading.end = ListEnd.BYTE_LIMIT
            reading.detail = f"all lists together take more than {limits.surface_bytes} bytes"
            return
        budget.values_left -= answer.values
        if budget.values_left < 0:
            reading.end = ListEnd.BYTE_LIMIT
            reading.detail = f"all lists together hold more than {limits.json_values} values"
            return
        room = limits.items - len(reading.items)
        reading.items += [
            Item(kind=listing.kind, name=_name(entry, listing.name), value=entry, frame=answer.frame)
            for entry in served[:room]
        ]
        if len(served) > room:
            reading.end, reading.detail = ListEnd.ITEM_LIMIT, f"more than {limits.items} items"
            return
        cursor = result.get("nextCursor")
        if cursor is None or cursor == "":  # clients take an empty cursor for the end
            return
        if not isinstance(cursor, str):
            reading.end, reading.detail = ListEnd.BAD_ANSWER, "nextCursor is no string"
            return
        if len(cursor.encode()) > limits.cursor_bytes:
            reading.end = ListEnd.BYTE_LIMIT
            reading.detail = f"a cursor of more than {limits.cursor_bytes} bytes"
            return
        if cursor in cursors:
            reading.end, reading.detail = ListEnd.CURSOR_LOOP, f"page {reading.pages} points back to an earlier one"
            return
        if reading.pages >= limits.pages:
            reading.end, reading.detail = ListEnd.PAGE_LIMIT, f"more than {limits.pages} pages"
            return
        cursors.add(cursor)
        params = {"cursor": cursor}


def _refused(reading: _Reading, outcome: Outcome) -> None:
    """End a list whose page did not come. Only the first page of a list can be "not offered"."""
    first = reading.pages == 0
    if first and not reading.declared and not isinstance(outcome, Closed | Unreadable):
        reading.end, reading.detail = ListEnd.NOT_OFFERED, f"{NOT_DECLARED}; {describe(outcome)}"
    elif first and isinstance(outcome, RpcError) and outcome.code == METHOD_NOT_FOUND:
        reading.end = ListEnd.NOT_OFFERED
        reading.detail = "" if reading.listing.optional else f"declared, and answered with {describe(outcome)}"
    else:
        reading.end, reading.detail = _end_of(outcome)


def _end_of(outcome: Outcome) -> tuple[ListEnd, str]:
    detail = describe(outcome)
    match outcome:
        case RpcError():
            return ListEnd.ERROR, detail
        case TimedOut():
            return ListEnd.TIMEOUT, detail
        case Closed(reason=CloseReason.BYTE_LIMIT | CloseReason.FLOOD):
            return ListEnd.BYTE_LIMIT, detail
        case Closed():
            return ListEnd.CLOSED, detail
        case Answer() | Unreadable():
            return ListEnd.BAD_ANSWER, detail


def _shape(result: JsonValue, member: str) -> str:
    if not isinstance(result, dict):
        return "the result is no object"
    kind = result.get("resultType")
    told = f" (resultType {kind[:40]!r})" if isinstance(kind, str) and kind != "complete" else ""
    return f"{member} is {'no list' if member in result else 'missing'}{told}"


def _name(entry: JsonValue, member: str) -> str:
    name = entry.get(member) if isinstance(entry, dict) else None
    return name if isinstance(name, str) else ""
