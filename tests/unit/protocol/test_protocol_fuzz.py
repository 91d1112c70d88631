"""200,000 random and mutated frames through framing, session and model: each becomes an event, and
nothing else happens.

The seed is fixed, so a failure repeats; HARNESS_FUZZ_SEED draws others, HARNESS_FUZZ_FRAMES sets the number.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from harness.model.errors import TargetProtocolError
from harness.model.options import Limits
from harness.model.recording import EVENT_ADAPTER, Event, FrameEvent
from harness.protocol.framing import LineFramer
from harness.protocol.session import raw_session

pytestmark = pytest.mark.anyio

FRAMES = int(os.environ.get("HARNESS_FUZZ_FRAMES", "200000"))
SEED = int(os.environ.get("HARNESS_FUZZ_SEED", "20260728"))
LIMITS = Limits(
    line_bytes=2000,
    json_depth=16,
    json_values=300,
    frame_keep_bytes=500,
    messages=FRAMES * 20,
    stdout_bytes=1 << 40,
    queued_server_requests=4,
)

TOOL = {"name": "t", "description": "d\u202e\U0001f600", "inputSchema": {"type": "object", "properties": {"a": {}}}}
WELL_FORMED: tuple[object, ...] = (
    {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}},
    {"jsonrpc": "2.0", "id": 2, "result": {"tools": [TOOL, TOOL], "nextCursor": "x"}},
    {"jsonrpc": "2.0", "id": 3, "error": {"code": -32601, "message": "no", "data": {"supported": ["2024-11-05"]}}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 0.5}},
    {"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {"messages": []}},
    {"jsonrpc": "2.0", "id": 7, "method": "roots/list"},
    [{"jsonrpc": "2.0", "id": 4, "result": {}}, {"jsonrpc": "2.0", "method": "x"}],
)
SEEDS = tuple(json.dumps(message, ensure_ascii=ascii_only).encode() for message in WELL_FORMED for ascii_only in (0, 1))
#: What breaks readers, one way or another.
SCRAPS = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"\\",
        b",",
        b":",
        b"\n",
        b"\r",
        b"\x00",
        b"\x1b[2J",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xc0\x80",
    ),
    *(
        b"\xef\xbb\xbf",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"-0",
        b"9" * 30,
        b"1" * 500,
        b"null",
        b"true",
        b'"id":1,',
        b'"id":"1",',
    ),
    *(
        b"\\ud800",
        b"\\udfff\\ud800",
        b"\\u0000",
        b"[" * 20,
        b'{"a":' * 20,
        b"[]," * 400,
        b'"method":1,',
        b'"jsonrpc":"2.0",',
    ),
    *(
        b'"result":null,',
        b'"error":[],',
        b'"id":null,',
        b'"id":1.0,',
        b'"id":{},',
        b"\xe2\x80\xae",
        b"x" * 2500,
        b"//",
        b"'",
    ),
)


def mutated(chance: random.Random) -> bytes:
    """One frame, without its newline unless a mutation put one in."""
    kind = chance.random()
    if kind < 0.1:
        return chance.randbytes(chance.randrange(80))
    if kind < 0.2:
        return b"".join(chance.choices(SCRAPS, k=chance.randrange(1, 12)))
    frame = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(frame) + 1)
        match chance.randrange(6):
            case 0:
                frame[at:at] = chance.choice(SCRAPS)
            case 1:
                del frame[at : at + chance.randrange(20)]
            case 2 if at < len(frame):
                frame[at] ^= 1 << chance.randrange(8)
            case 3:
                frame[at:] = chance.choice(SEEDS)[at:]
            case 4:
                end = at + chance.randrange(40)
                frame[at:at] = frame[at:end]
            case _:
                frame[at : at + 1] = chance.choice(SCRAPS)
    return bytes(frame)


def chunks(chance: random.Random, frames: int) -> Iterator[bytes]:
    """The stream cut anywhere, as pipes do."""
    held = bytearray()
    for _ in range(frames):
        held += mutated(chance) + b"\n"
        if len(held) > 4000:
            cut = chance.randrange(len(held))
            yield bytes(held[:cut])
            del held[:cut]
    yield bytes(held)


class Checking:
    """A sink that holds each event to what a bundle and a report need of it."""

    def __init__(self) -> None:
        self.frames = 0
        self.kinds: set[str] = set()
        self.anomalies: set[str] = set()

    def record(self, event: Event) -> int:
        self.kinds.add(event.kind)
        text = event.model_dump_json()
        if isinstance(event, FrameEvent):
            self.frames += 1
            self.anomalies.update(event.anomalies)
            assert len(event.raw) <= LIMITS.frame_keep_bytes <= LIMITS.line_bytes
            assert event.truncated == (len(event.raw) < event.size)
            if self.frames % 8 == 0:
                assert EVENT_ADAPTER.validate_json(text.encode()) == event
        return self.frames


class Sink(anyio.abc.ByteSendStream):
    """A stdin that takes everything."""

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()


class Source(anyio.abc.ByteReceiveStream):
    """A stdout that yields chunks."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        piece = next(self._pieces, None)
        if piece is None:
            raise anyio.EndOfStream
        return piece

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()


async def test_every_frame_becomes_an_event_and_nothing_else_happens() -> None:
    chance, sink = random.Random(SEED), Checking()
    source = Source(chunks(chance, FRAMES))
    async with raw_session(Sink(), source, sink, limits=LIMITS) as session:
        session.protocol_version = "2025-03-26"  # the one with batches, so that those are read too
        while session.closed is None:
            try:
                outcome = await session.request("tools/list", timeout=30)
            except TargetProtocolError:
                continue
            json.dumps(getattr(outcome, "result", None), allow_nan=False).encode()  # storable, printable
    assert sink.frames >= FRAMES * 0.9  # blank lines are dropped
    assert {"frame", "server-request", "limit"} <= sink.kinds
    assert len(sink.anomalies) >= 15, sink.anomalies


def test_a_line_is_the_same_however_the_stream_is_cut() -> None:
    chance = random.Random(SEED)
    stream = b"\n".join(mutated(chance) for _ in range(500)) + b"\n"
    whole = LineFramer(LIMITS).feed(stream)
    for _ in range(20):
        framer, lines, rest = LineFramer(LIMITS), [], stream
        while rest:
            cut = chance.randrange(1, 3000)
            lines += framer.feed(rest[:cut])
            rest = rest[cut:]
        assert lines == whole
    for line in whole:
        json.dumps(line.value, allow_nan=False).encode()
