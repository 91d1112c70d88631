"""A server played from a script over memory streams, so that tests read like the conversation they are about."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc

from harness.model.options import Limits
from harness.model.recording import Event
from harness.protocol.session import RawSession, raw_session


class Ledger:
    """An event sink that keeps what it gets, numbered from 1."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> int:
        self.events.append(event.model_copy(update={"seq": len(self.events) + 1}))
        return len(self.events)

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.kind == kind]

    def anomalies(self) -> list[str]:
        return [tag for event in self.of("frame") for tag in event.anomalies]


class ScriptedServer(anyio.abc.ByteSendStream, anyio.abc.ByteReceiveStream):
    """Both ends as the session sees them. `play` gets each message sent and returns what comes back, as bytes.

    `frozen` makes writes hang, `gone` makes them fail.
    """

    def __init__(self, play: Callable[[dict[str, Any]], bytes | None]) -> None:
        self.play = play
        self.sent: list[dict[str, Any]] = []
        self.frozen = self.gone = False
        self._outbox, self._inbox = anyio.create_memory_object_stream[bytes](1000)

    async def send(self, item: bytes) -> None:
        if self.gone:
            raise anyio.BrokenResourceError
        if self.frozen:
            await anyio.sleep_forever()
        message = json.loads(item)
        self.sent.append(message)
        if (out := self.play(message)) is not None:
            await self._outbox.send(out)
        await anyio.lowlevel.checkpoint()

    def say(self, data: bytes) -> None:
        self._outbox.send_nowait(data)

    def hang_up(self) -> None:
        self._outbox.close()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._inbox.receive()

    async def aclose(self) -> None:
        self._outbox.close()
        self._inbox.close()


def reply(number: Any, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, **members}).encode() + b"\n"


def echo(message: dict[str, Any]) -> bytes | None:
    """Answers every request with its method's name."""
    if "id" not in message or "method" not in message:
        return None
    return reply(message["id"], result={"method": message["method"]})


@asynccontextmanager
async def conversation(
    play: Callable[[dict[str, Any]], bytes | None] = echo, limits: Limits | None = None
) -> AsyncIterator[tuple[RawSession, ScriptedServer, Ledger]]:
    server, ledger = ScriptedServer(play), Ledger()
    try:
        async with raw_session(server, server, ledger, limits=limits or Limits()) as session:
            yield session, server, ledger
    finally:
        await server.aclose()
