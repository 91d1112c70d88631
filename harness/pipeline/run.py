"""One whole run: fetch, install, launch, discover, stop, judge, seal.

The only place where the recording half and the judging half meet. Whatever the target does ends in a
`ScanResult`; UsageError and HarnessError (engine, registry) go on to the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from harness.acquisition import parse_target
from harness.analyzers.engine import select
from harness.assessment.policy_model import Policy
from harness.model.errors import UsageError
from harness.model.finding import EvidenceLevel
from harness.model.options import ActiveLevel, RunOptions
from harness.model.result import ScanResult
from harness.model.target import TargetKind
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.closure import keep_closure
from harness.pipeline.entropy import Entropy
from harness.pipeline.foresee import Foresee
from harness.pipeline.judge import judge
from harness.pipeline.places import default_bundle, forget_old_bundles
from harness.pipeline.progress import Progress
from harness.pipeline.recorded import BundleRecording
from harness.pipeline.recorder import Recorder
from harness.pipeline.workers import worker_pool
from harness.report.json import render as render_json


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What to run and how to judge it. `secrets`: the values of `--env`, which are recorded nowhere.

    `selection`: the text of `--analyzers`, or None. `bundle`: the folder of `--bundle`, which must not exist yet.
    """

    target: str | None
    command: tuple[str, ...]
    options: RunOptions
    secrets: dict[str, str]
    selection: str | None
    policy: Policy
    bundle: Path | None


async def run_target(request: RunRequest, entropy: Entropy, progress: Progress) -> ScanResult:
    """Do it all. Raises UsageError, HarnessError; nothing is left on the engine whatever happens."""
    options = request.options
    if options.active is ActiveLevel.TOOL_CALLS and not options.allow:
        raise UsageError("--active tool-calls calls nothing that is not allowed", remedy="name tools with --allow NAME")
    if options.allow and options.active is not ActiveLevel.TOOL_CALLS:
        raise UsageError("--allow goes with --active tool-calls", remedy=f"at level {options.active} no tool is called")
    ref = parse_target(request.target, request.command)
    if ref.kind is TargetKind.TOOLS:
        raise UsageError("a saved tool list is not run", remedy=f"use: harness scan {request.target}")
    selected = select(request.selection)
    run_id = entropy.run_id()
    folder = request.bundle or default_bundle(run_id, ref.name or ref.kind)
    if folder.exists():
        raise UsageError(f"{folder} exists already", remedy="give --bundle a folder that does not exist yet")
    await anyio.to_thread.run_sync(forget_old_bundles)
    async with worker_pool(options.jobs, options.limits) as pool:
        with BundleWriter(folder, entropy, options.limits, request.secrets.values()) as bundle:
            results: list[ScanResult] = []

            async def judge_it() -> None:
                progress.phase("judge")
                recording = BundleRecording(folder, trust_unsealed=True, verify=False)
                executor = pool.executor(folder, trust_unsealed=True, facts=recording.facts)
                today = entropy.now().date()
                result = await judge(recording, selected, request.policy, executor, today, timed=True)
                await keep_proofs(result, bundle, recorder, options, progress)
                await bundle.seal(render_json(result, color=False, width=0))
                results.append(result)

            recorder = Recorder(bundle, options, request.secrets, run_id, entropy, progress, Foresee(pool, bundle).ask)
            await recorder.record(ref, judge_it)
    return results[0]


async def keep_proofs(
    result: ScanResult, bundle: BundleWriter, recorder: Recorder, options: RunOptions, progress: Progress
) -> None:
    """Put the closure into a bundle with confirmed findings, so that they can be reproduced from it alone."""
    if not any(finding.evidence_level is EvidenceLevel.CONFIRMED for finding in result.findings):
        return
    if recorder.acquired is None or recorder.entry is None:
        return
    problem = await anyio.to_thread.run_sync(keep_closure, bundle, recorder.acquired, recorder.entry.name, options)
    if problem is not None:
        progress.warn(f"the confirmed findings can't be reproduced from this bundle: {problem}")
