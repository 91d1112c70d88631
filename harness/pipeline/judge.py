"""From a recording to a result: analyzers in children, one decision, one assembly. Shared by run and replay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import anyio
import anyio.to_thread

from harness.analyzers.engine import Executor, Selected, run_selected
from harness.assessment.aggregate import aggregate
from harness.assessment.assemble import assemble, scope_of, summarize
from harness.assessment.policy_model import Policy
from harness.model.errors import BundleError
from harness.model.result import AnalyzerResult, ScanResult
from harness.pipeline.confirming import NAME, joins
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
    results: tuple[AnalyzerResult, ...] = ()

    async def analyze() -> None:
        nonlocal results
        calls = (Selected(name=NAME),) if joins(recording.manifest) else ()
        results = await run_selected((*selected, *calls), executor)

    unreadable: BundleError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(analyze)
        try:  # a recording can be long, and reading it is no business of the event loop
            summary = await anyio.to_thread.run_sync(lambda: summarize(recording.events()))
        except BundleError as error:
            unreadable = error
            tasks.cancel_scope.cancel()
    if unreadable is not None:
        raise unreadable
    if not timed:
        results = tuple(result.model_copy(update={"duration_ms": None}) for result in results)
    manifest, surfaces = recording.manifest, recording.surfaces
    decision = aggregate(results, policy, today=today, scope=scope_of(manifest, surfaces, summary))
    return assemble(manifest, surfaces, summary, decision, policy, bundle=manifest.run_id)
