"""Launches that strace watches: what is recorded, that the target is no freer for it, and that it can't fight back."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from recorder_stage import compiled_target

from harness.model.errors import EngineError
from harness.model.grade import grade_of
from harness.model.options import Limits, RecorderChoice, RunOptions
from harness.model.recording import (
    Event,
    Grade,
    ImageFact,
    MarkEvent,
    Origin,
    ProcessEvent,
    RecorderEndEvent,
    SyscallEvent,
    TransferEvent,
)
from harness.pipeline.fallback import choose_recorder
from harness.sandbox import strace_launch
from harness.sandbox.base import ExitReport, LaunchSpec
from harness.sandbox.containers import kill_container
from harness.sandbox.docker import DockerSandbox, docker_sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.hardening import tracer_config
from harness.sandbox.images import ensure_image
from harness.sandbox.lease import StateDirectory
from harness.sandbox.strace import Tracer

pytestmark = [pytest.mark.anyio, pytest.mark.docker]

SECRET = ".ssh/id_ed25519"
PYTHON = r"""
import ctypes, os, socket, subprocess, sys, threading, time
own = open("/home/user/.ssh/id_ed25519").read()
subprocess.run(["sh", "-c", "exec true 'in a shell'"])
def thread(): open("/tmp/by-thread", "w").write("x" * 3000)
one = threading.Thread(target=thread); one.start(); one.join()
child = os.fork()
if child == 0:
    os.setsid(); os._exit(7)
os.waitpid(child, 0)
print("half", flush=True); sys.stdin.readline()
odd = b"/tmp/a \"quoted\"\n<\xff>, O_RDWR) = 3"
os.close(os.open(odd, os.O_WRONLY | os.O_CREAT)); os.rename(odd, "/tmp/plain"); os.unlink("/tmp/plain")
listening = socket.socket(); listening.bind(("127.0.0.1", 0)); listening.listen()
peer = socket.create_connection(listening.getsockname()); accepted, _ = listening.accept(); peer.send(b"hello")
datagram = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
try: datagram.sendmsg([b"q"], [], 0, ("2001:db8::7", 53))
except OSError: pass
try: socket.socket(40, socket.SOCK_STREAM)
except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
libc.unshare(0x10000000); libc.ptrace(16, 1, 0, 0); os.system("true")
libc.syscall.restype = ctypes.c_long
untraced = libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x00800000 | 17, 0, 0, 0, 0)
if untraced == 0: os._exit(0)
print("untraced", untraced, flush=True)
time.sleep(100)
"""
NODE = r"""
const fs = require("fs"), net = require("net"), child = require("child_process");
child.execFileSync("/bin/echo", ["from node"]);
fs.writeFileSync("/tmp/by-node", "y".repeat(2000));
const socket = net.connect(9, "127.0.0.9");
socket.on("error", () => process.stdout.write("refused\n"));
process.stdin.on("data", () => { fs.unlinkSync("/tmp/by-node"); process.exit(3); });
"""


async def images(engine: Engine, name: str) -> ImageFact:
    return await ensure_image(engine, name, lambda _: None)


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[DockerSandbox]:
    async with (
        Engine() as engine,
        docker_sandbox(engine, "traced", lambda name: images(engine, name), state=StateDirectory(tmp_path)) as sandbox,
    ):
        assert await sandbox.use_strace() is None
        yield sandbox


@pytest.fixture(scope="module")
def program() -> bytes:
    """The static program of recorder_target.c."""

    async def compile_it() -> bytes:
        async with Engine() as engine:
            return await compiled_target(engine)

    return anyio.run(compile_it)


def spec(image: str, *argv: str, **fields: Any) -> LaunchSpec:
    seed = {SECRET: b"not a key\n", **fields.pop("seed", {})}
    return LaunchSpec(image=image, volume=None, argv=argv, workdir="/home/user", seed=seed, record=True, **fields)


@dataclass
class Life:
    """One recorded life of a target."""

    events: list[Event] = field(default_factory=list)
    said: str = ""
    end: RecorderEndEvent | None = None
    report: ExitReport | None = None

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind) and event.by is Origin.TARGET]

    def named(self, call: str) -> list[SyscallEvent]:
        return [event for event in self.of(SyscallEvent) if event.call == call]

    def execs(self) -> list[tuple[str, ...]]:
        return [event.argv for event in self.of(ProcessEvent) if event.what == "exec"]

    def marks(self) -> list[tuple[str, Origin]]:
        return [(event.phase, event.by) for event in self.events if isinstance(event, MarkEvent)]


async def live(sandbox: DockerSandbox, launch: LaunchSpec, *, until: str | None, last: str | None = None) -> Life:
    """Run it; after the line `until` a call's phase begins and a line is sent. Ends at `last`, or at its own end."""
    life = Life()
    with anyio.fail_after(120):
        async with sandbox.launch(launch) as process, anyio.create_task_group() as tasks:
            recording = process.recording
            assert recording is not None

            async def read() -> None:
                async for batch in recording.batches():
                    life.events += batch

            async def hear(word: str | None) -> None:
                while word is None or word not in life.said:
                    try:
                        life.said += (await process.stdout.receive()).decode()
                    except anyio.EndOfStream:
                        return

            tasks.start_soon(read)
            if until is not None:
                await hear(until)
                await process.mark("call:tool:77", "n-call")
                await process.stdin.send(b"go\n")
            await hear(last)
            life.report = await process.stop(0.5)
            await process.mark("stop", "n-stop")
            life.end = await recording.stop()
    return life


def whole(life: Life) -> None:
    assert life.end is not None and life.end.complete, life.end
    assert (life.end.recorder, grade_of(life.end)) == ("strace", Grade.CONTAINED)
    numbers = [event.record for event in life.events]  # type: ignore[union-attr]
    assert numbers == list(range(len(numbers)))


async def test_a_python_program_is_recorded_in_its_phases(sandbox: DockerSandbox) -> None:
    life = await live(sandbox, spec("python313", "python3", "-c", PYTHON), until="half", last="untraced")
    whole(life)
    assert life.end is not None and life.report is not None
    assert life.marks() == [("start", Origin.GATE), ("call:tool:77", Origin.WARDEN), ("stop", Origin.WARDEN)]
    first, second = life.execs()[:2]
    assert first[:2] == ("python3", "-c") and second == ("sh", "-c", "exec true 'in a shell'")
    decoy = next(event for event in life.named("openat") if event.decoy)
    assert (decoy.path, decoy.claimed, decoy.phase) == (f"/home/user/{SECRET}", False, "start")
    ends = [event for event in life.of(ProcessEvent) if event.what == "exit"]
    assert 7 in [event.code for event in ends] and 9 in [event.signal for event in ends]
    made = next(event for event in life.named("openat") if event.path == "/tmp/by-thread")
    assert made.tid != made.pid and made.pid == life.of(ProcessEvent)[0].pid
    wrote = {event.path: event for event in life.of(TransferEvent)}
    assert (wrote["/tmp/by-thread"].written, wrote["/tmp/by-thread"].phase) == (3000, "start")

    renamed = life.named("rename")[0]
    assert renamed.path == '/tmp/a "quoted"\n<\\xff>, O_RDWR) = 3' and "escaped" in renamed.notes
    assert (renamed.path2, renamed.claimed, renamed.phase) == ("/tmp/plain", True, "call:tool:77")
    assert [event.path for event in life.named("unlink")] == ["/tmp/plain"]
    local = life.named("bind")[0].addresses
    connected = [event for event in life.named("connect") if event.result == 0]
    assert local == ("127.0.0.1:0",) and connected[0].remote.startswith("127.0.0.1:")
    assert ("2001:db8::7" in life.named("sendmsg")[0].addresses[0]) and connected[0].claimed
    denied = {event.call: event for event in life.of(SyscallEvent) if event.denied}
    assert {"socket", "unshare", "ptrace", "clone"} <= set(denied)
    assert "AF_VSOCK" in denied["socket"].flags and "CLONE_NEWUSER" in denied["unshare"].flags
    assert "untraced -1" in life.said
    assert "ptrace" in life.end.denied and {"read", "openat", "mmap"} <= set(life.end.calls)


async def test_a_node_program_is_recorded_to_its_end(sandbox: DockerSandbox) -> None:
    launch = spec("node", "node", "-e", NODE, limits=Limits(memory_bytes=2 << 30))
    life = await live(sandbox, launch, until="refused")
    whole(life)
    assert life.report is not None and life.report.code == 3
    assert ("/bin/echo", "from node") in life.execs()
    assert [event.addresses for event in life.named("connect")] == [("127.0.0.9:9",)]
    assert [(event.path, event.phase) for event in life.named("unlink")] == [("/tmp/by-node", "call:tool:77")]
    wrote = {event.path: event for event in life.of(TransferEvent)}
    assert (wrote["/tmp/by-node"].written, wrote["/tmp/by-node"].phase) == (2000, "start")
    assert [event.code for event in life.of(ProcessEvent) if event.what == "exit"][-1] == 3


async def test_a_watched_target_is_who_it_would_be_unwatched(sandbox: DockerSandbox) -> None:
    watched = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    shown: list[dict[str, str]] = []
    for record in (True, False):
        said = ""
        launch = spec("base", "cat", "/proc/self/status").model_copy(update={"record": record})
        async with sandbox.launch(launch) as process:
            with anyio.fail_after(60):
                try:
                    while True:
                        said += (await process.stdout.receive()).decode()
                except anyio.EndOfStream:
                    pass
        shown.append(dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line))
    traced, plain = shown
    assert {name: traced[name] for name in (*watched, "Seccomp_filters")} == {
        name: plain[name] for name in (*watched, "Seccomp_filters")
    }
    assert traced["CapBnd"] == "0000000000000000" and traced["Uid"].split() == ["65532"] * 4
    assert traced["TracerPid"] != "0" and plain["TracerPid"] == "0"


async def test_a_target_that_fights_back_hides_nothing(sandbox: DockerSandbox, program: bytes) -> None:
    launch = spec("base", "/home/user/target", "tamper", "400", seed={"target": program})
    life = await live(sandbox, launch.model_copy(update={"executables": frozenset({"target"})}), until=None)
    whole(life)
    assert ("/bin/true", "after the flood") in life.execs()
    assert [event.addresses for event in life.named("connect")] == [("127.0.0.7:4242",)]
    assert [event.path for event in life.of(SyscallEvent) if event.decoy] == [f"/home/user/{SECRET}"]
    assert life.marks() == [("start", Origin.GATE), ("stop", Origin.WARDEN)]
    assert {(event.args[:2], event.result) for event in life.named("kill")} >= {((1, 9), -1)}
    assert not any(
        event.path and event.path.startswith("/proc/1/fd/") and event.result == 0 for event in life.named("open")
    )


async def test_short_lives_chains_daemons_and_other_machines_calls(sandbox: DockerSandbox, program: bytes) -> None:
    modes = ["spawns 100", "chain 5", "daemon", *(["call32"] if platform.machine() == "x86_64" else [])]
    script = "; ".join(f"/tmp/target {mode}" for mode in modes)
    script = f"cp target /tmp/target; chmod 700 /tmp/target; {script}; true"
    life = await live(sandbox, spec("base", "sh", "-c", script, seed={"target": program}), until=None)
    whole(life)
    assert life.end is not None
    execs = life.execs()
    assert [argv[1] for argv in execs if argv[0] == "/bin/true"] == [f"spawn-{number}" for number in range(100)]
    assert [argv[2] for argv in execs if argv[1:2] == ("chain",)] == ["5", "4", "3", "2", "1", "0"]
    assert [event.path for event in life.named("open") if event.flags[:1] == ("O_WRONLY",)] == ["/tmp/daemon-was-here"]
    if platform.machine() == "x86_64":  # the filter kills a program that makes one
        assert [event.signal for event in life.of(ProcessEvent) if event.signal] == [31]
        assert "getpid" in life.end.compat


async def test_where_ebpf_can_not_be_had_strace_takes_its_place_and_that_is_said(tmp_path: Path) -> None:
    async with Engine() as engine:

        async def without_recorder(name: str) -> ImageFact:
            if name == "recorder":
                raise EngineError("no compiler for the recorder")
            return await images(engine, name)

        async with docker_sandbox(engine, "fallback", without_recorder, state=StateDirectory(tmp_path)) as sandbox:
            with pytest.raises(EngineError, match="with ebpf: no compiler for the recorder"):
                await choose_recorder(sandbox, RunOptions(recorder=RecorderChoice.EBPF))
            chosen = await choose_recorder(sandbox, RunOptions(recorder=RecorderChoice.AUTO))
            assert (chosen.recorder, chosen.grade) == (RecorderChoice.STRACE, Grade.CONTAINED)
            assert "no compiler for the recorder" in chosen.said
            life = await live(sandbox, spec("base", "true"), until=None)
    whole(life)
    assert life.execs() == [("true",)]


async def test_a_tracer_that_may_not_trace_says_so_and_does_not_hang(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_capability(**options: Any) -> dict[str, Any]:
        config = tracer_config(**options)
        return {**config, "HostConfig": {**config["HostConfig"], "CapAdd": []}}

    monkeypatch.setattr(strace_launch, "tracer_config", without_capability)
    problem = await sandbox.use_strace()
    assert problem is not None and "Operation not permitted" in problem


async def test_a_tracer_that_is_killed_leaves_a_record_that_is_not_whole(sandbox: DockerSandbox) -> None:
    async with Engine() as engine, sandbox.launch(spec("base", "sh", "-c", "echo up; read line")) as process:
        recording = process.recording
        assert isinstance(recording, Tracer)
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                async for _ in recording.batches():
                    pass

            tasks.start_soon(read)
            with anyio.fail_after(60):
                assert await process.stdout.receive() == b"up\n"
                await kill_container(engine, recording.name)
                await recording.ended.wait()
                await process.mark("call:tool:77", "n-call")
                await process.stop(0.5)
                end = await recording.stop()
    assert (end.early, end.complete) == (True, False)
    assert end.marks_missing == ("n-call",) and grade_of(end) is Grade.NONE
