"""The targets' seccomp profile on the engine: interpreters work under it, the ways out don't."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import anyio
import pytest

from harness.sandbox.engine import Engine
from harness.sandbox.images import ensure_image
from harness.sandbox.seccomp import profile_json

pytestmark = pytest.mark.docker

EPERM, ENOSYS = 1, 38

#: System call numbers by machine, from the kernel's tables (asm/unistd_64.h and asm-generic/unistd.h).
NUMBERS = {
    "x86_64": {
        "unshare": 272, "setns": 308, "mount": 165, "ptrace": 101, "process_vm_readv": 310, "keyctl": 250,
        "add_key": 248, "request_key": 249, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_submit": 209,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 246, "chroot": 161,
        "fsopen": 430, "open_tree": 428, "move_mount": 429, "pidfd_getfd": 438, "modify_ldt": 154, "pivot_root": 155,
    },
    "aarch64": {
        "unshare": 97, "setns": 268, "mount": 40, "ptrace": 117, "process_vm_readv": 270, "keyctl": 219,
        "add_key": 217, "request_key": 218, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "io_submit": 2,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 104, "chroot": 51,
        "fsopen": 430, "open_tree": 428, "move_mount": 429, "pidfd_getfd": 438, "pivot_root": 41,
    },
}[platform.machine()]  # fmt: skip

CALLS = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
found = {}
for name, number in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0)
    found[name] = ctypes.get_errno() if result == -1 else 0
print(json.dumps(found))
"""

SOCKETS = """
import json, socket
found = {}
for family, kind in ((1, 1), (2, 1), (2, 2), (10, 1), (16, 3), (40, 1), (38, 5), (17, 3), (17, 2), (30, 1), (31, 3)):
    try:
        socket.socket(family, kind, 0).close()
        found[f"{family}/{kind}"] = 0
    except OSError as error:
        found[f"{family}/{kind}"] = error.errno
print(json.dumps(found))
"""

CLONE = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
found = {}
for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0):
    ctypes.set_errno(0)
    pid = libc.syscall(ctypes.c_long(number), flag | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    found[hex(flag)] = ctypes.get_errno() if pid == -1 else 0
ctypes.set_errno(0)
libc.syscall(ctypes.c_long(435), 0, 0)
found["clone3"] = ctypes.get_errno()
print(json.dumps(found))
"""

#: getpid through the 32-bit entry (number 20), and through the x32 table (bit 30 set, number 39).
FOREIGN = """
import ctypes, mmap, os, sys
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code = {"int80": b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3", "x32": b"\\xb8\\x27\\x00\\x00\\x40\\x0f\\x05\\xc3",
        "native": b"\\xb8\\x27\\x00\\x00\\x00\\x0f\\x05\\xc3"}[sys.argv[1]]
page.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print("same" if call() == os.getpid() else "different")
"""

PYTHON = """
import asyncio, concurrent.futures, multiprocessing, socket, sqlite3, subprocess, tempfile, threading
assert subprocess.run(["git", "--version"], capture_output=True).returncode == 0
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert sum(pool.map(abs, range(100))) == 4950
queue = multiprocessing.Queue()
child = multiprocessing.Process(target=queue.put, args=(1,))
child.start()
assert queue.get() == 1
child.join()
async def talk():
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b""
    writer.close()
    server.close()
asyncio.run(talk())
socket.socketpair()
with tempfile.NamedTemporaryFile() as file:
    sqlite3.connect(file.name).execute("create table t (x)")
try:
    socket.getaddrinfo("host.invalid", 80)
except socket.gaierror:
    pass
print("fine")
"""

NODE = """
const { execFileSync } = require('child_process');
const { Worker } = require('worker_threads');
const fs = require('fs'), net = require('net'), os = require('os'), crypto = require('crypto'), zlib = require('zlib');
execFileSync('git', ['--version']);
os.networkInterfaces(); os.cpus(); crypto.randomBytes(16); zlib.gzipSync('x');
fs.writeFileSync('/tmp/x', 'y'); fs.watch('/tmp').close();
new Worker('1', { eval: true }).on('exit', () => {
  const server = net.createServer((c) => c.end('hi')).listen(0, '127.0.0.1', () => {
    net.connect(server.address().port, '127.0.0.1').on('data', (d) => { console.log(`fine`); server.close(); });
  });
});
"""


@pytest.fixture(scope="module")
def images() -> dict[str, str]:
    async def ensured() -> dict[str, str]:
        async with Engine() as engine:
            return {name: (await ensure_image(engine, name, print)).id for name in ("python311", "python313", "node")}

    return anyio.run(ensured)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seccomp") / "profile.json"
    path.write_text(profile_json())
    return path


def run(image: str, profile: Path | str, *argv: str) -> subprocess.CompletedProcess[str]:
    command = ["docker", "run", "--rm", "--network=none", "--read-only", "--cap-drop=ALL", "--init", "--tmpfs=/tmp"]
    command += ["--security-opt=no-new-privileges", "--pids-limit=128", f"--security-opt=seccomp={profile}"]
    return subprocess.run([*command, image, *argv], capture_output=True, text=True, timeout=60, check=False)


def test_calls_that_lead_out_are_denied(images: dict[str, str], profile: Path) -> None:
    done = run(images["python311"], profile, "python3", "-c", CALLS, json.dumps(NUMBERS))
    assert json.loads(done.stdout) == dict.fromkeys(NUMBERS, EPERM), done.stderr


def test_they_are_denied_by_the_profile_and_not_for_want_of_capabilities(images: dict[str, str]) -> None:
    calls = {name: NUMBERS[name] for name in ("unshare", "keyctl", "process_vm_readv", "io_submit", "ptrace")}
    done = run(images["python311"], "unconfined", "python3", "-c", CALLS, json.dumps(calls))
    assert EPERM not in json.loads(done.stdout).values()


def test_only_four_socket_families(images: dict[str, str], profile: Path) -> None:
    found = json.loads(run(images["python311"], profile, "python3", "-c", SOCKETS).stdout)
    fine = {"1/1", "2/1", "2/2", "10/1", "16/3"}
    assert {name for name, error in found.items() if error == 0} == fine
    assert {error for name, error in found.items() if name not in fine} == {EPERM}


def test_clone_makes_no_namespace(images: dict[str, str], profile: Path) -> None:
    found = json.loads(run(images["python311"], profile, "python3", "-c", CLONE).stdout.splitlines()[-1])
    assert found.pop("0x0") == 0
    assert found.pop("clone3") == ENOSYS  # so that libc falls back to clone, whose flags can be looked at
    assert set(found.values()) == {EPERM}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has other call tables")
@pytest.mark.parametrize("entry", ["int80", "x32"])
def test_no_other_call_table(images: dict[str, str], profile: Path, entry: str) -> None:
    assert run(images["python311"], profile, "python3", "-c", FOREIGN, "native").stdout == "same\n"
    assert "same" not in run(images["python311"], profile, "python3", "-c", FOREIGN, entry).stdout


@pytest.mark.parametrize("image", ["python311", "python313"])
def test_python_works(images: dict[str, str], profile: Path, image: str) -> None:
    done = run(images[image], profile, "python3", "-c", PYTHON)
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr


@pytest.mark.parametrize("major", ["20", "22", "24"])
def test_node_works(images: dict[str, str], profile: Path, major: str) -> None:
    done = run(images["node"], profile, f"/opt/node/{major}/bin/node", "-e", NODE)
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr
