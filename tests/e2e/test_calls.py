"""Whole runs at level `tool-calls`: what is called, what is seen of it, and what hostile tools can't do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.model.call import Call, CallBooksEvent, CallEndEvent, CallEvent, Purpose, WorldEvent
from harness.model.probe import LookEvent
from harness.model.recording import AttemptEvent, Event
from harness.pipeline.recorded import BundleRecording
from harness.probing.digest import Digest

pytestmark = pytest.mark.docker

SERVERS = Path(__file__).parents[1] / "servers"


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("harness")), *arguments],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=dict(os.environ),
    )


def run(bundle: Path, *arguments: str) -> dict[str, Any]:
    done = harness(
        "run", "--no-progress", "--format", "json", "--bundle", str(bundle), "--active", "tool-calls", *arguments
    )
    assert done.returncode in (0, 1, 3), done.stderr
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


def events(bundle: Path) -> list[Event]:
    return list(BundleRecording(bundle).events())


def calls(bundle: Path) -> dict[str, Call]:
    return {event.call.id: event.call for event in events(bundle) if isinstance(event, CallEvent)}


def rules(result: dict[str, Any], family: str) -> set[tuple[str, str]]:
    return {(f["rule_id"], f["location"]["tool"]) for f in result["findings"] if f["rule_id"].startswith(family)}


def test_hostile_tools_cost_their_own_calls_only(tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    result = run(
        bundle, str(SERVERS / "hostile_calls.py"), "--allow", "*", "--call-timeout", "2", "--call-budget", "8",
        "--timeout", "240",
    )  # fmt: skip
    recorded = events(bundle)
    ends = {event.call: event for event in recorded if isinstance(event, CallEndEvent)}
    made = calls(bundle)
    states = {(made[call].item, end.state) for call, end in ends.items()}
    assert {("sleeps", "timeout"), ("crashes", "closed"), ("wipes", "answered"), ("add_note", "answered")} <= states
    assert {state for item, state in states if item == "floods"} <= {"closed", "unreadable", "timeout"}
    assert ("show_note", "answered") in states, "the id that one tool hands out was not given to the other"
    (books,) = [event.books for event in recorded if isinstance(event, CallBooksEvent)]
    reach = {cell.item: (cell.state, cell.detail) for cell in books.cells if cell.payload_class is None}
    assert reach["refuses"] == ("target", "the disk is not mounted")
    assert {item for item, (state, _) in reach.items() if state == "executed"} == {"add_note", "show_note", "wipes"}
    assert sum(isinstance(event, AttemptEvent) for event in recorded) > 5
    payloads = [call for call in made.values() if call.purpose is Purpose.PAYLOAD]
    assert len(payloads) <= 8
    assert {cell.state for cell in books.cells if cell.payload_class} <= {"executed", "operator", "target"}
    assert result["status"] == "PARTIAL"
    assert not [f for f in result["findings"] if f["evidence_level"] == "CONFIRMED"]


def test_the_digest_of_a_replay_is_the_one_that_the_planner_saw(tmp_path: Path) -> None:
    """The same events give the same outcomes, whole, and a replay prints the same result."""
    bundle = tmp_path / "b"
    result = run(bundle, str(SERVERS / "honest_handshake.py"), "--allow", "echo", "--no-stock-client")
    fold = Digest()
    outcomes = [outcome for event in events(bundle) if (outcome := fold.take(event)) is not None]
    assert outcomes
    assert all(outcome.complete for outcome in outcomes)
    assert {call.item for call in calls(bundle).values()} == {"echo"}
    again = json.loads(harness("replay", str(bundle), "--format", "json").stdout)
    assert [finding["id"] for finding in again["findings"]] == [finding["id"] for finding in result["findings"]]
    assert again["coverage"] == result["coverage"]


def test_a_server_that_starts_with_a_planted_place_starts_in_every_life(tmp_path: Path) -> None:
    """Whatever the life is for: the stock client's, and the one with another client and a later clock."""
    wants = "import os, runpy, sys; os.path.isdir('{workspace}/project/.git') or sys.exit('no repository')"
    wants += "; runpy.run_path('{workspace}/honest_handshake.py', run_name='__main__')"
    server = f"{SERVERS / 'honest_handshake.py'}:honest_handshake.py"
    result = run(tmp_path / "b", "--allow", "echo", "--file", server, "--", "python3", "-c", wants)
    assert (result["status"], result["reasons"]) == ("COMPLETED", [])
    assert result["behavior"]["stock_client"]["works"] is True, result["behavior"]["stock_client"]
    looks = {event.look: event.days for event in events(tmp_path / "b") if isinstance(event, LookEvent)}
    assert looks["second-session"] == 400
    worlds = [event.session for event in events(tmp_path / "b") if isinstance(event, WorldEvent)]
    assert {"main", "second-session"} <= set(worlds) and len(set(worlds)) == len(worlds) > 2


def test_a_tool_that_writes_beside_its_code_is_called_where_it_can(tmp_path: Path) -> None:
    result = run(tmp_path / "b", "--allow", "*", str(SERVERS / "writes_beside_itself.py"), "--arg=later")
    assert (result["status"], result["verdict"]) == ("COMPLETED", "SAFE"), result["reasons"]
    texts = {event.text for event in events(tmp_path / "b") if isinstance(event, CallEndEvent)}
    assert any("Read-only file system" in text for text in texts) and any(text.startswith("kept") for text in texts)


def test_an_unknown_name_is_a_usage_error_that_says_what_there_is() -> None:
    done = harness("run", str(SERVERS / "honest_handshake.py"), "--active", "tool-calls", "--allow", "ecko")
    assert done.returncode == 2
    assert "it has: echo, count, upper" in done.stderr


@pytest.mark.registry
def test_a_file_server_that_lets_paths_out_is_seen_to_and_its_fixed_version_stays_silent(tmp_path: Path) -> None:
    package = "npm:@modelcontextprotocol/server-filesystem@"
    given = ("--arg={workspace}", "--allow", "read_file", "--no-stock-client")
    faulty = run(tmp_path / "faulty", f"{package}2025.3.28", *given)
    assert rules(faulty, "traversal.") == {("traversal.read", "read_file"), ("traversal.symlink", "read_file")}
    assert {f["evidence_level"] for f in faulty["findings"] if f["rule_id"].startswith("traversal.")} == {"CONFIRMED"}
    fixed = run(tmp_path / "fixed", f"{package}2025.7.1", *given)
    assert [f["rule_id"] for f in fixed["findings"] if f["severity"] in ("MEDIUM", "HIGH", "CRITICAL")] == []


def test_the_same_seed_makes_the_same_calls(tmp_path: Path) -> None:
    def plan(name: str) -> tuple[list[tuple[str, str, str, str]], list[str]]:
        bundle = tmp_path / name
        result = run(
            bundle, str(SERVERS / "honest_handshake.py"), "--allow", "upper", "--call-budget", "12", "--seed", "3",
            "--no-stock-client",
        )  # fmt: skip
        made = [(call.purpose.value, call.item, call.argument, call.payload) for call in calls(bundle).values()]
        return made, [finding["id"] for finding in result["findings"]]

    assert plan("one") == plan("two")
