"""Does a stock client work with a server? The official SDK tries, in a child that can be killed.

The pipeline gives the streams of a second life of the target; its bytes are relayed to the child and back, within
bounds, and recorded like those of the first. The SDK is never imported here: see `harness.protocol.stock_child`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version

import anyio
import anyio.abc

from harness.model.base import JsonObject, JsonValue
from harness.model.errors import HarnessError
from harness.model.options import Limits
from harness.model.recording import Anomaly, Direction, EventSink, LimitEvent, Phase, StockClientEvent
from harness.model.surface import Era, Surface
from harness.protocol.era import STATELESS_REVISION
from harness.protocol.frames import frame_event
from harness.protocol.framing import Line, LineFramer
from harness.protocol.second_look import SecondLook

SESSION = "stock-client"

#: How much longer than the SDK's own deadline the child may take until it is killed; loading the SDK is in it.
KILL_MARGIN_SECONDS = 5.0

#: Address space of the child. Python with the SDK takes about 60 MB of it, and 10,000 tools 40 MB more.
MEMORY_BYTES = 150 << 20

#: What is not handed to the child: such lines cost it many times their size, and say nothing about ordinary use.
_TOO_MUCH = frozenset({Anomaly.TOO_LONG, Anomaly.TOO_DEEP, Anomaly.TOO_MANY_VALUES})

_STDERR_BYTES = 64 << 10
_LOST = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


class StockClient:
    """A child with the SDK loaded, good for one check. Made by `prestart`.

    `changed`: after a check that was given the first look, what the server declared this time if it was not the same.
    """

    def __init__(self, process: anyio.abc.Process, limits: Limits) -> None:
        self.changed: Surface | None = None
        self._process = process
        self._limits = limits

    async def check(
        self,
        stdin: anyio.abc.ByteSendStream,
        stdout: anyio.abc.ByteReceiveStream,
        *,
        timeout: float,
        era: Era | None = None,
        sink: EventSink | None = None,
        phase: str = Phase.DISCOVER,
        session: str = SESSION,
        first: Surface | None = None,
        offers: bool = False,
    ) -> StockClientEvent:
        """Have the SDK connect to the server behind the streams and list its tools, in at most `timeout` seconds.

        `era`: pins the way of connecting; None is the SDK's own choice, which asks `server/discover` first. With a
        `sink`, the frames of both directions are recorded. `offers`: it declares sampling and
        elicitation. `works` is None when our child broke, False with the reason in `error` when the SDK could not do
        it. Raises HarnessError when a stream reports that our side broke.
        """
        relay = _Relay(self._process, stdin, stdout, self._limits, sink, phase, session, first)
        job = {
            "timeout": timeout,
            "mode": {None: "auto", Era.HANDSHAKE: "legacy", Era.STATELESS: STATELESS_REVISION}[era],
            "memory_bytes": MEMORY_BYTES,
            "offers": offers,
        }
        with anyio.move_on_after(timeout + KILL_MARGIN_SECONDS) as scope:
            await relay.run(job)
        if relay.failure is not None:
            raise relay.failure
        self.changed = relay.look.surface if relay.look is not None else None
        if relay.refused:
            why = "a message was too large to be handed to the client"
            return StockClientEvent(phase=phase, session=session, works=None, client=client_name(), error=why)
        return _verdict(relay.stderr, killed=scope.cancelled_caught, timeout=timeout, phase=phase, session=session)


@asynccontextmanager
async def prestart(limits: Limits | None = None) -> AsyncIterator[StockClient]:
    """Start the child, which loads the SDK meanwhile (about 0.5 s of CPU); killed at exit if it still runs.

    Raises HarnessError when it can't be started.
    """
    try:
        # -I: neither the working directory nor the environment may add modules; both can be a target's.
        process = await anyio.open_process([sys.executable, "-I", "-m", "harness.protocol.stock_child"], env={})
    except OSError as error:
        raise HarnessError(f"the stock client could not be started: {error.strerror or error}") from error
    try:
        yield StockClient(process, limits or Limits())
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


async def check(
    stdin: anyio.abc.ByteSendStream,
    stdout: anyio.abc.ByteReceiveStream,
    *,
    timeout: float,
    era: Era | None = None,
    sink: EventSink | None = None,
) -> StockClientEvent:
    """`prestart` and `StockClient.check` in one."""
    async with prestart() as client:
        return await client.check(stdin, stdout, timeout=timeout, era=era, sink=sink)


class _Relay:
    """Carries bytes between server and child until the child ends. `stderr`: the tail of what the child printed."""

    def __init__(
        self,
        process: anyio.abc.Process,
        stdin: anyio.abc.ByteSendStream,
        stdout: anyio.abc.ByteReceiveStream,
        limits: Limits,
        sink: EventSink | None,
        phase: str,
        session: str,
        first: Surface | None,
    ) -> None:
        self.look = SecondLook(first, limits) if first is not None else None
        self.stderr = b""
        self.refused = False
        self.failure: HarnessError | None = None
        self._process, self._stdin, self._stdout = process, stdin, stdout
        self._limits, self._sink, self._phase, self._session = limits, sink, phase, session

    async def run(self, job: JsonObject) -> None:
        """Returns when the child has closed its stderr, which it does by ending."""
        to_child, from_child, errors = self._process.stdin, self._process.stdout, self._process.stderr
        assert to_child is not None and from_child is not None and errors is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._to_child, json.dumps(job).encode() + b"\n", self._stdout, to_child)
            tasks.start_soon(self._to_server, from_child, self._stdin)
            try:
                while True:
                    self.stderr = (self.stderr + await errors.receive())[-_STDERR_BYTES:]
            except _LOST:
                pass
            tasks.cancel_scope.cancel()

    async def _to_child(
        self, job: bytes, source: anyio.abc.ByteReceiveStream, target: anyio.abc.ByteSendStream
    ) -> None:
        framer = LineFramer(self._limits)
        try:
            await target.send(job)
            while framer.exhausted is None and not self.refused:
                chunk = await source.receive()
                lines = framer.feed(chunk)
                self._record(Direction.RECEIVED, lines)
                self.refused = framer.too_long or any(not _TOO_MUCH.isdisjoint(line.anomalies) for line in lines)
                if not self.refused:
                    await target.send(chunk)
            if framer.exhausted is not None:
                self._record_limit(framer)
            elif framer.too_long:
                self._record(Direction.RECEIVED, framer.finish())
        except _LOST:
            self._record(Direction.RECEIVED, framer.finish())
        except HarnessError as error:
            self.failure = error
        await target.aclose()

    async def _to_server(self, source: anyio.abc.ByteReceiveStream, target: anyio.abc.ByteSendStream) -> None:
        framer = LineFramer(self._limits)
        try:
            while framer.exhausted is None:
                chunk = await source.receive()
                self._record(Direction.SENT, framer.feed(chunk))
                await target.send(chunk)
        except _LOST:
            pass
        except HarnessError as error:
            self.failure = error

    def _record(self, direction: Direction, lines: list[Line]) -> None:
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
                    keep=self._limits.frame_keep_bytes,
                )
            )
            if self.look is not None and direction is Direction.SENT:
                self.look.sent(line.value)
            elif self.look is not None:
                self.look.received(line.value, line.size, line.values, frame)

    def _record_limit(self, framer: LineFramer) -> None:
        if self._sink is not None:
            self._sink.record(
                LimitEvent(
                    phase=self._phase,
                    session=self._session,
                    what="stdout-bytes",
                    bound=self._limits.stdout_bytes,
                    seen=framer.bytes_seen,
                )
            )


def _verdict(stderr: bytes, *, killed: bool, timeout: float, phase: str, session: str) -> StockClientEvent:
    """Read the child's last line strictly; it handled a target's bytes."""
    facts: JsonValue = None
    if not killed:
        with suppress(ValueError, RecursionError):
            facts = json.loads(stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
    if not isinstance(facts, dict) or not isinstance(facts.get("works"), bool):
        why = f"the client hung and was killed after {timeout:g} s" if killed else "the client's process died"
        facts = {"works": False if killed else None, "error": why}
    revision, tools, error = facts.get("protocol_version"), facts.get("tools"), facts.get("error")
    return StockClientEvent(
        phase=phase,
        session=session,
        works=facts["works"],
        client=client_name(),
        protocol_version=revision[:100] if isinstance(revision, str) else None,
        tools=tools if type(tools) is int else None,
        error=error[:300] if isinstance(error, str) else "",
    )


def client_name() -> str:
    """The SDK's name and version, read from the installed metadata."""
    try:
        return f"mcp {version('mcp')}"
    except PackageNotFoundError:
        return "mcp"
