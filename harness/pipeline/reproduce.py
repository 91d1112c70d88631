"""Trying confirmed findings again from a bundle alone: a fresh sandbox, fresh nonces, the same steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from harness.analyzers.engine import select
from harness.assessment.policy_model import DEFAULT_PRESET, PRESETS
from harness.model.call import CallEndEvent
from harness.model.errors import BundleError, TargetError, UsageError
from harness.model.finding import EvidenceLevel, Finding
from harness.model.options import ActiveLevel, NetworkChoice, RecorderChoice, RunOptions
from harness.model.plan import ActionKind, Adjustment
from harness.model.recording import AttemptEvent, Manifest
from harness.model.reproduction import ProofCase, Reproduction, Tried
from harness.model.result import ScanResult
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.closure import Loaded, load_closure
from harness.pipeline.confirming import planned_actions, planned_calls
from harness.pipeline.entropy import Entropy
from harness.pipeline.judge import judge
from harness.pipeline.progress import Progress
from harness.pipeline.recorded import BundleRecording
from harness.pipeline.recorder import Recorder
from harness.pipeline.redaction import REDACTED
from harness.pipeline.saved import load_result
from harness.pipeline.wire import place_of
from harness.pipeline.workers import worker_pool
from harness.probing.oracle.again import Recorded, ReproductionPlanner, recorded_of
from harness.probing.oracle.fold import Confirmation
from harness.report.advisory import advisory, readme, steps
from harness.report.json import render as render_json

#: Texts of answers kept for steps that hand something on.
_MOST_ANSWERS = 10_000


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """What to try again. `finding`: an id, or None for every confirmed one; `secrets`: values of `--env`, given anew.

    `cases`: the folder in which a folder for each finding is made.
    """

    bundle: Path
    finding: str | None
    secrets: dict[str, str]
    cases: Path


async def reproduce(request: ReproduceRequest, entropy: Entropy, progress: Progress) -> tuple[Reproduction, ...]:
    """Try them one after the other, and write a case for each. Raises UsageError, BundleError, EngineError."""
    recording = await anyio.to_thread.run_sync(BundleRecording, request.bundle)
    result = await anyio.to_thread.run_sync(load_result, request.bundle)
    chosen = _chosen(result, request.finding)
    if not recording.complete:
        return tuple(_not_tried(finding, "its run did not finish, so the bundle is not sealed") for finding in chosen)
    memory = await anyio.to_thread.run_sync(_Memory, recording)
    tried = []
    for finding in chosen:
        tried.append(await _one(finding, result, memory, request, entropy, progress))
    return tuple(tried)


def _chosen(result: ScanResult, wanted: str | None) -> tuple[Finding, ...]:
    """The findings to try. Raises UsageError for one that is not there."""
    confirmed = [f for f in result.findings if f.evidence_level is EvidenceLevel.CONFIRMED]
    if wanted is None:
        return tuple(confirmed)
    found = [finding for finding in result.findings if finding.id == wanted]
    if not found:
        names = ", ".join(finding.id for finding in confirmed) or "none"
        raise UsageError(f"the bundle has no finding {wanted}", remedy=f"confirmed are: {names}")
    return tuple(found)


class _Memory:
    """What the recording tells of its proofs; reads it whole, so it is made in a thread."""

    def __init__(self, recording: BundleRecording) -> None:
        self.recording = recording
        self.fold = Confirmation(recording.manifest, planned_calls(recording.folder))
        self.answers: dict[str, str] = {}
        self.attempt: AttemptEvent | None = None
        for event in recording.events():
            self.fold.event(event)
            if isinstance(event, CallEndEvent) and len(self.answers) < _MOST_ANSWERS:
                self.answers[event.call] = event.text
            elif isinstance(event, AttemptEvent) and event.session == "main":
                self.attempt = event
        self.fold.finish()
        self.proofs = self.fold.confirmed()
        self.adjustment = _adjustment(recording.folder)

    @property
    def manifest(self) -> Manifest:
        """The manifest of the recording."""
        return self.recording.manifest


def _adjustment(folder: Path) -> Adjustment:
    """How the target was started when its calls were made; and whether it had to write into its installation for them.

    The closure in a bundle is that of the last start: where dependencies were as of the release, it holds those.
    """
    found, called, unsealed = Adjustment(), False, False
    for action in planned_actions(folder):
        if action.kind is ActionKind.START and action.session == "main" and not called:
            found = action.adjustment
        called = called or action.kind is ActionKind.CALL
        if action.kind is ActionKind.RESTART:
            unsealed = action.adjustment.unsealed  # the last says it: an installation may be too large to be copied
    return found.model_copy(update={"of_its_time": False, "unsealed": found.unsealed or unsealed})


def _not_tried(finding: Finding, why: str) -> Reproduction:
    return Reproduction(finding=finding.id, rule=finding.rule_id, outcome=Tried.NOT_TRIED, why=why)


async def _one(
    finding: Finding,
    result: ScanResult,
    memory: _Memory,
    request: ReproduceRequest,
    entropy: Entropy,
    progress: Progress,
) -> Reproduction:
    if finding.evidence_level is not EvidenceLevel.CONFIRMED:
        return _not_tried(finding, f"it is {finding.evidence_level}, not CONFIRMED")
    judgement = memory.proofs.get(finding.id)
    recorded = recorded_of(judgement, memory.fold, memory.answers) if judgement is not None else None
    if recorded is None:
        return _not_tried(finding, "it was not confirmed by a call that can be made again")
    folder = request.cases / f"case-{finding.id}"
    if folder.exists():
        raise UsageError(f"{folder} exists already", remedy="move it away, or give another folder with --cases")
    try:
        await anyio.to_thread.run_sync(lambda: folder.mkdir(parents=True))
    except OSError as error:
        why = error.strerror or "it can't be made"
        raise UsageError(f"no folder can be made at {folder}: {why}", remedy="give another with --cases") from error
    problem, loaded = _ready(memory, request)
    if problem is not None or loaded is None:
        outcome = _not_tried(finding, problem or "its closure is not in the bundle")
    else:
        outcome = await _again(finding, recorded, loaded, memory, request, folder, entropy, progress)
    outcome = outcome.model_copy(update={"case": folder.name})
    case = _case(finding, result, recorded, memory, outcome)
    await anyio.to_thread.run_sync(_write, folder, case)
    return outcome


def _ready(memory: _Memory, request: ReproduceRequest) -> tuple[str | None, Loaded | None]:
    """Why it can't be tried, or what it is tried with. Raises BundleError."""
    loaded = load_closure(request.bundle, memory.manifest.options)
    if loaded is None:
        return "its closure is not in the bundle", None
    needed = [name for name, value in memory.manifest.options.environment.items() if value == REDACTED]
    missing = [name for name in needed if name not in request.secrets]
    missing += [name for name in loaded.missing if name not in request.secrets]
    if missing:
        return f"secret values are not recorded, give them again with --env: {', '.join(missing)}", None
    return None, loaded


async def _again(
    finding: Finding,
    recorded: Recorded,
    loaded: Loaded,
    memory: _Memory,
    request: ReproduceRequest,
    folder: Path,
    entropy: Entropy,
    progress: Progress,
) -> Reproduction:
    """The run itself, recorded beside the case."""
    options = _options(loaded.options, finding, memory.manifest)
    planner = ReproductionPlanner(recorded, memory.adjustment, entropy.nonce())
    run_id = entropy.run_id()
    policy = PRESETS[DEFAULT_PRESET]
    target = folder / "recording"
    problem = ""
    async with worker_pool(options.jobs, options.limits) as pool:
        with BundleWriter(target, entropy, options.limits, request.secrets.values()) as bundle:

            async def judge_it() -> None:
                recording = BundleRecording(target, trust_unsealed=True, verify=False)
                executor = pool.executor(target, trust_unsealed=True, facts=recording.facts)
                found = await judge(recording, select(None), policy, executor, entropy.now().date(), timed=True)
                await bundle.seal(render_json(found, color=False, width=0))

            recorder = Recorder(
                bundle,
                options,
                request.secrets,
                run_id,
                entropy,
                progress,
                acquired=loaded.acquired,
                plan=lambda facts: planner,
            )
            try:
                await recorder.record(memory.manifest.target, judge_it)
            except TargetError as error:
                problem = error.message
    problem = problem or planner.problem
    if not planner.calls and not problem:
        problem = "; ".join(BundleRecording(target, verify=False).manifest.problems) or "it could not be started"
    if problem:
        return _not_tried(finding, problem)
    if planner.reproduced:
        why = "; ".join(dict.fromkeys(f"{s.effect.kind} seen in the {s.channel} record" for s in planner.seen))
        outcome = Tried.REPRODUCED
    else:
        outcome = Tried.NOT_REPRODUCED
        why = "its control showed an effect too" if planner.controlled else "the effect was not seen"
    nonce = planner.calls[-1].nonce
    return Reproduction(finding=finding.id, rule=finding.rule_id, outcome=outcome, why=why, nonce=nonce)


def _options(options: RunOptions, finding: Finding, manifest: Manifest) -> RunOptions:
    """As it was run, without what is not needed for this."""
    network = finding.confirmation.network if finding.confirmation is not None else ""
    modes = {str(mode) for mode in NetworkChoice}
    return options.model_copy(
        update={
            "active": ActiveLevel.TOOL_CALLS,
            "stock_client": False,
            "network": NetworkChoice(network) if network in modes else options.network,
            "recorder": RecorderChoice.NONE if manifest.recorder == "none" else RecorderChoice.AUTO,
        }
    )


def _case(
    finding: Finding, result: ScanResult, recorded: Recorded, memory: _Memory, outcome: Reproduction
) -> ProofCase:
    attempt = memory.attempt
    place = place_of(memory.manifest.options, memory.adjustment)
    return ProofCase(
        finding=finding,
        target=result.target,
        kept=memory.manifest.artifacts,
        argv=attempt.argv if attempt is not None else (),
        environment=attempt.environment if attempt is not None else (),
        place=f"http://localhost:{place[0]}{place[1]}" if place is not None else "",
        network=finding.confirmation.network if finding.confirmation is not None else "",
        boundary=recorded.steps[0].boundary,
        steps=recorded.steps,
        control=recorded.control,
        world=recorded.world,
        outcome=outcome,
    )


def _write(folder: Path, case: ProofCase) -> None:
    try:
        for name, text in _texts(case):
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BundleError(
            f"the case can't be written: {error.strerror}", remedy="check the space on the disk"
        ) from error


def _texts(case: ProofCase) -> Iterator[tuple[str, str]]:
    yield "case.json", case.model_dump_json(indent=1) + "\n"
    yield "steps.jsonl", steps(case)
    yield "advisory.md", advisory(case)
    yield "README.md", readme(case)
