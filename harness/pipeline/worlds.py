"""The planted worlds of a run's lives: each life gets one of its own where calls are to be made, whatever it is for.

So it does where arguments or environment name a place that is there with a world only (a repository, a folder):
without it, the target could not be started.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.model.call import WorldEvent
from harness.model.options import ActiveLevel, RunOptions
from harness.model.recording import Phase
from harness.model.world import World
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.world import Planted, named_below_workspace, plant
from harness.sandbox.base import HOME, LaunchSpec


class Worlds:
    """Made for one run; those of one run may be several."""

    def __init__(self, bundle: BundleWriter, entropy: Entropy, options: RunOptions) -> None:
        self._bundle, self._entropy = bundle, entropy
        self._wanted = options.active is ActiveLevel.TOOL_CALLS
        self._ahead: dict[str, Planted] = {}

    def into(self, session: str, spec: LaunchSpec) -> tuple[World | None, LaunchSpec]:
        """The launch of a life with its world, which is recorded before the life begins; as it is where none is due."""
        planted = self._ahead.pop(session, None) or self._planted(spec)
        if planted is None:
            return None, spec
        network = str(spec.network)
        self._bundle.record(WorldEvent(phase=Phase.START, session=session, world=planted.world, network=network))
        return planted.world, planted.into(spec)

    def ahead(self, session: str, spec: LaunchSpec) -> LaunchSpec:
        """The same launch as `into` will give, for one that is prepared now and begins later, if it ever does."""
        planted = self._planted(spec)
        if planted is None:
            return spec
        self._ahead[session] = planted
        return planted.into(spec)

    def _planted(self, spec: LaunchSpec) -> Planted | None:
        missing = {path for path in named_below_workspace(spec) if not _holds(spec.seed, path)}
        if not self._wanted and not missing:
            return None
        planted = plant(self._entropy, spec)
        return planted if self._wanted or any(_holds(planted.seed, path) for path in missing) else None


def _holds(seed: Iterable[str], path: str) -> bool:
    """Whether a file at this path, or one below it, is planted by `seed`, whose paths are below the home."""
    planted = (f"{HOME}/{name}" for name in seed)
    return any(name == path or name.startswith(f"{path}/") for name in planted)
