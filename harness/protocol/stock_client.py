"""Does a stock client work with a server? The official SDK tries, in a child that can be killed.

The pipeline gives the streams of a second life of the target, or the port at which it listens; what passes is relayed
to the child and back, within bounds, and recorded like that of the first. The SDK is never imported here: see
`harness.protocol.stock_child`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

import anyio
import anyio.abc

from harness.model.base import JsonObject, JsonValue
from harness.model.errors import HarnessError
from harness.model.options import Limits
from harness.model.recording import EventSink, Phase, StockClientEvent
from harness.model.surface import Era, Surface
from harness.protocol.era import STATELESS_REVISION
from harness.protocol.stock_http import HttpPlace, HttpRelay
from harness.protocol.stock_relay import Keeper, Relay, StreamRelay

SESSION = "stock-client"

#: A server's stdin and stdout.
Streams: TypeAlias = tuple[anyio.abc.ByteSendStream, anyio.abc.ByteReceiveStream]

#: How much longer than the SDK's own deadline the child may take until it is killed; loading the SDK is in it.
KILL_MARGIN_SECONDS = 5.0

#: Address space of the child. Python with the SDK takes about 60 MB of it, and 10,000 tools 40 MB more.
MEMORY_BYTES = 150 << 20


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
        server: Streams | HttpPlace,
        *,
        timeout: float,
        era: Era | None = None,
        sink: EventSink | None = None,
        phase: str = Phase.DISCOVER,
        session: str = SESSION,
        first: Surface | None = None,
        offers: bool = False,
    ) -> StockClientEvent:
        """Have the SDK connect to the server and list its tools, in at most `timeout` seconds.

        `server`: the streams that it reads and writes (its stdin, its stdout), or where it listens. `era`: pins the way
        of connecting; None is the SDK's own choice, which asks `server/discover` first. With a `sink`, the frames of
        both directions are recorded. `offers`: it declares sampling and elicitation. `works` is None when our child
        broke, False with the reason in `error` when the SDK could not do it. Raises HarnessError when a stream reports
        that our side broke.
        """
        keeper = Keeper(self._limits, sink, phase=phase, session=session, first=first)
        relay: Relay
        if isinstance(server, HttpPlace):
            relay = HttpRelay(self._process, keeper, server)
        else:
            relay = StreamRelay(self._process, keeper, *server)
        job: JsonObject = {
            "timeout": timeout,
            "mode": {None: "auto", Era.HANDSHAKE: "legacy", Era.STATELESS: STATELESS_REVISION}[era],
            "memory_bytes": MEMORY_BYTES,
            "offers": offers,
        }
        with anyio.move_on_after(timeout + KILL_MARGIN_SECONDS) as scope:
            await relay.run(job)
        if relay.failure is not None:
            raise relay.failure
        self.changed = keeper.look.surface if keeper.look is not None else None
        if relay.refused:
            why = "a message was too large to be handed to the client"
            return StockClientEvent(phase=phase, session=session, works=None, client=client_name(), error=why)
        return _verdict(relay.stderr, killed=scope.cancelled_caught, timeout=timeout, phase=phase, session=session)


@asynccontextmanager
async def prestart(
    limits: Limits | None = None, process: anyio.abc.Process | None = None
) -> AsyncIterator[StockClient]:
    """Start the child, which loads the SDK meanwhile (about 0.5 s of CPU); killed at exit if it still runs.

    `process`: a child that was started already. Raises HarnessError when it can't be started.
    """
    try:
        if process is None:
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
    server: Streams | HttpPlace,
    *,
    timeout: float,
    era: Era | None = None,
    sink: EventSink | None = None,
) -> StockClientEvent:
    """`prestart` and `StockClient.check` in one."""
    async with prestart() as client:
        return await client.check(server, timeout=timeout, era=era, sink=sink)


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
