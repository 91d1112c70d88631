"""Sending one malformed message over a session with a server played from a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import anyio.abc
import pytest

from harness.model.options import Limits, RunOptions
from harness.model.probe import Encoding, Family, Must, Probe
from harness.model.recording import Direction, Event
from harness.pipeline.probes import Prober, catalog
from harness.protocol.session import raw_session

pytestmark = pytest.mark.anyio

Reaction = Callable[[bytes], list[Any]]


class Ledger:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> int:
        self.events.append(event.model_copy(update={"seq": len(self.events) + 1}))
        return len(self.events)

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.kind == kind]


class Line(anyio.abc.ByteSendStream, anyio.abc.ByteReceiveStream):
    """Both ends of a server that reacts to each line; None among its reactions hangs up."""

    def __init__(self, react: Reaction) -> None:
        self.react = react
        self.lines: list[bytes] = []
        self._out, self._in = anyio.create_memory_object_stream[bytes](1000)

    async def send(self, item: bytes) -> None:
        for line in item.splitlines():
            self.lines.append(line)
            for answer in self.react(line):
                if answer is None:
                    self._out.close()
                    return
                self._out.send_nowait(json.dumps(answer).encode() + b"\n")
        await anyio.lowlevel.checkpoint()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._in.receive()

    async def aclose(self) -> None:
        self._out.close()
        self._in.close()


class Process:
    """Only what a probe asks of a process."""

    def __init__(self, *peaks: int | None) -> None:
        self._peaks = iter(peaks)

    async def peak_memory(self) -> int | None:
        return next(self._peaks)


class Session:
    """Only what a probe asks of a session."""

    name = "main"

    def __init__(self, *peaks: int | None) -> None:
        self.process = Process(*peaks)
        self.phases: list[str] = []

    async def enter(self, phase: str) -> None:
        self.phases.append(phase)


def probe(*sends: str, **more: Any) -> Probe:
    alive = '{"jsonrpc":"2.0","id":900500,"method":"ping"}'
    fields: dict[str, Any] = {
        "id": "R01",
        "title": "a message",
        "family": Family.ENVELOPE,
        "sends": sends or ('{"id":900001}',),
        "ids": ("900001",),
        "alive": alive,
        "alive_id": 900_500,
        "must": Must.REJECT,
    }
    return Probe(**(fields | more))


def alive(line: bytes) -> list[Any]:
    """Answers a sign of life, and nothing else."""
    return [{"jsonrpc": "2.0", "id": 900_500, "result": {}}] if b"900500" in line else []


async def send(react: Reaction, sent: Probe, *peaks: int | None, timeout: float = 5.0) -> tuple[Any, Line, Ledger]:
    server, ledger, session = Line(react), Ledger(), Session(*peaks)
    try:
        async with raw_session(server, server, ledger, limits=Limits()) as raw:
            probed = await Prober(ledger, RunOptions(call_timeout=timeout)).probe(sent, session, raw)  # type: ignore[arg-type]
            assert raw.watch is None and raw.phase == f"probe:{sent.id}"
    finally:
        await server.aclose()
    assert session.phases == [f"probe:{sent.id}"]
    (began,), (ended,) = ledger.of("probe"), ledger.of("probe-end")
    assert began.probe == sent and ended.probed == probed
    return probed, server, ledger


async def test_a_message_goes_out_as_bytes_with_the_sign_of_life_behind_it() -> None:
    sent = probe("{", '"x":ÿ}', encoding=Encoding.LATIN1)
    probed, server, ledger = await send(alive, sent)
    assert (probed.state, probed.bytes_sent) == ("alive", 9)
    assert server.lines == [b"{", b'"x":\xff}', sent.alive.encode()]
    frames = [frame for frame in ledger.of("frame") if frame.direction is Direction.SENT]
    assert [frame.raw for frame in frames] == server.lines


async def test_a_server_that_says_nothing_is_silent() -> None:
    probed, _, _ = await send(lambda line: [], probe(), timeout=0.05)
    assert (probed.state, probed.closed) == ("silent", "")


async def test_a_server_that_hangs_up_is_closed_at_once() -> None:
    probed, _, _ = await send(lambda line: [None], probe(), timeout=60)
    assert (probed.state, probed.closed) == ("closed", "end of stream")


async def test_one_whose_reader_alone_was_left_ends_with_one_more_line_and_does_not_stand_still() -> None:
    probed, server, _ = await send(lambda line: [None] if b"notifications/cancelled" in line else [], probe())
    assert (probed.state, probed.closed) == ("closed", "end of stream")
    assert json.loads(server.lines[-1])["params"]["requestId"] not in (900_001, 900_500), "nothing of ours is cancelled"


async def test_before_the_handshake_no_further_line_is_sent() -> None:
    probed, server, _ = await send(lambda line: [], probe(family=Family.HANDSHAKE), timeout=0.8)
    assert probed.state == "silent" and len(server.lines) == 2


async def test_answers_are_waited_for_as_long_as_the_probe_has_patience() -> None:
    def late(line: bytes) -> list[Any]:
        return [*alive(line), {"jsonrpc": "2.0", "id": 900_001, "error": {"code": 1, "message": "x"}}] * (
            b"900500" in line
        )

    probed, _, ledger = await send(late, probe(patience=60))
    received = [frame for frame in ledger.of("frame") if frame.direction is Direction.RECEIVED]
    assert probed.state == "alive" and len(received) == 2
    assert all(frame.anomalies == () for frame in received), "both ids are known"


async def test_memory_is_asked_for_around_what_is_large() -> None:
    probed, _, ledger = await send(alive, probe('"<fill:A:2000000>"', family=Family.SIZE), 5 << 20, 9 << 20)
    assert (probed.memory_bytes, probed.grown) == (9 << 20, 4 << 20)
    first = ledger.of("frame")[0]
    assert first.size > 2_000_000 and first.truncated and len(first.raw) < 20_000


async def test_a_peak_that_is_not_known_is_no_growth() -> None:
    probed, _, _ = await send(alive, probe(family=Family.SIZE), None, None)
    assert (probed.memory_bytes, probed.grown) == (None, None)


def test_the_installed_catalog_is_in_order() -> None:
    entries: Iterator[str] = (entry.id for entry in catalog().entries)
    assert "J01" in entries
