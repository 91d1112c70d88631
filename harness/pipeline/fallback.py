"""Which recorder a run gets: eBPF where it works, else strace, else none; and why not the better one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from harness.model.base import Record
from harness.model.errors import EngineError, HarnessError
from harness.model.options import RecorderChoice, RunOptions
from harness.model.recording import Grade
from harness.sandbox.base import Sandbox
from harness.sandbox.readiness import SHARED_PID_RUNTIMES

GRADES = {RecorderChoice.EBPF: Grade.TRUSTED, RecorderChoice.STRACE: Grade.CONTAINED, RecorderChoice.NONE: Grade.NONE}
_DOCTOR = "`harness doctor` says what can be used, --recorder auto takes it"


class ChosenRecorder(Record):
    """What records, of which grade its record is if all goes well, and what the operator must know of the choice."""

    recorder: RecorderChoice
    grade: Grade
    said: str = ""


async def choose_recorder(sandbox: Sandbox, options: RunOptions) -> ChosenRecorder:
    """Find the recorder that the options ask for and this machine lets work, and have `sandbox` use it.

    Raises EngineError with the reason where the operator named one that does not work.
    """
    choice = options.recorder
    if choice is RecorderChoice.NONE:
        return _chosen(choice)
    runtime = options.runtime or (await sandbox.engine_facts()).get("default_runtime", "")
    if runtime and runtime not in SHARED_PID_RUNTIMES:
        problem = f"the runtime {runtime} keeps its processes out of the recorders' sight"
        if choice is not RecorderChoice.AUTO:
            raise EngineError(f"system calls can't be recorded: {problem}", remedy="use --runtime runc")
        return _chosen(RecorderChoice.NONE, f"system calls are not recorded: {problem}")
    ways: dict[RecorderChoice, Callable[[], Awaitable[str | None]]] = {
        RecorderChoice.EBPF: sandbox.recorder_problem,
        RecorderChoice.STRACE: sandbox.use_strace,
    }
    problems: list[str] = []
    for recorder, ask in ways.items():
        if choice not in (RecorderChoice.AUTO, recorder):
            continue
        found = await _problem(ask)
        if found is None:
            said = (
                f"system calls are recorded with {recorder}, as eBPF does not work: {problems[0]}" if problems else ""
            )
            return _chosen(recorder, said)
        problems.append(found)
    if choice is not RecorderChoice.AUTO:
        raise EngineError(f"system calls can't be recorded with {choice}: {problems[0]}", remedy=_DOCTOR)
    return _chosen(RecorderChoice.NONE, f"system calls are not recorded: {'; '.join(problems)}")


def _chosen(recorder: RecorderChoice, said: str = "") -> ChosenRecorder:
    return ChosenRecorder(recorder=recorder, grade=GRADES[recorder], said=said)


async def _problem(ask: Callable[[], Awaitable[str | None]]) -> str | None:
    """Why a recorder can't be used; an image that can't be made is such a reason too."""
    try:
        return await ask()
    except HarnessError as error:
        return error.message
