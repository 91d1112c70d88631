"""What a real target does, and that all of it is in the record."""

from __future__ import annotations

import platform
import re

import anyio
import pytest
from recorder_stage import DECOY, Stage, compiled_target, staged

from harness.model.recording import Origin
from harness.sandbox.engine import Engine
from harness.sandbox.records_text import unescape

pytestmark = [pytest.mark.docker, pytest.mark.alone]

MODES = ("spawns 200", "daemon", "chain 3", "addresses", "files", "denied", "group", "call32")
ODD = b'/home/user/workspace/made/new\nline "quoted" \\ \xff\xfe'
OPENS = 200_000
FLIPS = 30_000


@pytest.fixture(scope="module")
def target() -> bytes:
    async def compile_it() -> bytes:
        async with Engine() as engine:
            return await compiled_target(engine)

    return anyio.run(compile_it)


def recorded(target: bytes, *argv: str, privileged: bool = False, **seed: bytes) -> tuple[Stage, bytes]:
    async def run() -> tuple[Stage, bytes]:
        async with Engine() as engine:
            files = {DECOY: b"not a key", **seed}
            async with staged(engine, argv, target=target, seed=files, privileged=privileged) as stage:
                output = await stage.output()
                await stage.finish()
                return stage, output

    return anyio.run(run)


@pytest.fixture(scope="module")
def whole(target: bytes) -> tuple[Stage, bytes]:
    """One run that does most of what can be done."""
    script = "".join(f"/tmp/target {mode}; " for mode in MODES)
    return recorded(target, "sh", "-c", f"{script} true")


@pytest.fixture(scope="module")
def stage(whole: tuple[Stage, bytes]) -> Stage:
    return whole[0]


def test_the_recorder_says_that_nothing_is_missing(stage: Stage) -> None:
    end = stage.end
    assert end is not None and end.complete, end
    assert (end.recorder, end.reason, end.lost, end.marks_missing) == ("ebpf", "stopped", {}, ())
    assert end.matched == end.received == sum(1 for event in stage.events if getattr(event, "record", -1) >= 0)
    numbers = [event.record for event in stage.events if event.record >= 0]  # type: ignore[union-attr]
    assert numbers == list(range(len(numbers)))
    assert {"execve", "openat", "mmap", "exit_group", "connect"} <= set(end.calls)


def test_marks_are_in_the_trace_and_phases_follow_them(stage: Stage) -> None:
    assert [(mark.by, mark.phase, mark.nonce) for mark in stage.marks] == [
        (Origin.WARDEN, "start", "n-start"),
        (Origin.GATE, "start", "n-gate"),
        (Origin.WARDEN, "stop", "n-end"),
    ]
    assert {event.phase for event in stage.calls} == {"start"}
    (forged,) = [event for event in stage.named("access", "faccessat") if event.path == "/.mark/discover/forged"]
    assert forged.by is Origin.TARGET


def test_what_gate_and_warden_do_is_theirs(stage: Stage) -> None:
    planted = [event for event in stage.events if getattr(event, "decoy", False) and event.by is Origin.GATE]  # type: ignore[union-attr]
    assert f"/home/user/{DECOY}" in {event.path for event in planted}  # type: ignore[union-attr]
    assert stage.processes("exec")[0].argv[0] == "sh"


def test_every_short_lived_spawn_is_there(stage: Stage) -> None:
    spawned = [event for event in stage.processes("exec") if event.requested == "/bin/true"]
    assert [event.argv for event in spawned] == [("/bin/true", f"spawn-{number}") for number in range(200)]
    assert {event.path for event in spawned} == {"/usr/bin/true"}
    pids = {event.pid for event in spawned}
    assert len(pids) == 200
    assert pids <= {event.child for event in stage.processes("fork")}
    assert {event.pid: event.code for event in stage.processes("exit") if event.pid in pids} == dict.fromkeys(pids, 0)


def test_a_daemon_is_followed(stage: Stage) -> None:
    (made,) = [event for event in stage.calls if event.path == "/tmp/daemon-was-here"]
    parents = {event.child: event.pid for event in stage.processes("fork")}
    (daemon,) = [event for event in stage.processes("exec") if event.argv[1:] == ("daemon",)]
    assert made.parent == 1
    assert parents[parents[made.pid]] == daemon.pid
    assert [event.code for event in stage.processes("exit") if event.pid == made.pid] == [7]


def test_an_exec_chain_is_whole_and_values_of_the_environment_are_not_kept(stage: Stage) -> None:
    (first,) = [event for event in stage.processes("exec") if event.argv[1:] == ("chain", "3")]
    chain = [event for event in stage.processes("exec") if event.pid == first.pid][-4:]
    assert [event.argv[2] for event in chain] == ["3", "2", "1", "0"]
    assert {event.argv[3] for event in chain[1:]} == {"an argument with\nnewline"}
    assert {event.environment for event in chain[1:]} == {("SECRET_TOKEN", "PLAIN")}
    assert not any("do not tell" in event.model_dump_json() for event in stage.events)


def test_addresses_are_the_kernels(whole: tuple[Stage, bytes]) -> None:
    stage, output = whole
    port = int(re.search(rb"port (\d+)", output)[1])  # type: ignore[index]
    calls = stage.mode("addresses")
    sent = [address for event in calls if event.call.startswith("send") for address in event.addresses]
    assert sorted(sent) == ["127.0.0.7:4242"] * 3 + ["127.0.0.7:4244"]
    assert {event.flags[0] for event in calls if event.call == "socket"} == {"AF_INET", "AF_INET6", "AF_UNIX"}
    connects = [event for event in calls if event.call == "connect"]
    assert [(event.remote, event.result) for event in connects] == [
        ("[::1]:4343", 0),
        ("", -111),
        ("unix:@hidden", 0),
        (f"127.0.0.1:{port}", 0),
    ]
    assert connects[1].addresses == ("127.0.0.7:4242",)
    assert re.fullmatch(r"127\.0\.0\.1:\d+", connects[3].local)
    assert [event.local for event in calls if event.call == "bind"] == ["unix:@hidden", f"127.0.0.1:{port}"]
    (caller,) = [event for event in stage.transfers if event.remote == f"127.0.0.1:{port}"]
    assert (caller.local, caller.written, caller.read) == (connects[3].local, 1000, 7)
    pid = connects[0].pid
    assert sorted((e.read, e.written) for e in stage.transfers if e.pid == pid) == [
        (0, 4),
        (0, 6),
        (0, 20),
        (7, 1000),
        (1000, 7),
    ]


def test_what_a_process_tells_itself_by_a_nameless_pair_is_counted_only(stage: Stage) -> None:
    sends = [(event.remote, event.result) for event in stage.mode("addresses") if event.call == "sendto"]
    assert ("unix:@hidden", 4) in sends
    assert [result for remote, result in sends if remote == "" and result in (3, -32)] == [-32]


def test_files_are_told_by_the_kernels_path(stage: Stage) -> None:
    calls = stage.mode("files")
    made = next(event for event in calls if "O_EXCL" in event.flags)
    assert made.path is not None and "escaped" in made.notes and not made.claimed
    assert unescape(made.path) == ODD
    assert [event.call for event in calls if event.path == made.path and not event.claimed][1:] == [
        "fchmod",
        "open",
        "mmap",
    ]
    followed = [event.path for event in calls if event.call == "open" and event.result is not None and event.result > 0]
    assert "/etc/passwd" in followed
    deleted = [event for event in calls if "deleted" in event.notes]
    assert [event.path for event in deleted] == ["/home/user/workspace/made/gone"]
    claimed = {event.call: event.path for event in calls if event.claimed}
    assert claimed["mkdir"] == "/home/user/workspace/made"
    assert claimed["unlinkat"] == "/home/user/workspace/made/renamed"
    assert claimed["rmdir"] == "/home/user/workspace/nothing"
    assert claimed["stat"] == "/.dockerenv"
    (renamed,) = [event for event in calls if event.call == "rename"]
    assert renamed.path2 == "/home/user/workspace/made/renamed"
    (link,) = [event for event in calls if event.call == "symlink"]
    assert (link.path, link.path2) == ("/etc/passwd", "/home/user/workspace/made/link")
    assert [event.written for event in stage.transfers if event.path == made.path] == [10]


def test_what_a_filter_denies_is_there(stage: Stage) -> None:
    denied = {event.call: event for event in stage.mode("denied") if event.denied}
    assert set(denied) == {"unshare", "io_uring_setup", "socket", "ptrace", "bpf", "keyctl"}
    assert denied["unshare"].flags == ("CLONE_NEWUSER", "CLONE_NEWPID")
    assert denied["socket"].flags == ("AF_VSOCK", "SOCK_STREAM")
    assert denied["ptrace"].flags == ("PTRACE_ATTACH",)
    others = {event.call: event for event in stage.mode("denied") if not event.denied}
    assert others["setuid"].result == -1
    assert others["memfd_create"].path == "/memfd:hidden thing"
    assert others["prctl"].flags == ("PR_SET_NAME",)
    assert stage.end is not None and {"io_uring_setup", "ptrace"} <= set(stage.end.denied)


def test_the_twin_that_does_nothing_denied_shows_nothing_denied(stage: Stage) -> None:
    innocent = [mode.split(" ") for mode in MODES if mode.split(" ")[0] not in ("denied", "call32")]
    assert not [event for words in innocent for event in stage.mode(*words) if event.denied]


def test_exit_group_is_told_with_its_code(stage: Stage) -> None:
    (end,) = [event for event in stage.mode("group") if event.call == "exit_group"]
    assert (end.args, end.result) == ((41,), None)
    assert [event.code for event in stage.processes("exit") if event.pid == end.pid] == [41]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has another kind of call")
def test_a_32_bit_call_is_told(stage: Stage) -> None:
    pid = next(event.pid for event in stage.processes("exec") if event.argv[1:] == ("call32",))
    (ended,) = [event for event in stage.processes("exit") if event.pid == pid]
    if ended.signal == 11:
        return  # this kernel has no 32-bit calls at all
    (call,) = [event for event in stage.calls if "compat32" in event.notes]
    assert (call.call, call.denied, call.result, ended.signal) == ("getpid", True, None, 31)
    assert stage.end is not None and stage.end.compat == ("getpid",)


def test_bytes_are_counted_once_for_each_of_many_open_files() -> None:
    """Files that are closed between leave holes among those that are counted."""
    script = (
        "import os\n"
        "def made(n): return os.open(f'/tmp/many-{n}', os.O_WRONLY | os.O_CREAT)\n"
        "files = [made(n) for n in range(400)]\n"
        "for file in files: os.write(file, b'1')\n"
        "for file in files[::2]: os.close(file)\n"
        "for file in files[1::2]: os.write(file, b'22')\n"
        "more = [made(n) for n in range(400, 600)]\n"
        "for file in (*more, *files[1::2]): os.write(file, b'333')\n"
        "for file in (*more, *files[1::2]): os.close(file)\n"
    )

    async def run() -> Stage:
        async with (
            Engine() as engine,
            staged(engine, ("python3", "-c", script), image_name="python313") as stage,
        ):
            assert await stage.output() == b""
            await stage.finish()
            return stage

    stage = anyio.run(run)
    told = sorted((event.path, event.written) for event in stage.transfers if event.written)
    expected = {**{n: (6 if n % 2 else 1) for n in range(400)}, **dict.fromkeys(range(400, 600), 3)}
    assert told == sorted((f"/tmp/many-{n}", count) for n, count in expected.items())
    assert stage.end is not None and stage.end.lost == {}


def test_failing_opens_of_eight_threads_are_all_there(target: bytes) -> None:
    stage, _ = recorded(target, "/tmp/target", "opens", str(OPENS))
    assert stage.end is not None and stage.end.complete, stage.end
    opens = {event.path for event in stage.named("open", "openat") if event.path and event.path[:9] == "/nowhere/"}
    assert opens == {f"/nowhere/{thread}/{number}" for thread in range(8) for number in range(OPENS // 8)}


def test_a_second_thread_that_flips_the_name_deceives_nobody(target: bytes) -> None:
    stage, output = recorded(target, "/tmp/target", "flips", str(FLIPS), **{"file-a": b"ordinary", "file-b": b"decoy"})
    plain, decoy = map(int, re.fullmatch(rb"plain (\d+) decoy (\d+)\n", output).groups())  # type: ignore[union-attr]
    opened = [event.path for event in stage.mode("flips") if event.call in ("open", "openat") and event.result >= 0]  # type: ignore[operator]
    assert plain + decoy >= FLIPS and plain and decoy
    assert (opened.count("/home/user/file-a"), opened.count("/home/user/file-b")) == (plain, decoy)
    assert len(opened) == plain + decoy
    assert stage.end is not None and stage.end.complete


def test_names_that_change_while_they_are_read_are_told(target: bytes) -> None:
    stage, _ = recorded(target, "/tmp/target", "moves", "2000")
    *moved, still = stage.named("rename", "renameat", "renameat2")
    assert len(moved) == 2000
    assert any("changed" in event.notes for event in moved)
    assert still.path2 == "/home/user/file-c" and "changed" not in still.notes


def test_a_nested_namespace_is_followed(target: bytes) -> None:
    stage, _ = recorded(target, "/tmp/target", "nested", privileged=True)
    (made,) = [event for event in stage.calls if event.path == "/tmp/nested-was-here"]
    assert "nested" in made.notes
    assert made.pid in {event.child for event in stage.processes("fork")}
    assert ("/bin/true", "from inside") in [event.argv for event in stage.processes("exec") if "nested" in event.notes]


def test_a_call_that_never_returns_is_told() -> None:
    async def run() -> None:
        async with Engine() as engine:
            target = await compiled_target(engine)
            async with staged(engine, ("/tmp/target", "stuck"), target=target) as stage:
                assert await stage.container.streams.stdout.receive() == b"stuck\n"
                await anyio.sleep(0.2)
                end = await stage.recording.stop()
                await stage.collected.wait()
                (stuck,) = [event for event in stage.calls if event.path == "/tmp/nobody-writes" and event.record < 0]
                assert (stuck.call, stuck.result, stuck.claimed) == ("open", None, True)
                assert end.lost == {} and end.marks_missing == ()

    anyio.run(run)
