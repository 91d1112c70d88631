"""Judging a bundle again, offline: no engine, no network, the same bytes for the same bundle and options."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread

from harness.analyzers.engine import select
from harness.assessment.policy_model import Policy
from harness.model.options import Limits
from harness.model.result import ScanResult
from harness.pipeline.entropy import Entropy
from harness.pipeline.judge import judge
from harness.pipeline.recorded import BundleRecording
from harness.pipeline.workers import worker_pool


async def replay(bundle: Path, selection: str | None, policy: Policy, jobs: int, entropy: Entropy) -> ScanResult:
    """The result of judging `bundle` with these analyzers and this policy.

    The date counts only where the policy holds suppressions that expire. Raises UsageError, BundleError.
    """
    selected = select(selection)
    recording = await anyio.to_thread.run_sync(BundleRecording, bundle)
    async with worker_pool(jobs, Limits()) as pool:
        executor = pool.executor(bundle, trust_unsealed=False, facts=recording.facts)
        return await judge(recording, selected, policy, executor, entropy.now().date(), timed=False)
