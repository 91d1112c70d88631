"""Ctrl-C in each phase, and an engine that dies under a run: the right exit code, one line, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

pytestmark = [pytest.mark.docker, pytest.mark.alone]

HARNESS = str(Path(sys.executable).with_name("harness"))
SERVERS = Path(__file__).parents[1] / "servers"
HONEST = str(SERVERS / "honest_handshake.py")


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """A cache of the test's own, so that what belongs to its runs can be told apart; volumes are dropped at the end."""
    folder = tmp_path / "cache"
    yield folder
    subprocess.run(
        [HARNESS, "clean", "--cache"],
        env={**os.environ, "HARNESS_CACHE": str(folder)},
        check=False,
        capture_output=True,
    )


def owned(cache: Path, kind: str) -> list[str]:
    """Names of the containers or volumes on the engine that belong to this cache."""
    owner = cache / "sandbox" / "owner"
    if not owner.exists():
        return []
    client = docker.APIClient(version="auto")
    label = {"label": f"harness.owner={owner.read_text().strip()}"}
    try:
        if kind == "containers":
            return [container["Id"] for container in client.containers(all=True, filters=label)]
        return [volume["Name"] for volume in client.volumes(filters=label)["Volumes"] or []]
    finally:
        client.close()


def start(cache: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [HARNESS, "run", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HARNESS_CACHE": str(cache), **environment},
        start_new_session=True,
    )


def wait_for(process: subprocess.Popen[str], phase: str) -> None:
    """Read stderr until the phase begins."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(phase):
            return
    pytest.fail(f"the run never came to {phase}")


#: Phase that stderr names -> a target that stays in it long enough.
STUCK = {
    "fetch": [HONEST],
    "install": [HONEST],
    "start": [str(SERVERS / "faulty_lives.py"), "--arg=silent"],
    "discover": [str(SERVERS / "faulty_lives.py"), "--arg=silent-list"],
    "stop": [HONEST],
    "judge": [HONEST],
}


@pytest.mark.parametrize("phase", STUCK)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_each_phase(phase: str, number: signal.Signals, cache: Path) -> None:
    process = start(cache, *STUCK[phase])
    wait_for(process, phase)
    time.sleep(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    if process.returncode == 0 and phase in ("fetch", "install", "stop", "judge"):
        return  # it was quicker than the signal
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert err.strip().splitlines()[-1] == "harness: interrupted; nothing is left running"
    assert owned(cache, "containers") == []


class Proxy:
    """A Unix socket that forwards to the engine until `cut`: an engine that can die without harming others."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(64)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._engine)
            self._pairs.append((near, far))
            threading.Thread(target=self._forward, args=(near, far), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        open_ends = {near: far, far: near}
        try:
            while open_ends:
                for ready in select.select(list(open_ends), [], [])[0]:
                    data = ready.recv(65536)
                    if data:
                        open_ends[ready].sendall(data)
                    else:
                        open_ends.pop(ready).shutdown(socket.SHUT_WR)
        except (OSError, ValueError, KeyError):
            pass
        near.close()
        far.close()

    def cut(self) -> None:
        """Die: no new connections, all open ones broken."""
        self._server.close()
        self.path.unlink()
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("phase", ["start", "discover"])
def test_an_engine_that_dies_is_exit_4_and_clean_removes_the_rest(phase: str, cache: Path, tmp_path: Path) -> None:
    short = Path("/tmp") / f"h{os.getpid()}-{phase}.sock"  # socket paths have at most 107 characters
    proxy = Proxy(short)
    process = start(cache, *STUCK[phase], DOCKER_HOST=f"unix://{short}")
    wait_for(process, phase)
    time.sleep(1.0)
    proxy.cut()
    out, err = process.communicate(timeout=90)
    assert process.returncode == 4, err
    assert out == ""
    assert "Traceback" not in err
    last = err.strip().splitlines()[-1]
    assert last.startswith("harness: engine: "), err
    environment = {**os.environ, "HARNESS_CACHE": str(cache)}
    assert subprocess.run([HARNESS, "clean"], env=environment, check=False, capture_output=True).returncode == 0
    assert owned(cache, "containers") == []


def test_an_engine_that_is_not_there(cache: Path) -> None:
    process = start(cache, HONEST, DOCKER_HOST="unix:///nowhere/docker.sock")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (4, "")
    assert "no Docker engine answers" in err and "doctor --fix" in err


def test_nothing_is_left_after_an_ordinary_run_but_the_sealed_volume(cache: Path) -> None:
    process = start(cache, HONEST, "--no-progress")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "SAFE" in out and "Traceback" not in err
    assert owned(cache, "containers") == []
    assert len(owned(cache, "volumes")) == 1
    environment = {**os.environ, "HARNESS_CACHE": str(cache)}
    subprocess.run([HARNESS, "clean", "--cache"], env=environment, check=True, capture_output=True)
    assert owned(cache, "volumes") == []
    assert not shutil.rmtree(cache, ignore_errors=True)
