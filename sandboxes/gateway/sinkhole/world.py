"""What all connections of a run share: names, certificates, decoys, canned answers, and the ledger of flows."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from sinkhole.authority import Authority
from sinkhole.channel import Channel
from sinkhole.flows import Budget, Flow
from sinkhole.names import Names, decoy_of
from sinkhole.responding import Canned

#: Bytes that living flows may hold together, and how many flows are told one by one.
HELD_BYTES = 48 << 20
MOST_FLOWS = 20_000


@dataclass
class World:
    """One run's fake internet. `own`: the target's own addresses; `tell` sends a frame to the harness."""

    authority: Authority
    tell: Callable[[bytes], Awaitable[None]]
    own: tuple[str, ...] = ()
    names: Names = field(default_factory=Names)
    decoys: dict[str, str] = field(default_factory=dict)
    canned: Canned = field(default_factory=Canned)
    budget: Budget = field(default_factory=lambda: Budget(HELD_BYTES))
    told: int = 0
    untold: int = 0
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def flow(self, protocol: str, local: str, remote: str, address: str) -> Flow:
        """Begin a flow to `address`, the address part of `remote`."""
        return Flow(
            number=next(self._numbers),
            protocol=protocol,
            local=local,
            remote=remote,
            budget=self.budget,
            names=self.names.names_of(address),
            decoy=decoy_of(address, self.own),
        )

    def renewed(self, flow: Flow) -> Flow:
        """The next part of a connection whose first was told: it begins when something comes."""
        fresh = self.flow(flow.protocol, flow.local, flow.remote, "")
        fresh.names, fresh.decoy, fresh.application = flow.names, flow.decoy, flow.application
        fresh.sni, fresh.alpn, fresh.ja4, fresh.opaque = flow.sni, flow.alpn, flow.ja4, flow.opaque
        fresh.began = 0
        return fresh

    async def part_of(self, channel: Channel) -> None:
        """Tell of a connection's exchange so far; what follows is a flow of its own."""
        told, channel.flow = channel.flow, self.renewed(channel.flow)
        await self.finish(told, "idle")

    async def finish(self, flow: Flow, end: str) -> None:
        """Tell of a flow that ended; past the bound it is only counted."""
        if not flow.began:
            return  # nothing came since the last part was told
        flow.end = flow.end or end
        frame = flow.frame()
        if self.told >= MOST_FLOWS:
            self.untold += 1
            return
        self.told += 1
        await self.tell(frame)
