"""Floods, forgeries, dead readers and neighbours: what matters stays whole, or the recorder says what was lost."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from recorder_stage import DECOY, LABELS, Stage, compiled_target, image, staged

from harness.model.recording import Origin
from harness.sandbox import recorder as module
from harness.sandbox.containers import kill_container
from harness.sandbox.engine import Engine
from harness.sandbox.recorder import open_recorder, recorder_available

pytestmark = [pytest.mark.docker, pytest.mark.alone]


@pytest.fixture(scope="module")
def target() -> bytes:
    async def compile_it() -> bytes:
        async with Engine() as engine:
            return await compiled_target(engine)

    return anyio.run(compile_it)


def gaps(stage: Stage) -> int:
    """Records whose numbers are missing between the first and the last."""
    numbers = [event.record for event in stage.events if event.record >= 0]  # type: ignore[union-attr]
    assert numbers == sorted(set(numbers))
    return numbers[-1] + 1 - len(numbers)


def test_what_is_lost_while_nobody_reads_is_counted_exactly(target: bytes) -> None:
    async def run() -> Stage:
        async with Engine() as engine:
            flood = ("/tmp/target", "flood", "2500")
            async with (
                staged(engine, flood, target=target, ring_kib=64, read=False) as stage,
                anyio.create_task_group() as tasks,
            ):
                await anyio.sleep(2.0)
                tasks.start_soon(stage.collect)
                await stage.output()
                await stage.finish()
                return stage

    stage = anyio.run(run)
    end = stage.end
    assert end is not None and not end.early and not end.complete
    assert set(end.lost) == {"bulk"} and end.lost["bulk"] > 0
    assert end.received + end.lost["bulk"] == end.matched
    assert gaps(stage) == end.lost["bulk"]
    assert [event.argv[1:2] for event in stage.processes("exec")][-1] == ("flood",)
    assert end.marks_missing == ()


def test_a_target_that_fights_back_hides_nothing_that_matters(target: bytes) -> None:
    async def run() -> Stage:
        async with (
            Engine() as engine,
            staged(engine, ("/tmp/target", "tamper", "700"), target=target, seed={DECOY: b"not a key"}) as stage,
        ):
            await stage.output()
            await stage.finish()
            return stage

    stage = anyio.run(run)
    end = stage.end
    assert end is not None and not end.early and end.marks_missing == ()
    assert set(end.lost) <= {"bulk"}
    assert end.received + end.lost.get("bulk", 0) == end.matched
    assert ("/bin/true", "after the flood") in [event.argv for event in stage.processes("exec")]
    assert [event.addresses for event in stage.named("connect")] == [("127.0.0.7:4242",)]
    decoys = [event for event in stage.calls if event.decoy and event.path == f"/home/user/{DECOY}"]
    assert len(decoys) == 1
    assert [event.by for event in stage.marks] == [Origin.WARDEN, Origin.GATE, Origin.WARDEN]
    assert {(event.args, event.result) for event in stage.named("kill")} >= {((1, 9), -1)}


def test_two_runs_side_by_side_dont_meet(target: bytes) -> None:
    async def run() -> dict[str, Stage]:
        async with Engine() as engine:

            async def one(name: str) -> None:
                async with staged(engine, ("/tmp/target", "touch", f"/tmp/{name}"), target=target) as stage:
                    stages[name] = stage
                    await stage.output()
                    await stage.finish()

            stages: dict[str, Stage] = {}
            async with anyio.create_task_group() as tasks:
                for name in ("one", "other"):
                    tasks.start_soon(one, name)
            return stages

    for name, stage in anyio.run(run).items():
        touched = [event.path for event in stage.named("open") if "O_CREAT" in event.flags]
        assert touched == [f"/tmp/{name}"]
        assert stage.end is not None and stage.end.complete
        assert len(stage.marks) == 3


async def reused(engine: Engine, target: bytes, recorder_image: str) -> bool:
    """Record a namespace that dies; was its number given to another one meanwhile? Then nothing of that was seen."""
    arguments = ("/tmp/target", "reuse", "40")
    async with (
        staged(engine, arguments, target=target, privileged=True) as stage,
        open_recorder(engine, recorder_image, "test-recorder-reuse", labels=LABELS, deadline_seconds=60) as recorder,
        anyio.create_task_group() as tasks,
    ):

        async def read() -> None:
            async for _ in recording.batches():
                pass

        out = stage.container.streams.stdout
        await recorder.ready()
        inode = await out.receive_line(64)
        recording = await recorder.record(int(inode), seconds=60)
        tasks.start_soon(read)
        await stage.container.streams.stdin.send(b"end\n")
        assert await out.receive_line(64) == b"gone"
        before = await recording.count()
        assert int(before["matched"]) > 0
        await stage.container.streams.stdin.send(b"go\n")
        again = (await stage.output()).split()
        assert await recording.count() == before
        await recording.stop()
        return inode in again


def test_a_dead_namespaces_number_is_not_taken_for_it(target: bytes) -> None:
    async def run() -> bool:
        async with Engine() as engine:
            recorder_image = await image(engine, "recorder")
            for _ in range(5):
                if await reused(engine, target, recorder_image):
                    return True
            return False

    assert anyio.run(run), "no number was used again, so nothing was tried"


def test_a_recorder_that_dies_early_is_noticed(target: bytes) -> None:
    async def run() -> None:
        async with Engine() as engine, staged(engine, ("/tmp/target", "flood", "300"), target=target) as stage:
            await kill_container(engine, stage.recorder.container)
            with anyio.fail_after(10):
                await stage.recorder.ended.wait()
            end = await stage.recording.stop()
            assert end.early and not end.complete and end.reason
            with pytest.raises(Exception, match="recorder"):
                await stage.recording.count()

    anyio.run(run)


def test_it_holds_no_capability_while_it_records_and_ends_with_its_stdin() -> None:
    async def run() -> None:
        async with Engine() as engine:
            recorder_image = await image(engine, "recorder")
            async with open_recorder(
                engine, recorder_image, "test-recorder-caps", labels=LABELS, deadline_seconds=60
            ) as recorder:
                await recorder.ready()
                found = await engine.ask(engine.api.inspect_container, recorder.container)
                assert found["Mounts"] == [] and found["HostConfig"]["NetworkMode"] == "none"
                status = Path(f"/proc/{found['State']['Pid']}/status").read_text()
                held = {line.split()[0]: int(line.split()[1], 16) for line in status.splitlines() if line[:3] == "Cap"}
                assert held["CapEff:"] == held["CapPrm:"] == held["CapInh:"] == held["CapAmb:"] == 0
                recorder.close()
                with anyio.fail_after(10):
                    assert await engine.wait(recorder.container) == 0

    anyio.run(run)


def test_it_ends_at_its_deadline() -> None:
    async def run() -> None:
        async with Engine() as engine:
            recorder_image = await image(engine, "recorder")
            async with open_recorder(
                engine, recorder_image, "test-recorder-deadline", labels=LABELS, deadline_seconds=1
            ) as recorder:
                with anyio.fail_after(10):
                    await recorder.ended.wait()
                assert recorder.reason == "deadline"

    anyio.run(run)


def test_it_is_available_here_and_says_why_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with Engine() as engine:
            recorder_image = await image(engine, "recorder")
            assert await recorder_available(engine, recorder_image, "test-recorder-probe", LABELS) is None
            whole = module.recorder_config

            def without_capability(**options: object) -> dict[str, object]:
                config = whole(**options)  # type: ignore[arg-type]
                return {**config, "HostConfig": {**config["HostConfig"], "CapAdd": []}}

            monkeypatch.setattr(module, "recorder_config", without_capability)
            reason = await recorder_available(engine, recorder_image, "test-recorder-probe", LABELS)
            assert reason is not None and "refuses" in reason and "Operation not permitted" in reason
            assert "\n" not in reason

    anyio.run(run)
