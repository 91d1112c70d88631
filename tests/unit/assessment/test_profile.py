"""What was done, as facts: processes, destinations and folders, bounded; and a profile in Docker's format."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.assessment.assemble import summarize
from harness.assessment.destinations import MAX_ROWS
from harness.assessment.paths import FolderSet
from harness.assessment.profile import (
    MAX_DELETED,
    MAX_PROCESSES,
    START_CALLS,
    Behavior,
    Profiler,
    seccomp_profile,
)
from harness.model.flow import FlowEvent, FlowPart
from harness.model.recording import Event, Origin, ProcessEvent, RecorderEndEvent, SyscallEvent, TransferEvent

NODE = "/opt/node/22/bin/node"


def call(name: str, **more: Any) -> SyscallEvent:
    fields = {"phase": "start", "pid": 7, "tid": 7, "call": name, "result": 0, **more}
    return SyscallEvent.model_validate(fields)


def process(what: str, **more: Any) -> ProcessEvent:
    return ProcessEvent.model_validate({"phase": "start", "pid": 7, "tid": 7, "what": what, **more})


def end(**more: Any) -> RecorderEndEvent:
    return RecorderEndEvent.model_validate({"phase": "stop", **more})


def seen(*events: Event) -> Behavior:
    profiler = Profiler()
    for event in events:
        profiler.event(event)
    return profiler.finish()


def test_processes_are_told_with_who_started_them() -> None:
    start = process("exec", path=NODE, argv=("node", "x.js"))
    child = process("exec", path="/usr/bin/git", argv=("git", "log"), pid=20, parent=7, phase="call:log:abc")
    found = seen(start, process("fork", child=20), child, child, end())
    assert [(row["program"], row["started_by"], row["phase"], row["count"]) for row in found.processes] == [
        (NODE, "", "start", 1),
        ("/usr/bin/git", NODE, "call:log", 2),
    ]
    assert found.profile["executables"] == [NODE, "/usr/bin/git"]


def test_files_are_told_by_their_folders_and_deletions_by_name() -> None:
    found = seen(
        call("openat", path="/app/a/x.js", flags=("O_RDONLY",)),
        call("openat", path="/app/a/b/y.js", flags=("O_RDONLY",)),
        call("openat", path="/proc/7/maps", flags=("O_RDONLY",)),
        call("openat", path="/nowhere/z", flags=("O_RDONLY",), result=-2),
        call("openat", path="/tmp/t", flags=("O_WRONLY", "O_CREAT")),
        call("rename", path="/tmp/t", path2="/home/user/workspace/t"),
        TransferEvent(phase="start", pid=7, tid=7, path="/var/w/x", written=3),
        end(),
    )
    assert found.files == {
        "read": ["/app/a/", "/proc/self/"],
        "written": ["/home/user/workspace/", "/tmp/", "/var/w/"],
        "deleted": ["/tmp/t"],
    }


def test_destinations_are_the_kernels_where_there_is_one() -> None:
    found = seen(
        call("connect", addresses=("203.0.113.1:443",), result=-101),
        call("connect", addresses=("203.0.113.1:443",), remote="203.0.113.9:443"),
        call("connect", addresses=("unix:@x",)),
        call("sendto", addresses=("AF_NETLINK",)),
        end(),
    )
    assert [(row["destination"], row["succeeded"]) for row in found.egress] == [
        ("203.0.113.1:443", 0),
        ("203.0.113.9:443", 1),
    ]
    assert found.profile["destinations"] == ["203.0.113.1:443", "203.0.113.9:443"]


def test_gate_warden_and_installation_are_left_out() -> None:
    opened = call("openat", path="/x/y", flags=("O_RDONLY",))
    found = seen(
        opened.model_copy(update={"by": Origin.GATE}),
        opened.model_copy(update={"session": "install"}),
        end(calls=("read",)),
        end(session="install", calls=("mount",)),
    )
    assert found.files["read"] == []
    assert "mount" not in found.profile["seccomp"]["syscalls"][0]["names"]


def test_where_nothing_was_recorded_nothing_is_told() -> None:
    assert seen(call("openat", path="/x/y")) == Behavior()


def test_the_profile_allows_what_was_used_and_what_a_start_needs() -> None:
    made = seccomp_profile(["recvmsg", "syscall-999"])
    names = made["syscalls"][0]["names"]
    assert made["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {"recvmsg", *START_CALLS} == set(names)
    assert names == sorted(names)
    assert made["syscalls"][1] == {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}
    assert len(seccomp_profile(["clone3"])["syscalls"]) == 1


def test_everything_is_bounded() -> None:
    profiler = Profiler()
    for number in range(3000):
        profiler.event(process("exec", path=f"/p{number}", argv=("x" * 9999,) * 99, pid=number))
        profiler.event(call("connect", addresses=(f"203.0.{number // 250}.{number % 250}:1",)))
        profiler.event(call("unlink", path=f"/d/{number}"))
        profiler.event(call("openat", path=f"/r{number % 9}/{number}/x", flags=("O_RDONLY",)))
    profiler.event(end())
    found = profiler.finish()
    assert (len(found.processes), found.processes[-1]) == (MAX_PROCESSES + 1, {"more": 3000 - MAX_PROCESSES})
    assert (len(found.egress), found.egress[-1]) == (MAX_ROWS + 1, {"more": 3000 - MAX_ROWS})
    assert len(found.files["deleted"]) == MAX_DELETED + 1
    assert found.files["read"] == [f"/r{number}/" for number in range(9)]
    assert len(json.dumps(found.model_dump())) < 1 << 20


paths = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=7).map(lambda p: "/" + "/".join(p)))


@given(paths, st.integers(4, 40))
def test_a_folder_set_holds_every_path_and_stays_small(given_paths: list[str], most: int) -> None:
    folders = FolderSet(kept=most)
    for path in given_paths:
        folders.add(path)
        assert len(folders._folders) <= most
    shown = folders.shown(most)
    assert len(shown) <= most
    if most >= 16:
        assert all(any(path.startswith(folder) for folder in shown) for path in given_paths)


def test_the_summary_counts_what_was_lost() -> None:
    summary = summarize([end(lost={"bulk": 3, "vital": 1}), end(session="two", lost={"bulk": 2})])
    assert summary.lost == 6


def test_a_destination_is_told_by_its_flow_and_by_its_program() -> None:
    connect = {"local": "10.0.0.9:40001", "remote": "93.184.215.14:443", "addresses": ("93.184.215.14:443",)}
    flow = FlowEvent(
        phase="discover", flow=1, protocol="tcp", application="https", local="10.0.0.9:40001",
        remote="93.184.215.14:443", sni="api.example.com", sent=120, received=30,
    )  # fmt: skip
    asked = FlowEvent(
        phase="discover", flow=2, protocol="udp", application="dns", local="10.0.0.9:5000", remote="192.168.1.1:53",
        parts=(FlowPart(what="dns-question", text="api.example.com A"),),
    )  # fmt: skip
    found = seen(
        process("exec", path=NODE), asked, call("connect", **connect), call("connect", addresses=("unix:/x",)),
        flow, flow, end(),
    )  # fmt: skip
    assert [(row["destination"], row.get("application", row.get("call")), row["count"]) for row in found.egress] == [
        ("api.example.com", "dns", 1),
        ("api.example.com:443", "https", 2),
        ("unix:/x", "connect", 1),
    ]
    https = found.egress[1]
    assert (https["program"], https["sent"], https["received"]) == (NODE, 240, 60)
    assert (https["address"], https["port"], https["protocol"]) == ("93.184.215.14", 443, "tcp")
    assert found.profile["destinations"] == ["api.example.com", "api.example.com:443", "unix:/x"]
    assert seen(flow).egress[0]["destination"] == "api.example.com:443"
