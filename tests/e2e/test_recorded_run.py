"""A whole run with its system calls recorded: trusted, nothing lost, from the first exec of the install to the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from harness.model.recording import MarkEvent, ProcessEvent, RecorderEndEvent
from harness.pipeline.recorded import BundleRecording
from harness.sandbox.engine import Engine
from harness.sandbox.readiness import BTF

pytestmark = pytest.mark.docker

#: The behaviour analyzers that live on system calls alone.
OF_CALLS = ("exec", "files", "install", "privilege", "evasion", "flood", "network", "annotations")
SERVERS = Path(__file__).parents[1] / "servers"


def run(bundle: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("harness")), "run", "--no-progress", "--format", "json",
         "--bundle", str(bundle), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def ebpf_loads() -> bool:
    """Does this machine have all that the recorder needs? Not asked of the recorder itself, which may be broken."""

    async def facts() -> dict[str, str]:
        async with Engine() as engine:
            return await engine.facts()

    found = anyio.run(facts)
    kernel = tuple(map(int, found["kernel"].split("-")[0].split(".")[:2]))
    hindered = any(word in found["security"] for word in ("rootless", "userns"))
    return kernel >= (5, 12) and BTF.exists() and not hindered and found["default_runtime"] in ("runc", "crun")


def test_a_run_by_default_is_recorded_and_an_honest_server_stays_silent(tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    done = run(bundle, str(SERVERS / "honest_handshake.py"))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    result = json.loads(done.stdout)
    assert (result["status"], result["findings"]) == ("COMPLETED", [])
    recorded = (result["recording"]["recorder"], result["recording"]["grade"])
    if not ebpf_loads():
        assert recorded == ("strace", "contained") and any("eBPF" in note for note in result["notes"])
        pytest.skip("this machine can't load eBPF programs: the rest is about a record that is made with one")
    assert recorded == ("ebpf", "trusted"), "a silent fallback"
    assert result["recording"]["lost"] == 0
    states = {row["name"]: row["status"] for row in result["analyzers"]}
    assert {states[f"behavior.{name}"] for name in OF_CALLS} == {"COMPLETED"}

    events = list(BundleRecording(bundle).events())
    ends = {event.session: event for event in events if isinstance(event, RecorderEndEvent)}
    assert set(ends) == {"install", "main", "stock-client", "second-session"}
    assert all(end.complete for end in ends.values()), ends
    marks = [event for event in events if isinstance(event, MarkEvent) and event.session == "main"]
    assert {mark.phase for mark in marks} >= {"start", "discover", "probe:J01", "stop"}
    programs = [event.path for event in events if isinstance(event, ProcessEvent) and event.what == "exec"]
    assert any(path and "python" in path for path in programs)
    assert "write" in ends["main"].calls and "read" in ends["main"].calls

    again = run(tmp_path / "c", "--recorder", "ebpf", str(SERVERS / "honest_handshake.py"))
    assert again.returncode == 0, "the sealed install brings its record along"


def test_no_recorder_by_choice_is_said_and_is_no_gap(tmp_path: Path) -> None:
    done = run(tmp_path / "b", "--recorder", "none", str(SERVERS / "honest_handshake.py"))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    rows = [row for row in result["analyzers"] if row["name"].removeprefix("behavior.") in OF_CALLS]
    assert len(rows) == len(OF_CALLS) and {(row["status"], row["required"]) for row in rows} == {("SKIPPED", False)}
    assert (result["recording"]["recorder"], result["recording"]["grade"]) == ("none", "none")
