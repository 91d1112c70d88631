"""The sandbox on Docker: implements `harness.sandbox.base.Sandbox`. A launch: warden, target, recorder if wished."""

from __future__ import annotations

import itertools
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeAlias

import anyio
import anyio.abc
import anyio.to_thread

from harness.model.options import Limits
from harness.model.recording import ImageFact
from harness.model.target import ImageConfig, InstallPlan
from harness.sandbox.base import APP, InstalledTarget, InstallFailed, LaunchSpec, SandboxedProcess
from harness.sandbox.containers import Doomed, background, doomed
from harness.sandbox.engine import Engine
from harness.sandbox.foreign import GATE_FOLDER, foreign_config, image_config
from harness.sandbox.gate import seed_bytes
from harness.sandbox.gated import gated
from harness.sandbox.hardening import (
    LABEL_LEASE,
    LABEL_OWNER,
    LABEL_ROLE,
    LABEL_RUN,
    VolumeMount,
    gated_config,
    recorder_config,
    warden_config,
)
from harness.sandbox.installer import Workshop, install, install_limits, use_volume
from harness.sandbox.lease import Lease, StateDirectory, hold_lease
from harness.sandbox.reaper import reap
from harness.sandbox.recorder import RECORDER_IMAGE, RING_KIB, Recorder, RecorderUnavailable, start_recorder
from harness.sandbox.recorder_memory import RecorderMemory
from harness.sandbox.recorder_process import RECORDER_GRACE_SECONDS, RecordedProcess
from harness.sandbox.seccomp import profile_json
from harness.sandbox.volumes import HeldVolumes
from harness.sandbox.warden import create_warden, whole_seconds

#: Finds the image of a folder name, or makes it.
ImageResolver: TypeAlias = Callable[[str], Awaitable[ImageFact]]

WARDEN_IMAGE = "warden"
#: A recorder that no launch takes ends by itself; with the harness it ends anyway.
SPARE_SECONDS = 24 * 3600


class DockerSandbox:
    """Made by `docker_sandbox`; everything it makes is gone when that context ends."""

    def __init__(
        self,
        shop: Workshop,
        lease: Lease,
        images: ImageResolver,
        facts: Mapping[str, str],
        tasks: anyio.abc.TaskGroup,
        collected: Doomed,
    ) -> None:
        self.lease = lease
        self._shop = shop
        self._images = images
        self._facts = facts
        self._known: dict[str, ImageFact] = {}
        self._tasks, self._collected = tasks, collected
        self._spare: Recorder | None = None

    async def engine_facts(self) -> Mapping[str, str]:
        return self._facts

    async def image(self, reference: str) -> ImageConfig:
        shop = self._shop
        return await image_config(shop.engine, shop.name("user"), shop.labels("user"), reference)

    async def install(
        self, plan: InstallPlan, *, timeout: float, limits: Limits, record: bool = False
    ) -> InstalledTarget | InstallFailed:
        image, warden_image = await self._image(plan.image), await self._image(WARDEN_IMAGE)
        widened = install_limits(limits, self._cpus)
        recorders = partial(self._recorder, True) if record else None
        return await install(
            self._shop, plan, image, warden_image, timeout=timeout, limits=widened, recorders=recorders
        )

    def launch(self, spec: LaunchSpec) -> AbstractAsyncContextManager[SandboxedProcess]:
        return self._launch(spec)

    @asynccontextmanager
    async def _launch(self, spec: LaunchSpec) -> AsyncIterator[SandboxedProcess]:
        shop, engine = self._shop, self._shop.engine
        foreign, warden_image = spec.foreign, await self._image(WARDEN_IMAGE)
        if foreign is not None:
            image = ImageFact(name=foreign.reference, id=foreign.id)
        else:
            image = await self._image(spec.image)
        seed = seed_bytes(spec.seed, executables=spec.executables, links=spec.links)
        if spec.volume is not None:
            await use_volume(shop, spec.volume)
        watch = warden_config(
            image=warden_image.id,
            deadline_seconds=whole_seconds(spec.deadline_seconds),
            labels=shop.labels("warden"),
            seccomp=shop.seccomp,
        )
        async with (
            doomed(engine) as collected,
            self._recorder(spec.record, collected) as recorder,
            background() as tasks,
        ):
            began = time.monotonic()
            warden = await create_warden(engine, tasks, collected, shop.name("warden"), watch)
            path = await engine.image_path(image.id)
            place = APP if foreign is None else GATE_FOLDER
            config = gated_config(
                image=image.id,
                argv=spec.argv,
                workdir=spec.workdir,
                environment=spec.environment if foreign is None else {"PATH": path, **spec.environment},
                path=path,
                limits=spec.limits.model_copy(update={"cpus": min(spec.limits.cpus, self._cpus)}),
                mounts=() if spec.volume is None else (VolumeMount(volume=spec.volume, path=place, read_only=True),),
                warden=warden.name,
                labels=shop.labels("target"),
                seccomp=shop.seccomp,
                runtime=spec.runtime,
            )
            if foreign is not None:
                config = foreign_config(config, foreign, spec.limits.tmpfs_bytes)
            held_stderr = spec.limits.stderr_bytes
            async with gated(engine, tasks, collected, warden, shop.name("target"), config, held_stderr) as container:
                process = RecordedProcess(
                    engine, container, warden, image, recorder, began=began, deadline=spec.deadline_seconds
                )
                nonce = shop.nonce()
                if recorder is not None:  # before the seed: what is planted is known by it
                    await self._until_ready(recorder)
                    await recorder.record(
                        await warden.ready(),
                        seconds=whole_seconds(spec.deadline_seconds + RECORDER_GRACE_SECONDS),
                        session=spec.session,
                        epoch=spec.epoch,
                    )
                    recorder.expect(nonce)
                await container.seed(seed)
                await container.open_gate(nonce)
                process.watch(tasks)
                try:
                    yield process
                finally:
                    process.close()
                    warden.close()

    async def prepare_recorder(self) -> None:
        """Start a recorder ahead of the next launch that asks for a record. Raises when there is no image for it."""
        if self._spare is None:
            config = recorder_config(
                image=(await self._image(RECORDER_IMAGE)).id,
                deadline_seconds=SPARE_SECONDS,
                ring_kib=RING_KIB,
                labels=self._shop.labels("recorder"),
            )
            name = self._shop.name("recorder")
            self._spare = start_recorder(self._shop.engine, self._tasks, self._collected, name, config)

    async def recorder_problem(self) -> str | None:
        await self.prepare_recorder()
        if await anyio.to_thread.run_sync((await self._memory()).worked):
            return None  # it goes on starting meanwhile; should it fail, the launch says so
        try:
            assert self._spare is not None
            await self._until_ready(self._spare)
        except RecorderUnavailable as error:
            return error.message
        return None

    async def _until_ready(self, recorder: Recorder) -> None:
        memory = await self._memory()
        try:
            await recorder.ready()
        except RecorderUnavailable:
            await anyio.to_thread.run_sync(memory.forget)
            raise
        await anyio.to_thread.run_sync(memory.remember)

    async def _memory(self) -> RecorderMemory:
        return RecorderMemory(self._shop.state, self._facts, (await self._image(RECORDER_IMAGE)).id)

    @asynccontextmanager
    async def _recorder(self, wanted: bool, collected: Doomed) -> AsyncIterator[Recorder | None]:
        if not wanted:
            yield None
            return
        if self._spare is not None and self._spare.ended.is_set():
            self.close()
            self._spare = None
        await self.prepare_recorder()
        assert self._spare is not None
        recorder, self._spare = self._spare, None
        collected.names.append(recorder.name)
        try:
            yield recorder
        finally:
            recorder.close()

    def close(self) -> None:
        """Let go of a recorder that no launch has taken."""
        if self._spare is not None:
            self._spare.close()

    async def _image(self, name: str) -> ImageFact:
        if name not in self._known:
            self._known[name] = await self._images(name)
        return self._known[name]

    @property
    def _cpus(self) -> float:
        return float(self._facts.get("cpus") or os.cpu_count() or 1)


@asynccontextmanager
async def docker_sandbox(
    engine: Engine,
    run_id: str,
    images: ImageResolver,
    *,
    state: StateDirectory | None = None,
    nonce: Callable[[], str] | None = None,
    seccomp: str | None = None,
) -> AsyncIterator[DockerSandbox]:
    """Yield a sandbox whose things carry `run_id` and a lease held until exit; what dead runs left is removed first.

    `images` resolves folder names, `nonce` draws the marks of the gates (16 hex digits by default), `seccomp` is the
    profile's JSON text (the shipped one by default). Raises `EngineError`, `HarnessError`.
    """
    where = state if state is not None else await anyio.to_thread.run_sync(StateDirectory)
    profile = seccomp if seccomp is not None else await anyio.to_thread.run_sync(profile_json)
    numbers = itertools.count(1)
    async with hold_lease(where, f"{run_id}-{secrets.token_hex(4)}") as lease:
        labels = {LABEL_RUN: run_id, LABEL_LEASE: lease.name, LABEL_OWNER: where.owner}
        shop = Workshop(
            engine=engine,
            state=where,
            volumes=HeldVolumes(where),
            name=lambda role: f"harness-{lease.name}-{next(numbers)}-{role}",
            labels=lambda role: {**labels, LABEL_ROLE: role},
            nonce=nonce or (lambda: secrets.token_hex(8)),
            seccomp=profile,
        )
        try:
            await reap(engine, where)
            facts = await engine.facts()
            async with doomed(engine) as collected, background() as tasks:
                sandbox = DockerSandbox(shop, lease, images, facts, tasks, collected)
                try:
                    yield sandbox
                finally:
                    sandbox.close()
        finally:
            shop.volumes.close()
