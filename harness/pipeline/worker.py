"""The child process in which one analyzer runs, and can be killed: `python -m harness.pipeline.worker`.

Reads one `Job` as a JSON line on stdin, folds the bundle's events through the analyzer, and prints one
`AnalyzerResult` as JSON on stdout. Its memory and processor time are limited before it touches the bundle.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from harness.analyzers.base import AnalysisFacts, AnalysisInput, DeclarationInput, RecordingInput
from harness.analyzers.engine import run_one
from harness.model.base import Record
from harness.model.options import Limits
from harness.pipeline.declarations import read_declarations
from harness.pipeline.recorded import BundleRecording


class Job(Record):
    """Which analyzer over which bundle, with which limits (seconds of processor time, bytes of address space).

    With `declarations`, `bundle` is a saved tool list instead.
    """

    analyzer: str
    bundle: str
    trust_unsealed: bool
    declarations: bool = False
    seconds: int
    memory_bytes: int


def main() -> int:
    """Do the one job on stdin. The parent turns any exit code but 0 into a failed result."""
    line = sys.stdin.buffer.readline()
    if not line:
        return 0  # prestarted and not needed
    job = Job.model_validate_json(line)
    resource.setrlimit(resource.RLIMIT_AS, (job.memory_bytes, job.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (job.seconds, job.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(run_one(job.analyzer, _input(job)).model_dump_json())
    return 0


def _input(job: Job) -> AnalysisInput:
    if job.declarations:
        return DeclarationInput(servers=read_declarations(Path(job.bundle), Limits()).inputs)
    recording = BundleRecording(Path(job.bundle), trust_unsealed=job.trust_unsealed, verify=False)
    facts = AnalysisFacts(manifest=recording.manifest, surfaces=recording.surfaces, complete=recording.complete)
    return RecordingInput(facts=facts, events=recording.events())


if __name__ == "__main__":
    sys.exit(main())
