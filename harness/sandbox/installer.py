"""Installs a plan into a volume: inputs streamed in, steps run one after another behind the gate, then sealed."""

from __future__ import annotations

import time
from collections import deque
from contextlib import AsyncExitStack, suppress
from functools import partial

import anyio
import anyio.abc
import anyio.to_thread

from harness.model.errors import EngineError
from harness.model.options import Limits
from harness.model.recording import ImageFact
from harness.model.target import InstallPlan
from harness.sandbox.archive import input_archive
from harness.sandbox.base import APP, InstalledTarget, InstallFailed, StepReport
from harness.sandbox.containers import background, doomed
from harness.sandbox.engine import EngineConflict
from harness.sandbox.gated import Preparation, gated
from harness.sandbox.hardening import (
    INPUT,
    ROLE_APP,
    ROLE_INPUT,
    Role,
    VolumeMount,
    gated_config,
    warden_config,
)
from harness.sandbox.install_record import InstallRecord
from harness.sandbox.install_witness import InstallWitness, Recorders, recorded
from harness.sandbox.lease import try_lock
from harness.sandbox.reaper import reap
from harness.sandbox.strace_install import ByStrace, TracedInstall
from harness.sandbox.streams import ContainerStreams
from harness.sandbox.volumes import (
    Seal,
    create_volume,
    evict,
    kept_installs,
    read_seal,
    remove_volume,
    touch_seal,
    volume_name,
    write_seal,
)
from harness.sandbox.warden import Warden, create_warden, whole_seconds
from harness.sandbox.workshop import Workshop as Workshop

#: How much of a step's output is kept, from its end.
OUTPUT_BYTES = 16 << 10
STDERR_BYTES = 1 << 20
POLL_SECONDS = 0.05
#: How long what a step printed last may take to arrive.
DRAIN_SECONDS = 1.0
AGAIN = "repeat the run"
CLEANUP_SECONDS = 15.0
#: The warden's deadline is a backstop to ours.
BACKSTOP_SECONDS = 5.0
#: Installing may take more than running: resolvers and compilers need it, and it is bounded all the same.
INSTALL_MEMORY_BYTES = 2 << 30
INSTALL_TMPFS_BYTES = 1 << 30
INSTALL_PIDS = 512
INSTALL_CPUS = 2.0


def install_limits(limits: Limits, cpus: float) -> Limits:
    """The run's limits, widened for installing; `cpus` are those the engine has."""
    return limits.model_copy(
        update={
            "memory_bytes": max(limits.memory_bytes, INSTALL_MEMORY_BYTES),
            "tmpfs_bytes": max(limits.tmpfs_bytes, INSTALL_TMPFS_BYTES),
            "pids": max(limits.pids, INSTALL_PIDS),
            "cpus": min(max(limits.cpus, INSTALL_CPUS), cpus),
        }
    )


async def install(
    shop: Workshop,
    plan: InstallPlan,
    image: ImageFact,
    warden_image: ImageFact,
    *,
    timeout: float,
    limits: Limits,
    recorders: Recorders | ByStrace | None = None,
) -> InstalledTarget | InstallFailed:
    """Return the sealed volume for `plan`, made now if there is none; a shared lock on it is then held in `shop`.

    One whose record has lost events is made again unless a run is using it.
    At most `timeout` seconds are spent in steps, and as many in waiting for another run that installs the same.
    With `recorders`, one of them records the install, and its record is sealed with the volume.
    Raises `EngineError`, `HarnessError`.
    """
    began = time.monotonic()
    volume = volume_name(plan, image, shop.state.owner, recorder=_recorder(recorders))
    while True:
        if sealed := await _find_sealed(shop, volume, whole=True):
            return _kept(sealed, began)
        held = await anyio.to_thread.run_sync(try_lock, shop.state.volume_lock(volume))
        if held is None:
            if sealed := await _find_sealed(shop, volume):  # somebody runs it: it stays as it is
                return _kept(sealed, began)
            if time.monotonic() - began > timeout:
                raise EngineError("another run has been installing the same target for too long", remedy=AGAIN)
            await anyio.sleep(POLL_SECONDS)
            continue
        keep = False
        try:
            seal = await read_seal(shop.engine, shop.state, volume)
            if seal is not None and seal.whole:
                continue  # another run finished it since we looked
            made = await _make(shop, plan, image, warden_image, volume, timeout, limits, recorders)
            if isinstance(made, InstallFailed):
                return made
            keep = held.share()
            if not keep:
                continue
            shop.volumes.add(volume, held)
        finally:
            if not keep:
                held.release()
        await evict(shop.engine, shop.state, kept_installs())
        return made


def _kept(seal: Seal, began: float) -> InstalledTarget:
    return InstalledTarget(
        volume=seal.volume,
        image=seal.image,
        steps=seal.steps,
        cached=True,
        seconds=time.monotonic() - began,
        record=seal.record,
    )


def _recorder(recorders: Recorders | ByStrace | None) -> str | None:
    if recorders is None:
        return None
    return "strace" if isinstance(recorders, ByStrace) else "ebpf"


async def use_volume(shop: Workshop, volume: str) -> None:
    """Make sure that a volume is sealed and stays while the sandbox is open. Raises `EngineError`."""
    if volume not in shop.volumes and await _find_sealed(shop, volume) is None:
        raise EngineError(f"the installed target {volume} is gone", remedy=AGAIN)


async def _find_sealed(shop: Workshop, volume: str, *, whole: bool = False) -> Seal | None:
    """The seal of a volume, with a shared lock on it from now on; None when it isn't sealed or is being removed.

    `whole`: also None when its record has lost events.
    """
    seal = await read_seal(shop.engine, shop.state, volume)
    if seal is None or (whole and not seal.whole):
        return None
    held = await anyio.to_thread.run_sync(partial(try_lock, shop.state.volume_lock(volume), shared=True))
    if held is None:
        return None
    keep = False
    try:
        seal = await read_seal(shop.engine, shop.state, volume)  # nobody can remove it from here on
        if seal is not None:
            await anyio.to_thread.run_sync(touch_seal, shop.state, volume)
            shop.volumes.add(volume, held)
            keep = True
        return seal
    finally:
        if not keep:
            held.release()


async def _make(
    shop: Workshop,
    plan: InstallPlan,
    image: ImageFact,
    warden_image: ImageFact,
    volume: str,
    timeout: float,
    limits: Limits,
    recorders: Recorders | ByStrace | None,
) -> InstalledTarget | InstallFailed:
    began = time.monotonic()
    inputs = shop.name(ROLE_INPUT)
    steps: list[StepReport] = []
    sealed = False
    try:
        mark = await _fresh_volume(shop, volume)
        await create_volume(shop.engine, inputs, shop.labels(ROLE_INPUT))
        finished, record = await _run_steps(
            shop, plan, image, warden_image, volume, inputs, timeout, limits, steps, recorders
        )
        seconds = time.monotonic() - began
        if not finished or any(step.code for step in steps):
            return InstallFailed(steps=tuple(steps), timed_out=not finished, seconds=seconds, record=record)
        seal = Seal(volume=volume, mark=mark, image=image, steps=tuple(steps), seconds=seconds, record=record)
        await anyio.to_thread.run_sync(write_seal, shop.state, seal)
        sealed = True
        return InstalledTarget(
            volume=volume, image=image, steps=seal.steps, cached=False, seconds=seconds, record=record
        )
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLEANUP_SECONDS):
            for name in [inputs] if sealed else [inputs, volume]:
                with suppress(EngineError):  # the reaper's then
                    await remove_volume(shop.engine, name)


async def _fresh_volume(shop: Workshop, volume: str) -> str:
    labels = shop.labels(ROLE_APP)
    try:
        return await create_volume(shop.engine, volume, labels)
    except EngineConflict:
        await reap(shop.engine, shop.state)  # a run that died while we waited for its lock
        return await create_volume(shop.engine, volume, labels)


async def _run_steps(
    shop: Workshop,
    plan: InstallPlan,
    image: ImageFact,
    warden_image: ImageFact,
    volume: str,
    inputs: str,
    timeout: float,
    limits: Limits,
    steps: list[StepReport],
    recorders: Recorders | ByStrace | None,
) -> tuple[bool, InstallRecord | None]:
    """Run steps until one fails, appending to `steps`; False when the time was over before the last one ended."""
    engine = shop.engine
    mounts = (
        VolumeMount(volume=volume, path=APP, read_only=False),
        VolumeMount(volume=inputs, path=INPUT, read_only=False),
    )
    path = await engine.image_path(image.id)

    async def fill(container: str) -> None:
        await engine.call(engine.api.put_archive, container, INPUT, input_archive(plan.files))

    async with doomed(engine) as collected, background() as tasks, AsyncExitStack() as arriving:
        watch = warden_config(
            image=warden_image.id,
            deadline_seconds=whole_seconds(timeout + BACKSTOP_SECONDS),
            labels=shop.labels("warden"),
            seccomp=shop.seccomp,
        )
        warden = await create_warden(engine, tasks, collected, shop.name("warden"), watch)
        witness = await arriving.enter_async_context(
            recorded(recorders, tasks, await warden.ready(), whole_seconds(timeout + BACKSTOP_SECONDS))
        )
        begin = shop.nonce()
        witness.expect(begin)
        await warden.mark("install", begin)
        prepare: Preparation | None = fill
        with anyio.move_on_after(timeout) as scope:
            for argv in plan.steps:
                role: Role = "install"
                config = gated_config(
                    image=image.id,
                    argv=argv,
                    workdir=INPUT,
                    environment=plan.environment,
                    path=path,
                    limits=limits,
                    mounts=mounts,
                    warden=warden.name,
                    labels=shop.labels(role),
                    seccomp=witness.profile(shop.seccomp),
                )
                report = await _run_step(shop, warden, witness, shop.name(role), argv, config, prepare, steps)
                prepare = None
                if report.code:
                    break
        if not warden.deadline_passed:
            end = shop.nonce()
            witness.expect(end)
            await warden.mark("install", end)
        return not scope.cancelled_caught, await witness.finish()


async def _run_step(
    shop: Workshop,
    warden: Warden,
    witness: InstallWitness | TracedInstall,
    name: str,
    argv: tuple[str, ...],
    config: dict[str, object],
    prepare: Preparation | None,
    steps: list[StepReport],
) -> StepReport:
    """Run one step and append its report, also when it is cut short by the time limit (code 137 then)."""
    tail = _Tail(OUTPUT_BYTES)
    code = 137
    begun = False
    try:
        async with (
            doomed(shop.engine) as collected,
            background() as tasks,
            gated(shop.engine, tasks, collected, warden, name, config, STDERR_BYTES, prepare=prepare) as container,
            witness.attending(shop, tasks, collected, warden),
        ):
            begun = True
            nonce = shop.nonce()
            witness.expect_gate(nonce)
            await container.open_gate(nonce)
            await container.streams.stdin.aclose()
            tasks.start_soon(tail.keep, container.streams)
            code = await shop.engine.wait(container.container)
            with anyio.move_on_after(DRAIN_SECONDS):
                await tail.complete.wait()
    finally:
        if begun:
            steps.append(StepReport(argv=argv, code=code, output=tail.text))
    return steps[-1]


class _Tail:
    """The last bytes of stdout and stderr, in the order in which they came."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self.complete = anyio.Event()

    async def keep(self, streams: ContainerStreams) -> None:
        """Read both streams to their ends, then set `complete`."""
        async with anyio.create_task_group() as readers:
            readers.start_soon(self._drain, streams.stdout)
            readers.start_soon(self._drain, streams.stderr)
        self.complete.set()

    async def _drain(self, stream: anyio.abc.ByteReceiveStream) -> None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
            while True:
                piece = await stream.receive()
                self._pieces.append(piece)
                self._size += len(piece)
                while self._size - len(self._pieces[0]) >= self._limit:
                    self._size -= len(self._pieces.popleft())

    @property
    def text(self) -> str:
        """What was kept, as text; bytes that are no UTF-8 are replaced."""
        return b"".join(self._pieces)[-self._limit :].decode("utf-8", "replace")
