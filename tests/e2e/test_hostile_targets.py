"""Hostile targets in the real sandbox: each ends as tests/servers/hostile.toml says, and the machine is as before.

Two runs go at a time. For each: the exit code, status, verdict and rules; peak memory of the harness and of every
process it waited for; the bundle's size; and that nothing but plain text reaches its stdout and stderr.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import unicodedata
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

pytestmark = [pytest.mark.docker, pytest.mark.alone]

BIN = Path(sys.executable).parent
SERVERS = Path(__file__).parents[1] / "servers"
TABLE = tomllib.loads((SERVERS / "hostile.toml").read_text())
RUNS = [TABLE["defaults"] | run for run in TABLE["run"]]
FILES = sorted({run["server"] for run in RUNS})
#: These take one mode at a time.
SINGLE = ("hostile_lists.py", "hostile_text.py")

PEAK_BYTES = 150 << 20
#: 64 MiB of lines in full, as many cut short, then one line of facts for each of twice 200,000 (docs/bundle.md).
BUNDLE_BYTES = 256 << 20
QUICK = ("--active=none", "--call-timeout=3", "--start-timeout=5", "--timeout=60")


def modes_of(server: str) -> list[str]:
    """All modes, as the server names them."""
    listed = subprocess.run([sys.executable, SERVERS / server, "--list"], capture_output=True, text=True, check=True)
    return listed.stdout.split()


@dataclass(frozen=True)
class Ended:
    """What one run left."""

    code: int
    killed: bool
    own: int
    peak: int
    stdout: bytes
    stderr: bytes
    reports: tuple[bytes, ...]
    bundle_bytes: int

    @property
    def result(self) -> dict[str, Any]:
        return json.loads(self.stdout)  # type: ignore[no-any-return]

    @property
    def rules(self) -> set[str]:
        return {finding["rule_id"] for finding in self.result["findings"] if finding["severity"] != "INFO"}


class Range:
    """Runs targets, two at a time, in a cache, state and temporary folder of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {
            **os.environ,
            "HARNESS_CACHE": str(root / "cache"),
            "HARNESS_STATE": str(root / "state"),
            "TMPDIR": str(root / "tmp"),
        }
        (root / "tmp").mkdir()
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._begun: dict[tuple[str, ...], Future[Ended]] = {}

    def begin(self, seconds: float, server: str, modes: str, *options: str) -> Future[Ended]:
        key = (server, modes, *options)
        if key not in self._begun:
            folder = self.root / f"run-{len(self._begun)}"
            folder.mkdir()
            self._begun[key] = self._pool.submit(self._run, folder, seconds, *key)
        return self._begun[key]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        subprocess.run(
            [BIN / "harness", "clean", "--cache"], env=self.environment, check=True, capture_output=True, timeout=120
        )

    def _run(self, folder: Path, seconds: float, server: str, modes: str, *options: str) -> Ended:
        reports = [folder / name for name in ("summary", "table")]
        done = subprocess.run(
            [
                *(sys.executable, "-S", Path(__file__).with_name("measured_run.py"), folder / "took", str(seconds)),
                *(BIN / "harness", "run", SERVERS / server, f"--arg={modes}", *QUICK, *options),
                *("--format=json", "--bundle", folder / "bundle"),
                *("--output-summary", reports[0], "--output-table", reports[1]),
            ],
            env=self.environment,
            capture_output=True,
            check=True,
            cwd=folder,
        )
        took = json.loads((folder / "took").read_text())
        bundle = [path for path in (folder / "bundle").rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in bundle)
        for path in bundle:
            path.unlink()
        texts = tuple(path.read_bytes() for path in reports if path.exists())
        return Ended(took["code"], took["killed"], took["own"], took["peak"], done.stdout, done.stderr, texts, size)


def machine() -> dict[str, set[str]]:
    """What a run could leave: networks, and processes of ours whose parent is gone."""
    client = docker.APIClient(version="auto")
    networks = {network["Id"] for network in client.networks()}
    client.close()
    orphans = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            command = (process / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if parent == 1 and b"harness." in command:
            orphans.add(process.name)
    return {"networks": networks, "orphans": orphans}


@pytest.fixture(scope="module")
def fire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Range]:
    before = machine()
    place = Range(tmp_path_factory.mktemp("hostile"))
    for run in RUNS:
        start(place, run)
    for server in FILES:
        for modes in twins(server):
            place.begin(90, server, modes, "--no-stock-client")
    try:
        yield place
    finally:
        place.close()
    after = machine()
    assert after["networks"] == before["networks"]
    assert after["orphans"] <= before["orphans"]


def start(place: Range, run: dict[str, Any]) -> Future[Ended]:
    options = [*run["options"], *([] if run["stock"] else ["--no-stock-client"])]
    return place.begin(run["seconds"], run["server"], ",".join(run["modes"]), *options)


def twins(server: str) -> list[str]:
    """The arguments that run all twins of a server."""
    names = [mode for mode in modes_of(server) if mode.endswith("-benign")]
    return names if server in SINGLE else [",".join(names)]


def lines(output: bytes) -> list[str]:
    return output.decode("utf-8").split("\n")  # strictly: what we print is always UTF-8


def unprintable(output: bytes) -> set[str]:
    """Characters that act on a terminal, draw nothing or are none."""
    text = output.decode("utf-8").replace("\n", "")
    return {hex(ord(c)) for c in set(text) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")}


def commands(output: bytes) -> list[str]:
    """Lines that a CI system would obey."""
    starts = [line for line in lines(output) if line.lstrip().startswith("::")]
    return starts + [line for line in lines(output) if any(mark in line for mark in ("##[", "##vso[", "##teamcity["))]


def check_outputs(ended: Ended) -> None:
    assert not ended.killed, ended.stderr.decode("utf-8", "replace")
    assert b"Traceback" not in ended.stderr
    assert b"internal error" not in ended.stderr
    assert len(ended.reports) == 2
    for output in (ended.stdout, ended.stderr, *ended.reports):
        assert unprintable(output) == set()
        assert commands(output) == []
    assert ended.stdout.isascii()
    assert ended.result["exit_code"] == ended.code
    for report, verdict in ((ended.reports[0], ended.result["verdict"]), (ended.reports[1], ended.result["verdict"])):
        assert lines(report)[0].startswith(verdict)
        assert sum(line.startswith(("SAFE", "UNSAFE", "UNKNOWN")) for line in lines(report)) == 1
    assert ended.own <= PEAK_BYTES
    assert ended.peak <= PEAK_BYTES
    assert ended.bundle_bytes <= BUNDLE_BYTES


@pytest.mark.parametrize("run", RUNS, ids=["+".join(run["modes"]) for run in RUNS])
def test_a_hostile_target_ends_as_it_must(run: dict[str, Any], fire: Range) -> None:
    ended = start(fire, run).result()
    check_outputs(ended)
    result = ended.result
    verdict = {0: "SAFE", 1: "UNSAFE", 3: "UNKNOWN"}[run["exit"]]
    assert (ended.code, result["status"], result["verdict"]) == (run["exit"], run["status"], verdict), result["reasons"]
    assert {*run["rules"]} <= ended.rules <= {*run["rules"], *run["may"]}


@pytest.mark.parametrize(("server", "modes"), [(server, modes) for server in FILES for modes in twins(server)])
def test_the_twin_is_safe_and_silent(server: str, modes: str, fire: Range) -> None:
    ended = fire.begin(90, server, modes, "--no-stock-client").result()
    check_outputs(ended)
    assert (ended.code, ended.result["status"], ended.result["verdict"]) == (0, "COMPLETED", "SAFE")
    assert {rule for rule in ended.rules if not rule.startswith("behavior.")} == set()
    serious = [f["rule_id"] for f in ended.result["findings"] if f["severity"] not in ("INFO", "LOW")]
    assert serious == []  # that a twin starts a program of its own is a fact, and told as LOW


def test_every_mode_is_expected_and_has_a_twin() -> None:
    expected = {(run["server"], mode) for run in RUNS for mode in run["modes"]}
    written = {(path.name, mode) for path in SERVERS.glob("hostile_*.py") for mode in modes_of(path.name)}
    assert {(server, mode) for server, mode in written if not mode.endswith("-benign")} == expected
    assert {(server, mode) for server, mode in written if mode.endswith("-benign")} == {
        (server, f"{mode}-benign") for server, mode in expected
    }


def test_nothing_is_left_but_the_installed_servers(fire: Range) -> None:
    """Last in this file: when all runs have ended."""
    for future in list(fire._begun.values()):
        future.result()
    client = docker.APIClient(version="auto")
    owner = (fire.root / "cache" / "sandbox" / "owner").read_text().strip()
    label = {"label": f"harness.owner={owner}"}
    try:
        assert client.containers(all=True, filters=label) == []
        assert len(client.volumes(filters=label)["Volumes"] or []) == len(FILES)
    finally:
        client.close()
    assert list((fire.root / "tmp").iterdir()) == []
    for folder in ("leases", "scratch"):
        assert list((fire.root / "cache" / "sandbox" / folder).iterdir()) == []
    assert not (fire.root / "state" / "crashes").exists()
