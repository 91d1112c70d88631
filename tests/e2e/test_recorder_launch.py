"""A launch with a recorder, as the pipeline makes it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from harness.model.errors import EngineError
from harness.model.recording import Event, ImageFact, KernelEvent, MarkEvent, Origin, ProcessEvent, SyscallEvent
from harness.sandbox import docker
from harness.sandbox import recorder as recorder_module
from harness.sandbox.base import LaunchSpec
from harness.sandbox.docker import DockerSandbox, docker_sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.images import ensure_image
from harness.sandbox.lease import StateDirectory
from harness.sandbox.recorder import RecorderUnavailable

pytestmark = [pytest.mark.anyio, pytest.mark.docker]

READS = "cat .ssh/id_ed25519; read line; cat /etc/passwd; echo done"


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[DockerSandbox]:
    async with Engine() as engine:

        async def images(name: str) -> ImageFact:
            return await ensure_image(engine, name, lambda _: None)

        async with docker_sandbox(engine, "recorded", images, state=StateDirectory(tmp_path)) as sandbox:
            yield sandbox


def spec(**fields: object) -> LaunchSpec:
    fields = {"image": "base", "volume": None, "argv": ("sh", "-c", READS), "workdir": "/home/user", **fields}
    return LaunchSpec.model_validate({"seed": {".ssh/id_ed25519": b"not a key\n"}, **fields})


async def test_a_launch_is_recorded_from_its_first_exec_to_its_end(sandbox: DockerSandbox) -> None:
    events: list[Event] = []
    began = time.monotonic_ns()
    async with sandbox.launch(spec(record=True, session="second", epoch=began)) as process:
        recording = process.recording
        assert recording is not None

        async def read() -> None:
            async for batch in recording.batches():
                events.extend(batch)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            with anyio.fail_after(60):
                assert await process.stdout.receive() == b"not a key\n"
                await process.mark("call:read:77", "n1")
                await process.stdin.send(b"\n")
                said = b""
                while not said.endswith(b"done\n"):
                    said += await process.stdout.receive()
                report = await process.stop(5)
                await process.mark("stop", "n2")
                end = await recording.stop()
    assert report.code == 0
    assert end.complete, end
    assert end.session == "second" and end.marks_seen == 3
    assert [(mark.phase, mark.by) for mark in events if isinstance(mark, MarkEvent)] == [
        ("start", Origin.GATE),
        ("call:read:77", Origin.WARDEN),
        ("stop", Origin.WARDEN),
    ]
    ours = [event for event in events if getattr(event, "by", None) is Origin.TARGET]
    assert {event.session for event in ours} == {"second"}
    execs = [event for event in ours if isinstance(event, ProcessEvent) and event.what == "exec"]
    assert [event.argv[0] for event in execs] == ["sh", "cat", "cat"]
    read_files = {event.path: event for event in ours if isinstance(event, SyscallEvent) and event.call == "openat"}
    assert read_files["/home/user/.ssh/id_ed25519"].decoy
    assert read_files["/home/user/.ssh/id_ed25519"].phase == "start"
    assert not read_files["/etc/passwd"].decoy
    assert read_files["/etc/passwd"].phase == "call:read:77"
    assert all(0 < event.t < time.monotonic_ns() - began for event in ours)


async def test_a_launch_without_a_record_has_none(sandbox: DockerSandbox) -> None:
    async with sandbox.launch(spec()) as process:
        assert process.recording is None
        await process.stop(0.1)


async def test_a_record_that_cant_be_made_is_told(sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = docker.recorder_config

    def without_capability(**options: object) -> dict[str, object]:
        config = whole(**options)  # type: ignore[arg-type]
        return {**config, "HostConfig": {**config["HostConfig"], "CapAdd": []}}

    monkeypatch.setattr(docker, "recorder_config", without_capability)
    with pytest.raises(RecorderUnavailable, match="refuses") as caught:
        async with sandbox.launch(spec(record=True)):
            pass
    assert isinstance(caught.value, EngineError)


async def containers(engine: Engine, lease: str) -> list[str]:
    found = await engine.ask(engine.api.containers, all=True, filters={"label": "harness.run=recorded"})
    return [container["Names"][0] for container in found if lease in container["Names"][0]]


async def test_one_recorder_serves_all_launches_also_cancelled_ones(tmp_path: Path) -> None:
    seen: dict[str, list[Event]] = {"one": [], "other": []}
    ends = []

    async def life(sandbox: DockerSandbox, name: str) -> None:
        argv = ("sh", "-c", f"echo > /tmp/{name}; read line")
        async with sandbox.launch(spec(record=True, session=name, argv=argv)) as process:
            recording = process.recording
            assert recording is not None

            async def read() -> None:
                async for batch in recording.batches():
                    seen[name].extend(batch)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await process.mark("idle", f"idle-{name}")
                await process.stop(5)
                await process.mark("stop", f"stop-{name}")
                ends.append(await recording.stop())

    async with Engine() as engine:

        async def images(name: str) -> ImageFact:
            return await ensure_image(engine, name, lambda _: None)

        async with docker_sandbox(engine, "recorded", images, state=StateDirectory(tmp_path)) as sandbox:
            for seconds in (0.05, 0.2, 0.4):
                with anyio.move_on_after(seconds):
                    async with sandbox.launch(spec(record=True)):
                        await anyio.sleep_forever()
            lease = sandbox.lease.name
            (recorder,) = await containers(engine, lease)
            assert recorder.endswith("recorder")
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    for name in seen:
                        tasks.start_soon(life, sandbox, name)
            with anyio.fail_after(60):  # what a target that is gone has left goes behind its back
                while await containers(engine, lease) != [recorder]:
                    await anyio.sleep(0.1)
        assert await containers(engine, lease) == []
    for name, events in seen.items():
        made = [event.path for event in events if isinstance(event, SyscallEvent) and "O_CREAT" in event.flags]
        assert [path for path in made if path is not None and path.startswith("/tmp/")] == [f"/tmp/{name}"]
        numbers = [event.record for event in events if isinstance(event, KernelEvent) and event.record >= 0]
        assert numbers == list(range(len(numbers)))
    assert len(ends) == 2 and all(end.complete for end in ends), ends


async def test_a_second_recorder_follows_when_the_first_is_full(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "SPACES", 1)
    for _ in range(2):
        async with sandbox.launch(spec(record=True, argv=("true",))) as process:
            assert process.recording is not None
            await process.stop(1)
            assert (await process.recording.stop()).marks_seen == 1
    names = await containers(sandbox._shop.engine, sandbox.lease.name)
    assert len([name for name in names if name.endswith("recorder")]) == 2
