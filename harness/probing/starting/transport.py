"""A server that is alive and silent on its standard streams: asked to use them, or spoken to where it listens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.probing.starting.case import Case, Proposal
from harness.probing.starting.signs import likely_places, named_places, serves_http

#: What the variables that choose a transport are called.
_VARIABLES = ("MCP_TRANSPORT", "TRANSPORT", "MCP_TRANSPORT_TYPE", "TRANSPORT_TYPE", "MCP_MODE")
_WAYS = (("--stdio",), ("--transport", "stdio"), ("stdio",), ())
#: Seconds for an attempt that only changes the transport: the slow ones had the whole time before.
PATIENCE = 20.0


def propose(case: Case) -> Iterator[Proposal]:
    """Flags, variables and a command that choose stdio; without a sign of a port, one try with the likeliest.

    Where a gateway is there, an address that it names is spoken to before anything is guessed, and a port at the end.
    """
    port = serves_http(case.text)
    started = case.seen.silent or re.search(r"EADDRINUSE|address already in use", case.text, re.IGNORECASE)
    if not started:
        return
    arguments = case.adjustment.arguments
    tried = next((way for way in _WAYS if way and arguments[-len(way) :] == way), None)
    kept = arguments[: -len(tried)] if tried else arguments
    named = re.findall(r"\b[A-Z][A-Z0-9_]*TRANSPORT(?:_[A-Z]+)?\b", case.text)
    variables = {name: "stdio" for name in (*_VARIABLES, *named[:4]) if name not in case.facts.environment}
    if tried is None and not port and case.adjustment.patience is not None:
        return
    mentioned = [way for way in _WAYS if way and way[0].startswith("--") and way[0] in case.text]
    ways = list(dict.fromkeys([*mentioned, *_WAYS])) if port or mentioned else [("--stdio",)]
    at_port = [_over_http(case, place, guess=False) for place in named_places(case.text)] if case.facts.gateway else []
    for way in ways:
        if way not in mentioned:
            yield from at_port
            at_port = []
        if way and way[0].startswith("--") and case.has_flag(way[0]) and way != tried:
            continue
        if way == ("stdio",) and (case.facts.own_command or case.facts.arguments):
            continue
        change = case.change(
            arguments=(*kept, *way),
            environment={**case.adjustment.environment, **variables},
            patience=PATIENCE,
            port=None,
            path="",
        )
        said = " ".join(way) or "variables only"
        yield Proposal(change, f"standard streams as the transport ({said})", guess=way not in mentioned)
    yield from at_port
    if case.facts.gateway:
        yield from (_over_http(case, place, guess=True) for place in likely_places(case.text))


def _over_http(case: Case, place: tuple[int, str], *, guess: bool) -> Proposal:
    """The same launch, spoken to over HTTP where it says that it listens."""
    port, path = place
    change = case.change(port=port, path=path, patience=PATIENCE)
    return Proposal(change, f"HTTP where it says that it listens (port {port}, {path})", guess)
