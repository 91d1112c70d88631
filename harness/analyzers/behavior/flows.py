"""Flows of the gateway joined with the kernel's record: who opened the socket, in which phase and call.

A flow is told after its end and its socket's system call may be told later still, so flows are joined when all events
are known. Where the kernel was not recorded, the phase is that in which the flow began.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from typing import NamedTuple

from harness.analyzers.behavior.attribution import CALL, Attribution, Where
from harness.analyzers.evidence import render_safe
from harness.model.coverage import Skip, SkipReason, Tally
from harness.model.flow import split_end
from harness.model.options import NetworkChoice
from harness.model.recording import (
    AttemptEvent,
    Event,
    FlowEvent,
    GatewayEndEvent,
    Manifest,
    Phase,
    PhaseEvent,
    SyscallEvent,
)

#: Calls that name a socket's ends or open it.
SOCKET_CALLS = frozenset({"socket", "connect", "sendto", "sendmsg", "sendmmsg"})
MAX_SOCKETS = 16_384
MAX_PHASES = 4096
_ERRNO_IN_PROGRESS = -115


class Opened(NamedTuple):
    """One use of a socket, as far as it can be a flow's beginning."""

    t: int
    where: Where
    remote: str
    event: SyscallEvent


class Joiner:
    """Feed it every event; ask with `where` at the end. `attribution` has to be fed before it, with the same events."""

    def __init__(self, attribution: Attribution) -> None:
        self._attribution = attribution
        self._sockets: dict[tuple[str, int], list[Opened]] = {}
        self._datagram: dict[tuple[str, int, int], bool] = {}
        self._phases: dict[str, deque[tuple[int, str]]] = {}
        self._joined: set[tuple[str, int]] = set()

    def take(self, event: Event) -> None:
        """Learn from the next event."""
        if isinstance(event, SyscallEvent):
            if event.call in SOCKET_CALLS:
                self._socket(event)
        elif isinstance(event, PhaseEvent):
            phases = self._phases.setdefault(event.session, deque(maxlen=MAX_PHASES))
            phases.append((event.t, event.phase))

    def _socket(self, event: SyscallEvent) -> None:
        descriptor = event.args[0] if event.args else -1
        if event.call == "socket":
            if event.result is not None and event.result >= 0:
                if len(self._datagram) >= MAX_SOCKETS:
                    del self._datagram[next(iter(self._datagram))]
                self._datagram[event.session, event.pid, event.result] = "SOCK_DGRAM" in event.flags
            return
        if self._attribution.noise(event):
            return
        remote = event.remote or (event.addresses[0] if event.addresses else "")
        datagram = event.call == "connect" and self._datagram.get((event.session, event.pid, descriptor), False)
        port = split_end(event.local)[1] if event.local and not event.local.startswith("unix:") else 0
        if not port and (event.call != "connect" or datagram or not remote or remote.startswith("unix:")):
            return
        key = (event.session, port if not datagram else -port)
        if key not in self._sockets and len(self._sockets) >= MAX_SOCKETS:
            del self._sockets[next(iter(self._sockets))]
        uses = self._sockets.setdefault(key, [])
        if len(uses) < 64:
            uses.append(Opened(event.t, self._attribution.where(event), remote, event))

    def where(self, flow: FlowEvent) -> Where:
        """Who made a flow, and when."""
        port = split_end(flow.local)[1]
        uses = [use for sign in (1, -1) for use in self._sockets.get((flow.session, sign * port), ()) if port]
        if uses:
            self._joined.add((flow.session, port))
            same = [use for use in uses if use.remote == flow.remote] or uses
            return min(same, key=lambda use: abs(use.t - flow.began)).where
        return self._by_time(flow)

    def attempts(self) -> list[Opened]:
        """Connections that the kernel saw and no flow tells of (asked after all flows)."""
        return [
            use
            for (session, port), uses in self._sockets.items()
            if port >= 0 and (session, port) not in self._joined
            for use in uses
            if use.event.call == "connect"
        ]

    def _by_time(self, flow: FlowEvent) -> Where:
        phase, after = flow.phase, 0
        phases = self._phases.get(flow.session)
        if phases and flow.began:
            at = bisect_right(phases, flow.began, key=lambda mark: mark[0])
            phase = phases[at - 1][1] if at else phases[0][1]
        match = re.fullmatch(r"call:(.*):([^:]+)", phase, re.DOTALL)
        if match is None:
            return Where(flow.session, phase, self._attribution.nobody, after=after)
        return Where(flow.session, CALL, self._attribution.nobody, match[1], match[2])


class GatewayBooks:
    """Which lives had a gateway, and what it could not tell."""

    def __init__(self) -> None:
        self._lives: dict[str, int] = {}
        self._ends: dict[str, list[GatewayEndEvent]] = {}
        self.flows = 0

    def take(self, event: Event) -> None:
        """Count the next event."""
        if isinstance(event, FlowEvent):
            self.flows += 1
        elif isinstance(event, AttemptEvent):
            self._lives[event.session] = self._lives.get(event.session, 0) + 1
        elif isinstance(event, GatewayEndEvent):
            self._ends.setdefault(event.session, []).append(event)

    def tallies(self) -> dict[str, Tally]:
        """The books of gateways and of flows."""
        gaps: list[Skip] = []
        lost: list[Skip] = []
        for session in sorted({*self._lives, *self._ends}):
            ends = self._ends.get(session, [])
            if problem := _problem(ends, self._lives.get(session, 0)):
                gaps.append(Skip(item=render_safe(session, 40), reason=SkipReason.LIMIT, detail=problem))
            lost += _losses(session, ends)
        sessions = len({*self._lives, *self._ends})
        return {
            "gateways": Tally(discovered=sessions, analyzed=sessions - len(gaps), skipped=tuple(gaps)),
            "flows": Tally(
                discovered=self.flows + sum(skip.count for skip in lost), analyzed=self.flows, skipped=tuple(lost)
            ),
        }


def _problem(ends: list[GatewayEndEvent], lives: int) -> str:
    early = next((end for end in ends if end.early), None)
    if early is not None:
        return render_safe(f"the gateway ended early: {early.reason or 'no reason given'}")
    if not ends:
        return "there was no gateway"
    return f"{lives - len(ends)} of its starts had no gateway" if len(ends) < lives else ""


def _losses(session: str, ends: list[GatewayEndEvent]) -> list[Skip]:
    found: list[Skip] = []
    name = render_safe(session, 40)
    for end in ends:
        lost = sum(max(0, number) for number in end.lost.values())
        if lost:
            kinds = ", ".join(sorted(kind for kind, number in end.lost.items() if number > 0))
            detail = render_safe(f"the gateway could not tell all: {kinds}")
            found.append(Skip(item=f"lost flows of {name}", reason=SkipReason.TARGET, detail=detail, count=lost))
        if end.capture_dropped > 0:
            detail = "the capture could not keep up, so not every flow is known to have been told"
            found.append(Skip(item=f"packets of {name}", reason=SkipReason.TARGET, detail=detail))
        if end.unmatched:
            shown = render_safe(end.unmatched[0])
            detail = f"captured, and no event tells of it: {shown}"
            found.append(
                Skip(item=f"flows of {name}", reason=SkipReason.LIMIT, detail=detail, count=len(end.unmatched))
            )
    return found


def gateway_declined(manifest: Manifest | None) -> bool:
    """True when the operator chose to have no gateway."""
    return manifest is None or (manifest.network == "none" and manifest.options.network is NetworkChoice.NONE)


def unprompted(where: Where) -> bool:
    """True for what nobody asked for: no call, and no late effect of one."""
    return where.phase != CALL and not where.after


def shown_phase(where: Where) -> str:
    """`before any call`, `after call 3`, `install`, or the call's tool."""
    if where.phase == Phase.INSTALL.value:
        return "install"
    if where.phase == CALL:
        return f"in a call of {where.tool}" if where.tool else "in a call"
    return f"after call {where.after}" if where.after else "before any call"
