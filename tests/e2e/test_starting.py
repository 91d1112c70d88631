"""Servers that do not start as they are, from the command line to the report: what was missing is found and said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docker

SERVERS = Path(__file__).parents[1] / "servers"
Run = Callable[..., "subprocess.CompletedProcess[str]"]

#: Sample, number of tools, and what the report says of the attempt that started it.
SAMPLES = [
    ("needs_variable.py", 1, "planted variables ACME_SITE_URL, ACME_SLACK_BOT_TOKEN"),
    ("needs_flag.py", 1, "arguments --db-path"),
    ("needs_subcommand.py", 1, "subcommand mcp"),
    ("needs_file.py", 1, "planted files ~/.sample-mail/gcp-oauth.keys.json"),
    ("prints_usage.py", 1, "subcommand serve"),
    ("http_by_default.py", 1, "arguments --stdio"),
    ("no_tools_without_key.py", 2, "planted variables ACME_API_KEY"),
    ("writes_beside_itself.py", 1, "a copy of its installation that it can write to"),
]


def run(run_harness: Run, bundle: Path, sample: str, *options: str) -> tuple[int, dict[str, Any]]:
    done = run_harness(
        "run",
        str(SERVERS / sample),
        "--active",
        "none",
        "--format",
        "json",
        "--no-progress",
        "--bundle",
        str(bundle),
        *options,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(("sample", "tools", "said"), SAMPLES, ids=[row[0] for row in SAMPLES])
def test_what_is_missing_is_found_supplied_and_said(
    sample: str, tools: int, said: str, run_harness: Run, tmp_path: Path
) -> None:
    bundle = tmp_path / "run.bundle"
    code, result = run(run_harness, bundle, sample)
    assert (code, result["status"], len(result["surface"]["tools"])) == (0, "COMPLETED", tools), result["reasons"]
    assert result["findings"] == []
    assert result["behavior"]["stock_client"]["works"] is True
    assert any(said in note for note in result["notes"]), result["notes"]

    replay = json.loads(run_harness("replay", str(bundle), "--format", "json").stdout)
    for part in ("status", "verdict", "findings", "surface", "notes", "coverage"):
        assert replay[part] == result[part]


def test_what_the_operator_gives_wins(run_harness: Run, tmp_path: Path) -> None:
    code, result = run(run_harness, tmp_path / "b", "needs_variable.py", "--env", "ACME_SLACK_BOT_TOKEN=wrong-token")
    assert (code, result["status"]) == (3, "PARTIAL")
    assert any("ACME_SLACK_BOT_TOKEN is no bot token" in note for note in result["notes"])
    given = ["--env", "ACME_SLACK_BOT_TOKEN=xoxb-mine-0", "--env", "ACME_SITE_URL=https://mine.site"]
    code, result = run(run_harness, tmp_path / "c", "needs_variable.py", *given)
    assert (code, result["status"]) == (0, "COMPLETED") and not any("attempt" in note for note in result["notes"])


def test_what_can_not_be_supplied_is_the_reason_and_no_finding(run_harness: Run, tmp_path: Path) -> None:
    code, result = run(run_harness, tmp_path / "b", "needs_the_impossible.py")
    assert (code, result["status"]) == (3, "PARTIAL") and result["findings"] == []
    assert "a program that it needs is not in the sandbox (acmectl)" in " ".join(result["reasons"])


def test_an_early_end_comes_with_the_last_words(run_harness: Run, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text("import sys\nsys.exit('it is too late today \\x1b[31m')\n")
    done = run_harness(
        "run", str(server), "--active", "none", "--format", "json", "--no-progress", "--bundle", str(tmp_path / "b")
    )
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["rule_id"] == "protocol.early-exit"
    assert any("it is too late today \\u001B[31m" in evidence["text"] for evidence in finding["evidence"])
