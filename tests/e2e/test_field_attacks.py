"""Attacks that were seen in the field, run whole: each is found by its rule and at its level, each twin stays silent.

Half of the pairs are marked `field` and left out of `make test`, which has no time for all; `make field` runs them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docker

SERVERS = Path(__file__).parents[1] / "servers"
ATTACKS = SERVERS / "field_attacks.py"
SERIOUS = frozenset({"MEDIUM", "HIGH", "CRITICAL"})
CALLS = ("--active", "tool-calls", "--allow", "*", "--call-budget", "3")
LOOK = ("--active", "none")

#: What each mode must give: rule, severity, level of evidence.
FOUND = {
    "beacon": ("behavior.egress.beacon", "MEDIUM", "DYNAMIC"),
    "third-call": ("behavior.canaries.leaves", "CRITICAL", "DYNAMIC"),
    "real-key": ("behavior.canaries.leaves", "HIGH", "CONFIRMED"),
    "dated": ("behavior.canaries.leaves", "CRITICAL", "CONFIRMED"),
    "dated-call": ("behavior.canaries.leaves", "CRITICAL", "DYNAMIC"),
    "hidden-copy": ("behavior.egress.hidden-recipient", "HIGH", "DYNAMIC"),
    "rug-pull": ("drift.changed", "HIGH", "PROTOCOL"),
    "shadowing": ("phrase.injection", "HIGH", "PROTOCOL"),
    "poisoned-result": ("results.injection", "HIGH", "PROTOCOL"),
    "sampling": ("requests.secret", "HIGH", "PROTOCOL"),
    "phishing": ("requests.secret", "HIGH", "PROTOCOL"),
    "client-config": ("behavior.files.agent-config-write", "HIGH", "DYNAMIC"),
    "tunnel": ("behavior.egress.dns-tunnel", "HIGH", "DYNAMIC"),
    "dead-drop": ("behavior.exec.self-made", "HIGH", "DYNAMIC"),
    "aware": ("behavior.evasion.telltale", "LOW", "HEURISTIC"),
}
#: Not run by `make test`: what these rest on has tests of its own on recordings, or samples that do the same.
LATER = frozenset(
    {"dated-call", "rug-pull", "shadowing", "poisoned-result", "client-config", "tunnel", "dead-drop", "aware"}
)
MODES = [pytest.param(mode, marks=pytest.mark.field) if mode in LATER else mode for mode in FOUND]


def vetted(target: Path, *options: str) -> dict[str, Any]:
    """The result of a recorded run behind a fake internet, and nothing kept it from its end."""
    program = str(Path(sys.executable).with_name("harness"))
    fixed = ("--recorder", "ebpf", "--no-stock-client", "--no-progress", "--format", "json")
    done = subprocess.run(
        [program, "run", str(target), *fixed, *options], capture_output=True, timeout=300, check=False
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    result: dict[str, Any] = json.loads(done.stdout)
    assert (result["status"], result["recording"]["grade"]) == ("COMPLETED", "trusted")
    return result


def attacked(mode: str) -> dict[str, Any]:
    """The same of one mode; the key is given where one is looked for."""
    given = ("--env", "GITHUB_TOKEN={canary}") if mode.startswith("real-key") else ()
    idle = "5" if mode.startswith("beacon") else "0.3"  # on a busy machine a pulse needs many beats to be one
    return vetted(ATTACKS, f"--arg={mode}", *CALLS, "--idle", idle, *given)


def told(result: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(f["rule_id"], f["severity"], f["evidence_level"]) for f in result["findings"]}


def serious(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(f["rule_id"], f["severity"]) for f in result["findings"] if f["severity"] in SERIOUS]


def test_every_mode_is_tried() -> None:
    listed = subprocess.run([sys.executable, ATTACKS, "--list"], capture_output=True, text=True, check=True)
    assert sorted(listed.stdout.split()) == sorted(f"{mode}{twin}" for mode in FOUND for twin in ("", "-benign"))


@pytest.mark.parametrize("mode", MODES)
def test_an_attack_is_found_at_its_level(mode: str) -> None:
    result = attacked(mode)
    assert FOUND[mode] in told(result)
    assert result["exit_code"] == (FOUND[mode][1] in ("HIGH", "CRITICAL"))
    waits = ("behavior.evasion.waits-for-date", "MEDIUM", "DYNAMIC") in told(result)
    assert waits == (mode == "dated")


@pytest.mark.parametrize("mode", MODES)
def test_the_twin_of_an_attack_is_silent(mode: str) -> None:
    result = attacked(f"{mode}-benign")
    assert serious(result) == []
    assert result["verdict"] == "SAFE"
    (drift,) = [entry for entry in result["analyzers"] if entry["name"] == "behavior.drift"]
    assert drift["coverage"]["subjects"]["looks"]["skipped"] == [], "each of them had a life with a later clock"


def test_a_package_that_steals_while_it_is_built_is_found() -> None:
    result = vetted(SERVERS / "steals_at_install", *LOOK)
    assert {("behavior.install.secret-read", "HIGH"), ("behavior.install.connects", "MEDIUM")} == set(serious(result))
    assert result["verdict"] == "UNSAFE"


def test_a_package_that_reads_its_own_while_it_is_built_is_silent() -> None:
    assert serious(vetted(SERVERS / "steals_at_install_benign", *LOOK)) == []
