"""Targets that break the launch itself: a word about the target, never an engine failure, never a retry for ever."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docker

SERVER = (Path(__file__).parents[1] / "servers" / "honest_handshake.py").read_text()
ONLY_THIS = "3 times in a row, and can with another program"
NOT_TEXT = "hold what no program can be given"

#: Of an entry in a configuration: what is added to the arguments and the environment, and the reason given.
BROKEN: dict[str, tuple[list[str], dict[str, str], str]] = {
    "one long argument": (["a" * 200_000], {}, ONLY_THIS),
    "many arguments": (["a" * 100_000] * 30, {}, ONLY_THIS),
    "a long variable": ([], {"A": "b" * 200_000}, ONLY_THIS),
    "half a character": (["a\ud800"], {}, NOT_TEXT),
}
ORDINARY: dict[str, tuple[list[str], dict[str, str]]] = {
    "a long argument": (["a" * 100_000], {}),
    "a home of its own": ([], {"HOME": "/nowhere"}),
    "odd text": (["\u202e\U0001f600", ""], {"A": "::error::x", "EMPTY": ""}),
}

Run = Callable[..., subprocess.CompletedProcess[str]]


def vet(
    run_harness: Run, folder: Path, arguments: list[str], environment: dict[str, str]
) -> tuple[int, dict[str, Any]]:
    entry = {"command": "python3", "args": ["-c", SERVER, *arguments], "env": environment}
    (folder / "config.json").write_text(json.dumps({"mcpServers": {"x": entry}}))
    waits = ("--timeout=60", "--start-timeout=10")
    options = ("--active=none", "--no-progress", "--format=json", *waits, "--no-stock-client")
    done = run_harness("run", f"{folder / 'config.json'}#x", *options)
    assert "Traceback" not in done.stderr
    assert "engine" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("case", BROKEN)
def test_a_target_that_breaks_its_launch_is_told_as_such(case: str, run_harness: Run, tmp_path: Path) -> None:
    arguments, environment, reason = BROKEN[case]
    code, result = vet(run_harness, tmp_path, arguments, environment)
    assert (code, result["status"], result["verdict"]) == (3, "PARTIAL", "UNKNOWN")
    assert reason in result["reasons"][0]


@pytest.mark.parametrize("case", ORDINARY)
def test_what_is_only_unusual_starts(case: str, run_harness: Run, tmp_path: Path) -> None:
    code, result = vet(run_harness, tmp_path, *ORDINARY[case])
    assert (code, result["verdict"]) == (0, "SAFE"), result["reasons"]
