"""One million events of a made-up busy server through all behaviour analyzers: rate, and memory that stays."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

from harness.analyzers import registry
from harness.analyzers.base import AnalysisFacts
from harness.analyzers.behavior.fold import BehaviorAnalyzer
from harness.model.options import RunOptions
from harness.model.recording import Event, Grade, Manifest, ProcessEvent, SyscallEvent
from harness.model.surface import Item, ItemKind, Surface
from harness.model.target import TargetKind, TargetRef

EVENTS = 1_000_000
#: Events a second through all analyzers one after the other, on one processor.
RATE_BOUND = 40_000
#: What the second half of the events may add to the peak of memory.
GROWTH_BOUND_MB = 8
#: Events made at once, so that making them is not measured.
BLOCK = 20_000


def _events(start: int) -> list[Event]:
    """Opens of modules, mostly; writes, deletions, connections and programs among them; names that do not repeat."""
    made: list[Event] = []
    for n in range(start, start + BLOCK):
        common = {"phase": "discover", "seq": n, "record": n, "t": n * 10_000, "pid": 7, "tid": 7, "parent": 3}
        kind = n % 100
        if kind < 80:
            path = f"/usr/lib/python3.13/site-packages/package{n % 7000}/module{kind}.py"
            made.append(SyscallEvent(**common, call="openat", path=path, flags=("O_RDONLY",), result=3 - 5 * (n % 3)))
        elif kind < 90:
            made.append(SyscallEvent(**common, call="newfstatat", path=f"/proc/{n % 900}/status", result=0))
        elif kind < 96:
            path = f"/home/user/workspace/file{n}"
            made.append(SyscallEvent(**common, call="openat", path=path, flags=("O_WRONLY", "O_CREAT"), result=4))
        elif kind == 96:
            made.append(SyscallEvent(**common, call="unlink", path=f"/home/user/workspace/file{n - 3}", result=0))
        elif kind == 97:
            address = f"203.0.{n % 250}.1:{n % 60_000}"
            made.append(SyscallEvent(**common, call="connect", addresses=(address,), result=-101))
        elif kind == 98:
            made.append(ProcessEvent(**common, what="fork", child=n))
        else:
            child = {**common, "pid": n - 1, "parent": 7}
            made.append(ProcessEvent(**child, what="exec", path=f"/usr/bin/tool{n % 40}", argv=("tool", "-v")))
    return made


def _blocks() -> Iterator[list[Event]]:
    for start in range(0, EVENTS, BLOCK):
        yield _events(start)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rows() -> list[tuple[str, str, bool]]:
    """What was measured, and whether it keeps its bound."""
    annotated = {"name": "t", "annotations": {"readOnlyHint": True}}
    surface = Surface(items=(Item(kind=ItemKind.TOOL, name="t", value=annotated, frame=1),))
    manifest = Manifest(
        harness_version="0",
        run_id="bench",
        target=TargetRef(text="bench", kind=TargetKind.PYPI),
        options=RunOptions(),
        recorder="ebpf",
        grade=Grade.TRUSTED,
    )
    facts = AnalysisFacts(manifest=manifest, surfaces=(surface,))
    folds = [a.start(facts) for a in registry.ANALYZERS if isinstance(a, BehaviorAnalyzer)]
    seconds, half = 0.0, 0.0
    for number, block in enumerate(_blocks()):
        if number == EVENTS // BLOCK // 2:
            half = _peak_mb()
        started = time.process_time()
        for fold in folds:
            for event in block:
                fold.event(event)
        seconds += time.process_time() - started
    for fold in folds:
        fold.finish()
    rate, grown = EVENTS / seconds, _peak_mb() - half
    return [
        ("behaviour analyzers, a million events", f"{rate:,.0f} a second, bound {RATE_BOUND:,}", rate >= RATE_BOUND),
        (
            "behaviour analyzers, memory of the second half",
            f"{grown:.1f} MB, bound {GROWTH_BOUND_MB} MB",
            grown <= GROWTH_BOUND_MB,
        ),
    ]
