"""What carries messages between the stock client's child and a server, and keeps what passes: over two streams.

`Relay` is the frame of both ways there are; the one over HTTP is `harness.protocol.stock_http`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from harness.model.base import JsonObject
from harness.model.errors import HarnessError
from harness.model.options import Limits
from harness.model.recording import Anomaly, Direction, EventSink, LimitEvent
from harness.model.surface import Surface
from harness.protocol.frames import frame_event
from harness.protocol.framing import Line, LineFramer
from harness.protocol.second_look import SecondLook

#: What is not handed to the child: such lines cost it many times their size, and say nothing about ordinary use.
TOO_MUCH = frozenset({Anomaly.TOO_LONG, Anomaly.TOO_DEEP, Anomaly.TOO_MANY_VALUES})
LOST = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)

_STDERR_BYTES = 64 << 10


class Keeper:
    """Records the frames of both directions, where there is a sink; `look`: what they declare, against a first look."""

    def __init__(
        self, limits: Limits, sink: EventSink | None, *, phase: str, session: str, first: Surface | None
    ) -> None:
        self.look = SecondLook(first, limits) if first is not None else None
        self.limits = limits
        self._sink, self._phase, self._session = sink, phase, session

    def record(self, direction: Direction, lines: list[Line]) -> None:
        """Keep lines that passed."""
        if self._sink is None:
            return
        for line in lines:
            anomalies = line.anomalies if direction is Direction.RECEIVED else ()
            frame = self._sink.record(
                frame_event(
                    direction,
                    line.raw,
                    line.size,
                    anomalies,
                    phase=self._phase,
                    session=self._session,
                    keep=self.limits.frame_keep_bytes,
                )
            )
            if self.look is not None and direction is Direction.SENT:
                self.look.sent(line.value)
            elif self.look is not None:
                self.look.received(line.value, line.size, line.values, frame)

    def limit(self, seen: int) -> None:
        """No more was read than is bounded."""
        if self._sink is not None:
            bound = self.limits.stdout_bytes
            self._sink.record(
                LimitEvent(phase=self._phase, session=self._session, what="stdout-bytes", bound=bound, seen=seen)
            )


class Relay(ABC):
    """Carries until the child ends. `stderr`: the tail of what it printed; `refused`: a message was too large for it;
    `failure`: our side broke.
    """

    def __init__(self, process: anyio.abc.Process, keeper: Keeper) -> None:
        self.keeper = keeper
        self.stderr = b""
        self.refused = False
        self.failure: HarnessError | None = None
        self._process = process

    async def run(self, job: JsonObject) -> None:
        """Returns when the child has closed its stderr, which it does by ending."""
        to_child, from_child, errors = self._process.stdin, self._process.stdout, self._process.stderr
        assert to_child is not None and from_child is not None and errors is not None
        async with self._carrying(job) as whole, anyio.create_task_group() as tasks:
            tasks.start_soon(self._to_child, json.dumps(whole).encode() + b"\n", to_child)
            tasks.start_soon(self._from_child, from_child)
            try:
                while True:
                    self.stderr = (self.stderr + await errors.receive())[-_STDERR_BYTES:]
            except LOST:
                pass
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _carrying(self, job: JsonObject) -> AsyncIterator[JsonObject]:
        """What is needed while the child runs; the job with what it has to know of that."""
        yield job

    @abstractmethod
    async def _to_child(self, job: bytes, target: anyio.abc.ByteSendStream) -> None:
        """Give the child its job, and what comes after it."""

    @abstractmethod
    async def _from_child(self, source: anyio.abc.ByteReceiveStream) -> None:
        """Take what the child prints."""


class StreamRelay(Relay):
    """Between the child's standard streams and those of the server."""

    def __init__(
        self,
        process: anyio.abc.Process,
        keeper: Keeper,
        stdin: anyio.abc.ByteSendStream,
        stdout: anyio.abc.ByteReceiveStream,
    ) -> None:
        super().__init__(process, keeper)
        self._stdin, self._stdout = stdin, stdout

    async def _to_child(self, job: bytes, target: anyio.abc.ByteSendStream) -> None:
        framer, keeper = LineFramer(self.keeper.limits), self.keeper
        try:
            await target.send(job)
            while framer.exhausted is None and not self.refused:
                chunk = await self._stdout.receive()
                lines = framer.feed(chunk)
                keeper.record(Direction.RECEIVED, lines)
                self.refused = framer.too_long or any(not TOO_MUCH.isdisjoint(line.anomalies) for line in lines)
                if not self.refused:
                    await target.send(chunk)
            if framer.exhausted is not None:
                keeper.limit(framer.bytes_seen)
            elif framer.too_long:
                keeper.record(Direction.RECEIVED, framer.finish())
        except LOST:
            keeper.record(Direction.RECEIVED, framer.finish())
        except HarnessError as error:
            self.failure = error
        await target.aclose()

    async def _from_child(self, source: anyio.abc.ByteReceiveStream) -> None:
        framer = LineFramer(self.keeper.limits)
        try:
            while framer.exhausted is None:
                chunk = await source.receive()
                self.keeper.record(Direction.SENT, framer.feed(chunk))
                await self._stdin.send(chunk)
        except LOST:
            pass
        except HarnessError as error:
            self.failure = error
