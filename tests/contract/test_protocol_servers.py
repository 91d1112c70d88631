"""The sample servers over real pipes: each fault is named, bounded and survived; each benign twin stays silent."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from harness.model.options import Limits, RunOptions
from harness.model.recording import Anomaly, Direction, Event
from harness.model.surface import Era, ItemKind, ListEnd, Surface
from harness.protocol import discovery, handshake
from harness.protocol.observe import observe
from harness.protocol.outcomes import Closed, TimedOut
from harness.protocol.session import raw_session

pytestmark = pytest.mark.anyio

SERVERS = Path(__file__).parents[1] / "servers"
GOOD_ENDS = {ListEnd.COMPLETE, ListEnd.NOT_OFFERED}


class Ledger:
    """An event sink that keeps what it gets, numbered from 1."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> int:
        self.events.append(event.model_copy(update={"seq": len(self.events) + 1}))
        return len(self.events)

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.kind == kind]

    def anomalies(self) -> set[Anomaly]:
        return {tag for event in self.of("frame") for tag in event.anomalies}


@asynccontextmanager
async def started(file: str, *arguments: str) -> AsyncIterator[anyio.abc.Process]:
    """A sample server as a child; killed at exit."""
    program = shutil.which("node") if file.endswith(".mjs") else sys.executable
    assert program is not None, "the Node sample needs node on the path"
    process = await anyio.open_process([program, str(SERVERS / file), *arguments])
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


async def look_at(
    file: str, *arguments: str, limits: Limits | None = None, call_timeout: float = 20, start_timeout: float = 20
) -> tuple[Surface, Ledger, list[str]]:
    ledger, phases = Ledger(), []

    async def enter(phase: str) -> None:
        phases.append(phase)

    options = RunOptions(call_timeout=call_timeout, start_timeout=start_timeout, limits=limits or Limits())
    async with started(file, *arguments) as process:
        assert process.stdin is not None and process.stdout is not None
        surface = await observe(process.stdin, process.stdout, ledger, options=options, phase_hook=enter)
    return surface, ledger, phases


def end_of(surface: Surface, kind: ItemKind = ItemKind.TOOL) -> ListEnd:
    return next(outcome.end for outcome in surface.lists if outcome.kind is kind)


def assert_nothing_found(surface: Surface, ledger: Ledger) -> None:
    assert ledger.anomalies() == set()
    assert ledger.of("deadline") == ledger.of("limit") == ledger.of("note") == []
    assert {outcome.end for outcome in surface.lists} <= GOOD_ENDS
    assert end_of(surface) is ListEnd.COMPLETE
    assert surface.of(ItemKind.TOOL)


async def test_an_honest_handshake_server_is_read_whole() -> None:
    surface, ledger, phases = await look_at("honest_handshake.py")
    assert_nothing_found(surface, ledger)
    assert phases == ["start", "discover"]
    assert (surface.era, surface.protocol_version) == (Era.HANDSHAKE, "2025-11-25")
    assert surface.server_info == {"name": "honest-handshake", "version": "1.0"}
    assert surface.instructions == "Three tools about text."
    assert [item.name for item in surface.items] == [
        "echo",
        "count",
        "upper",
        "summarise",
        "note://one",
        "note://{name}",
    ]
    assert [(outcome.pages, outcome.items) for outcome in surface.lists] == [(2, 3), (1, 1), (1, 1), (1, 1)]
    for item in surface.items:  # the frame's number leads to the bytes as served
        frame = next(event for event in ledger.of("frame") if event.seq == item.frame)
        assert frame.direction is Direction.RECEIVED
        assert item.name.encode() in frame.raw
    assert [(event.list, event.end) for event in ledger.of("list")] == [(o.kind, o.end) for o in surface.lists]


async def test_an_honest_stateless_server_is_read_whole() -> None:
    surface, ledger, _ = await look_at("honest_stateless.py")
    assert (surface.era, surface.protocol_version) == (Era.STATELESS, "2026-07-28")
    assert surface.server_info == {"name": "honest-stateless", "version": "1.0"}
    assert [item.name for item in surface.items] == ["echo"]
    assert ledger.anomalies() == set()
    assert ledger.of("deadline") == []


async def test_an_honest_node_server_is_read_whole() -> None:
    surface, ledger, _ = await look_at("honest_node.mjs")
    assert_nothing_found(surface, ledger)
    assert [item.name for item in surface.items] == ["add"]


def modes(file: str) -> list[str]:
    """The modes that a sample file lists."""
    import subprocess

    out = subprocess.run([sys.executable, str(SERVERS / file), "--list"], capture_output=True, text=True, check=True)
    return out.stdout.split()


FRAMES: dict[str, tuple[set[Anomaly], ListEnd]] = {
    "banner": ({Anomaly.NOT_JSON}, ListEnd.COMPLETE),
    "garbage": ({Anomaly.NOT_JSON}, ListEnd.COMPLETE),
    "bad-utf8": ({Anomaly.INVALID_UTF8}, ListEnd.COMPLETE),
    "byte-order-mark": ({Anomaly.BYTE_ORDER_MARK}, ListEnd.COMPLETE),
    "long-line": ({Anomaly.TOO_LONG, Anomaly.REPEATED_ID}, ListEnd.BAD_ANSWER),
    "deep": ({Anomaly.TOO_DEEP}, ListEnd.BAD_ANSWER),
    "duplicate-keys": ({Anomaly.DUPLICATE_KEY}, ListEnd.COMPLETE),
    "nan": ({Anomaly.NON_FINITE}, ListEnd.COMPLETE),
    "huge-number": ({Anomaly.HUGE_NUMBER}, ListEnd.COMPLETE),
    "lone-surrogate": ({Anomaly.LONE_SURROGATE}, ListEnd.COMPLETE),
    "wrong-id": ({Anomaly.UNKNOWN_ID}, ListEnd.COMPLETE),
    "text-id": ({Anomaly.WRONG_ID_TYPE}, ListEnd.COMPLETE),
    "repeated-answer": ({Anomaly.REPEATED_ID}, ListEnd.COMPLETE),
    "both-members": ({Anomaly.NOT_JSONRPC}, ListEnd.COMPLETE),
    "neither-member": ({Anomaly.NOT_JSONRPC}, ListEnd.BAD_ANSWER),
    "no-version": ({Anomaly.NOT_JSONRPC}, ListEnd.COMPLETE),
    "batch": ({Anomaly.NOT_AN_OBJECT}, ListEnd.COMPLETE),
    "no-object": ({Anomaly.NOT_AN_OBJECT}, ListEnd.COMPLETE),
    "no-newline": ({Anomaly.NO_NEWLINE_AT_END}, ListEnd.COMPLETE),
}


def test_every_frame_fault_is_tried() -> None:
    assert set(modes("faulty_frames.py")) == {*FRAMES, *(f"{name}-benign" for name in FRAMES)}


@pytest.mark.parametrize("mode", FRAMES)
async def test_a_faulty_frame_is_named(mode: str) -> None:
    surface, ledger, _ = await look_at("faulty_frames.py", mode)
    assert (ledger.anomalies(), end_of(surface)) == FRAMES[mode]
    assert ledger.of("deadline") == []
    assert len(surface.of(ItemKind.TOOL)) == (FRAMES[mode][1] is ListEnd.COMPLETE)
    surface.model_dump_json()


@pytest.mark.parametrize("mode", FRAMES)
async def test_the_twin_of_a_faulty_frame_is_silent(mode: str) -> None:
    surface, ledger, _ = await look_at("faulty_frames.py", f"{mode}-benign")
    assert_nothing_found(surface, ledger)


LISTS: dict[str, tuple[ListEnd, int, int]] = {
    "endless-pages": (ListEnd.PAGE_LIMIT, 100, 100),
    "cursor-loop": (ListEnd.CURSOR_LOOP, 3, 3),
    "long-cursor": (ListEnd.BYTE_LIMIT, 1, 1),
    "odd-cursor": (ListEnd.BAD_ANSWER, 1, 1),
    "many-tools": (ListEnd.ITEM_LIMIT, 1, 10_000),
    "big-tools": (ListEnd.BYTE_LIMIT, 3, 2),
    "no-list": (ListEnd.BAD_ANSWER, 0, 0),
    "odd-items": (ListEnd.COMPLETE, 1, 4),
    "hidden-list": (ListEnd.COMPLETE, 1, 1),
    "missing-list": (ListEnd.NOT_OFFERED, 0, 0),
}


def test_every_list_fault_is_tried() -> None:
    assert set(modes("faulty_lists.py")) == {*LISTS, *(f"{name}-benign" for name in LISTS)}


@pytest.mark.parametrize("mode", LISTS)
async def test_a_faulty_list_has_a_typed_end(mode: str) -> None:
    surface, ledger, _ = await look_at("faulty_lists.py", mode)
    [tools] = [outcome for outcome in surface.lists if outcome.kind is ItemKind.TOOL]
    assert (tools.end, tools.pages, tools.items) == LISTS[mode]
    assert len(surface.of(ItemKind.TOOL)) == tools.items
    assert ledger.of("deadline") == []


@pytest.mark.parametrize("mode", LISTS)
async def test_the_twin_of_a_faulty_list_is_silent(mode: str) -> None:
    surface, ledger, _ = await look_at("faulty_lists.py", f"{mode}-benign")
    assert_nothing_found(surface, ledger)
    assert surface.of(ItemKind.PROMPT) == ()


async def test_a_list_that_is_served_without_being_declared_is_read_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "UNDECLARED_SECONDS", 20)
    surface, _, _ = await look_at("faulty_lists.py", "hidden-list")
    assert [item.name for item in surface.of(ItemKind.PROMPT)] == ["hidden"]
    [prompts] = [outcome for outcome in surface.lists if outcome.kind is ItemKind.PROMPT]
    assert (prompts.end, prompts.detail) == (ListEnd.COMPLETE, discovery.NOT_DECLARED)


async def test_a_declared_list_that_is_missing_says_so() -> None:
    surface, _, _ = await look_at("faulty_lists.py", "missing-list")
    assert surface.lists[0].detail.startswith("declared, and answered with error -32601")


LIVES = {
    "silent": ListEnd.TIMEOUT,
    "silent-list": ListEnd.TIMEOUT,
    "silent-unknown": ListEnd.COMPLETE,
    "exit-at-once": ListEnd.CLOSED,
    "exit-after-initialize": ListEnd.CLOSED,
    "exit-at-list": ListEnd.CLOSED,
    "close-stdout": ListEnd.CLOSED,
    "deaf": ListEnd.TIMEOUT,
    "request-flood": ListEnd.BYTE_LIMIT,
    "notification-flood": ListEnd.BYTE_LIMIT,
    "refused-revision": ListEnd.COMPLETE,
}


def test_every_life_is_tried() -> None:
    assert set(modes("faulty_lives.py")) == {*LIVES, *(f"{name}-benign" for name in LIVES)}


@pytest.mark.parametrize("mode", LIVES)
async def test_a_faulty_life_has_a_typed_end(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "AFTER_SILENCE_SECONDS", 0.2)
    short = mode in ("silent", "silent-list", "deaf")
    surface, ledger, _ = await look_at(
        "faulty_lives.py",
        mode,
        call_timeout=0.5 if short else 20,
        start_timeout=1.5 if short else 20,
        limits=Limits(messages=2000),
    )
    assert end_of(surface) is LIVES[mode]
    assert bool(ledger.of("deadline")) == short
    assert len(surface.lists) == len(ledger.of("list")) == 4


@pytest.mark.parametrize("mode", LIVES)
async def test_the_twin_of_a_faulty_life_is_silent(mode: str) -> None:
    surface, ledger, _ = await look_at("faulty_lives.py", f"{mode}-benign")
    assert_nothing_found(surface, ledger)


async def test_a_flood_of_requests_is_answered_and_kept_within_bounds() -> None:
    _, ledger, _ = await look_at("faulty_lives.py", "request-flood", limits=Limits(messages=2000))
    assert 0 < len(ledger.of("server-request")) <= 32
    assert {event.what for event in ledger.of("limit")} == {"server-requests", "stdout-lines"}


async def test_each_kind_of_server_request_gets_its_answer() -> None:
    _, ledger, _ = await look_at("faulty_lives.py", "request-flood-benign")
    assert [(event.method, event.answered) for event in ledger.of("server-request")] == [
        ("ping", "result"),
        ("roots/list", "result"),
        ("elicitation/create", "result"),
        ("sampling/createMessage", "error -1"),
        ("x/y", "error -32601"),
    ]


async def test_a_server_that_reads_nothing_blocks_our_write_and_not_us() -> None:
    ledger = Ledger()
    async with started("faulty_lives.py", "deaf") as process:
        assert process.stdin is not None and process.stdout is not None
        async with raw_session(process.stdin, process.stdout, ledger, limits=Limits()) as session:
            await session.request("initialize", {"protocolVersion": "2025-11-25"}, timeout=20)
            await session.notify("notifications/initialized", timeout=20)
            big = {"text": "x" * 4_000_000}
            assert await session.request("tools/call", big, timeout=0.3) == TimedOut(0.3, blocked=True)
            assert await session.request("ping", timeout=20) == TimedOut(20, blocked=True)
    assert [event.blocked for event in ledger.of("deadline")] == [True, True]


async def test_a_server_that_ends_is_closed_for_good() -> None:
    ledger = Ledger()
    async with started("faulty_lives.py", "exit-at-once") as process:
        assert process.stdin is not None and process.stdout is not None
        async with raw_session(process.stdin, process.stdout, ledger, limits=Limits()) as session:
            assert isinstance(await session.request("initialize", timeout=20), Closed)
            assert isinstance(await session.request("ping", timeout=20), Closed)
