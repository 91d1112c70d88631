"""`kill -9` of a whole run in every phase, with a target that ignores the end of its input and has left its session.

Within ten seconds nothing of the target, its containers and the harness' own children runs; what remains on the engine
and on disk is removed by the next run or by `harness clean`; and a living run beside it is never touched. The moments
are drawn from a fixed seed, two a phase; HARNESS_KILLS draws more.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest

pytestmark = [pytest.mark.docker, pytest.mark.alone]

HARNESS = str(Path(sys.executable).with_name("harness"))
SERVERS = Path(__file__).parents[1] / "servers"
LAW_SECONDS = 10
KILLS = int(os.environ.get("HARNESS_KILLS", "2"))

#: Phase -> how long it takes about, and the server and mode that make it last.
PHASES = {
    "fetch": (0.2, "hostile_system.py", "double-fork,ignore-eof"),
    "install": (0.8, "hostile_system.py", "double-fork,ignore-eof"),
    "start": (0.5, "hostile_system.py", "double-fork,ignore-eof"),
    "discover": (0.5, "hostile_system.py", "double-fork,ignore-eof"),
    "stop": (2.5, "hostile_system.py", "double-fork,ignore-eof"),
    "judge": (1.5, "hostile_lists.py", "pattern-bait"),
}
MOMENTS = [
    (phase, number, random.Random(f"{phase}-{number}").random() * span)
    for phase, (span, _, _) in PHASES.items()
    for number in range(KILLS)
]


class Place:
    """A cache, state and temporary folder, and what of the engine belongs to them."""

    def __init__(self, root: Path) -> None:
        self.sandbox = root / "cache" / "sandbox"
        self.temporary = root / "tmp"
        self.temporary.mkdir()
        self.environment = {
            **os.environ,
            "HARNESS_CACHE": str(root / "cache"),
            "HARNESS_STATE": str(root / "state"),
            "TMPDIR": str(self.temporary),
        }
        self.engine = docker.APIClient(version="auto")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [HARNESS, "run", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            start_new_session=True,
        )

    def harness(self, *arguments: str) -> int:
        done = subprocess.run(
            [HARNESS, *arguments], env=self.environment, capture_output=True, check=False, timeout=120
        )
        return done.returncode

    def containers(self, *, running: bool = False) -> set[str]:
        label = f"harness.owner={(self.sandbox / 'owner').read_text().strip()}"
        found = self.engine.containers(all=not running, filters={"label": label})
        return {container["Id"] for container in found}

    def unsealed(self) -> set[str]:
        """Volumes without the record of a finished install."""
        label = f"harness.owner={(self.sandbox / 'owner').read_text().strip()}"
        names = {volume["Name"] for volume in self.engine.volumes(filters={"label": label})["Volumes"] or []}
        return {name for name in names if not list((self.sandbox / "volumes").glob(f"{name}*json"))}

    def held(self) -> set[str]:
        """Names of leases and scratch folders."""
        return {path.stem for folder in ("leases", "scratch") for path in (self.sandbox / folder).iterdir()}


def wait_for(process: subprocess.Popen[str], phase: str) -> None:
    """Read stderr until the phase begins."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(phase):
            return
    pytest.fail(f"the run never came to {phase}")


def processes() -> dict[int, tuple[int, str, bytes]]:
    """Every process of the machine: parent, start time, command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                found[int(folder.name)] = (int(fields[1]), fields[19], (folder / "cmdline").read_bytes())
    return found


def descendants(pid: int) -> set[tuple[int, str]]:
    """Processes below `pid`, each with its start time, which makes it unmistakable."""
    table, below = processes(), {pid}
    while more := {child for child, (parent, _, _) in table.items() if parent in below} - below:
        below |= more
    return {(child, table[child][1]) for child in below - {pid}}


def until(done: Callable[[], bool], seconds: float) -> bool:
    """Whether it came to that within so many seconds."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    where = Place(tmp_path_factory.mktemp("killed"))
    yield where
    assert where.harness("clean", "--cache") == 0
    assert where.containers() == set()
    assert list(where.temporary.iterdir()) == []
    where.engine.close()


@pytest.fixture(scope="module")
def living(place: Place) -> Iterator[tuple[set[str], set[str]]]:
    """A run that is alive all the time: its containers and its lease."""
    target = str(SERVERS / "faulty_lives.py")
    process = place.start(target, "--arg=silent", "--start-timeout=900", "--timeout=1000", "--no-stock-client")
    wait_for(process, "start")
    assert until(lambda: len(place.containers(running=True)) == 4, 30), "warden, target, recorder and gateway"
    mine = place.containers(running=True), place.held()
    yield mine
    assert process.poll() is None
    assert place.containers(running=True) == mine[0]
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr is not None
    process.stderr.close()
    assert place.containers() == set()


@pytest.mark.parametrize(("phase", "number", "delay"), MOMENTS, ids=[f"{phase}-{n}" for phase, n, _ in MOMENTS])
def test_nothing_is_left(
    phase: str, number: int, delay: float, place: Place, living: tuple[set[str], set[str]], tmp_path: Path
) -> None:
    containers, leases = living
    _, server, mode = PHASES[phase]
    marker = f"marker-{secrets.token_hex(8)}"
    copy = tmp_path / "server.py"  # another text is another install
    copy.write_text(f"# {marker}\n" + (SERVERS / server).read_text())
    sent = ("--active=none",) if phase == "stop" else ()  # it takes a minute to be done with messages that it ignores
    process = place.start(str(copy), f"--arg={mode}", f"--arg={marker}", "--call-timeout=20", *sent)
    wait_for(process, phase)
    time.sleep(delay)
    children = descendants(process.pid)
    process.kill()
    process.wait(10)
    assert process.stderr is not None
    process.stderr.close()

    def over() -> bool:
        table = processes()
        alive = {(pid, started) for pid, (_, started, _) in table.items()} & children
        target = [command for _, _, command in table.values() if marker.encode() in command]
        return not alive and not target and place.containers(running=True) == containers

    assert until(over, LAW_SECONDS), [c for _, _, c in processes().values() if marker.encode() in c]
    if number % 2:
        assert place.harness("run", str(SERVERS / "honest_handshake.py"), "--no-progress") == 0
    else:
        assert place.harness("clean") == 0
    assert place.containers() == containers
    assert place.held() == leases
    assert place.unsealed() == set()
    assert list(place.temporary.iterdir()) == []
    assert place.harness("clean") == 0  # and again, with nothing to do
