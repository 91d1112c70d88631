"""The sandbox on Docker: implements `harness.sandbox.base.Sandbox`. A launch: warden, target, recorder if wished."""

from __future__ import annotations

import itertools
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import anyio
import anyio.abc
import anyio.to_thread

from harness.model.options import Limits, NetworkChoice
from harness.model.recording import ImageFact
from harness.model.target import ImageConfig, InstallPlan
from harness.sandbox.base import APP, SEALED_APP, InstalledTarget, InstallFailed, LaunchSpec, SandboxedProcess
from harness.sandbox.berth import Berth, Bookings
from harness.sandbox.cable import Cable, start_cable
from harness.sandbox.containers import Doomed, background, doomed
from harness.sandbox.engine import Engine
from harness.sandbox.foreign import GATE_FOLDER, foreign_config, image_config
from harness.sandbox.gate import seed_bytes
from harness.sandbox.gated import gated
from harness.sandbox.gateway import GATEWAY_IMAGE, TRUST, TRUST_FILE, Gateway, enter_world, start_gateway
from harness.sandbox.hardening import (
    LABEL_LEASE,
    LABEL_OWNER,
    LABEL_ROLE,
    LABEL_RUN,
    USER_ID,
    VolumeMount,
    cable_config,
    gated_config,
    gateway_config,
    joined_config,
    recorder_config,
    warden_config,
)
from harness.sandbox.image_spec import CLOCK_PATH
from harness.sandbox.install_witness import Recorders
from harness.sandbox.installer import install, install_limits, use_volume
from harness.sandbox.lease import Lease, StateDirectory, hold_lease
from harness.sandbox.reaper import reap
from harness.sandbox.recorder import RECORDER_IMAGE, RING_KIB, Recorder, RecorderUnavailable, start_recorder
from harness.sandbox.recorder_memory import RecorderMemory
from harness.sandbox.recorder_process import RECORDER_GRACE_SECONDS, RecordedProcess
from harness.sandbox.seccomp import profile_json
from harness.sandbox.strace import TRACER_IMAGE
from harness.sandbox.strace_filter import watched_profile
from harness.sandbox.strace_install import ByStrace
from harness.sandbox.strace_launch import start_tracer, strace_problem
from harness.sandbox.strace_process import TracedProcess
from harness.sandbox.volumes import HeldVolumes
from harness.sandbox.warden import create_warden, whole_seconds
from harness.sandbox.workshop import Workshop

#: Finds the image of a folder name, or makes it.
ImageResolver: TypeAlias = Callable[[str], Awaitable[ImageFact]]

#: A process behind the gate, with what records it.
Launched: TypeAlias = RecordedProcess | TracedProcess

WARDEN_IMAGE = "warden"
#: A run's recorder ends with the harness, and by itself after this time.
RECORDER_SECONDS = 24 * 3600


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
        self._shared: Recorder | None = None
        self._recorders: list[Recorder] = []
        self._gateways: list[Gateway] = []
        self._strace = False
        self._bookings = Bookings(tasks, self._berth)

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
        recorders: Recorders | ByStrace | None = self._recorder if record else None
        if record and self._strace:
            recorders = ByStrace((await self._image(TRACER_IMAGE)).id)
        return await install(
            self._shop, plan, image, warden_image, timeout=timeout, limits=widened, recorders=recorders
        )

    def launch(self, spec: LaunchSpec) -> AbstractAsyncContextManager[SandboxedProcess]:
        return self._launch(spec)

    async def prepare(self, spec: LaunchSpec) -> None:
        self._bookings.prepare(spec)

    @asynccontextmanager
    async def _launch(self, spec: LaunchSpec) -> AsyncIterator[SandboxedProcess]:
        process: Launched | None = None

        def ended() -> bool:
            return process is not None and process.report is not None

        async with self._bookings.take(spec, ended) as berth, background() as tasks:
            process = await self._enter(spec, berth, tasks)
            try:
                yield process
            finally:
                process.close()

    async def _enter(self, spec: LaunchSpec, berth: Berth, tasks: anyio.abc.TaskGroup) -> Launched:
        """Plant, record, and open the gate of what stands ready."""
        shop, engine, foreign = self._shop, self._shop.engine, spec.foreign
        warden, container, gateway = berth.warden, berth.container, berth.gateway
        nonce = shop.nonce()
        process: Launched
        life = {"began": berth.began, "deadline": berth.deadline_seconds}
        if spec.record and self._strace:
            tracer = await start_tracer(
                shop,
                berth.tasks,
                berth.collected,
                warden,
                (await self._image(TRACER_IMAGE)).id,
                session=spec.session,
                epoch=spec.epoch,
                uid=USER_ID if foreign is None else int(foreign.run_as.partition(":")[0]),
                runtime=spec.runtime,
            )
            tracer.expect(nonce)
            process = TracedProcess(engine, container, warden, berth.image, tracer, **life)
        else:
            recording = None
            if spec.record:  # before the seed: what is planted is known by it
                recorder = await self._recorder()
                recording = await recorder.record(
                    await warden.ready(),
                    seconds=whole_seconds(spec.deadline_seconds + RECORDER_GRACE_SECONDS),
                    session=spec.session,
                    epoch=spec.epoch,
                )
                recording.expect(nonce)
            process = RecordedProcess(engine, container, warden, berth.image, recording, **life)
        try:
            seed = dict(spec.seed)
            if gateway is not None:
                process.network = gateway
                seed.setdefault(TRUST_FILE, await enter_world(gateway, spec))
            if berth.cable is not None:
                await berth.cable.ready()
            await container.seed(seed_bytes(seed, executables=spec.executables, links=spec.links))
            await container.open_gate(nonce)
        except BaseException:
            process.close()
            raise
        process.watch(tasks)
        return process

    @asynccontextmanager
    async def _berth(self, spec: LaunchSpec) -> AsyncIterator[Berth]:
        """Make what a launch needs, up to the closed gate; all of it is gone at exit."""
        shop, engine = self._shop, self._shop.engine
        foreign, warden_image = spec.foreign, await self._image(WARDEN_IMAGE)
        traced = spec.record and self._strace
        if foreign is not None:
            image = ImageFact(name=foreign.reference, id=foreign.id)
        else:
            image = await self._image(spec.image)
        if spec.volume is not None:
            await use_volume(shop, spec.volume)
        watch = warden_config(
            image=warden_image.id,
            deadline_seconds=whole_seconds(spec.deadline_seconds),
            labels=shop.labels("warden"),
            seccomp=shop.seccomp,
        )
        async with doomed(engine) as collected, background() as tasks:
            began = time.monotonic()
            if spec.record and not traced:
                await self.prepare_recorder()
            gateway = cable = None
            if spec.network is not NetworkChoice.NONE and spec.stealth:
                gateway, cable = await self._apart(tasks, collected)
            elif spec.network is not NetworkChoice.NONE:
                gateway = await self._gateway(collected)
            warden = await create_warden(engine, tasks, collected, shop.name("warden"), watch)
            path = await engine.image_path(image.id)
            place = GATE_FOLDER if foreign is not None else SEALED_APP if spec.unsealed else APP
            config = gated_config(
                image=image.id,
                argv=spec.argv,
                workdir=spec.workdir,
                environment=_environment(spec, path),
                path=path,
                limits=spec.limits.model_copy(update={"cpus": min(spec.limits.cpus, self._cpus)}),
                mounts=() if spec.volume is None else (VolumeMount(volume=spec.volume, path=place, read_only=True),),
                warden=warden.name,
                labels=shop.labels("target"),
                seccomp=watched_profile(shop.seccomp) if traced else shop.seccomp,
                runtime=spec.runtime,
                unsealed=spec.unsealed,
            )
            if foreign is not None:
                config = foreign_config(config, foreign, spec.limits.tmpfs_bytes)
            if gateway is not None:
                config = joined_config(config, gateway.name if cable is None else cable.name)
            held_stderr = spec.limits.stderr_bytes
            world = None if gateway is None else gateway.joinable
            name = shop.name("target")
            async with gated(
                engine, tasks, collected, warden, name, config, held_stderr, prepare=world, copies=spec.unsealed
            ) as container:
                try:
                    yield Berth(
                        image=image,
                        warden=warden,
                        container=container,
                        gateway=gateway,
                        cable=cable,
                        collected=collected,
                        tasks=tasks,
                        began=began,
                        deadline_seconds=spec.deadline_seconds,
                    )
                finally:
                    warden.close()
                    if gateway is not None:
                        gateway.close()
                    if cable is not None:
                        cable.close()

    async def prepare_recorder(self) -> None:
        if self._shared is None or not self._shared.usable:
            config = recorder_config(
                image=(await self._image(RECORDER_IMAGE)).id,
                deadline_seconds=RECORDER_SECONDS,
                ring_kib=RING_KIB,
                labels=self._shop.labels("recorder"),
            )
            if self._shared is not None and self._shared.usable:
                return  # made meanwhile
            name = self._shop.name("recorder")
            self._shared = start_recorder(self._shop.engine, self._tasks, self._collected, name, config)
            self._recorders.append(self._shared)

    async def prepare_network(self, launches: int = 1) -> None:
        self._gateways = [gateway for gateway in self._gateways if gateway.usable]
        while len(self._gateways) < launches:
            image = await self._image(GATEWAY_IMAGE)
            config = gateway_config(image=image.id, labels=self._shop.labels("gateway"))
            name = self._shop.name("gateway")
            self._gateways.append(start_gateway(self._shop.engine, self._tasks, self._collected, name, config))

    async def _gateway(self, collected: Doomed) -> Gateway:
        """A gateway of its own for one launch, made ahead if possible; removed with what that launch makes."""
        await self.prepare_network()
        gateway = self._gateways.pop(0)
        collected.names.append(gateway.name)
        return gateway

    async def _apart(self, tasks: anyio.abc.TaskGroup, collected: Doomed) -> tuple[Gateway, Cable]:
        """A gateway at one end of a cable, and what the target joins at the other."""
        shop, image = self._shop, (await self._image(GATEWAY_IMAGE)).id
        config = cable_config(image=image, labels=shop.labels("cable"))
        cable = await start_cable(shop.engine, tasks, collected, shop.name("cable"), config)
        config = gateway_config(image=image, labels=shop.labels("gateway"), cable=cable.name)
        return start_gateway(shop.engine, tasks, collected, shop.name("gateway"), config), cable

    async def use_strace(self) -> str | None:
        warden, tracer = await self._image(WARDEN_IMAGE), await self._image(TRACER_IMAGE)
        problem = await strace_problem(self._shop, warden.id, tracer.id)
        self._strace = problem is None
        return problem

    async def recorder_problem(self) -> str | None:
        await self.prepare_recorder()
        if await anyio.to_thread.run_sync((await self._memory()).worked):
            return None  # it goes on starting meanwhile; should it fail, the launch says so
        try:
            await self._recorder()
        except RecorderUnavailable as error:
            return error.message
        return None

    async def _recorder(self) -> Recorder:
        """The run's recorder, ready; another one where it has ended or is full. Raises `RecorderUnavailable`."""
        await self.prepare_recorder()
        recorder, memory = self._shared, await self._memory()
        assert recorder is not None
        try:
            await recorder.ready()
        except RecorderUnavailable:
            await anyio.to_thread.run_sync(memory.forget)
            raise
        await anyio.to_thread.run_sync(memory.remember)
        return recorder

    async def _memory(self) -> RecorderMemory:
        return RecorderMemory(self._shop.state, self._facts, (await self._image(RECORDER_IMAGE)).id)

    def close(self) -> None:
        """Hang up on the recorders, and on gateways that no launch has taken."""
        for recorder in self._recorders:
            recorder.close()
        for gateway in self._gateways:
            gateway.close()

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


def _environment(spec: LaunchSpec, path: str) -> dict[str, str]:
    """The variables of a launch; `path` is the image's PATH."""
    given = spec.environment if spec.foreign is None else {"PATH": path, **spec.environment}
    if spec.network is not NetworkChoice.NONE:
        given = {**TRUST, **given}
    if spec.days_ahead and spec.foreign is None:
        preloaded = ":".join(filter(None, (CLOCK_PATH, given.get("LD_PRELOAD"))))
        given = {**given, "LD_PRELOAD": preloaded, "FAKETIME": f"+{spec.days_ahead}d"}
    if not spec.path_after:
        return given
    return {**given, "PATH": ":".join((given.get("PATH", f"{APP}/bin:{path}"), *spec.path_after))}
