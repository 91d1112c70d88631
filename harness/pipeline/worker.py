"""The nursery of analyzer processes: `python -m harness.pipeline.worker`, started ahead by the pipeline.

It imports everything once and then forks a child for each job, so that every analyzer runs in a process of its own,
with limits of its own, that can be killed, at a hundredth of an interpreter's start. It has one thread, touches no
bundle itself, and ends with its children when its stdin closes: a dead harness leaves nothing.

In: lines of JSON, a `Job` or a `Stop`. Out: a line `ready`, then for each job a line of JSON, `Outcome`, and `size`
bytes of result. What a brief job found to hold no canary is kept for the next child, which need not search it again.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from harness.analyzers import registry
from harness.analyzers.base import AnalysisInput, DeclarationInput, RecordingInput
from harness.analyzers.canaries import search
from harness.analyzers.engine import run_analyzer, run_one, run_together
from harness.model.base import Record
from harness.model.options import Limits
from harness.model.result import AnalyzerResult
from harness.pipeline.confirming import NAME, ConfirmationAnalyzer, planned_calls
from harness.pipeline.declarations import read_declarations
from harness.pipeline.recorded import BundleRecording

#: A result holds findings and coverage, all bounded; more than this is a runaway.
MAX_RESULT_BYTES = 64 << 20
#: Said once everything is imported: from then on a job's time counts.
READY = b"ready\n"
_CHUNK = 1 << 16
#: Between the result of a brief job, which as JSON holds no such byte, and digests of 32 bytes (see `search.clean`).
_CLEAN = b"\0"


class Job(Record):
    """Run `analyzer` over `bundle` within limits (seconds of processor time, bytes of address space).

    With `declarations`, `bundle` is a saved tool list instead. With `brief`, only messages and flows are read, as far
    as they are written. With `others`, those are run over the same reading of it, and what comes out is a list of
    results in that order.
    """

    number: int
    analyzer: str
    others: tuple[str, ...] = ()
    bundle: str
    trust_unsealed: bool
    declarations: bool = False
    brief: bool = False
    seconds: int
    memory_bytes: int


class Stop(Record):
    """Kill the child of that job; its `Outcome` follows as for any other."""

    stop: int


class Outcome(Record):
    """How a child ended: its exit code (negative: the signal) and the size of its result.

    `overflow`: it printed more than a result may have, and was killed for it.
    """

    number: int
    code: int
    size: int
    overflow: bool = False


ORDERS: TypeAdapter[Job | Stop] = TypeAdapter(Job | Stop)
RESULTS: TypeAdapter[tuple[AnalyzerResult, ...]] = TypeAdapter(tuple[AnalyzerResult, ...])


def perform(job: Job) -> str:
    """Do one job in a fresh child: limits first, then the bundle. Returns the result as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (job.memory_bytes, job.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (job.seconds, job.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if job.others:
        return RESULTS.dump_json(run_together((job.analyzer, *job.others), _input(job))).decode()
    if job.analyzer == NAME:
        return run_analyzer(ConfirmationAnalyzer(planned_calls(Path(job.bundle))), _input(job)).model_dump_json()
    return run_one(job.analyzer, _input(job)).model_dump_json()


def _input(job: Job) -> AnalysisInput:
    if job.declarations:
        return DeclarationInput(servers=read_declarations(Path(job.bundle), Limits()).inputs)
    recording = BundleRecording(Path(job.bundle), trust_unsealed=job.trust_unsealed, verify=False)
    if job.brief:
        return RecordingInput(facts=recording.facts, events=recording.talk())
    names = (job.analyzer, *job.others)
    wanted = any(found is None or not found.facts_only for found in map(registry.find, names))
    return RecordingInput(facts=recording.facts, events=recording.events() if wanted else ())


@dataclass
class _Child:
    job: Job
    pid: int
    output: bytearray = field(default_factory=bytearray)
    overflow: bool = False


class Nursery:
    """The loop: orders in, children forked, outcomes out. Everything blocking is behind one selector."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child] = {}
        self._orders = b""

    def serve(self) -> None:
        """Work until stdin closes."""
        self._selector.register(0, selectors.EVENT_READ)
        for analyzer in registry.ANALYZERS:
            analyzer.prepare()
        _write_all(1, READY)
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.fd != 0:
                        self._read(key.fd)
                    elif not self._obey():
                        return
        finally:
            for child in self._children.values():
                os.kill(child.pid, signal.SIGKILL)

    def _obey(self) -> bool:
        data = os.read(0, _CHUNK)
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            order = ORDERS.validate_json(line)
            if isinstance(order, Job):
                self._fork(order)
            else:
                for child in self._children.values():
                    if child.job.number == order.stop:
                        os.kill(child.pid, signal.SIGKILL)
        return bool(data)

    def _fork(self, job: Job) -> None:
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            _be_child(job, write_end)
        os.close(write_end)
        self._children[read_end] = _Child(job, pid)
        self._selector.register(read_end, selectors.EVENT_READ)

    def _read(self, descriptor: int) -> None:
        child = self._children[descriptor]
        data = os.read(descriptor, _CHUNK)
        if data:
            if len(child.output) + len(data) <= MAX_RESULT_BYTES:
                child.output += data
            elif not child.overflow:
                child.overflow = True
                os.kill(child.pid, signal.SIGKILL)
            return
        self._selector.unregister(descriptor)
        os.close(descriptor)
        del self._children[descriptor]
        _, status = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if child.job.brief and code == 0:
            child.output, _, digests = child.output.partition(_CLEAN)
            search.clean.update(bytes(digests[at : at + 32]) for at in range(0, len(digests) // 32 * 32, 32))
        outcome = Outcome(number=child.job.number, code=code, size=len(child.output), overflow=child.overflow)
        _write_all(1, outcome.model_dump_json().encode() + b"\n" + child.output)


def _be_child(job: Job, write_end: int) -> None:
    """The life of a child; never returns. Its only way out is the pipe and its exit code."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        os.set_inheritable(write_end, False)
        _write_all(write_end, perform(job).encode())
        if job.brief:
            _write_all(write_end, _CLEAN + b"".join(sorted(search.clean)))
        code = 0
    finally:
        os._exit(code)  # nothing of the nursery's may run here: no buffers flushed, no handlers


def _write_all(descriptor: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Nursery().serve()
    sys.exit(0)
