"""Analyzers run in children: a crash, a hang, a flood or garbage costs one analyzer and never ends in SAFE."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from bundle_samples import MANIFEST

from harness.analyzers.engine import Selected, in_order, select
from harness.assessment.aggregate import aggregate
from harness.assessment.policy_model import PRESETS
from harness.model.options import Limits
from harness.model.result import AnalyzerStatus, Selection, Verdict
from harness.pipeline import workers
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.workers import WorkerPool, worker_pool

pytestmark = pytest.mark.anyio

MISBEHAVIOUR = {
    "dies": ("import os; os.kill(os.getpid(), 9)", AnalyzerStatus.CRASHED),
    "exits": ("raise SystemExit(7)", AnalyzerStatus.CRASHED),
    "hangs": ("import time; time.sleep(600)", AnalyzerStatus.TIMEOUT),
    "spins": (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 3))\nwhile True: pass",
        AnalyzerStatus.TIMEOUT,
    ),
    "floods": ("import sys\nwhile True: sys.stdout.write('x' * 65536)", AnalyzerStatus.ERROR),
    "garbage": ("print('{}')", AnalyzerStatus.ERROR),
    "nothing": ("pass", AnalyzerStatus.ERROR),
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "b"
    with BundleWriter(folder, Entropy(), Limits()) as writer:
        writer.manifest(MANIFEST)
        writer.end_recording()
        writer.manifest(MANIFEST.model_copy(update={"finished": True}))
    return folder


@pytest.mark.parametrize("kind", MISBEHAVIOUR)
async def test_a_misbehaving_child_is_a_failed_result(kind: str, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, expected = MISBEHAVIOUR[kind]
    monkeypatch.setattr(workers, "START_SECONDS", 2.0)
    monkeypatch.setattr(workers, "MAX_RESULT_BYTES", 1 << 20)
    pool = WorkerPool(1, Limits(analyzer_seconds=2.0), command=(sys.executable, "-c", program))
    with anyio.fail_after(30):
        result = await pool.run("protocol", bundle, True)
    assert result.status is expected, result.reason
    assert result.reason
    decision = aggregate([result], PRESETS["balanced"])
    assert decision.verdict is Verdict.UNKNOWN


async def test_results_come_in_the_operators_order_and_stubs_need_no_child(bundle: Path) -> None:
    chosen = select("yara?,definitions,protocol")
    async with worker_pool(4, Limits(), chosen) as pool:
        results = in_order(chosen, await pool.executor(bundle, trust_unsealed=True)([c.name for c in chosen]))
    assert [result.name for result in results] == ["yara", "definitions", "protocol"]
    assert results[0].status is AnalyzerStatus.UNAVAILABLE
    assert results[0].selection is Selection.BEST_EFFORT
    assert {result.status for result in results[1:]} == {AnalyzerStatus.PARTIAL}, "nothing was recorded"


async def test_a_damaged_bundle_fails_the_analyzer_and_not_the_harness(bundle: Path) -> None:
    (bundle / "events.jsonl.zst").write_bytes(b"no zstandard")
    chosen = (Selected(name="protocol"),)
    async with worker_pool(1, Limits(), chosen) as pool:
        results = await pool.executor(bundle, trust_unsealed=True)(["protocol"])
    assert results["protocol"].status is AnalyzerStatus.CRASHED


async def test_memory_of_a_child_is_bounded(bundle: Path) -> None:
    async with worker_pool(1, Limits(analyzer_memory_bytes=48 << 20), ()) as pool:
        result = await pool.run("protocol", bundle, True)
    assert result.status.failed, "imports alone need more than 48 MiB of address space"


async def test_prestarted_children_are_gone_at_exit() -> None:
    async with worker_pool(2, Limits(), select(None)) as pool:
        processes = list(pool._ready)
        assert len(processes) == 2
    assert all(process.returncode is not None for process in processes)
