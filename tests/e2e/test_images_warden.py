"""The warden in its own container beside real targets: marks, and kills whatever happens."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from harness.sandbox.engine import Engine
from harness.sandbox.images import ensure_image

pytestmark = pytest.mark.docker

STUBBORN = ("sh", "-c", "trap '' TERM HUP INT PIPE; while :; do sleep 1; done")
BOMB = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.001)
"""
SECONDS = 60


@pytest.fixture(scope="module")
def images() -> dict[str, str]:
    async def ensured() -> dict[str, str]:
        async with Engine() as engine:
            return {name: (await ensure_image(engine, name, print)).id for name in ("base", "python311", "warden")}

    return anyio.run(ensured)


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=SECONDS, check=True)
    return done.stdout.strip()


@contextmanager
def target(images: dict[str, str], *command: str) -> Iterator[str]:
    hardened = ["--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=64", "--init"]
    container = docker("run", "--detach", *hardened, images["python311"], *command)
    try:
        yield container
    finally:
        docker("rm", "--force", container)


@contextmanager
def warden(images: dict[str, str], target: str, deadline: int = 300) -> Iterator[subprocess.Popen[bytes]]:
    command = ["docker", "run", "--rm", "-i", "--network=none", "--read-only", "--user=0", f"--pid=container:{target}"]
    command += ["--cap-drop=ALL", "--cap-add=KILL", "--security-opt=no-new-privileges", images["warden"], str(deadline)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    word, _, inode = process.stdout.readline().decode().strip().partition(" ")
    assert word == "ready"
    return inode


def tell(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)


def hear(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().rstrip("\n")


def died(container: str) -> bool:
    return docker("wait", container) == "137"


def test_it_is_in_the_targets_namespace_and_marks(images: dict[str, str]) -> None:
    with target(images, *STUBBORN) as name, warden(images, name) as process:
        inode = ready(process)
        assert docker("exec", name, "readlink", "/proc/self/ns/pid") == f"pid:[{inode}]"
        tell(process, b"MARK discover n1\nMARK call:a%20tool:77 n2\n")
        assert [hear(process), hear(process)] == ["marked n1", "marked n2"]


def test_it_refuses_what_it_does_not_know(images: dict[str, str]) -> None:
    lines = [b"", b"MARK", b"MARK a", b"MARK a/b n", b"MARK a b c", b"MARK a b/c", b"MARK  n", b"KILLALL", b"kill"]
    lines += [b"MARK \xff n", b"MARK a\x00b n", b"MARK a " + b"n" * 65, b"x" * 100_000]
    with target(images, *STUBBORN) as name, warden(images, name) as process:
        ready(process)
        for line in lines:
            tell(process, line + b"\n")
            assert hear(process) == "refused", line
        tell(process, b"MARK a n1\n")
        assert hear(process) == "marked n1"
        assert docker("inspect", "--format={{.State.Running}}", name) == "true"


def test_kill_ends_a_target_that_ignores_signals(images: dict[str, str]) -> None:
    with target(images, *STUBBORN) as name, warden(images, name) as process:
        ready(process)
        tell(process, b"KILL\n")
        assert died(name)
        # Either it could still say so, or the namespace's end took it along.
        assert hear(process) in ("killed", "")


def test_the_end_of_its_stdin_kills(images: dict[str, str]) -> None:
    with target(images, *STUBBORN) as name, warden(images, name) as process:
        ready(process)
        assert process.stdin is not None
        process.stdin.close()
        assert died(name)


def test_the_death_of_whoever_holds_its_stdin_kills(images: dict[str, str]) -> None:
    with target(images, *STUBBORN) as name, warden(images, name) as process:
        ready(process)
        process.kill()
        assert died(name)


def test_the_deadline_kills(images: dict[str, str]) -> None:
    with target(images, *STUBBORN) as name, warden(images, name, 1) as process:
        ready(process)
        assert died(name)
        assert hear(process) in ("deadline", "")


def test_neither_partial_lines_nor_unread_answers_delay_the_deadline(images: dict[str, str]) -> None:
    with target(images, *STUBBORN) as name, warden(images, name, 3) as process:
        with suppress(BrokenPipeError):  # it may be killed while we write
            for _ in range(100):
                tell(process, b"MARK a 0123456789012345678901234567890123456789\n" * 1000)
            tell(process, b"MARK half a li")
        assert died(name)


def test_a_target_that_forks_without_end_dies(images: dict[str, str]) -> None:
    with target(images, "python3", "-c", BOMB) as name, warden(images, name) as process:
        ready(process)
        tell(process, b"KILL\n")
        assert died(name)


def test_the_target_cant_kill_it(images: dict[str, str]) -> None:
    find = 'for p in /proc/[0-9]*; do if [ "$(cat $p/comm)" = monitor ]; then echo ${p#/proc/}; fi; done'
    with target(images, *STUBBORN) as name, warden(images, name) as process:
        ready(process)
        pid = docker("exec", name, "sh", "-c", find)
        assert pid.isdigit()
        for number in ("KILL", "STOP", "TERM"):
            assert docker("exec", name, "sh", "-c", f"kill -{number} {pid} 2>/dev/null || echo refused") == "refused"
        tell(process, b"MARK a still\n")
        assert hear(process) == "marked still"


ORPHANS = """
import os, time
for _ in range(30):
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.01 if _ % 2 else 300)
        os._exit(0)
    os.wait()
print("orphaned", flush=True)
time.sleep(300)
"""


def test_as_first_in_the_namespace_it_reaps_kills_and_lives_on(images: dict[str, str], tmp_path: Path) -> None:
    hardened = ["--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    command = ["docker", "run", "--rm", "-i", f"--cidfile={tmp_path / 'id'}", "--read-only", "--user=0", *hardened]
    command += ["--cap-add=KILL", images["warden"], "300"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe) as process:
        try:
            inode = ready(process)
            pid = f"--pid=container:{(tmp_path / 'id').read_text()}"
            argv = ["docker", "run", "--rm", pid, *hardened, images["python311"], "python3", "-c", ORPHANS]
            with subprocess.Popen(argv, stdout=pipe) as joined:
                assert joined.stdout is not None
                assert joined.stdout.readline() == b"orphaned\n"
                tell(process, b"MARK start n1\n")
                assert hear(process) == "marked n1"
                tell(process, b"KILL\n")
                assert hear(process) == "killed"
                assert joined.wait(SECONDS) == 137
            argv[-3:] = ["sh", "-c", "readlink /proc/self/ns/pid; set -- /proc/[0-9]*/comm; cat $*"]
            left = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=True).stdout.split()
            assert left == [f"pid:[{inode}]", "monitor", "sh"]
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("argument", ["", "0", "-1", "x", "5x", "99999999999"])
def test_a_bad_deadline_is_told(images: dict[str, str], argument: str) -> None:
    command = ["docker", "run", "--rm", "--network=none", images["warden"], argument]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 125
    assert b"usage" in done.stderr


def test_it_refuses_to_run_where_it_has_a_parent(images: dict[str, str], tmp_path: Path) -> None:
    """Started by mistake from a shell, it would kill everything there. Tried in a container's own namespace only."""
    holder = docker("create", images["warden"], "1")
    try:
        docker("cp", f"{holder}:/usr/bin/monitor", str(tmp_path / "monitor"))
    finally:
        docker("rm", holder)
    command = ["sh", "-c", "/tmp/monitor 1; echo $?"]
    container = docker("create", "--network=none", "--cap-drop=ALL", images["base"], *command)
    try:
        docker("cp", str(tmp_path / "monitor"), f"{container}:/tmp/monitor")
        done = subprocess.run(["docker", "start", "-a", container], capture_output=True, timeout=SECONDS, check=False)
    finally:
        docker("rm", "--force", container)
    assert done.stdout == b"125\n"
    assert b"refused" in done.stderr
