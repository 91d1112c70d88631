"""One whole run: fetch, install, launch, discover, stop, judge, seal.

The only place where the recording half and the judging half meet. Whatever the target does ends in a
`ScanResult`; UsageError and HarnessError (engine, registry) go on to the command line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

import harness
from harness.acquisition import acquire, parse_target
from harness.assessment.policy import Policy
from harness.model.errors import TargetError, UsageError
from harness.model.options import ActiveLevel, RunOptions
from harness.model.recording import Manifest, NoteEvent, Phase, PhaseEvent
from harness.model.result import ScanResult
from harness.model.target import Acquired, TargetRef
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.driver import Driver
from harness.pipeline.entropy import Entropy
from harness.pipeline.judge import Judge, judge
from harness.pipeline.places import cache_dir, default_bundle, forget_old_bundles
from harness.pipeline.preparation import choose_entry, install, launch_spec
from harness.pipeline.progress import Progress
from harness.pipeline.recorded import BundleRecording
from harness.probing.planner import DiscoveryPlanner
from harness.protocol.stock_client import StockClient
from harness.report.json import render as render_json
from harness.sandbox.base import Sandbox


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What to run and how to judge it. `secrets`: the values of `--env`, which appear nowhere else.

    `selection`: the text of `--analyzers`, or None. `bundle`: the folder of `--bundle`, which must not exist.
    """

    target: str | None
    command: tuple[str, ...]
    options: RunOptions
    secrets: dict[str, str]
    selection: str | None
    policy: Policy
    bundle: Path | None


class Run:
    """A run in progress. `open_sandbox` is called once the target is known to exist."""

    def __init__(
        self,
        request: RunRequest,
        *,
        sandbox: Callable[[], Awaitable[Sandbox]],
        entropy: Entropy,
        run_id: str,
        progress: Progress,
    ) -> None:
        self._request = request
        self._open_sandbox = sandbox
        self._entropy = entropy
        self._run_id = run_id
        self._progress = progress
        self._timing: dict[str, int] = {}

    async def execute(self) -> ScanResult:
        """Do it all. Raises UsageError, HarnessError; nothing is left on the engine whatever happens."""
        options = self._request.options
        if options.active is not ActiveLevel.NONE:
            raise UsageError(
                f"--active {options.active} is not built yet", remedy="this version reads declarations: --active none"
            )
        ref = parse_target(self._request.target, self._request.command)
        folder = self._request.bundle or default_bundle(self._run_id, ref.name or ref.kind)
        if folder.exists():
            raise UsageError(f"{folder} exists already", remedy="give --bundle a folder that does not exist yet")
        await anyio.to_thread.run_sync(forget_old_bundles)
        with Judge.prestarted(self._request.selection, options) as judges:
            return await self._recorded(ref, folder, judges)

    async def _recorded(self, ref: TargetRef, folder: Path, judges: Judge) -> ScanResult:
        ...
