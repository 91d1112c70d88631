"""The era probe: find out which revision a server speaks, at no cost to those that speak a handshake revision.

Order: `initialize` with the newest handshake revision; almost all servers answer it. When it is refused or not
understood, the revisions named in the refusal, then `server/discover`, then `initialize` with the oldest revision.
Silence gets one short `server/discover`: a server that is only slow has had the whole start time before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.base import JsonObject
from harness.model.surface import Era, Surface
from harness.protocol.era import (
    HANDSHAKE_REVISIONS,
    STATELESS_REVISION,
    as_object,
    as_text,
    initialize_params,
    newest_handshake,
    stateless_server_info,
    supported_revisions,
    with_envelope,
)
from harness.protocol.outcomes import Answer, Closed, Outcome, RpcError, TimedOut, describe
from harness.protocol.session import RawSession

#: How long `server/discover` may take after `initialize` got no answer at all.
AFTER_SILENCE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a server says of itself. `failure` is the outcome that ended the probe, None when a revision was agreed.

    Members of another type than the protocol's count as absent here; the frames have them. `size`, `values`: bytes and
    values of the answer. `client`: the name that we gave, empty for the usual one; `offers`: our capabilities.
    """

    era: Era | None = None
    protocol_version: str | None = None
    server_info: JsonObject | None = None
    capabilities: JsonObject | None = None
    instructions: str | None = None
    failure: Outcome | None = None
    client: str = field(default="", compare=False)
    offers: JsonObject = field(default_factory=dict, compare=False)
    size: int = field(default=0, compare=False)
    values: int = field(default=0, compare=False)

    def params(self, params: JsonObject) -> JsonObject | None:
        """`params` as a request of this era carries them; None when there is nothing to carry."""
        if self.era is Era.STATELESS:
            return with_envelope(params, self.client, self.offers)
        return params or None


def greeting_of(surface: Surface, session: RawSession | None) -> Greeting:
    """What was said when this surface was read, on this session."""
    return Greeting(
        era=surface.era,
        protocol_version=surface.protocol_version,
        server_info=surface.server_info,
        capabilities=surface.capabilities,
        instructions=surface.instructions,
        offers=session.offers if session is not None else {},
    )


async def greet(session: RawSession, *, start_timeout: float, call_timeout: float, client: str = "") -> Greeting:
    """Agree on a revision, each wait in seconds. Never raises for what the server does.

    `client`: the name that we give, empty for the usual one.
    """
    first = await _initialize(session, HANDSHAKE_REVISIONS[-1], start_timeout, call_timeout, client)
    if first.failure is None or isinstance(first.failure, Closed):
        return first
    tried = {HANDSHAKE_REVISIONS[-1]}
    silent = isinstance(first.failure, TimedOut)
    if isinstance(first.failure, TimedOut) and first.failure.blocked:
        return first
    named = _named(first.failure)
    while (revision := newest_handshake(tuple(r for r in named if r not in tried))) is not None:
        tried.add(revision)
        again = await _initialize(session, revision, call_timeout, call_timeout, client)
        if again.failure is None or isinstance(again.failure, Closed):
            return again
    session.note(f"initialize: {describe(first.failure)}; asking server/discover")
    stateless, named = await _discover(session, AFTER_SILENCE_SECONDS if silent else call_timeout, client, quiet=silent)
    if stateless.failure is None or isinstance(stateless.failure, Closed):
        return stateless
    if silent:
        return first
    revision = newest_handshake(tuple(r for r in named if r not in tried)) or HANDSHAKE_REVISIONS[0]
    if revision in tried:
        return first
    last = await _initialize(session, revision, call_timeout, call_timeout, client)
    return last if last.failure is None or isinstance(last.failure, Closed) else first


def _named(outcome: Outcome) -> tuple[str, ...]:
    """The revisions that a refusal names in `data.supported`."""
    return supported_revisions(as_object(outcome.data).get("supported")) if isinstance(outcome, RpcError) else ()


async def _initialize(session: RawSession, revision: str, timeout: float, call_timeout: float, client: str) -> Greeting:
    outcome = await session.request("initialize", initialize_params(revision, client, session.offers), timeout=timeout)
    if not isinstance(outcome, Answer) or not isinstance(outcome.result, dict):
        return Greeting(failure=outcome)
    result = outcome.result
    version = as_text(result.get("protocolVersion"))
    session.protocol_version = version
    await session.notify("notifications/initialized", timeout=call_timeout)
    return Greeting(
        era=Era.HANDSHAKE,
        protocol_version=version,
        server_info=as_object(result.get("serverInfo")),
        capabilities=as_object(result.get("capabilities")),
        instructions=as_text(result.get("instructions")),
        client=client,
        offers=session.offers,
        size=outcome.size,
        values=outcome.values,
    )


async def _discover(
    session: RawSession, timeout: float, client: str, *, quiet: bool
) -> tuple[Greeting, tuple[str, ...]]:
    """Ask `server/discover`; the greeting, and the revisions the server says it speaks."""
    outcome = await session.request(
        "server/discover", with_envelope({}, client, session.offers), timeout=timeout, quiet=quiet
    )
    if not isinstance(outcome, Answer) or not isinstance(outcome.result, dict):
        return Greeting(failure=outcome), _named(outcome)
    result = outcome.result
    named = supported_revisions(result.get("supportedVersions"))
    if STATELESS_REVISION not in named:
        return Greeting(failure=outcome), named
    session.protocol_version = STATELESS_REVISION
    return (
        Greeting(
            era=Era.STATELESS,
            protocol_version=STATELESS_REVISION,
            server_info=stateless_server_info(result),
            capabilities=as_object(result.get("capabilities")),
            instructions=as_text(result.get("instructions")),
            client=client,
            offers=session.offers,
            size=outcome.size,
            values=outcome.values,
        ),
        named,
    )
