"""A recorded target for the tests of the recorder: warden, recorder and a gated container, in the order of a run."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from harness.model.options import Limits
from harness.model.recording import (
    Event,
    KernelEvent,
    MarkEvent,
    Origin,
    ProcessEvent,
    RecorderEndEvent,
    SyscallEvent,
    TransferEvent,
)
from harness.sandbox.containers import background, doomed
from harness.sandbox.engine import Engine
from harness.sandbox.gate import seed_bytes
from harness.sandbox.gated import Gated, gated
from harness.sandbox.hardening import gated_config, recorder_config, warden_config
from harness.sandbox.images import ensure_image
from harness.sandbox.native import compile_sources
from harness.sandbox.recorder import RING_KIB, Recorder, start_recorder
from harness.sandbox.recording import Recording
from harness.sandbox.seccomp import profile_json
from harness.sandbox.warden import Warden, create_warden

SECONDS = 60
SOURCE = Path(__file__).with_name("recorder_target.c")
LABELS = {"harness.test": "recorder"}
DECOY = ".ssh/id_ed25519"


async def image(engine: Engine, name: str) -> str:
    return (await ensure_image(engine, name, lambda _: None)).id


async def compiled_target(engine: Engine) -> bytes:
    """The static program of recorder_target.c."""
    name = f"target{secrets.token_hex(4)}"
    return await compile_sources(engine, await image(engine, "builder"), name, {f"{name}.c": SOURCE.read_bytes()})


@dataclass
class Stage:
    """A target that runs, and what was recorded of it so far."""

    container: Gated
    warden: Warden
    recorder: Recorder
    recording: Recording
    events: list[Event] = field(default_factory=list)
    end: RecorderEndEvent | None = None
    collected: anyio.Event = field(default_factory=anyio.Event)

    async def output(self) -> bytes:
        """What the target printed until its end."""
        said = b""
        with anyio.fail_after(SECONDS):
            try:
                while True:
                    said += await self.container.streams.stdout.receive()
            except anyio.EndOfStream:
                return said

    async def mark(self, phase: str, nonce: str) -> None:
        self.recording.expect(nonce)
        await self.warden.mark(phase, nonce)

    async def finish(self) -> RecorderEndEvent:
        """Kill what is left of the target, then end the recording."""
        await self.warden.kill()
        await self.mark("stop", "n-end")
        self.end = await self.recording.stop()
        with anyio.fail_after(SECONDS):
            await self.collected.wait()
        return self.end

    async def collect(self) -> None:
        """Take the events as they come, to the last."""
        async for events in self.recording.batches():
            self.events += events
        self.collected.set()

    def of(self, kind: type[KernelEvent], by: Origin = Origin.TARGET) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind) and event.by is by]

    def mode(self, *words: str) -> list[SyscallEvent]:
        """The calls of the process that was started as `/tmp/target WORDS`."""
        pids = {event.pid for event in self.processes("exec") if event.argv[1 : 1 + len(words)] == words}
        assert len(pids) == 1, words
        return [event for event in self.calls if event.pid in pids and event.comm != "sh"]

    @property
    def calls(self) -> list[SyscallEvent]:
        return self.of(SyscallEvent)

    def named(self, *names: str) -> list[SyscallEvent]:
        return [event for event in self.calls if event.call in names]

    def processes(self, what: str) -> list[ProcessEvent]:
        return [event for event in self.of(ProcessEvent) if event.what == what]

    @property
    def transfers(self) -> list[TransferEvent]:
        return self.of(TransferEvent)

    @property
    def marks(self) -> list[MarkEvent]:
        return [event for event in self.events if isinstance(event, MarkEvent)]


@asynccontextmanager
async def staged(
    engine: Engine,
    argv: Sequence[str],
    *,
    target: bytes = b"",
    image_name: str = "base",
    seed: dict[str, bytes] | None = None,
    ring_kib: int = RING_KIB,
    read: bool = True,
    privileged: bool = False,
) -> AsyncIterator[Stage]:
    """Run `argv` recorded; with `target`, that program lies at /tmp/target. `read=False`: the test reads the events.

    `privileged` lifts the profile and gives back the capability to make namespaces.
    """
    command = tuple(argv)
    if target:
        copy = 'cp "$HOME/target" /tmp/target && chmod 700 /tmp/target && exec "$@"'
        command = ("sh", "-c", copy, "sh", *argv)
    files = {**({"target": target} if target else {}), **(seed or {})}
    run = secrets.token_hex(4)
    profile = profile_json()
    watch = warden_config(image=await image(engine, "warden"), deadline_seconds=120, labels=LABELS, seccomp=profile)
    listen = recorder_config(
        image=await image(engine, "recorder"), deadline_seconds=130, ring_kib=ring_kib, labels=LABELS
    )
    async with doomed(engine) as collected, background() as tasks:
        recorder = start_recorder(engine, tasks, collected, f"test-{run}-recorder", listen)
        warden = await create_warden(engine, tasks, collected, f"test-{run}-warden", watch)
        config = gated_config(
            image=await image(engine, image_name),
            argv=command,
            workdir="/home/user/workspace",
            environment={},
            path="/usr/local/bin:/usr/bin:/bin",
            limits=Limits(),
            mounts=(),
            warden=warden.name,
            labels=LABELS,
            seccomp=profile,
        )
        if privileged:
            config["HostConfig"] |= {"CapAdd": ["SYS_ADMIN"], "SecurityOpt": ["seccomp=unconfined"]}
            config["User"] = "0:0"
            del config["HostConfig"]["Tmpfs"]["/home/user"]
            config["HostConfig"]["Tmpfs"]["/home/user"] = "rw,exec"
        try:
            async with gated(engine, tasks, collected, warden, f"test-{run}-target", config, 1 << 16) as container:
                await recorder.ready()
                recording = await recorder.record(await warden.ready(), seconds=130)
                await container.seed(seed_bytes(files))
                stage = Stage(container, warden, recorder, recording)
                if read:
                    tasks.start_soon(stage.collect)
                recording.expect("n-gate")
                await stage.mark("start", "n-start")
                await container.open_gate("n-gate")
                yield stage
        finally:
            warden.close()
            recorder.close()
