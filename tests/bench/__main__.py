"""`make bench`: what the sandbox and the harness cost, as ratios and differences within one run.

Prints a table and exits 1 where a bound of the design is passed. Medians of interleaved repetitions, so that a noisy
machine hits all sides alike. Not part of the tests: timings never decide whether those pass.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread

from harness.acquisition import acquire, parse_target
from harness.model.options import RunOptions
from harness.model.recording import Event
from harness.pipeline.entropy import Entropy
from harness.pipeline.places import packages_dir
from harness.pipeline.preparation import choose_entry, launch_spec
from harness.protocol.observe import observe
from harness.sandbox.base import InstalledTarget, LaunchSpec
from harness.sandbox.provider import open_sandbox
from tests.bench import behavior, canaries, egress, recording

TARGETS = ["pypi:mcp-server-time", "npm:@modelcontextprotocol/server-everything"]
REPETITIONS = int(os.environ.get("BENCH_REPETITIONS", "7"))
OPTIONS = RunOptions()
PROGRAM = (Path(sys.executable).with_name("harness"), "run", "--format", "json", "--no-progress")


class NoSink:
    """Counts events and keeps none."""

    def __init__(self) -> None:
        self.number = 0

    def record(self, event: Event) -> int:
        self.number += 1
        return self.number


async def no_hook(phase: str) -> None:
    return None


async def timed(work: Callable[[], Awaitable[int]]) -> tuple[float, int]:
    started = time.perf_counter()
    tools = await work()
    return time.perf_counter() - started, tools


async def sandboxed(sandbox, spec: LaunchSpec) -> int:  # type: ignore[no-untyped-def]
    async with sandbox.launch(spec) as process:
        surface = await observe(process.stdin, process.stdout, NoSink(), options=OPTIONS, phase_hook=no_hook)
        await process.stop(OPTIONS.stop_grace)
    return len(surface.items)


async def plain(spec: LaunchSpec, image: str) -> int:
    """The same handshake with `docker run -i`: same image, same volume, no gate, no warden, no hardening."""
    command = ["docker", "run", "-i", "--rm", "--network", "none", "-v", f"{spec.volume}:/app:ro", "-w", "/tmp"]
    for name, value in spec.environment.items():
        command += ["-e", f"{name}={value}"]
    command += ["--entrypoint", spec.argv[0], image, *spec.argv[1:]]
    async with await anyio.open_process(command, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        surface = await observe(process.stdin, process.stdout, NoSink(), options=OPTIONS, phase_hook=no_hook)
        await process.stdin.aclose()
        await process.wait()
    return len(surface.items)


def whole_run(target: str, level: str = "none") -> float:
    """Wall time of `harness run` in seconds."""
    started = time.perf_counter()
    subprocess.run([*PROGRAM, "--active", level, target], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def peak_memory(target: str) -> float:
    """Peak memory of `harness run` in MB: the process itself, not its children."""
    measure = Path(__file__).parents[1] / "e2e" / "measured_run.py"  # a small parent: a child begins with its peak
    with tempfile.TemporaryDirectory() as folder:
        took = Path(folder) / "took"
        command = [sys.executable, "-S", measure, took, "120", *PROGRAM, target]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return float(json.loads(took.read_text())["own"]) / (1 << 20)


async def bench(target: str) -> list[tuple[str, str, bool]]:
    acquired = await acquire(parse_target(target, ()), OPTIONS, packages_dir(), lambda text: None)
    async with open_sandbox("bench", lambda text: None) as sandbox:
        installed = await sandbox.install(acquired.install, timeout=240, limits=OPTIONS.limits)
        assert isinstance(installed, InstalledTarget)
        spec = launch_spec(acquired, choose_entry(acquired, None), installed, OPTIONS, {}, Entropy().nonce)
        ours: list[float] = []
        theirs: list[float] = []
        whole: list[float] = []
        safe: list[float] = []
        for _ in range(REPETITIONS):
            seconds, tools = await timed(lambda: sandboxed(sandbox, spec))
            ours.append(seconds)
            seconds, expected = await timed(lambda: plain(spec, installed.image.id))
            theirs.append(seconds)
            assert tools == expected > 0, (tools, expected)
            whole.append(await anyio.to_thread.run_sync(whole_run, target))
            safe.append(await anyio.to_thread.run_sync(whole_run, target, "safe"))
        peak = await anyio.to_thread.run_sync(peak_memory, target)
    sandbox_median, plain_median = statistics.median(ours), statistics.median(theirs)
    bound = 1.15 * plain_median + 0.35
    over = statistics.median(whole) - sandbox_median
    probes = statistics.median(safe) - statistics.median(whole)
    return [
        (f"{target}: sandboxed discovery", f"{sandbox_median:.2f} s, plain {plain_median:.2f} s, bound {bound:.2f} s",
         sandbox_median <= bound),
        (f"{target}: harness run beyond it", f"{over:.2f} s, bound 1.20 s", over <= 1.2),
        (f"{target}: malformed messages and further looks", f"{probes:.2f} s, bound 2.00 s", probes <= 2.0),
        (f"{target}: peak memory", f"{peak:.0f} MB, bound 120 MB", peak <= 120),
    ]  # fmt: skip


def main() -> int:
    rows = [
        *behavior.rows(),
        *canaries.rows(),
        *recording.rows(TARGETS, REPETITIONS),
        *egress.rows(TARGETS, REPETITIONS),
        *(row for target in TARGETS for row in anyio.run(bench, target)),
    ]
    for what, measured, good in rows:
        print(f"{'ok  ' if good else 'OVER'}  {what}: {measured}")
    missed = [what for what, _, good in rows if not good]
    print(f"{len(rows) - len(missed)} of {len(rows)} bounds kept" + "".join(f"\nmissed: {what}" for what in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
