"""The gate, as compiled and put into the images, in real containers: seeds, starts, and swallows no byte."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

import anyio
import pytest

from harness.sandbox.engine import Engine
from harness.sandbox.images import ensure_image

pytestmark = pytest.mark.docker

HARDENED = ["--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--init"]
HOME_TMPFS = "--tmpfs=/home/user:rw,nosuid,nodev,exec,size=64m,uid=65532,gid=65532,mode=0700"


@pytest.fixture(scope="module")
def base() -> str:
    async def ensured() -> str:
        async with Engine() as engine:
            return (await ensure_image(engine, "base", print)).id

    return anyio.run(ensured)


def gate(
    image: str,
    stdin: bytes,
    *argv: str,
    workdir: str = "/home/user/workspace",
    options: tuple[str, ...] = (),
    copy: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[bytes]:
    command = ["docker", "run", "--rm", "-i", *HARDENED, HOME_TMPFS, *options, image]
    command += ["/usr/local/bin/entry", *copy, workdir, "--", *argv]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)


def after_ready(stdout: bytes) -> bytes:
    first, _, rest = stdout.partition(b"\n")
    word, _, inode = first.partition(b" ")
    assert word == b"ready" and inode.isdigit()
    return rest


def test_the_servers_stdin_arrives_whole(base: str) -> None:
    rest = bytes(range(256)) * 4096 + b"EXEC again\n"
    done = gate(base, b"EXEC n1\n" + rest, "cat")
    assert (done.returncode, done.stderr) == (0, b"")
    assert after_ready(done.stdout) == rest


def test_an_installation_is_copied_as_it_is(base: str, tmp_path: Path) -> None:
    source = tmp_path / "sealed"
    (source / "lib" / "deep").mkdir(parents=True)
    program = source / "lib" / "deep" / "run"
    program.write_bytes(b"#!/bin/sh\necho ran; exit\n" + bytes(200_000))
    program.chmod(0o755)
    os.utime(program, (1_600_000_000, 1_600_000_000))
    (source / "empty").touch()
    (source / "link").symlink_to("lib/deep/run")
    (source / "dangling").symlink_to("/nowhere")
    source.chmod(0o755)
    tmpfs = "--tmpfs=/app:rw,nosuid,nodev,exec,size={},uid=65532,gid=65532,mode=0755"

    def copied(size: str) -> subprocess.CompletedProcess[bytes]:
        options = ("-v", f"{source}:/sealed:ro", tmpfs.format(size))
        shown = "cd /app; readlink link dangling; stat -c '%a %Y %s' lib/deep/run empty; echo more >> empty; ./link"
        return gate(base, b"EXEC n1\n", "sh", "-c", shown, options=options, copy=("--copy", "/sealed", "/app"))

    done = copied("16m")
    assert done.returncode == 0, done.stderr
    lines = after_ready(done.stdout).decode().splitlines()
    assert lines[:3] == ["lib/deep/run", "/nowhere", "755 1600000000 200025"]
    assert lines[3].endswith(" 0") and lines[4] == "ran"
    full = copied("64k")
    assert full.returncode == 125 and full.stdout == b"" and b"entry: copy: write: run" in full.stderr


def test_an_empty_stdin_stays_empty(base: str) -> None:
    assert after_ready(gate(base, b"EXEC n1\n", "cat").stdout) == b""


def test_it_names_the_pid_namespace_that_the_server_lives_in(base: str) -> None:
    done = gate(base, b"EXEC n1\n", "readlink", "/proc/self/ns/pid")
    first, second = done.stdout.decode().splitlines()
    assert second == f"pid:[{first.removeprefix('ready ')}]"


def test_it_seeds_home(base: str) -> None:
    secret = b"a\nb\x00\xff"
    stdin = (
        b"DIR 700 .ssh\n"
        + b"FILE 600 5 .ssh/id\n"
        + secret
        + b"FILE 755 3 with%20space/%c3%a9\n"
        + b"abc"
        + b"FILE 640 0 empty\n"
        + b"LINK ../etc/a%20b link\n"
        + b"FILE 644 1 .ssh/known\n1"
        + b"EXEC n1\n"
    )
    script = "cd; od -An -tx1 .ssh/id; stat -c '%a %F %n' .ssh .ssh/id with*/* empty; readlink link; cat .ssh/known"
    done = gate(base, stdin, "sh", "-c", script)
    assert done.stderr == b""
    assert after_ready(done.stdout).decode().splitlines() == [
        " 61 0a 62 00 ff",
        "700 directory .ssh",
        "600 regular file .ssh/id",
        "755 regular file with space/é",
        "640 regular empty file empty",
        "../etc/a b",
        "1",
    ]


def test_environment_and_workdir(base: str) -> None:
    script = 'pwd; echo "$ONE"; umask; ls -A'
    done = gate(base, b"EXEC n1\n", "sh", "-c", script, workdir="/home/user/a/b", options=("--env=ONE=1 2",))
    assert after_ready(done.stdout) == b"/home/user/a/b\n1 2\n0022\n"


def test_no_descriptor_is_handed_on(base: str) -> None:
    done = gate(base, b"FILE 644 1 x\n1EXEC n1\n", "sh", "-c", "ls /proc/$$/fd")
    assert after_ready(done.stdout).split() == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    "lines",
    [
        b"FILE 644 1 ../f\nx",
        b"FILE 644 1 a/../../f\nx",
        b"FILE 644 1 /tmp/f\nx",
        b"FILE 644 1 %2e%2e/f\nx",
        b"FILE 644 1 %2ftmp/f\nx",
        b"FILE 644 1 a%00b\nx",
        b"FILE 644 1 a%4\nx",
        b"FILE 4755 1 f\nx",
        b"FILE 644 -1 f\n",
        b"FILE 644 99999999999999999999 f\n",
        b"FILE 644 67108865 f\n",
        b"FILE 644 1\n",
        b"FILE 644 1 f extra\nx",
        b"LINK /tmp out\nFILE 644 1 out/f\nx",
        b"LINK /tmp/f out\nFILE 644 1 out\nx",
        b"DIR 700 " + b"a" * 9000 + b"\n",
        b"EXEC a/b\n",
        b"EXEC a b\n",
        b"EXEC " + b"a" * 65 + b"\n",
        b"HELLO\n",
        b"\n",
    ],
)
def test_what_it_refuses_starts_nothing(base: str, lines: bytes) -> None:
    done = gate(base, lines + b"EXEC n1\n", "echo", "started", options=("--tmpfs=/tmp",))
    assert done.returncode == 125, done
    assert after_ready(done.stdout) == b""
    assert done.stderr.startswith(b"entry: ") and done.stderr.count(b"\n") == 1
    assert b"ended" not in done.stderr


@pytest.mark.parametrize("stdin", [b"", b"EXEC", b"EXEC n1", b"FILE 644 5 f\nabc", b"FILE 644 1 f\nx"])
def test_the_end_of_stdin_before_exec_starts_nothing(base: str, stdin: bytes) -> None:
    done = gate(base, stdin, "echo", "started")
    assert done.returncode == 125
    assert after_ready(done.stdout) == b""
    assert b"stdin ended" in done.stderr


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/etc/passwd", 126), ("/etc", 126)])
def test_what_cant_be_started_is_told(base: str, program: str, code: int) -> None:
    done = gate(base, b"EXEC n1\n", program)
    assert done.returncode == code
    assert done.stderr.startswith(f"entry: can't start: {program}: ".encode())


def test_the_heartbeat_is_made_at_exec_and_not_before(base: str, tmp_path: Path) -> None:
    """A filter that kills on access(2) shows when the call is made."""
    call = {"x86_64": "access", "aarch64": "faccessat"}[platform.machine()]
    profile = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": [call], "action": "SCMP_ACT_KILL_PROCESS"}]}
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(profile))
    options = (f"--security-opt=seccomp={path}",)
    seeded = b"FILE 644 1 f\nx"
    assert gate(base, seeded, "true", options=options).returncode == 125
    assert gate(base, seeded + b"EXEC n1\n", "true", options=options).returncode == 128 + 31  # SIGSYS
