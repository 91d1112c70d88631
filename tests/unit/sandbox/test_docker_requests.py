"""What is asked of the engine, and what is sent to the gate: pure functions."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import requests
from docker.errors import APIError, NotFound
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import EngineError, HarnessError
from harness.model.options import Limits
from harness.model.target import InputFile
from harness.sandbox.archive import input_archive
from harness.sandbox.cgroup import MemoryCounters, find_cgroup, read_counters
from harness.sandbox.engine import EngineConflict, EngineNotFound, EngineTimeout, translate
from harness.sandbox.gate import mark_line, parse_ready, seed_bytes
from harness.sandbox.hardening import VolumeMount, gated_config, warden_config


def config(**fields: object) -> dict:  # type: ignore[type-arg]
    given = {
        "image": "sha256:1",
        "argv": ("server", "-x"),
        "workdir": "/home/user/workspace",
        "environment": {"A": "1"},
        "path": "/usr/bin",
        "limits": Limits(memory_bytes=64 << 20, pids=7, cpus=0.5, open_files=99, tmpfs_bytes=1024),
        "mounts": (VolumeMount(volume="v", path="/app", read_only=True),),
        "warden": "w",
        "labels": {"harness.run": "r"},
        "seccomp": "{}",
    }
    return gated_config(**{**given, **fields})  # type: ignore[arg-type]


def test_a_target_gets_nothing_that_it_does_not_need() -> None:
    made = config()
    host = made["HostConfig"]
    assert (made["User"], made["Env"]) == ("65532:65532", ["A=1", "HOME=/home/user", "PATH=/app/bin:/usr/bin"])
    assert (made["Entrypoint"], made["Cmd"]) == (
        ["/usr/local/bin/entry"],
        ["/home/user/workspace", "--", "server", "-x"],
    )
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"], host["IpcMode"]) == (
        "none",
        True,
        ["ALL"],
        "private",
    )
    assert "CapAdd" not in host
    assert "Binds" not in host
    assert host["SecurityOpt"] == ["no-new-privileges:true", "seccomp={}"]
    assert host["Memory"] == host["MemorySwap"] == 64 << 20
    assert (host["PidsLimit"], host["NanoCpus"]) == (7, 500_000_000)
    assert host["PidMode"] == "container:w"
    assert [mount["ReadOnly"] for mount in host["Mounts"]] == [True]
    assert all("exec" in o.split(",") and "nosuid" in o and "nodev" in o for o in host["Tmpfs"].values())
    assert "Runtime" not in host
    assert config(runtime="crun")["HostConfig"]["Runtime"] == "crun"


def test_a_target_may_choose_its_own_path() -> None:
    assert "PATH=/mine" in config(environment={"PATH": "/mine"})["Env"]


def test_a_warden_may_kill_and_nothing_else() -> None:
    host = warden_config(image="i", deadline_seconds=5, labels={}, seccomp="{}")["HostConfig"]
    assert (host["CapDrop"], host["CapAdd"], host["NetworkMode"], host["ReadonlyRootfs"]) == (
        ["ALL"],
        ["KILL"],
        "none",
        True,
    )
    assert "PidMode" not in host


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../b", "", ".", "a\0b"])
def test_nothing_is_planted_outside_home(name: str) -> None:
    with pytest.raises(HarnessError):
        seed_bytes({name: b""})


@given(st.dictionaries(st.from_regex(r"\A[a-z .%\n\u00e9]{1,8}(/[a-z .]{1,8})?\Z"), st.binary(max_size=30)))
def test_every_word_of_the_seed_is_one_word(seed: dict[str, bytes]) -> None:
    try:
        encoded = seed_bytes(seed)
    except HarnessError:
        return
    while encoded:
        line, _, encoded = encoded.partition(b"\n")
        words = line.split(b" ")
        assert (words[0], len(words)) in ((b"DIR", 3), (b"FILE", 4))
        if words[0] == b"FILE":
            encoded = encoded[int(words[2]) :]


@given(st.text())
def test_every_phase_is_one_word(phase: str) -> None:
    line = mark_line(phase.encode("utf-8", "replace").decode(), "0f")
    assert line.count(b"\n") == 1
    assert len(line) < 1100
    assert b"/" not in line


@pytest.mark.parametrize("line", [b"", b"ready", b"ready x", b"hello 5", b"ready -1"])
def test_a_gate_that_says_something_else_is_broken(line: bytes) -> None:
    with pytest.raises(EngineError):
        parse_ready(line)


def test_the_archive_holds_files_folders_and_the_sandbox_user(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 1025)
    long = "deep/" * 60 + "n\u00e4me"
    data = b"".join(
        input_archive(
            [
                InputFile(source=source, destination="a/b.whl"),
                InputFile(source=source, destination=long, mode=0o4755),
            ]
        )
    )
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = {member.name: member for member in tar.getmembers()}
        assert {member.uid for member in members.values()} == {65532}
        assert members["a"].isdir()
        assert (members["a/b.whl"].mode, members[long].mode) == (0o644, 0o755)
        extracted = tar.extractfile(long)
        assert extracted is not None
        assert extracted.read() == b"x" * 1025


@pytest.mark.parametrize("name", ["/abs", "../up", "a/../b", ""])
def test_the_archive_refuses_names_that_leave_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(HarnessError):
        list(input_archive([InputFile(source=tmp_path, destination=name)]))


def test_counters_are_found_with_both_cgroup_versions(tmp_path: Path) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "1").mkdir(parents=True)
    (proc / "2").mkdir()
    (proc / "3").mkdir()
    (proc / "1" / "cgroup").write_text("5:cpu,cpuacct:/docker/c1\n4:memory:/docker/c1\n0::/docker/c1\n")
    (proc / "2" / "cgroup").write_text("0::/system.slice/docker-c2.scope\n")
    (proc / "3" / "cgroup").write_text("0::/user.slice\n")
    one, two = groups / "memory/docker/c1", groups / "system.slice/docker-c2.scope"
    one.mkdir(parents=True)
    two.mkdir(parents=True)
    (one / "memory.max_usage_in_bytes").write_text("123\n")
    (one / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (two / "memory.events").write_text("low 0\nhigh 0\nmax 4\noom 1\noom_kill 1\n")
    (two / "memory.peak").write_text("456\n")
    assert find_cgroup(1, "c1", proc=proc, cgroups=groups) == one
    assert find_cgroup(2, "c2", proc=proc, cgroups=groups) == two
    assert find_cgroup(3, "c3", proc=proc, cgroups=groups) is None
    assert find_cgroup(4, "c4", proc=proc, cgroups=groups) is None
    assert read_counters(one) == MemoryCounters(peak_bytes=123, oom_kills=2)
    assert read_counters(two) == MemoryCounters(peak_bytes=456, oom_kills=1)
    assert read_counters(tmp_path / "gone") == MemoryCounters()
    assert read_counters(one).merged(read_counters(tmp_path / "gone")) == read_counters(one)


def response(status: int) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    return made


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (NotFound("no", response(404), "No such container: x"), EngineNotFound, "No such container: x"),
        (APIError("no", response(409), "in use\nreally"), EngineConflict, "in use really"),
        (APIError("no", response(500), "oops"), EngineError, "refused: oops"),
        (requests.ConnectionError(OSError("x", FileNotFoundError(2, "no"))), EngineError, "no Docker engine answers"),
        (requests.ConnectionError(PermissionError(13, "no")), EngineError, "`docker` group"),
        (ConnectionRefusedError(111, "no"), EngineError, "doctor --fix"),
        (requests.ReadTimeout("slow"), EngineTimeout, "did not answer in time"),
        (requests.ConnectionError("reset"), EngineError, "went away"),
        (requests.exceptions.ChunkedEncodingError("cut"), EngineError, "went away"),
        (ConnectionResetError(104, "reset"), EngineError, "went away"),
    ],
)
def test_every_failure_is_one_line_that_says_what_to_do(error: Exception, kind: type, text: str) -> None:
    made = translate(error, "unix:///x")
    assert type(made) is kind
    assert text in str(made)
    assert "\n" not in str(made)
