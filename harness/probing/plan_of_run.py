"""Which stages make up the plan of a run, by its active level."""

from __future__ import annotations

from harness.model.options import ActiveLevel, RunOptions
from harness.probing.chain import Chain, Ground, Stage
from harness.probing.drift import DriftPlanner
from harness.probing.malformed.catalog import Catalog
from harness.probing.malformed.planner import ProbePlanner
from harness.probing.planner import Planner
from harness.probing.starting import StartFacts, StartPlanner


def plan_of_run(options: RunOptions, facts: StartFacts, catalog: Catalog | None = None) -> Planner:
    """Start and read the declarations; at `safe` the malformed messages follow, at `tool-calls` the calls too.

    `catalog`: of malformed messages, none where it is not given. The last stage looks again at what is declared.
    """
    stages = _stages(options, catalog or Catalog())
    return Chain(StartPlanner(options, facts, hold=bool(stages)), stages)


def _stages(options: RunOptions, catalog: Catalog) -> tuple[Stage, ...]:
    if options.active is ActiveLevel.NONE:
        return ()

    sent: list[ProbePlanner] = []

    def probes(ground: Ground) -> Planner | None:
        if not ground.usable or ground.surface is None:
            return None
        sent.append(ProbePlanner(catalog, ground, options.transport))
        return sent[-1]

    def looks(ground: Ground) -> Planner | None:
        if ground.first is None:
            return None
        return DriftPlanner(catalog, ground, options.transport, alive=sent[-1].alive if sent else "")

    return (probes, looks)
