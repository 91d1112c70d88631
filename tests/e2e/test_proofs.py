"""From a run to a proof and back: faults are reproduced from the bundle alone, their mended twin is silent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.pipeline.seal import write_seal

pytestmark = pytest.mark.docker

SERVER = Path(__file__).parents[1] / "servers" / "proofs.py"


def harness(*words: str, code: int, **environment: str) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("harness")), *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == code, done.stdout[-3000:] + done.stderr
    return done.stdout


def vet(bundle: Path, mode: str, code: int) -> dict[str, Any]:
    allow = ("--allow", "word_count", "--allow", "archive", "--allow", "run_command")
    words = ("run", "--no-progress", "--format", "json", "--no-stock-client", "--bundle", str(bundle))
    level = ("--active", "tool-calls", *allow, f"--arg={mode}", "--arg={workspace}")
    found: dict[str, Any] = json.loads(harness(*words, *level, str(SERVER), code=code))
    return found


def oracle(result: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The oracle's findings by rule and tool."""
    mine = [finding for finding in result["findings"] if finding["analyzers"] == ["confirmation"]]
    return {(finding["rule_id"], finding["location"]["tool"]): finding for finding in mine}


def test_a_fault_is_proven_reproduced_and_gone_in_the_mended_version(tmp_path: Path) -> None:
    faulty, mended = tmp_path / "faulty", tmp_path / "mended"
    result = vet(faulty, "faulty", 1)
    found = oracle(result)
    proof = found["injection.command", "word_count"]
    assert (proof["evidence_level"], proof["severity"]) == ("CONFIRMED", "CRITICAL")
    assert {"boundary", "call", "syscall", "state", "control", "documented"} <= {e["kind"] for e in proof["evidence"]}
    # From its fourth call on only: seen while others were tried, not in a clean start.
    seen = found["injection.command", "archive"]
    assert seen["evidence_level"] == "DYNAMIC" and "Seen once of 2 times" in seen["description"]
    # What a tool is for is no fault of it, and what is not confirmed is not reproduced.
    assert not [
        f for f in found.values() if f["location"]["tool"] == "run_command" and f["severity"] in ("HIGH", "CRITICAL")
    ]
    assert [f["id"] for f in found.values() if f["evidence_level"] == "CONFIRMED"] == [proof["id"]]
    assert json.loads(harness("replay", str(faulty), "--format", "json", code=1))["findings"] == result["findings"]

    cases = tmp_path / "cases"
    tried = harness(
        "reproduce",
        str(faulty),
        "--format",
        "json",
        "--cases",
        str(cases),
        code=1,
        HARNESS_CACHE=str(tmp_path / "cache"),
    )
    (one,) = json.loads(tried)
    assert (one["finding"], one["outcome"]) == (proof["id"], "reproduced")
    folder = cases / one["case"]
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "advisory.md",
        "case.json",
        "recording",
        "steps.jsonl",
    }
    assert one["nonce"] not in proof["confirmation"]["nonces"]
    case = json.loads((folder / "case.json").read_text())
    assert case["target"]["digest"] == result["target"]["digest"] and case["steps"][0]["effects"]
    advice = (folder / "advisory.md").read_text()
    assert all(word in advice for word in ("CWE-78", "## Impact", "## Steps", "## Evidence", "fresh sandbox"))
    sent = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    assert [message["method"] for message in sent][::2] == ["initialize", "tools/call"]
    assert "not tried" in harness("reproduce", str(faulty), "--finding", seen["id"], "--cases", str(tmp_path), code=4)
    harness("reproduce", str(faulty), "--cases", str(folder / "case.json" / "below"), code=2)

    silent = vet(mended, "benign", 0)
    assert silent["verdict"] == "SAFE", silent["reasons"]
    assert not [f for f in oracle(silent).values() if f["rule_id"] == "injection.command"]
    changed = json.loads(harness("diff", str(faulty), str(mended), "--format", "json", code=0))
    gone = {change["name"] for change in changed["findings"] if change["change"] == "removed"}
    assert f"injection.command {proof['id']}" in gone

    # The same calls against the mended closure: the proof does not hold there.
    for name in ("manifest.json", "closure.json"):
        text = (faulty / name).read_text()
        (faulty / name).write_text(text.replace('"faulty"', '"benign"'))
    write_seal(faulty)
    harness("reproduce", str(faulty), "--finding", proof["id"], "--cases", str(tmp_path / "mended-cases"), code=0)
