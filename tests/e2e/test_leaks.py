"""Servers that leak planted secrets, behind a real gateway: each found and confirmed by a second life, twins silent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docker

LEAKS = Path(__file__).parents[1] / "servers" / "leaks.py"
LEAVES, SHOWN = "behavior.canaries.leaves", "behavior.canaries.disclosed"

#: Mode → rule and severity that must be confirmed, a canary, where it went, and how it was disguised.
MODES = {
    "environment": (LEAVES, "CRITICAL", "environment GITHUB_TOKEN", "collector-service.net", "plain"),
    "labels": (LEAVES, "CRITICAL", "~/.aws/credentials aws-secret", "collector-service.net", "hex"),
    "packed": (LEAVES, "CRITICAL", "~/.ssh/id_ed25519 ssh-key", "collector-service.net", "base64, gzip, plain"),
    "declared": (SHOWN, "HIGH", "environment OPENAI_API_KEY", None, "plain"),
    "raw": (LEAVES, "CRITICAL", "~/.npmrc npm", "93.184.215.14", "xor with one byte"),
}
#: What else is said of them at MEDIUM and above, because it is so.
BESIDE = {
    "labels": {"behavior.egress.dns-tunnel", "behavior.files.account-read"},
    "packed": {"behavior.files.secret-read"},
    "raw": {"behavior.egress.literal-address", "behavior.files.account-read"},
}


def judged(folder: Path, mode: str) -> dict[str, Any]:
    program = str(Path(sys.executable).with_name("harness"))
    fixed = ("--active", "none", "--no-stock-client", "--no-progress", "--format", "json", "--bundle", str(folder))
    argv = (program, "run", str(LEAKS), f"--arg={mode}", "--recorder", "ebpf", "--network", "answer", *fixed)
    done = subprocess.run(argv, capture_output=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def serious(result: dict[str, Any]) -> set[str]:
    return {f["rule_id"] for f in result["findings"] if f["severity"] in ("MEDIUM", "HIGH", "CRITICAL")}


def states(result: dict[str, Any]) -> set[str]:
    return {a["status"] for a in result["analyzers"] if a["name"] in ("behavior.egress", "behavior.canaries")}


def test_every_mode_is_tried() -> None:
    listed = subprocess.run([sys.executable, str(LEAKS), "--list"], capture_output=True, text=True, check=True)
    assert sorted(listed.stdout.split()) == sorted([*MODES, *(f"{mode}-benign" for mode in MODES)])


@pytest.mark.parametrize("mode", MODES)
def test_a_leak_is_found_and_confirmed_with_other_canaries(mode: str, tmp_path: Path) -> None:
    rule, severity, canary, to, way = MODES[mode]
    result = judged(tmp_path / "bundle", mode)
    assert (result["verdict"], states(result)) == ("UNSAFE", {"COMPLETED"})
    assert serious(result) == {rule, *BESIDE.get(mode, ())}
    (found,) = (f for f in result["findings"] if f["rule_id"] == rule and canary in f["confirmation"]["payload"])
    assert (found["severity"], found["evidence_level"]) == (severity, "CONFIRMED")
    assert found["location"]["destination"] == to
    assert f"as {way}" in found["evidence"][0]["text"]
    first, second = found["confirmation"]["nonces"]
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    planted = {c["value"]: c["session"] for c in manifest["canaries"] if c["name"] == canary}
    assert planted == {first: "main", second: "second-look"}
    plan = [json.loads(line) for line in (tmp_path / "bundle" / "plan.jsonl").read_text().splitlines()]
    assert found["id"] in plan[-1]["prediction"]
    again = subprocess.run(
        [str(Path(sys.executable).with_name("harness")), "replay", str(tmp_path / "bundle"), "--format", "json"],
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert json.loads(again.stdout)["findings"] == result["findings"]


@pytest.mark.parametrize("mode", MODES)
def test_the_twin_leaks_nothing(mode: str, tmp_path: Path) -> None:
    result = judged(tmp_path / "bundle", f"{mode}-benign")
    assert (serious(result), result["verdict"], states(result)) == (set(), "SAFE", {"COMPLETED"})
    assert not any(f["rule_id"] in (LEAVES, SHOWN) for f in result["findings"])
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert {c["session"] for c in manifest["canaries"]} == {"main"}  # nothing called for a second life
