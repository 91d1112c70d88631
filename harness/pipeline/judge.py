"""From a recording to a result: analyzers in children, one decision, one assembly. Shared by run and replay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import anyio.to_thread

from harness.analyzers.engine import Executor, Selected, run_selected
from harness.assessment.aggregate import aggregate
from harness.assessment.assemble import assemble, scope_of, summarize
from harness.assessment.policy_model import Policy
from harness.model.result import ScanResult
from harness.pipeline.recorded import BundleRecording


async def judge(
    recording: BundleRecording,
    selected: Sequence[Selected],
    policy: Policy,
    executor: Executor,
    today: date,
    *,
    timed: bool,
) -> ScanResult:
    """Judge what was recorded. `timed`: keep how long each analyzer took, which a replay must not.

    Raises BundleError when the recording can't be read; an analyzer's failure is a result.
    """
    results = await run_selected(selected, executor)
    if not timed:
        results = tuple(result.model_copy(update={"duration_ms": None}) for result in results)
    # A recording can be long, and reading it is no business of the event loop.
    summary = await anyio.to_thread.run_sync(lambda: summarize(recording.events()))
    manifest, surfaces = recording.manifest, recording.surfaces
    decision = aggregate(results, policy, today=today, scope=scope_of(manifest, surfaces, summary))
    return assemble(manifest, surfaces, summary, decision, policy, bundle=manifest.run_id)
