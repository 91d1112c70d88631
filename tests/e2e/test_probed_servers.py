"""Level `safe` in the real sandbox: each faulty server is found by its rule, and its twin stays silent.

Two runs go at a time. What is expected of each mode stands in tests/servers/probed.toml.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docker

HARNESS = Path(sys.executable).with_name("harness")
SERVERS = Path(__file__).parents[1] / "servers"
EXPECTED = tomllib.loads((SERVERS / "probed.toml").read_text())
#: Twins that do nothing but what the server does in any mode: the others stand for them.
LIKE_IT = {
    f"{name}-benign"
    for name in (
        "dies-of-depth", "dies-of-a-batch", "hangs-on-unknown-method", "hangs-on-bad-id", "runs-a-shell",
        "connects-elsewhere", "takes-any-method", "runs-any-tool", "constant-id", "answers-twice", "speaks-up",
        "runs-batches", "runs-null-ids", "ids-become-numbers", "parrots-versions", "two-on-a-line",
        "schema-after-lists", "text-after-calls", "text-in-other-sessions", "tools-vanish", "instructions-by-client",
    )
}  # fmt: skip
CASES = [
    (server, mode)
    for server, modes in EXPECTED.items()
    for mode in dict.fromkeys(twin for name in modes for twin in (name, f"{name.removesuffix('-benign')}-benign"))
    if mode not in LIKE_IT
]
OURS = ("probe.", "drift.")


class Runs:
    """Runs all cases, two at a time, each result waited for by its test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._begun: dict[tuple[str, str], Future[dict[str, Any]]] = {}

    def begin(self, server: str, mode: str) -> Future[dict[str, Any]]:
        if (server, mode) not in self._begun:
            self._begun[server, mode] = self._pool.submit(self._run, server, mode)
        return self._begun[server, mode]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _run(self, server: str, mode: str) -> dict[str, Any]:
        recorder = "auto" if server == "faulty_probes.py" else "none"
        bundle = self._folder / f"{server}-{mode}"
        done = subprocess.run(
            [HARNESS, "run", SERVERS / server, f"--arg={mode}", "--active", "safe", "--recorder", recorder,
             "--network", "none", "--no-stock-client", "--no-progress", "--format", "json", "--bundle", bundle],
            capture_output=True,
            check=False,
            timeout=280,
            env=dict(os.environ),
        )  # fmt: skip
        assert done.stdout, done.stderr.decode()[-2000:]
        return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    started = Runs(tmp_path_factory.mktemp("probed"))
    for item in request.session.items:
        chosen = getattr(item, "callspec", None)
        if item.path == request.path and chosen is not None:
            started.begin(chosen.params["server"], chosen.params["mode"])
    yield started
    started.close()


def test_every_mode_has_its_line() -> None:
    for server, modes in EXPECTED.items():
        listed = subprocess.run(
            [sys.executable, SERVERS / server, "--list"], capture_output=True, text=True, check=True
        )
        tried = {mode for name, mode in CASES if name == server}
        assert tried == set(listed.stdout.split()) - LIKE_IT
        assert len([name for name in modes if not name.endswith("-benign")]) >= 8


@pytest.mark.parametrize(("server", "mode"), CASES, ids=[mode for _, mode in CASES])
def test_the_fault_is_found_and_nothing_else(server: str, mode: str, runs: Runs) -> None:
    result = runs.begin(server, mode).result()
    worst: dict[str, str] = {}
    ranks = ["INFO", "LOW", "MEDIUM", "HIGH", "CRITICAL"]
    for finding in result["findings"]:
        rule, severity = finding["rule_id"], finding["severity"]
        if rule.startswith(OURS) and severity != "INFO":
            worst[rule] = max(worst.get(rule, "INFO"), severity, key=ranks.index)
    assert worst == EXPECTED[server].get(mode, {}), result["findings"]
    if mode.endswith("-benign"):
        rows = {row["name"]: row for row in result["analyzers"]}
        assert (rows["probes"]["status"], rows["behavior.drift"]["status"]) == ("COMPLETED", "COMPLETED")
        subjects = rows["probes"]["coverage"]["subjects"]["probes"]
        assert subjects["analyzed"] == subjects["discovered"] >= 60
