"""The session with a target that was launched: over its standard streams, or over HTTP to a port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.model.errors import HarnessError
from harness.model.options import ActiveLevel, RunOptions, Transport
from harness.model.plan import Adjustment
from harness.pipeline.answering import Answerer
from harness.pipeline.session import Session
from harness.probing.access import ways_to_show
from harness.protocol.era import ANSWERING
from harness.protocol.http_session import HttpSession, http_session
from harness.protocol.session import RawSession, raw_session


def place_of(options: RunOptions, adjustment: Adjustment) -> tuple[int, str] | None:
    """Port and path at which the target is spoken to; None for its standard streams."""
    if adjustment.port is not None:
        return adjustment.port, adjustment.path or options.path
    if options.transport is Transport.HTTP and options.port is not None:
        return options.port, options.path
    return None


def credential_of(raw: RawSession | None) -> str:
    """The header of the credential that a server over HTTP asked for, or was started with; empty without one."""
    return raw.credentials.header if isinstance(raw, HttpSession) else ""


def is_older(raw: RawSession | None) -> bool:
    """Whether a server was found to speak HTTP with SSE, as the first revision has it."""
    return isinstance(raw, HttpSession) and raw.legacy is not None


@asynccontextmanager
async def spoken_to(session: Session, options: RunOptions, adjustment: Adjustment) -> AsyncIterator[RawSession]:
    """A raw session with the target, which declares where calls are made that what it asks for is answered.

    Raises what the body raises, and HarnessError when our side broke.
    """
    place = place_of(options, adjustment)
    if place is None:
        process = session.process
        async with raw_session(
            process.stdin, process.stdout, session.witness, limits=options.limits, name=session.name
        ) as raw:
            _offering(raw, options)
            yield raw
        return
    network = session.process.network
    if network is None:
        raise HarnessError("a server that listens on a port is reached through the gateway, and there is none")
    port, path = place
    async with http_session(
        lambda: network.connect(port),
        session.witness,
        port=port,
        path=path,
        limits=options.limits,
        name=session.name,
        ways=ways_to_show(session.credentials),
        standing=adjustment.headers,
    ) as http:
        session.serves_elsewhere(http.finish)
        _offering(http, options)
        yield http


def _offering(raw: RawSession, options: RunOptions) -> None:
    """Where calls are made, declare that what is asked for is answered, and answer."""
    if options.active is ActiveLevel.TOOL_CALLS:
        raw.offers = ANSWERING
        raw.answerer = Answerer(raw.note, seed=options.seed)
