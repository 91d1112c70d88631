"""A static scan: declarations read from a file, judged by the same analyzers, policy and reports as a run's.

Nothing is started, no engine is asked and nothing is recorded: the result's recording is empty, and what is found is
at most STATIC.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio.to_thread

import harness
from harness.acquisition import parse_target
from harness.analyzers.engine import run_selected, select
from harness.assessment.aggregate import Scope, aggregate
from harness.assessment.assemble import EventSummary, assemble
from harness.assessment.policy_model import Policy
from harness.model.errors import UsageError
from harness.model.options import Limits, RunOptions
from harness.model.recording import Manifest
from harness.model.result import ScanResult
from harness.model.surface import ItemKind
from harness.model.target import Artifact, Closure, TargetKind, TargetRef
from harness.pipeline.declarations import Declarations, read_declarations
from harness.pipeline.entropy import Entropy
from harness.pipeline.workers import worker_pool


@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """What to scan and how to judge it. `selection`: the text of `--analyzers`, or None."""

    target: str
    selection: str | None
    policy: Policy
    jobs: int


async def scan_target(request: ScanRequest, entropy: Entropy) -> ScanResult:
    """Scan a saved tool list. Raises UsageError for anything else, and for a file that is none."""
    ref = parse_target(request.target, ())
    if ref.kind is not TargetKind.TOOLS or ref.path is None:
        raise UsageError(
            "this version scans saved tool lists only", remedy=f"give FILE.tools.json, or: harness run {request.target}"
        )
    selected = select(request.selection)
    limits = Limits()
    read = await anyio.to_thread.run_sync(read_declarations, ref.path, limits)
    async with worker_pool(request.jobs, limits) as pool:
        results = await run_selected(selected, pool.executor(ref.path, trust_unsealed=True, declarations=True))
    surface = read.combined
    scope = Scope(declared=len(surface.of(ItemKind.TOOL)))
    decision = aggregate(results, request.policy, today=entropy.now().date(), scope=scope)
    return assemble(_manifest(ref, read), (surface,), EventSummary(), decision, request.policy)


def _manifest(ref: TargetRef, read: Declarations) -> Manifest:
    """What stands for a run's manifest, of which a scan has the target only."""
    assert ref.path is not None
    own = Artifact(name=ref.path.name, version="", filename=ref.path.name, sha256=read.sha256, size=read.size)
    names = [name for name, _ in read.servers if name is not None]
    several = (f"{len(names)} servers: {', '.join(names[:10])}{' …' if len(names) > 10 else ''}",) if names else ()
    odd = (f"the file's JSON was not read as it stands: {', '.join(read.oddities)}",) if read.oddities else ()
    return Manifest(
        harness_version=harness.__version__,
        run_id="",
        target=ref,
        name=ref.path.name.removesuffix(".tools.json"),
        artifacts=(own,),
        closure_digest=Closure(artifacts=(own,)).digest,
        options=RunOptions(),
        problems=odd,
        notes=(*several, "read from a file: nothing was started"),
    )
