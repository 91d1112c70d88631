"""The tools of another client held against the first look: equal, changed, dropped, cut off, in another order."""

from __future__ import annotations

import json

import pytest

from harness.model.base import JsonObject
from harness.model.options import Limits
from harness.model.surface import Era, Item, ItemKind, ListEnd, ListOutcome, Surface
from harness.protocol.second_look import LOOK, SecondLook


def tool(name: str, text: str = "d") -> JsonObject:
    return {"name": name, "description": text}


def surface(*tools: JsonObject, end: ListEnd = ListEnd.COMPLETE) -> Surface:
    items = tuple(Item(kind=ItemKind.TOOL, name=entry["name"], value=entry, frame=7) for entry in tools)
    outcome = ListOutcome(kind=ItemKind.TOOL, pages=1, items=len(items), end=end)
    return Surface(era=Era.HANDSHAKE, items=items, lists=(outcome,))


FIRST = surface(tool("a"), tool("b"))


def look(
    *pages: tuple[list[JsonObject], str | None], first: Surface = FIRST, limits: Limits | None = None
) -> SecondLook:
    second = SecondLook(first, limits or Limits())
    for number, (tools, cursor) in enumerate(pages):
        second.sent({"id": number, "method": "tools/list"})
        result = {"tools": tools} | ({"nextCursor": cursor} if cursor else {})
        second.received({"id": number, "result": result}, len(json.dumps(result)), 10, frame=20 + number)
    return second


@pytest.mark.parametrize(
    "pages",
    [
        (([tool("a"), tool("b")], None),),
        (([tool("b"), tool("a")], None),),
        (([tool("a")], "x"), ([tool("b")], None)),
        (([tool("a")], "x"),),  # cut off, and nothing new in it
        (),
    ],
)
def test_the_same_is_no_other_look(pages: tuple[tuple[list[JsonObject], str | None], ...]) -> None:
    assert look(*pages).surface is None


@pytest.mark.parametrize(
    ("pages", "names", "end"),
    [
        ((([tool("a"), tool("b", "poison")], None),), ["a", "b"], ListEnd.COMPLETE),
        ((([tool("a")], None),), ["a"], ListEnd.COMPLETE),
        ((([tool("a"), tool("b"), tool("c")], None),), ["a", "b", "c"], ListEnd.COMPLETE),
        ((([tool("a"), tool("b"), tool("b")], None),), ["a", "b", "b"], ListEnd.COMPLETE),
        ((([tool("c")], "x"),), ["c"], ListEnd.CLOSED),
    ],
)
def test_another_is_kept_whole(
    pages: tuple[tuple[list[JsonObject], str | None], ...], names: list[str], end: ListEnd
) -> None:
    other = look(*pages).surface
    assert other is not None and other.look == LOOK
    assert [item.name for item in other.items] == names
    assert {item.frame for item in other.items} == {20}
    assert [outcome.end for outcome in other.lists] == [end]


def test_bounds_hold() -> None:
    tools = [tool(f"t{i}") for i in range(5)]
    for limits, kept, end in (
        (Limits(items=3), 3, ListEnd.ITEM_LIMIT),
        (Limits(surface_bytes=10), 0, ListEnd.BYTE_LIMIT),
        (Limits(json_values=5), 0, ListEnd.BYTE_LIMIT),
    ):
        second = look((tools, None), limits=limits)
        other = second.surface
        assert (len(other.items), other.lists[0].end) == (kept, end) if kept and other else other is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        7,
        {"id": [], "result": {}},
        {"id": 0, "result": 7},
        {"id": 0, "result": {}},
        {"id": 9, "result": {"tools": [1]}},
        {"id": 0, "result": {"tools": 7}},
    ],
)
def test_odd_messages_are_passed_over(value: object) -> None:
    second = SecondLook(FIRST, Limits())
    second.sent(value)
    second.sent({"id": 0, "method": "tools/list"})
    second.received(value, 10, 10, 1)
    assert second.surface is None


def test_odd_tools_count_as_other_tools() -> None:
    other = look(([None, 7, {"name": 5}], None)).surface  # type: ignore[list-item]
    assert other is not None and [item.name for item in other.items] == ["", "", ""]


def test_a_first_look_that_saw_only_a_part_is_no_measure() -> None:
    assert look(([tool("a"), tool("z")], None), first=surface(tool("a"), end=ListEnd.PAGE_LIMIT)).surface is None
