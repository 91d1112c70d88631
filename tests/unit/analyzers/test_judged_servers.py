"""The sample servers judged: what each fault is called and how bad, and that every benign twin stays silent.

The messages are recorded over real pipes by the protocol layer, and folded by the analyzers.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import anyio
import pytest

from harness.analyzers.base import AnalysisFacts, RecordingInput
from harness.analyzers.engine import run_one
from harness.assessment.aggregate import aggregate
from harness.assessment.policy import PRESETS
from harness.model.finding import Severity
from harness.model.options import Limits, RunOptions
from harness.model.recording import AttemptEvent, Event, ExitEvent
from harness.model.result import AnalyzerResult, Verdict
from harness.model.surface import Surface
from harness.protocol.observe import observe

pytestmark = pytest.mark.anyio

SERVERS = Path(__file__).parents[2] / "servers"
#: By file: each faulty mode, the rules it must give, and whether it leaves a gap (then no SAFE is possible).
FAULTS: dict[str, dict[str, tuple[set[str], bool]]] = {
    "faulty_frames.py": {
        "banner": ({"protocol.non-json-output"}, False),
        "garbage": ({"protocol.non-json-output"}, False),
        "bad-utf8": ({"protocol.malformed-message"}, False),
        "long-line": ({"protocol.oversized-message", "protocol.wrong-id"}, True),
        "deep": ({"protocol.oversized-message"}, True),
        "duplicate-keys": ({"protocol.ambiguous-json"}, False),
        "nan": ({"protocol.malformed-message"}, False),
        "huge-number": ({"protocol.oversized-message"}, False),
        "lone-surrogate": ({"protocol.malformed-message"}, False),
        "wrong-id": ({"protocol.wrong-id"}, False),
        "text-id": ({"protocol.wrong-id"}, False),
        "repeated-answer": ({"protocol.wrong-id"}, False),
        "both-members": ({"protocol.schema"}, False),
        "neither-member": ({"protocol.schema"}, True),
        "no-version": ({"protocol.malformed-message"}, False),
        "batch": ({"protocol.malformed-message"}, False),
        "no-object": ({"protocol.malformed-message"}, False),
    },
    "faulty_lists.py": {
        "endless-pages": (set(), True),
        "cursor-loop": (set(), True),
        "long-cursor": (set(), True),
        "odd-cursor": ({"protocol.schema"}, True),
        "many-tools": (set(), True),
        "no-list": ({"protocol.schema"}, True),
        "odd-items": ({"protocol.schema"}, False),
    },
    "faulty_lives.py": {
        "silent": ({"protocol.hang"}, True),
        "silent-list": ({"protocol.hang"}, True),
        "exit-at-once": ({"protocol.early-exit"}, True),
        "exit-at-list": ({"protocol.crash"}, True),
        "close-stdout": (set(), True),
        "request-flood": ({"protocol.flood", "protocol.uninvited-request"}, True),
        "notification-flood": ({"protocol.flood"}, True),
    },
}
CASES = [(file, mode) for file, modes in FAULTS.items() for mode in modes]
LIMITS = Limits(pages=10, stdout_bytes=24 << 20, messages=20_000)


class Ledger:
    """An event sink that keeps what it gets."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> int:
        self.events.append(event.model_copy(update={"seq": len(self.events) + 1}))
        return len(self.events)


async def record(file: str, mode: str, wait: float) -> tuple[Surface, list[Event]]:
    """What one look at the server left, ended as a sandbox ends it: by itself, or else by us."""
    ledger = Ledger()
    ledger.record(AttemptEvent(phase="start", number=1, argv=(file, mode)))
    options = RunOptions(call_timeout=wait, start_timeout=wait, limits=LIMITS)

    async def enter(phase: str) -> None:
        """Phases are the driver's."""

    program = shutil.which(sys.executable)
    assert program is not None
    async with await anyio.open_process([program, str(SERVERS / file), mode]) as process:
        assert process.stdin is not None and process.stdout is not None
        surface = await observe(process.stdin, process.stdout, ledger, options=options, phase_hook=enter)
        code = None
        with anyio.move_on_after(0.2):
            code = await process.wait()
        if code is None:
            process.kill()
    own = code is not None
    ledger.record(
        ExitEvent(phase="stop", code=code, signal=None if own else 9, ended_by="target" if own else "harness")
    )
    return surface, ledger.events


def judge(surface: Surface, events: list[Event]) -> list[AnalyzerResult]:
    facts = AnalysisFacts(surfaces=(surface,))
    return [run_one(name, RecordingInput(facts, iter(events))) for name in ("protocol", "definitions")]


@pytest.mark.parametrize(("file", "mode"), CASES)
async def test_a_fault_has_its_name_and_is_never_blown_up(file: str, mode: str) -> None:
    rules, gap = FAULTS[file][mode]
    surface, events = await record(file, mode, 2.0 if mode.startswith("silent") else 20.0)
    results = judge(surface, events)
    findings = [finding for result in results for finding in result.findings]
    assert {finding.rule_id for finding in findings} == rules
    assert all(finding.severity.rank <= Severity.MEDIUM.rank for finding in findings)
    assert len(findings) <= 6
    decision = aggregate(results, PRESETS["balanced"])
    assert (decision.verdict is Verdict.UNKNOWN) == gap, decision.reasons


@pytest.mark.parametrize(("file", "mode"), CASES)
async def test_the_benign_twin_is_silent_and_complete(file: str, mode: str) -> None:
    surface, events = await record(file, f"{mode}-benign", 20.0)
    results = judge(surface, events)
    # Asking a client for what it did not offer is a small fault, also when it is done politely.
    uninvited = {"protocol.uninvited-request"} if mode == "request-flood" else set()
    assert {finding.rule_id for result in results for finding in result.findings} == uninvited
    assert aggregate(results, PRESETS["balanced"]).verdict is Verdict.SAFE
