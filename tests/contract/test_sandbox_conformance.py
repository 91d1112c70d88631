"""What every sandbox provider must do, tried on a real engine."""

from __future__ import annotations

import gc
import hashlib
import os
import threading
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest
from sandbox_providers import (
    IMAGE,
    PROVIDERS,
    docker_provider,
    drop_volumes,
    python,
    read_all,
    run,
    running,
    things_left,
)
from socket_proxy import SocketProxy

from harness.model.errors import EngineError
from harness.model.options import Limits
from harness.model.recording import RecorderEndEvent
from harness.model.target import InputFile, InstallPlan
from harness.sandbox.base import InstalledTarget, InstallFailed, LaunchSpec, Sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.install_record import InstallRecord
from harness.sandbox.lease import StateDirectory
from harness.sandbox.volumes import load_seal, write_seal

pytestmark = [pytest.mark.anyio, pytest.mark.docker]


@pytest.fixture(params=sorted(PROVIDERS))
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Sandbox]:
    return PROVIDERS[request.param](tmp_path / "state")


@pytest.fixture
async def sandbox(provider: AbstractAsyncContextManager[Sandbox], tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with provider as opened:
        yield opened
    await drop_volumes(tmp_path / "state")
    assert await things_left(tmp_path / "state") == {"containers": [], "volumes": []}


ECHO = "import sys,shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
STUBBORN = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
print("up", flush=True)
while True:
    time.sleep(1)
"""


async def test_streams_carry_ten_megabytes_of_any_bytes_both_ways(sandbox: Sandbox) -> None:
    sent = os.urandom(10 << 20)
    outcome = await run(sandbox, python(ECHO), stdin=sent)
    assert hashlib.sha256(outcome.stdout).digest() == hashlib.sha256(sent).digest()
    assert (outcome.stderr, outcome.report.code, outcome.report.ended_by) == (b"", 0, "target")


#: Prints: seconds since 1970, how old a new file seems, whether time outs last as long as they should.
LATER = {
    "python313": ("python3", "-c", """
import os, queue, subprocess, threading, time
def lasted(wait):
    began = time.monotonic()
    wait()
    return 0.05 <= time.monotonic() - began < 5
def get():
    try:
        queue.Queue().get(timeout=0.1)
    except queue.Empty:
        pass
waits = [lambda: time.sleep(0.1), lambda: threading.Event().wait(0.1), get]
open("/tmp/new", "w").close()
print(int(subprocess.run(["date", "+%s"], capture_output=True, check=True).stdout))
print(time.time() - os.stat("/tmp/new").st_mtime, all(map(lasted, waits)), os.listdir("/dev/shm"))
"""),
    "python311": ("python3", "-c", "import time; time.sleep(0.1); print(int(time.time()), True)"),
    "node": ("node", "-e", """
const began = performance.now();
setTimeout(() => console.log(Math.floor(Date.now() / 1000), performance.now() - began < 5000), 100);
"""),
    "base": ("/bin/sh", "-c", "sleep 0.1; date +%s; echo True"),
}  # fmt: skip


@pytest.mark.parametrize("image", sorted(LATER))
async def test_the_clock_can_be_set_ahead_for_programs_and_their_children(sandbox: Sandbox, image: str) -> None:
    spec = LaunchSpec(image=image, volume=None, argv=LATER[image], days_ahead=400)
    outcome = await run(sandbox, spec)
    assert (outcome.report.code, outcome.stderr) == (0, b"")
    now, *rest = outcome.stdout.decode().split()
    assert abs(int(now) - time.time() - 400 * 86400) < 60
    if image == IMAGE:
        assert abs(float(rest[0]) - 400 * 86400) < 60 and rest[1:] == ["True", "[]"], "times of files are the disk's"
    else:
        assert rest[-1] in ("True", "true")


async def test_nothing_of_the_gate_is_on_stdout(sandbox: Sandbox) -> None:
    assert (await run(sandbox, python("print('first')"))).stdout == b"first\n"


async def test_a_flood_on_stderr_holds_nothing_up(sandbox: Sandbox) -> None:
    code = "import sys\nfor _ in range(20000): sys.stderr.write('x'*999+'\\n')\nprint('done')"
    limits = Limits(stderr_bytes=100_000)
    async with sandbox.launch(python(code, limits=limits)) as process:
        with anyio.fail_after(30):
            assert await read_all(process.stdout) == b"done\n"
            assert (await process.wait()).code == 0
            assert len(await read_all(process.stderr)) == 100_000
            assert process.stderr_dropped == 20_000_000 - 100_000  # type: ignore[attr-defined]


async def test_there_is_no_network_and_no_engine_inside(sandbox: Sandbox) -> None:
    code = """
import json, os, socket
out = {"interfaces": sorted(os.listdir("/sys/class/net")), "routes": open("/proc/net/route").read().count("\\n"),
       "engine": os.path.exists("/var/run/docker.sock") or os.path.exists("/run/docker.sock")}
for name, address in (("public", ("192.0.2.1", 80)), ("bridge", ("172.17.0.1", 22)), ("loop", ("127.0.0.1", 9))):
    try: socket.create_connection(address, 2)
    except OSError as error: out[name] = error.errno
print(json.dumps(out))
"""
    found = (await run(sandbox, python(code))).json
    assert [name for name in found["interfaces"] if name not in ("sit0", "tunl0", "ip6tnl0")] == ["lo"]
    assert found["routes"] <= 1
    assert not found["engine"]
    assert found["public"] == found["bridge"] == 101  # ENETUNREACH
    assert found["loop"] == 111  # ECONNREFUSED: loopback works


async def test_privileges_are_gone(sandbox: Sandbox) -> None:
    code = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
out = {key: status[key].strip() for key in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")}
out |= {"ids": os.getresuid() + os.getresgid(), "groups": os.getgroups()}
out["first"] = open("/proc/1/status").read().split("Uid:")[1].split()[0]
for what, action in {
    "root": lambda: open("/x", "w"), "etc": lambda: open("/etc/passwd", "a"), "app": lambda: open("/app/x", "w"),
    "mem": lambda: open("/proc/1/mem", "rb"), "signal": lambda: os.kill(1, 9),
    "mknod": lambda: os.mknod("/tmp/n", 0o020666, os.makedev(1, 1)),
}.items():
    try: action(); out[what] = "done"
    except OSError as error: out[what] = error.errno
print(json.dumps(out))
"""
    found = (await run(sandbox, python(code))).json
    assert {found[key] for key in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
    assert set(found["ids"]) == {65532}
    assert set(found["groups"]) <= {65532}
    assert found["first"] == "0"  # the namespace's first process is not the target's to touch
    assert found["root"] in (13, 30)
    assert found["etc"] in (13, 30)
    assert found["app"] in (13, 30)
    assert (found["mem"], found["signal"]) == (13, 1)
    assert found["mknod"] != "done"


async def test_home_and_tmp_are_writable_and_run_native_code(sandbox: Sandbox) -> None:
    code = """
import os, shutil, subprocess
for folder in (os.environ["HOME"], "/tmp"):
    shutil.copy("/bin/true", folder + "/program")
    print(subprocess.run([folder + "/program"]).returncode, os.getcwd())
"""
    assert (await run(sandbox, python(code))).stdout == b"0 /home/user/workspace\n" * 2


async def test_files_are_planted_with_their_modes(sandbox: Sandbox) -> None:
    seed = {
        "workspace/notes/a b\n%.txt": b"plain\x00\xff",
        ".ssh/id_ed25519": b"secret",
        ".config/app/token": b"t" * 300_000,
        "workspace/empty": b"",
    }
    code = """
import json, os
home = os.environ["HOME"]
print(json.dumps({os.path.relpath(os.path.join(d, n), home): [oct(os.stat(os.path.join(d, n)).st_mode & 0o777),
    os.stat(os.path.join(d, n)).st_size] for d, _, names in os.walk(home) for n in names}
    | {"dirs": {n: oct(os.stat(home + "/" + n).st_mode & 0o777) for n in (".ssh", ".config/app", "workspace")}}))
"""
    found = (await run(sandbox, python(code, seed=seed))).json
    assert found == {
        "workspace/notes/a b\n%.txt": ["0o644", 7],
        ".ssh/id_ed25519": ["0o600", 6],
        ".config/app/token": ["0o600", 300_000],
        "workspace/empty": ["0o644", 0],
        "dirs": {".ssh": "0o700", ".config/app": "0o700", "workspace": "0o755"},
    }


async def test_environment_is_what_was_asked_for(sandbox: Sandbox) -> None:
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    found = (await run(sandbox, python(code, environment={"TOKEN": "a=b c\nd"}))).json
    assert (found["TOKEN"], found["HOME"]) == ("a=b c\nd", "/home/user")
    assert found["PATH"].startswith("/app/bin:")
    assert not [name for name in found if "proxy" in name.lower()]


@pytest.mark.parametrize("code", [0, 1, 42, 125])
async def test_exit_codes_come_through(sandbox: Sandbox, code: int) -> None:
    report = (await run(sandbox, python(f"import os; os._exit({code})"))).report
    assert (report.code, report.signal, report.ended_by, report.oom_killed) == (code, None, "target", False)


async def test_death_by_signal_is_told_as_such(sandbox: Sandbox) -> None:
    report = (await run(sandbox, python("import os; os.kill(os.getpid(), 11)"))).report
    assert (report.code, report.signal, report.ended_by, report.oom_killed) == (None, 11, "target", False)


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/etc/passwd", 126)])
async def test_a_program_that_does_not_start_is_a_result(sandbox: Sandbox, program: str, code: int) -> None:
    outcome = await run(sandbox, LaunchSpec(image="python313", volume=None, argv=(program,)))
    assert (outcome.report.code, outcome.report.ended_by) == (code, "target")
    assert program.rpartition("/")[2].encode() in outcome.stderr


async def test_memory_is_bounded_and_the_kill_is_told(sandbox: Sandbox) -> None:
    limits = Limits(memory_bytes=64 << 20)
    report = (await run(sandbox, python("x = b'x' * (500 << 20)", limits=limits))).report
    assert (report.oom_killed, report.signal, report.ended_by) == (True, 9, "target")


async def test_a_child_killed_for_memory_is_told_too(sandbox: Sandbox) -> None:
    code = """
import subprocess, sys, time
print(subprocess.run([sys.executable, "-c", "x = b'x' * (500 << 20)"]).returncode, flush=True)
"""
    outcome = await run(sandbox, python(code, limits=Limits(memory_bytes=64 << 20)))
    assert (outcome.stdout, outcome.report.code, outcome.report.oom_killed) == (b"-9\n", 0, True)


async def test_a_modest_process_is_no_memory_kill(sandbox: Sandbox) -> None:
    code = "import time; x = b'x' * (20 << 20); time.sleep(1.2)"
    report = (await run(sandbox, python(code, limits=Limits(memory_bytes=64 << 20)))).report
    assert not report.oom_killed
    assert report.memory_peak_bytes is None or (20 << 20) < report.memory_peak_bytes <= 64 << 20


async def test_processes_are_bounded(sandbox: Sandbox) -> None:
    code = """
import os, time
made = 0
try:
    for _ in range(200):
        if os.fork() == 0: time.sleep(60); os._exit(0)
        made += 1
except OSError: pass
print(made, flush=True); os._exit(0)
"""
    outcome = await run(sandbox, python(code, limits=Limits(pids=32)))
    assert 16 < int(outcome.stdout) < 32


async def test_writable_space_is_bounded(sandbox: Sandbox) -> None:
    code = """
import os
for folder in ("/tmp", os.environ["HOME"]):
    try:
        with open(folder + "/big", "wb") as file:
            for _ in range(64): file.write(bytes(1 << 20))
        print("written")
    except OSError as error: print(error.errno)
"""
    outcome = await run(sandbox, python(code, limits=Limits(tmpfs_bytes=8 << 20)))
    assert outcome.stdout == b"28\n" * 2  # ENOSPC


async def test_the_deadline_ends_a_stubborn_target(sandbox: Sandbox) -> None:
    report = (await run(sandbox, python(STUBBORN, deadline_seconds=2))).report
    assert (report.signal, report.ended_by, report.oom_killed) == (9, "deadline", False)


async def test_stop_ends_a_stubborn_target(sandbox: Sandbox) -> None:
    async with sandbox.launch(python(STUBBORN)) as process:
        assert await process.stdout.receive() == b"up\n"
        with anyio.fail_after(20):
            report = await process.stop(0.2)
            assert (report.signal, report.ended_by) == (9, "harness")
            assert await process.stop(0.2) == report == await process.wait()


async def test_stop_lets_a_polite_target_end_by_itself(sandbox: Sandbox) -> None:
    async with sandbox.launch(python("import sys; sys.stdin.read(); print('bye'); sys.exit(3)")) as process:
        report = await process.stop(10)
        assert (report.code, report.ended_by) == (3, "harness")
        assert await read_all(process.stdout) == b"bye\n"


async def test_stop_after_the_end_keeps_who_ended_it(sandbox: Sandbox) -> None:
    async with sandbox.launch(python("raise SystemExit(5)")) as process:
        await process.wait()
        await process.mark("stop", "00ff00ff")  # the warden outlives its target
        report = await process.stop(1)
        assert (report.code, report.ended_by) == (5, "target")


async def test_processes_that_forked_away_die_too(sandbox: Sandbox) -> None:
    code = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(1)
    os._exit(0)
os.wait()
print("forked", flush=True)
sys.stdin.read()
"""
    # The grandchild holds stdout: its end shows that the grandchild is dead.
    async with sandbox.launch(python(code)) as process:
        assert await process.stdout.receive() == b"forked\n"
        with anyio.fail_after(20):
            assert (await process.stop(5)).code == 0
            assert await read_all(process.stdout) == b""


async def test_phases_are_marked_with_any_name(sandbox: Sandbox) -> None:
    async with sandbox.launch(python("import sys; sys.stdin.read()")) as process:
        for phase in ("discover", "call:a tool/with\nodd\x00\u202e name:123", "x" * 5000):
            await process.mark(phase, "0123456789abcdef")


async def test_launches_side_by_side_do_not_meet(sandbox: Sandbox) -> None:
    code = """
import os, sys
open("/tmp/" + sys.stdin.readline().strip(), "w")
print(os.listdir("/tmp"), sys.stdin.read())
"""
    results: dict[str, bytes] = {}

    async def one(name: str) -> None:
        results[name] = (await run(sandbox, python(code), stdin=name.encode() + b"\n")).stdout

    async with anyio.create_task_group() as tasks:
        for name in ("one", "two", "three"):
            tasks.start_soon(one, name)
    assert results == {name: f"['{name}'] \n".encode() for name in ("one", "two", "three")}


async def test_an_error_in_the_body_comes_out_as_it_is_and_nothing_stays(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with sandbox.launch(python(STUBBORN)):
            _ = 1 / 0
    assert (await things_left(tmp_path / "state"))["containers"] == []


async def test_a_target_does_not_outlive_its_warden(sandbox: Sandbox, tmp_path: Path) -> None:
    async with sandbox.launch(python(STUBBORN)) as process:
        assert await process.stdout.receive() == b"up\n"
        (name,) = [name for name in await running(tmp_path / "state") if name.endswith("-warden")]
        async with Engine() as engine:
            await engine.call(engine.api.kill, name)
        with anyio.fail_after(20):
            report = await process.wait()
        assert (report.signal, report.ended_by, report.oom_killed) == (9, "engine", False)
        with pytest.raises(EngineError, match="warden is gone"):
            await process.mark("probe", "aa")


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.05, 0.1, 0.2, 1.0])
async def test_cancelled_at_any_point_nothing_stays(sandbox: Sandbox, tmp_path: Path, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        async with sandbox.launch(python(STUBBORN)) as process:
            await process.wait()
    assert (await things_left(tmp_path / "state"))["containers"] == []


# ---- installing ----


def plan(
    tmp_path: Path, *steps: tuple[str, ...], digest: str = "d", files: dict[str, bytes] | None = None
) -> InstallPlan:
    inputs = []
    for name, content in (files or {}).items():
        source = tmp_path / hashlib.sha256(name.encode()).hexdigest()
        source.write_bytes(content)
        inputs.append(InputFile(source=source, destination=name, mode=0o755 if name.endswith(".sh") else 0o644))
    return InstallPlan(
        image="python313", files=tuple(inputs), steps=steps, environment={"COLOUR": "blue"}, closure_digest=digest
    )


async def test_an_install_is_sealed_and_found_again(sandbox: Sandbox, tmp_path: Path) -> None:
    wanted = plan(
        tmp_path,
        ("sh", "-c", "echo $COLOUR $(id -u) $(pwd) && mkdir -p /app/bin && cp deep/er/hello.sh /app/bin/hello"),
        ("python3", "-c", "import sys; print(len(open('big', 'rb').read()), sys.stdin.read()); open('/app/x', 'w')"),
        files={
            "deep/er/hello.sh": b"#!/bin/sh\necho hello from /app\ntouch /app/y || echo sealed\n",
            "big": bytes(3 << 20),
        },
    )
    made = await sandbox.install(wanted, timeout=60, limits=Limits())
    assert isinstance(made, InstalledTarget), made
    assert not made.cached
    assert [step.output for step in made.steps] == ["blue 65532 /input\n", f"{3 << 20} \n"]
    again = await sandbox.install(wanted, timeout=60, limits=Limits())
    assert isinstance(again, InstalledTarget)
    assert again.cached
    assert (again.volume, again.steps, again.image) == (made.volume, made.steps, made.image)
    async with docker_provider(tmp_path / "state") as other:  # another run of the same user
        third = await other.install(wanted, timeout=60, limits=Limits())
        assert isinstance(third, InstalledTarget)
        assert third.cached
    outcome = await run(sandbox, LaunchSpec(image="python313", volume=made.volume, argv=("hello",)))
    assert outcome.stdout == b"hello from /app\nsealed\n"
    assert (await things_left(tmp_path / "state"))["volumes"] == [made.volume]


async def test_a_failing_step_ends_the_install_and_leaves_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    wanted = plan(tmp_path, ("true",), ("sh", "-c", "echo out; echo err >&2; exit 7"), ("touch", "/app/never"))
    for _ in range(2):  # not cached either
        failed = await sandbox.install(wanted, timeout=60, limits=Limits())
        assert isinstance(failed, InstallFailed)
        assert not failed.timed_out
        assert [step.code for step in failed.steps] == [0, 7]
        assert sorted(failed.steps[1].output.split()) == ["err", "out"]
        assert await things_left(tmp_path / "state") == {"containers": [], "volumes": []}


async def test_an_install_out_of_time_is_a_result_and_leaves_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    wanted = plan(tmp_path, ("true",), ("python3", "-c", STUBBORN))
    failed = await sandbox.install(wanted, timeout=3, limits=Limits())
    assert isinstance(failed, InstallFailed)
    assert failed.timed_out
    assert [step.code for step in failed.steps] == [0, 137]
    assert failed.steps[-1].output == "up\n"
    assert await things_left(tmp_path / "state") == {"containers": [], "volumes": []}


async def test_an_install_has_no_network_and_its_output_is_bounded(sandbox: Sandbox, tmp_path: Path) -> None:
    code = """
import os, socket
print("x" * (5 << 20))
try: socket.create_connection(("192.0.2.1", 80), 2)
except OSError as error: print(error.errno, sorted(set(os.listdir("/sys/class/net")) - {"sit0", "tunl0", "ip6tnl0"}))
"""
    made = await sandbox.install(plan(tmp_path, ("python3", "-c", code)), timeout=60, limits=Limits())
    assert isinstance(made, InstalledTarget)
    assert made.steps[0].output.endswith("101 ['lo']\n")
    assert len(made.steps[0].output) <= 16 << 10


async def test_two_runs_that_install_the_same_install_it_once(sandbox: Sandbox, tmp_path: Path) -> None:
    wanted = plan(tmp_path, ("sh", "-c", "sleep 1; echo made > /app/x"))
    made: list[InstalledTarget | InstallFailed] = []

    async def one(where: Sandbox) -> None:
        made.append(await where.install(wanted, timeout=60, limits=Limits()))

    async with docker_provider(tmp_path / "state") as other, anyio.create_task_group() as tasks:
        tasks.start_soon(one, sandbox)
        tasks.start_soon(one, other)
        tasks.start_soon(one, sandbox)
    found = [m for m in made if isinstance(m, InstalledTarget)]
    assert sorted(m.cached for m in found) == [False, True, True]
    assert len({m.volume for m in found}) == 1


async def test_an_install_whose_record_lost_events_is_made_again_unless_in_use(tmp_path: Path) -> None:
    wanted = plan(tmp_path, ("sh", "-c", "echo made > /app/x"))
    state = tmp_path / "state"

    def lose(volume: str) -> None:
        seal = load_seal(StateDirectory(state), volume)
        assert seal is not None
        end = RecorderEndEvent(phase="install", session="install", lost={"bulk": 3})
        record = InstallRecord(events=(), counted=0, end=end)
        write_seal(StateDirectory(state), seal.model_copy(update={"record": record}))

    async with docker_provider(state) as first:
        made = await first.install(wanted, timeout=60, limits=Limits())
        assert isinstance(made, InstalledTarget)
    lose(made.volume)
    async with docker_provider(state) as second:
        again = await second.install(wanted, timeout=60, limits=Limits())
        assert isinstance(again, InstalledTarget)
        assert (again.volume, again.cached, again.record) == (made.volume, False, None)
        lose(made.volume)
        async with docker_provider(state) as third:
            used = await third.install(wanted, timeout=60, limits=Limits())
            assert isinstance(used, InstalledTarget) and used.record is not None
            assert (used.volume, used.cached, used.record.end.lost) == (made.volume, True, {"bulk": 3})
    await drop_volumes(state)


async def test_a_volume_made_anew_by_somebody_else_is_not_taken_for_the_sealed_one(tmp_path: Path) -> None:
    wanted = plan(tmp_path, ("sh", "-c", "echo made > /app/x"))
    state = tmp_path / "state"
    async with docker_provider(state) as first:
        made = await first.install(wanted, timeout=60, limits=Limits())
        assert isinstance(made, InstalledTarget)
    await drop_volumes(state)
    async with Engine() as engine:
        await engine.call(engine.api.create_volume, made.volume)
    async with docker_provider(state) as second:
        with pytest.raises(EngineError, match="is gone"):
            async with second.launch(LaunchSpec(image="python313", volume=made.volume, argv=("true",))):
                pass
        again = await second.install(wanted, timeout=60, limits=Limits())
        assert isinstance(again, InstalledTarget)
        assert (again.volume, again.cached) == (made.volume, False)
    await drop_volumes(state)


# ---- a broken engine ----


async def test_no_engine_is_an_engine_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no Docker engine answers at unix:///nowhere"):
        async with docker_provider(tmp_path / "state", "unix:///nowhere/docker.sock"):
            pass


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[SocketProxy]:
    # The SDK leaves a socket to the garbage collector each time that it can't connect.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with SocketProxy(tmp_path / "engine.sock", "/var/run/docker.sock") as running:
            yield running
        gc.collect()


async def test_an_engine_that_dies_under_a_run_is_an_engine_error(tmp_path: Path, proxy: SocketProxy) -> None:
    state = tmp_path / "state"
    with anyio.fail_after(60), pytest.raises(EngineError):
        async with docker_provider(state, proxy.host) as sandbox, sandbox.launch(python(STUBBORN)) as process:
            assert await process.stdout.receive() == b"up\n"
            threading.Thread(target=proxy.close).start()
            assert await read_all(process.stdout) == b""
            with pytest.raises(EngineError):
                await process.mark("discover", "aa")
            with pytest.raises(EngineError):
                await process.stop(0.1)
            await process.wait()
    async with docker_provider(state):  # opening reaps what the dead run left
        pass
    assert await things_left(state) == {"containers": [], "volumes": []}


async def test_an_engine_that_dies_under_an_install_is_an_engine_error(tmp_path: Path, proxy: SocketProxy) -> None:
    state = tmp_path / "state"
    wanted = plan(tmp_path, ("sleep", "30"))
    with anyio.fail_after(60), pytest.raises(EngineError):
        async with docker_provider(state, proxy.host) as sandbox:
            threading.Timer(1.5, proxy.close).start()
            await sandbox.install(wanted, timeout=60, limits=Limits())
    async with docker_provider(state):
        pass
    assert await things_left(state) == {"containers": [], "volumes": []}
