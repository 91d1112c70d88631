"""Real servers, from fetch to report: COMPLETED, with the tools they are known to have, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.registry]

#: Target, further options, number of tools (counted by hand on the versions of November 2026).
SERVERS = [
    ("pypi:mcp-server-time", [], 2),
    ("pypi:mcp-server-git", [], 12),
    ("pypi:mcp-server-fetch", [], 1),
    ("pypi:mcp-server-calculator", [], 1),
    ("pypi:mcp-server-duckdb", ["--arg=--db-path", "--arg={workspace}/figures.duckdb"], 1),
    ("npm:@modelcontextprotocol/server-filesystem", ["--arg={workspace}"], 14),
    ("npm:@modelcontextprotocol/server-everything", [], 13),
    ("npm:@modelcontextprotocol/server-sequential-thinking", [], 1),
    ("npm:@modelcontextprotocol/server-pdf", ["--arg=--stdio"], 9),
    ("npm:@playwright/mcp", [], 25),
    ("npm:mcp-server-code-runner", [], 1),
]

#: Real servers that write plain lines to stdout, where only messages may stand.
TALKATIVE = {"npm:mcp-server-code-runner"}


def harness(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("harness")), *arguments],
        capture_output=True,
        text=True,
        timeout=420,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(("target", "options", "tools"), SERVERS, ids=[row[0] for row in SERVERS])
def test_a_real_server_is_completed_and_replays_to_the_same_bytes(
    target: str, options: list[str], tools: int, tmp_path: Path
) -> None:
    bundle = tmp_path / "run.bundle"
    done = harness("run", target, *options, "--format", "json", "--bundle", str(bundle), "--no-progress")
    assert done.returncode in (0, 1), done.stderr + done.stdout[-2000:]
    result = json.loads(done.stdout)
    assert result["status"] == "COMPLETED"
    assert result["verdict"] == "SAFE", result["findings"]
    assert len(result["surface"]["tools"]) == tools
    assert result["behavior"]["stock_client"]["works"] is True
    protocol = {f["rule_id"] for f in result["findings"] if f["rule_id"].startswith("protocol.")}
    assert protocol == ({"protocol.non-json-output"} if target in TALKATIVE else set()), result["findings"]

    probed = [f["severity"] for f in result["findings"] if f["rule_id"].startswith(("probe.", "drift."))]
    assert probed.count("LOW") <= 3 and set(probed) <= {"INFO", "LOW"}, result["findings"]
    (coverage,) = [row["coverage"]["subjects"] for row in result["analyzers"] if row["name"] == "probes"]
    assert coverage["probes"]["analyzed"] == coverage["probes"]["discovered"] >= 50

    replays = [
        harness("replay", str(bundle), "--format", "json", PYTHONHASHSEED=seed, TZ=zone, LC_ALL=locale)
        for seed, zone, locale in (("1", "UTC", "C"), ("2", "Asia/Kathmandu", "C.UTF-8"))
    ]
    assert replays[0].stdout == replays[1].stdout
    assert json.loads(replays[0].stdout)["findings"] == result["findings"]
    assert {replay.returncode for replay in replays} == {done.returncode}
