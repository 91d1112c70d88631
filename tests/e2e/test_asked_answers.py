"""What a server does with what its client answers: faults there are found, its mended twin is silent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docker

SERVER = Path(__file__).parents[1] / "servers" / "asks.py"
SERIOUS = frozenset({"MEDIUM", "HIGH", "CRITICAL"})


def vetted(mode: str, code: int) -> dict[str, Any]:
    words = ("run", "--no-progress", "--format", "json", "--no-stock-client", f"--arg={mode}", "--arg={workspace}")
    named = ("estimate", "show_page", "read_chapter", "sign_up", "profile")  # and not the one that asks on and on
    level = ("--active", "tool-calls", "--call-budget", "150", *(word for name in named for word in ("--allow", name)))
    program = str(Path(sys.executable).with_name("harness"))
    done = subprocess.run([program, *words, *level, str(SERVER)], capture_output=True, timeout=300, check=False)
    assert done.returncode == code, done.stdout.decode()[-3000:] + done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def told(result: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(f["rule_id"], str(f["location"]["tool"]), str(f["location"]["field"])) for f in result["findings"]}


def test_what_an_answer_brings_about_is_found_and_proven() -> None:
    result = vetted("faulty", 1)
    found = {(f["rule_id"], f["location"]["tool"]): f for f in result["findings"]}
    for rule, tool, place in (
        ("injection.code", "estimate", "sampling-answer/answer"),
        ("injection.command", "show_page", "elicitation-answer/page"),
        ("traversal.read", "read_chapter", "elicitation-answer/file"),
    ):
        proof = found[rule, tool]
        assert (proof["evidence_level"], proof["location"]["field"]) == ("CONFIRMED", place)
    assert "in the answer to sampling of tool estimate" in found["injection.code", "estimate"]["title"]
    ends = found["requests.refusal", "sign_up"]
    assert (ends["severity"], ends["evidence_level"]) == ("MEDIUM", "PROTOCOL")
    sent = found["behavior.canaries.leaves", "profile"]
    assert (sent["severity"], sent["evidence_level"]) == ("HIGH", "DYNAMIC")
    assert found["requests.secret", "profile"]["severity"] == "HIGH"


def test_a_server_that_handles_its_answers_well_is_silent() -> None:
    result = vetted("benign", 0)
    assert [f for f in result["findings"] if f["severity"] in SERIOUS] == []
    assert result["verdict"] == "SAFE", result["reasons"]
