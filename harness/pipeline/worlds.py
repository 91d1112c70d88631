"""The planted worlds of a run's lives: each life gets one of its own where calls are to be made, whatever it is for.

A target that was started with a place in its world (a repository, a database) starts without it in no life at all.
"""

from __future__ import annotations

from harness.model.call import WorldEvent
from harness.model.options import ActiveLevel, RunOptions
from harness.model.recording import Phase
from harness.model.world import World
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.world import Planted, plant
from harness.sandbox.base import LaunchSpec


class Worlds:
    """Made for one run; those of one run may be several."""

    def __init__(self, bundle: BundleWriter, entropy: Entropy, options: RunOptions) -> None:
        self._bundle, self._entropy = bundle, entropy
        self._wanted = options.active is ActiveLevel.TOOL_CALLS
        self._ahead: dict[str, Planted] = {}

    def into(self, session: str, spec: LaunchSpec) -> tuple[World | None, LaunchSpec]:
        """The launch of a life with its world, which is recorded before the life begins; as it is without calls."""
        if not self._wanted:
            return None, spec
        planted = self._ahead.pop(session, None) or plant(self._entropy, spec)
        network = str(spec.network)
        self._bundle.record(WorldEvent(phase=Phase.START, session=session, world=planted.world, network=network))
        return planted.world, planted.into(spec)

    def ahead(self, session: str, spec: LaunchSpec) -> LaunchSpec:
        """The same launch as `into` will give, for one that is prepared now and begins later, if it ever does."""
        if not self._wanted:
            return spec
        planted = self._ahead[session] = plant(self._entropy, spec)
        return planted.into(spec)
