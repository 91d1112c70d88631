"""What all connections of a run share: names, certificates, decoys, canned answers, and the ledger of flows."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from sinkhole.authority import Authority
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

    async def finish(self, flow: Flow, end: str) -> None:
        """Tell of a flow that ended; past the bound it is only counted."""
        flow.end = flow.end or end
        frame = flow.frame()
        if self.told >= MOST_FLOWS:
            self.untold += 1
            return
        self.told += 1
        await self.tell(frame)
