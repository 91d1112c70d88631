"""What recording costs: starts of real servers, a flood of opens, whole runs, a million events on their way to disk."""

from __future__ import annotations

import resource
import statistics
import struct
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
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.places import packages_dir
from harness.pipeline.preparation import choose_entry, launch_spec
from harness.sandbox import records
from harness.sandbox.base import InstalledTarget, LaunchSpec, SandboxedProcess
from harness.sandbox.provider import open_sandbox
from harness.sandbox.records import RecordDecoder
from harness.sandbox.records_frames import CallNames
from harness.sandbox.records_parts import PART_ARGUMENTS, PART_FILE, PART_IDENTITY, REVERSED

Row = tuple[str, str, bool]

START_RATIO = 1.2
OPENS = 200_000
OPENS_RATIO = 6.0
EVENTS = 1_000_000
RATE_BOUND = 40_000
#: What the second half of the events may add to the memory held.
GROWTH_BOUND_MB = 8
ADDED_SECONDS = 0.15
OPTIONS = RunOptions()
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"bench","version":"1"}}}\n'
)
#: `open` and `close` by themselves, as often as is said, and how long that took in seconds.
FLOOD = (
    "import os,sys,time\n"
    "n=int(sys.argv[1]); t=time.perf_counter()\n"
    "for _ in range(n): os.close(os.open('/etc/hostname',os.O_RDONLY))\n"
    "print(time.perf_counter()-t,flush=True)\n"
)

_BATCH = 2_000
_READY = b"arch x86_64\n257 openat\n"


async def _drained(process: SandboxedProcess, work: Callable[[], Awaitable[float]]) -> float:
    """What `work` returns, while the events are taken and thrown away. Raises when some of them were lost."""
    recording = process.recording
    if recording is None:
        return await work()

    async def take() -> None:
        async for _ in recording.batches():
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        result = await work()
        await process.stop(OPTIONS.stop_grace)
        end = await recording.stop()
        assert end.loaded and not end.early, end
    return result


async def _line(process: SandboxedProcess) -> bytes:
    said = b""
    while b"\n" not in said:
        said += await process.stdout.receive()
    return said


async def start(sandbox, spec: LaunchSpec) -> float:  # type: ignore[no-untyped-def]
    """Seconds from the open gate to the answer to `initialize`: the server's own start."""
    async with sandbox.launch(spec) as process:

        async def work() -> float:
            began = time.perf_counter()
            await process.stdin.send(INITIALIZE)
            await _line(process)
            return time.perf_counter() - began

        return await _drained(process, work)


async def flood(sandbox, spec: LaunchSpec) -> float:  # type: ignore[no-untyped-def]
    """Seconds that the opens took, told by who made them."""
    async with sandbox.launch(spec) as process:

        async def work() -> float:
            return float(await _line(process))

        return await _drained(process, work)


async def _alternating(repetitions: int, one: Callable[[bool], Awaitable[float]]) -> tuple[float, float]:
    """Medians without and with a record."""
    taken: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repetitions):
        for recorded in (False, True):
            taken[recorded].append(await one(recorded))
    return statistics.median(taken[False]), statistics.median(taken[True])


def _ratio(what: str, plain: float, recorded: float, bound: float) -> Row:
    ratio = recorded / plain
    return what, f"{ratio:.2f} times ({recorded:.2f} s for {plain:.2f} s), bound {bound:.1f} times", ratio <= bound


async def sandboxed(targets: list[str], repetitions: int) -> list[Row]:
    """Starts of the targets, and the flood."""
    rows: list[Row] = []
    async with open_sandbox("bench", lambda text: None) as sandbox:
        await sandbox.prepare_recorder()
        for target in targets:
            acquired = await acquire(parse_target(target, ()), OPTIONS, packages_dir(), lambda text: None)
            installed = await sandbox.install(acquired.install, timeout=240, limits=OPTIONS.limits)
            assert isinstance(installed, InstalledTarget)
            spec = launch_spec(acquired, choose_entry(acquired, None), installed, OPTIONS, {}, Entropy().nonce)

            async def one(recorded: bool, spec: LaunchSpec = spec) -> float:
                return await start(sandbox, spec.model_copy(update={"record": recorded}))

            plain, watched = await _alternating(repetitions, one)
            rows.append(_ratio(f"{target}: start recorded against unrecorded", plain, watched, START_RATIO))
        opens = LaunchSpec(image="python313", volume=None, argv=("python3", "-c", FLOOD, str(OPENS)))

        async def opened(recorded: bool) -> float:
            return await flood(sandbox, opens.model_copy(update={"record": recorded}))

        plain, watched = await _alternating(max(3, repetitions // 2), opened)
        rows.append(_ratio(f"{OPENS:,} open and close recorded against unrecorded", plain, watched, OPENS_RATIO))
    return rows


def _record(number: int) -> bytes:
    """An open of a module, as the recorder sends it; names that do not repeat soon."""
    names = (f"module{number % 80}.py", f"package{number % 7000}", "site-packages", "python3.13", "lib", "usr")
    parts = (
        (PART_ARGUMENTS, 0, struct.pack("<4q", -100, 1 << 40, 0o2000000, 0)),
        (PART_IDENTITY, 0, struct.pack("<QII", number, 66, 0o100644)),
        (PART_FILE, REVERSED, "".join(f"{name}/" for name in names).encode()),
    )
    body = b"".join(records.PART.pack(tag, flags, len(data)) + data for tag, flags, data in parts)
    size = records.RECORD.size + len(body)
    return records.RECORD.pack(size, records.CALL, 0, 65532, number, number, 7, 7, 1, 257, 3, b"comm", 0, 0) + body


def _resident_mb() -> float:
    """Memory held now: a peak could be an earlier measurement's."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def million() -> list[Row]:
    """A million events read from the recorder's stream, attributed to their phase, and written to a bundle."""
    seconds, half = 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        decoder = RecordDecoder(CallNames(_READY), session="main", phase="start", epoch=0)
        with BundleWriter(Path(folder) / "bundle", Entropy(), OPTIONS.limits) as bundle:
            for begin in range(0, EVENTS, _BATCH):
                if begin == EVENTS // 2:
                    half = _resident_mb()
                batch = b"".join(_record(number) for number in range(begin, begin + _BATCH))
                started = time.process_time()
                decoder.add(batch)
                events = decoder.read_up_to(begin + _BATCH)
                bundle.record_kernel(events)
                seconds += time.process_time() - started
                assert len(events) == _BATCH
    rate, grown = EVENTS / seconds, _resident_mb() - half
    return [
        ("events read, attributed and written", f"{rate:,.0f} a second, bound {RATE_BOUND:,}", rate >= RATE_BOUND),
        (
            "the same, memory of the second half",
            f"{grown:.1f} MB, bound {GROWTH_BOUND_MB} MB",
            grown <= GROWTH_BOUND_MB,
        ),
    ]


def whole_runs(target: str, repetitions: int) -> list[Row]:
    """What the recorder adds to `harness run` of a target that is installed already."""
    program = (Path(sys.executable).with_name("harness"), "run", "--format", "json", "--no-progress")
    taken: dict[str, list[float]] = {"none": [], "auto": []}
    for round_number in range(repetitions + 1):
        for choice, seconds in taken.items():
            started = time.perf_counter()
            subprocess.run([*program, "--recorder", choice, target], check=True, stdout=subprocess.DEVNULL)
            if round_number:  # the first one installs
                seconds.append(time.perf_counter() - started)
    added = statistics.median(taken["auto"]) - statistics.median(taken["none"])
    measured = f"{added:.2f} s on top of {statistics.median(taken['none']):.2f} s, bound {ADDED_SECONDS:.2f} s"
    return [(f"{target}: what the recorder adds to a run", measured, added <= ADDED_SECONDS)]


def rows(targets: list[str], repetitions: int) -> list[Row]:
    """All that was measured, and whether it keeps its bounds."""
    return [
        *million(),
        *anyio.run(sandboxed, targets, repetitions),
        *(row for target in targets for row in whole_runs(target, max(7, repetitions))),
    ]
