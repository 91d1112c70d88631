"""The way in for the pipeline: greet a started server, read what it declares, hand back the surface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio.abc

from harness.model.options import RunOptions
from harness.model.recording import EventSink, Phase
from harness.model.surface import Surface
from harness.protocol.discovery import discover
from harness.protocol.handshake import greet
from harness.protocol.session import RawSession, raw_session

PhaseHook = Callable[[str], Awaitable[None]]


async def observe(
    stdin: anyio.abc.ByteSendStream,
    stdout: anyio.abc.ByteReceiveStream,
    sink: EventSink,
    *,
    options: RunOptions,
    phase_hook: PhaseHook,
    session: str = "main",
) -> Surface:
    """Greet the server behind the streams (phase `start`) and read its lists (phase `discover`).

    `phase_hook` is awaited with the name of a phase before it begins. The streams stay open. Everything that passes
    is recorded to `sink` under the name `session`. The surface comes back even when it is partial: how each list
    ended is in `lists`. Never raises for what the target does; HarnessError when the streams' engine breaks.
    """
    await phase_hook(Phase.START)
    async with raw_session(stdin, stdout, sink, limits=options.limits, name=session, phase=Phase.START) as raw:
        return await look(raw, sink, options=options, phase_hook=phase_hook)


async def look(
    raw: RawSession, sink: EventSink, *, options: RunOptions, phase_hook: PhaseHook, name: str = "start"
) -> Surface:
    """`observe` on a session that the caller keeps, so that it can go on afterwards. `name`: of the surface."""
    greeting = await greet(raw, start_timeout=options.start_timeout, call_timeout=options.call_timeout)
    if greeting.failure is None:
        await phase_hook(Phase.DISCOVER)
        raw.phase = Phase.DISCOVER
    return await discover(raw, greeting, sink, limits=options.limits, call_timeout=options.call_timeout, look=name)
