"""Sample servers that behave badly, recorded and judged for real: each fault by its name, each twin silent.

And the reference servers: nothing of MEDIUM or above is found in what they do until they are asked for something.
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
SERIOUS = frozenset({"MEDIUM", "HIGH", "CRITICAL"})

#: What each mode of behaves_badly.py must give at MEDIUM and above, and nothing else.
MODES = {
    "steal-key": {"behavior.files.secret-read"},
    "bashrc": {"behavior.files.persistence"},
    "git-hook": {"behavior.files.persistence"},
    "agent-config": {"behavior.files.agent-config-write"},
    "shell": {"behavior.exec.shell"},
    "fetch": {"behavior.exec.fetch-and-run"},
    "self-made": {"behavior.exec.self-made"},
    "unshare": {"behavior.privilege.namespaces"},
    "telltales": {"behavior.evasion.telltales"},
    "delete": {"behavior.files.deleted"},
    "metadata": {"behavior.egress.metadata"},
    "flood": {"behavior.flood.calls"},
}
#: What gives findings below that only: the mode, the rule, and what its evidence must tell.
SOFT = {"sleep": ("behavior.evasion.long-sleep", {"python3.13: clock_nanosleep: 600 s", "python3.13: poll: 600 s"})}
#: Of these the finding blocks under the default policy.
BLOCKING = {"bashrc", "git-hook", "agent-config", "fetch", "self-made", "delete"}

REFERENCE = [
    ("pypi:mcp-server-time",),
    ("pypi:mcp-server-git",),
    ("pypi:mcp-server-fetch",),
    ("npm:@modelcontextprotocol/server-everything",),
    ("npm:@modelcontextprotocol/server-filesystem", "--arg={workspace}"),
    ("npm:@modelcontextprotocol/server-memory",),
    ("npm:@playwright/mcp",),
]


def judged(target: str, *options: str) -> dict[str, Any]:
    """The result of a recorded run; its record was whole and trusted, and all behaviour analyzers finished."""
    program = str(Path(sys.executable).with_name("harness"))
    fixed = ("--active", "none", "--recorder", "ebpf", "--no-stock-client", "--no-progress", "--format", "json")
    done = subprocess.run([program, "run", target, *fixed, *options], capture_output=True, timeout=300, check=False)
    assert done.returncode in (0, 1, 3), done.stderr.decode()
    result: dict[str, Any] = json.loads(done.stdout)
    assert (result["recording"]["recorder"], result["recording"]["grade"]) == ("ebpf", "trusted")
    return result


def behaviors(result: dict[str, Any]) -> dict[str, str]:
    """The serious findings about behaviour: rule and severity."""
    found = ((f["rule_id"], f["severity"]) for f in result["findings"] if f["rule_id"].startswith("behavior."))
    return {rule: severity for rule, severity in found if severity in SERIOUS}


def whole(result: dict[str, Any]) -> bool:
    """True when every behaviour analyzer completed; what was not asked for (a gateway, a second look) is not meant."""
    states = {a["status"] for a in result["analyzers"] if a["name"].startswith("behavior.") and a["required"]}
    return states == {"COMPLETED"}


def test_every_mode_is_tried() -> None:
    listed = subprocess.run(
        [sys.executable, str(SERVERS / "behaves_badly.py"), "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert sorted(listed) == sorted(f"{mode}{twin}" for mode in (*MODES, *SOFT) for twin in ("", "-benign"))


@pytest.mark.parametrize("mode", MODES)
def test_bad_behaviour_is_called_by_its_name(mode: str) -> None:
    result = judged(str(SERVERS / "behaves_badly.py"), f"--arg={mode}")
    found = behaviors(result)
    assert set(found) - {"behavior.flood.lost"} == MODES[mode]
    if mode in BLOCKING:
        assert result["exit_code"] == 1
    if mode != "flood":  # so many events that some may be lost, which is said
        assert whole(result)
    for finding in result["findings"]:
        if finding["rule_id"] in MODES[mode]:
            assert all(piece["seq"] for piece in finding["evidence"])


@pytest.mark.parametrize("mode", SOFT)
def test_a_soft_signal_is_told_and_its_twin_gives_none(mode: str) -> None:
    rule, told = SOFT[mode]
    result = judged(str(SERVERS / "behaves_badly.py"), f"--arg={mode}")
    (finding,) = [finding for finding in result["findings"] if finding["rule_id"] == rule]
    assert {piece["text"] for piece in finding["evidence"]} == told
    assert (behaviors(result), result["verdict"], whole(result)) == ({}, "SAFE", True)
    twin = judged(str(SERVERS / "behaves_badly.py"), f"--arg={mode}-benign")
    assert [finding for finding in twin["findings"] if finding["rule_id"].startswith("behavior.")] == []


@pytest.mark.parametrize("mode", MODES)
def test_the_twin_is_silent(mode: str) -> None:
    result = judged(str(SERVERS / "behaves_badly.py"), f"--arg={mode}-benign")
    assert behaviors(result) == {}
    assert (result["verdict"], whole(result)) == ("SAFE", True)


def test_an_installation_that_does_more_is_found_and_found_again_from_the_cache() -> None:
    for _ in range(2):
        result = judged(str(SERVERS / "behaves_at_install"))
        assert behaviors(result) == {"behavior.install.persistence": "HIGH"}
        assert result["verdict"] == "UNSAFE"


def test_an_installation_that_only_installs_is_silent() -> None:
    result = judged(str(SERVERS / "behaves_at_install_benign"))
    assert behaviors(result) == {}
    assert (result["verdict"], whole(result)) == ("SAFE", True)


def test_the_profile_names_what_was_used() -> None:
    result = judged(str(SERVERS / "behaves_badly.py"), "--arg=shell")
    programs = {Path(row["program"]).name for row in result["behavior"]["processes"]}
    assert {"dash", "id"} <= programs
    profile = result["behavior"]["profile"]
    assert {Path(path).name for path in profile["executables"]} == programs
    assert "/tmp/" in profile["paths"]["written"]
    allowed = profile["seccomp"]["syscalls"][0]["names"]
    assert "execve" in allowed
    assert not {"mount", "ptrace", "unshare", "bpf"} & set(allowed)


@pytest.mark.registry
@pytest.mark.parametrize("target", REFERENCE, ids=lambda target: target[0])
def test_reference_servers_are_silent(target: tuple[str, ...]) -> None:
    result = judged(*target)
    assert behaviors(result) == {}
    assert (result["verdict"], whole(result)) == ("SAFE", True)
