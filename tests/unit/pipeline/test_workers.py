"""Analyzers run in children: a crash, a hang, a flood or garbage costs one analyzer and never ends in SAFE."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import psutil
import pytest
from bundle_samples import MANIFEST

from harness.analyzers.engine import in_order, select
from harness.assessment.aggregate import aggregate
from harness.assessment.policy_model import PRESETS
from harness.model.options import Limits
from harness.model.result import AnalyzerStatus, Selection, Verdict
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.early import WORKER
from harness.pipeline.entropy import Entropy
from harness.pipeline.workers import worker_pool

pytestmark = pytest.mark.anyio

#: What a child does instead of its job -> how it counts.
MISBEHAVIOUR = {
    "dies": ("import os; os.kill(os.getpid(), 9)", AnalyzerStatus.CRASHED),
    "exits": ("import os; os._exit(7)", AnalyzerStatus.CRASHED),
    "raises": ("raise RuntimeError('x')", AnalyzerStatus.CRASHED),
    "hangs": ("import time; time.sleep(600)", AnalyzerStatus.TIMEOUT),
    "spins": (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 3))\nwhile True: pass",
        AnalyzerStatus.TIMEOUT,
    ),
    "floods": ("while True: worker._write_all(out, b'x' * 65536)", AnalyzerStatus.ERROR),
    "garbage": ("worker._write_all(out, b'{}')", AnalyzerStatus.ERROR),
    "nothing": ("pass", AnalyzerStatus.ERROR),
    "kills the nursery": ("import os; os.kill(os.getppid(), 9)", AnalyzerStatus.CRASHED),
}

#: A nursery whose children run `{program}` for the analyzer named `definitions`, and their job for any other.
NURSERY = """
import os, signal
from harness.pipeline import worker
worker.MAX_RESULT_BYTES = 1 << 20
honest = worker._be_child
def child(job, out):
    if job.analyzer != "definitions":
        honest(job, out)
    try:
        exec({program!r})
    except BaseException:
        os._exit(1)
    os._exit(0)
worker._be_child = child
worker.Nursery().serve()
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "b"
    with BundleWriter(folder, Entropy(), Limits()) as writer:
        writer.manifest(MANIFEST)
        writer.end_recording()
        writer.manifest(MANIFEST.model_copy(update={"finished": True}))
    return folder


@pytest.mark.parametrize("kind", MISBEHAVIOUR)
async def test_a_misbehaving_child_is_a_failed_result_and_costs_no_other(kind: str, bundle: Path) -> None:
    program, expected = MISBEHAVIOUR[kind]
    command = (sys.executable, "-c", NURSERY.format(program=program))
    with anyio.fail_after(120):
        async with worker_pool(2, Limits(analyzer_seconds=6.0), command) as pool:
            results = await pool.executor(bundle, trust_unsealed=True)(["definitions", "protocol"])
    result = results["definitions"]
    assert result.status is expected, result.reason
    assert result.reason
    assert aggregate([result], PRESETS["balanced"]).verdict is Verdict.UNKNOWN
    if kind != "kills the nursery":
        assert results["protocol"].status is AnalyzerStatus.PARTIAL, "its neighbour did its job"


async def test_light_analyzers_share_one_process_and_run_singly_when_it_dies(bundle: Path) -> None:
    program = NURSERY.replace('job.analyzer != "definitions"', "not job.others").format(program="os._exit(7)")
    names = ["protocol", "behavior.exec", "behavior.files"]
    for command in ((sys.executable, "-c", program), WORKER):
        async with worker_pool(2, Limits(), command) as pool:
            results = await pool.executor(bundle, trust_unsealed=True)(names)
            assert set(results) == set(names) and not any(result.status.failed for result in results.values())
            assert pool._number == (1 if command is WORKER else 4)


async def test_results_come_in_the_operators_order_and_stubs_need_no_child(bundle: Path) -> None:
    chosen = select("yara?,definitions,protocol")
    async with worker_pool(4, Limits()) as pool:
        results = in_order(chosen, await pool.executor(bundle, trust_unsealed=True)([c.name for c in chosen]))
    assert [result.name for result in results] == ["yara", "definitions", "protocol"]
    assert results[0].status is AnalyzerStatus.UNAVAILABLE
    assert results[0].selection is Selection.BEST_EFFORT
    assert {result.status for result in results[1:]} == {AnalyzerStatus.PARTIAL}, "nothing was recorded"


async def test_a_damaged_bundle_fails_the_analyzer_and_not_the_harness(bundle: Path) -> None:
    (bundle / "events.jsonl.zst").write_bytes(b"no zstandard")
    async with worker_pool(1, Limits()) as pool:
        results = await pool.executor(bundle, trust_unsealed=True)(["protocol"])
    assert results["protocol"].status is AnalyzerStatus.CRASHED


async def test_memory_of_a_child_is_bounded(bundle: Path) -> None:
    async with worker_pool(1, Limits(analyzer_memory_bytes=16 << 20)) as pool:
        result = await pool.run("protocol", bundle, True)
    assert result.status.failed, "the nursery alone has more than 16 MiB of address space"


async def test_the_nursery_and_its_children_are_gone_at_exit_even_when_they_hang(bundle: Path) -> None:
    command = (sys.executable, "-c", NURSERY.format(program="import time; time.sleep(600)"))
    async with worker_pool(2, Limits(), command) as pool:
        process = pool._process
        await pool._ready.wait()
        with anyio.move_on_after(2):
            await pool.run("definitions", bundle, True)
        children = psutil.Process(process.pid).children()
        assert len(children) == 1
    assert process.returncode is not None
    gone, alive = psutil.wait_procs(children, timeout=5)
    assert gone and not alive
