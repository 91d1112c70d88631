"""The recording half of a run, in order: acquire, install, launch, drive; what stops it early becomes a problem.

A `problem` is a sentence in the manifest that says why something was not looked at; the judging half turns it
into a gap. Errors of the engine, the registry and the operator are raised instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import TypeAlias

import anyio
import anyio.to_thread

import harness
from harness.acquisition import acquire
from harness.model.canary import Canary
from harness.model.errors import HarnessError, TargetError
from harness.model.grade import weaker
from harness.model.options import ActiveLevel, NetworkChoice, RecorderChoice, RunOptions, Transport
from harness.model.payload import Payload
from harness.model.plan import Adjustment
from harness.model.recording import Manifest, Phase
from harness.model.target import Acquired, EntryPoint, TargetRef
from harness.pipeline.adopted import adopt
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.driver import Driver
from harness.pipeline.early import STOCK_CHILD
from harness.pipeline.entropy import Entropy
from harness.pipeline.fallback import choose_recorder
from harness.pipeline.further_life import FurtherLives
from harness.pipeline.later_life import LaterLife
from harness.pipeline.launching import target_errors
from harness.pipeline.payloads import read_payloads
from harness.pipeline.places import packages_dir
from harness.pipeline.preparation import check_texts, choose_entry, install
from harness.pipeline.probes import catalog
from harness.pipeline.progress import Progress
from harness.pipeline.second_look import Foresight, SecondLook
from harness.pipeline.supply import Supply
from harness.pipeline.unwatched import Unwatched
from harness.probing.plan_of_run import plan_of_run
from harness.probing.planner import Planner
from harness.probing.starting import StartFacts
from harness.protocol.stock_client import prestart
from harness.sandbox.base import InstalledTarget, Sandbox
from harness.sandbox.provider import open_sandbox

#: Makes the plan of a run from what is known before it is started.
PlanOf: TypeAlias = Callable[[StartFacts], Planner]


class Recorder:
    """Records one run into `bundle`. `secrets`: the real values of `--env`.

    `acquired`: what to run, where it need not be fetched; `plan`: another plan than that of the level. Once it is
    known, `acquired` and `entry` are what was run last.
    """

    def __init__(
        self,
        bundle: BundleWriter,
        options: RunOptions,
        secrets: dict[str, str],
        run_id: str,
        entropy: Entropy,
        progress: Progress,
        foresight: Foresight | None = None,
        *,
        acquired: Acquired | None = None,
        plan: PlanOf | None = None,
    ) -> None:
        self.acquired = acquired
        self.entry: EntryPoint | None = None
        self._plan = plan
        self._bundle = bundle
        self._options = options
        self._secrets = secrets
        self._run_id = run_id
        self._entropy = entropy
        self._progress = progress
        self._foresight = foresight
        self._timing: dict[str, int] = {}

    async def record(self, ref: TargetRef, judge: Callable[[], Awaitable[None]]) -> None:
        """Do the recording and leave a finished manifest; then `judge`, while the sandbox is taken down.

        Raises UsageError, HarnessError, and what `judge` raises.
        """
        self._manifest = Manifest(
            harness_version=harness.__version__,
            run_id=self._run_id,
            target=ref,
            options=self._options,
            started_at=self._entropy.now().isoformat(timespec="seconds"),
        )
        self._bundle.manifest(self._manifest)
        errors: list[Exception] = []

        async def judged() -> None:
            try:
                await judge()
            except Exception as error:
                errors.append(error)

        async with anyio.create_task_group() as tasks:
            try:
                async with open_sandbox(self._run_id, self._progress.note) as sandbox:
                    await self._whole(ref, sandbox)
                    tasks.start_soon(judged)
            except Exception as error:
                errors.insert(0, error)
                tasks.cancel_scope.cancel()
        if errors:
            raise errors[0]

    async def _whole(self, ref: TargetRef, sandbox: Sandbox) -> None:
        """All stages; what the target is to blame for becomes a problem."""
        try:
            await self._stages(ref, sandbox)
        except (TargetError, BaseExceptionGroup) as error:
            blamed = target_errors(error)
            if not blamed:
                raise
            self._know(problems=(*self._manifest.problems, *dict.fromkeys(map(str, blamed))))
        self._bundle.end_recording()
        self._know(finished=True, timing=self._timing, grade=weaker(self._manifest.grade, self._bundle.grade))

    async def _stages(self, ref: TargetRef, sandbox: Sandbox) -> None:
        if self._options.network is not NetworkChoice.NONE:
            self._know(network=str(self._options.network))
            with suppress(HarnessError):
                if not self._options.stealth:  # first what takes longest, while the target is fetched
                    await sandbox.prepare_network(2 if self._options.stock_client else 1)
        if self._options.recorder in (RecorderChoice.AUTO, RecorderChoice.EBPF):
            with suppress(HarnessError):  # said when it is needed
                await sandbox.prepare_recorder()
        with self._phase(Phase.FETCH):
            acquired = self.acquired or await acquire(
                ref, self._options, packages_dir(), self._progress.note, images=sandbox.image
            )
            self._bundle.hide(acquired.secrets)
            check_texts(acquired)
            entry = choose_entry(acquired, self._options.entry)
            self.acquired, self.entry = acquired, entry
        self._know(
            name=acquired.name,
            version=acquired.version,
            artifacts=acquired.closure.artifacts,
            closure_digest=acquired.closure.digest,
            notes=acquired.notes,
            engine=dict(await sandbox.engine_facts()),
        )
        with self._phase(Phase.INSTALL):
            record = await self._can_record(sandbox)
            installed = await install(sandbox, acquired, self._options, self._bundle, record=record)
        self._know(images=(installed.image,))
        supply = Supply(
            sandbox,
            acquired,
            entry,
            installed,
            self._options,
            self._secrets,
            self._bundle,
            self._entropy,
            self._progress,
            self._renewed,
            self._planted,
            record=record,
        )
        with self._phase("sessions"):
            async with AsyncExitStack() as stack:
                client = None
                if self._options.stock_client:
                    client = await stack.enter_async_context(prestart(self._options.limits, await adopt(STOCK_CHILD)))
                driver = Driver(
                    sandbox, supply, self._bundle, self._entropy, self._options, self._progress, client, self._foresight
                )
                if self._plan is not None:
                    await driver.run(self._plan(supply.facts()), self._options.timeout)
                    return
                payloads: tuple[Payload, ...] = ()
                if self._options.active is ActiveLevel.TOOL_CALLS:
                    payloads = await anyio.to_thread.run_sync(read_payloads)
                lives = FurtherLives(sandbox, supply, self._bundle, self._entropy, self._options, self._progress)
                unwatched, later = Unwatched(lives), LaterLife(lives)
                plan = plan_of_run(self._options, supply.facts(), catalog(), payloads, driver.facts)
                began = self._bundle.elapsed_ms
                await driver.run(plan, self._options.timeout)
                if driver.answered is not None and driver.answered.port is not None:
                    self._know(transport=Transport.HTTP)
                left = self._options.timeout - (self._bundle.elapsed_ms - began) / 1000
                number = driver.actions + 1
                for life in (unwatched, later):
                    if await life.take(driver.answered or Adjustment(), number, left, driver.surface):
                        number += 1
                        left = self._options.timeout - (self._bundle.elapsed_ms - began) / 1000
                if self._foresight is not None and self._manifest.canaries:
                    look = SecondLook(lives, self._foresight, later)
                    await look.take(driver.answered or Adjustment(), number, left)

    async def _can_record(self, sandbox: Sandbox) -> bool:
        """Find what records system calls, and say once what takes the place of something better.

        Raises EngineError where one recorder was demanded and can't be had.
        """
        found = await choose_recorder(sandbox, self._options)
        self._know(recorder=found.recorder, grade=found.grade)
        if found.said:
            self._know(notes=(*self._manifest.notes, found.said))
            self._progress.warn(found.said)
        return found.recorder != RecorderChoice.NONE

    def _renewed(self, acquired: Acquired, installed: InstalledTarget) -> None:
        """Another closure of the same release was installed: it is what the result is about."""
        self.acquired = acquired
        self._know(
            artifacts=acquired.closure.artifacts,
            closure_digest=acquired.closure.digest,
            notes=(*self._manifest.notes, *(note for note in acquired.notes if note not in self._manifest.notes)),
            images=(installed.image,),
        )

    def _planted(self, canaries: tuple[Canary, ...]) -> None:
        """More canaries lie in the sandbox."""
        if canaries != self._manifest.canaries:
            self._know(canaries=canaries)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Tell that a phase begins, and keep how long it took."""
        self._progress.phase(name)
        started = self._bundle.elapsed_ms
        try:
            yield
        finally:
            self._timing[name] = self._bundle.elapsed_ms - started

    def _know(self, **facts: object) -> None:
        """Put facts into the manifest, on disk at once: a run that dies leaves what was known."""
        self._manifest = self._manifest.model_copy(update=facts)
        self._bundle.manifest(self._manifest)
