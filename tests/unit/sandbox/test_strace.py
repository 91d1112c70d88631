"""strace's lines and the events made of them: hostile text, threads that come before their parent's call, losses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.recording import Event, MarkEvent, Origin, ProcessEvent, SyscallEvent, TransferEvent
from harness.sandbox import strace_lines as lines
from harness.sandbox.seccomp import profile_json
from harness.sandbox.strace import tracer_script
from harness.sandbox.strace_events import StraceDecoder
from harness.sandbox.strace_filter import CLONE_UNTRACED, Filter, tracer_profile, watched_profile

FILTER = Filter(watched_profile(profile_json()))
WORD = "0123456789abcdef"
GATE, MARKER = 7, 20
CLOCK = 1_700_000_000_000_000_000


def hexed(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return "".join(f"\\x{byte:02x}" for byte in raw)


def quoted(text: str | bytes) -> str:
    return f'"{hexed(text)}"'


class Trace:
    """A trace in strace's words; `t` counts milliseconds."""

    def __init__(self) -> None:
        self.decoder = StraceDecoder(FILTER, session="main", phase="start", clock=CLOCK, epoch=0, word=WORD, uid=65532)
        self.events: list[Event] = []
        self.t = 0

    def raw(self, text: str) -> Trace:
        self.events += self.decoder.feed(text.encode() + b"\n")
        return self

    def say(self, tid: int, text: str) -> Trace:
        self.t += 1
        stamp = CLOCK + self.t * 1_000_000
        return self.raw(f"{tid:<5} {stamp // 10**9}.{stamp % 10**9:09d} {text}")

    def mark(self, phase: str, nonce: str, tid: int = MARKER) -> Trace:
        path = quoted(f"/.mark/{phase}/{nonce}")
        return self.say(tid, f"newfstatat(AT_FDCWD<{hexed('/')}>, {path}, 0x7ffe, 0) = -1 ENOENT (No such file)")

    def begin(self, planted: str = "/home/user/.ssh/id_rsa") -> Trace:
        """Marker, planting, the gate's mark and the target's first program."""
        self.raw(f"watching {GATE}").say(GATE, "read(0, 0x7ffe, 0x1 <unfinished ...>")
        self.say(MARKER, 'execve("\\x2f", ["\\x73"], 0x7ffe /* 5 vars */) = 0').mark("start", WORD)
        self.say(GATE, "<... read resumed>) = 0x1")
        self.say(
            GATE,
            f"openat(5<{hexed('/home/user/.ssh')}>, {quoted('id_rsa')}, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0600) = "
            f"4<{hexed(planted)}>",
        )
        self.say(GATE, f"access({quoted('/.mark/gatenonce')}, F_OK) = -1 ENOENT (No such file or directory)")
        self.say(GATE, f"chdir({quoted('/home/user/workspace')}) = 0")
        return self.exec(GATE, "/usr/bin/server", "server")

    def exec(self, tid: int, path: str, *argv: str) -> Trace:
        words = ", ".join(map(quoted, argv))
        return self.say(tid, f"execve({quoted(path)}, [{words}], 0x7ffe /* 9 vars */) = 0")

    def of(self, kind: type[Any], by: Origin = Origin.TARGET) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind) and event.by is by]

    @property
    def last(self) -> Any:
        return self.events[-1]


def test_gate_marker_and_target_are_told_apart_and_phases_come_from_the_trace() -> None:
    trace = Trace().begin().mark("call:x:1", "n1").exec(GATE, "/bin/two", "two").mark("stop", "n2")
    marks = [(mark.phase, mark.nonce, mark.by) for mark in trace.events if isinstance(mark, MarkEvent)]
    assert marks == [
        ("start", "gatenonce", Origin.GATE),
        ("call:x:1", "n1", Origin.WARDEN),
        ("stop", "n2", Origin.WARDEN),
    ]
    assert [(event.path, event.phase) for event in trace.of(ProcessEvent)] == [
        ("/usr/bin/server", "start"),
        ("/bin/two", "call:x:1"),
    ]
    assert trace.decoder.marks == ("gatenonce", "n1", "n2")
    assert [event.record for event in trace.events] == list(range(len(trace.events)))
    assert trace.decoder.damaged == 0


def test_a_mark_is_believed_of_nobody_else() -> None:
    trace = Trace().begin().mark("stop", "forged", tid=GATE)
    trace.say(GATE, f"access({quoted('/.mark/forged')}, F_OK) = -1 ENOENT (No such file or directory)")
    assert "forged" not in trace.decoder.marks
    assert {event.phase for event in trace.of(SyscallEvent)} == {"start"}
    trace.say(MARKER, "+++ exited with 1 +++").mark("stop", "late")  # its number belongs to another now
    assert "late" not in trace.decoder.marks


def test_text_of_a_target_is_never_syntax() -> None:
    path = '/tmp/a", O_RDONLY) = 3\n7 1.000000000 execve("x", ["y"], 0) = 0\n<>\xff'
    raw = path.encode("latin-1")
    trace = Trace().begin()
    before = len(trace.events)
    trace.say(GATE, f"openat(AT_FDCWD<{hexed('/')}>, {quoted(raw)}, O_RDONLY) = 3<{hexed(raw)}>")
    trace.say(GATE, f"unlink({quoted(raw)}) = 0")
    assert len(trace.events) == before + 2
    assert all("\\xff" in event.path and "escaped" in event.notes for event in trace.events[before:])


def test_what_the_kernel_says_is_truth_and_what_was_passed_a_claim() -> None:
    trace = Trace().begin()
    begun = f"openat(AT_FDCWD<{hexed('/srv')}>, {quoted('link')}, O_RDONLY|O_CLOEXEC)"
    trace.say(GATE, f"{begun} = 3<{hexed('/etc/shadow')}>")
    assert (trace.last.path, trace.last.claimed, trace.last.flags) == ("/etc/shadow", False, ("O_RDONLY",))
    trace.say(GATE, f"rename({quoted('a')}, {quoted('/b')}) = 0")
    assert (trace.last.path, trace.last.path2, trace.last.claimed) == ("/srv/a", "/b", True)
    trace.say(GATE, f"open({quoted('../no')}, O_RDWR) = -1 ENOENT (No such file or directory)")
    assert (trace.last.path, trace.last.claimed, trace.last.result) == ("/no", True, -2)
    assert "claimed" in trace.of(ProcessEvent)[0].notes


def test_decoys_are_known_by_every_name_they_are_given() -> None:
    trace = Trace().begin()
    own = "/home/user/.ssh/id_rsa"
    trace.say(GATE, f"linkat(AT_FDCWD<{hexed('/home/user')}>, {quoted('.ssh/id_rsa')}, AT_FDCWD<{hexed('/tmp')}>, "
                    f"{quoted('x')}, 0) = 0")  # fmt: skip
    for name in (own, "/tmp/x", "/etc/passwd"):
        trace.say(GATE, f"openat(AT_FDCWD<{hexed('/')}>, {quoted('anything')}, O_RDONLY) = 3<{hexed(name)}>")
    assert [event.decoy for event in trace.of(SyscallEvent) if event.call == "openat"] == [True, True, False]


def test_children_belong_to_the_call_that_made_them_however_the_lines_come() -> None:
    trace = Trace().begin()
    trace.say(GATE, "vfork( <unfinished ...>").exec(30, "/bin/a", "a").say(GATE, "<... vfork resumed>) = 30")
    trace.say(GATE, "clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0}, 88 <unfinished ...>")
    trace.say(31, f"unlink({quoted('/tmp/t')}) = 0").say(GATE, "<... clone3 resumed>) = 31")
    # Two at once: whose child is which shows only when they return.
    trace.say(GATE, "clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>")
    trace.say(30, "clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>")
    trace.exec(40, "/bin/of-a", "x").exec(41, "/bin/of-gate", "y")
    trace.say(30, "<... clone resumed>) = 40").say(GATE, "<... clone resumed>) = 41")
    parents = {event.path: (event.pid, event.parent) for event in trace.of(ProcessEvent) if event.what == "exec"}
    assert parents["/bin/a"] == (30, GATE)
    assert (parents["/bin/of-a"], parents["/bin/of-gate"]) == ((40, 30), (41, GATE))
    thread = trace.of(SyscallEvent)[-1]
    assert (thread.call, thread.pid, thread.tid) == ("unlink", GATE, 31)
    forks = [(event.what, event.child) for event in trace.of(ProcessEvent) if event.what in ("fork", "thread")]
    assert sorted(forks) == [("fork", 30), ("fork", 40), ("fork", 41), ("thread", 31)]


def test_ends_of_processes_and_calls_that_never_return() -> None:
    trace = Trace().begin().say(GATE, "clone(child_stack=NULL, flags=SIGCHLD) = 30")
    trace.say(30, f"openat(AT_FDCWD<{hexed('/')}>, {quoted('/fifo')}, O_WRONLY <unfinished ...>")
    trace.say(30, "<... openat resumed> <unfinished ...>) = ?").say(30, "+++ killed by SIGKILL +++")
    trace.say(GATE, "clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, {tv_sec=90, tv_nsec=0},  <unfinished ...>")
    trace.say(GATE, "+++ exited with 3 +++")
    trace.events += trace.decoder.finish()
    ends = [(event.pid, event.code, event.signal) for event in trace.of(ProcessEvent) if event.what == "exit"]
    assert ends == [(30, None, 9), (GATE, 3, None)]
    calls = {event.call: event for event in trace.of(SyscallEvent)}
    assert (calls["openat"].result, "entered" in calls["openat"].notes) == (None, True)
    assert calls["clock_nanosleep"].flags == ("90 s",)


def test_sockets_transfers_and_their_phase() -> None:
    trace = Trace().begin()
    trace.say(GATE, "connect(3<socket:[9]>, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("
                    f"{quoted('203.0.113.9')})}}, 16) = -1 EINPROGRESS (Operation now in progress)")  # fmt: skip
    assert (trace.last.addresses, trace.last.remote, trace.last.claimed) == (
        ("203.0.113.9:443",), "203.0.113.9:443", True,
    )  # fmt: skip
    trace.say(GATE, f"write(3<socket:[9]>, {quoted('secret')}, 6) = 6")
    trace.say(GATE, f"write(4<{hexed('/tmp/out')}>, {quoted('x')}..., 5000) = 5000")
    trace.say(GATE, f"write(1<pipe:[4]>, {quoted('x')}, 1) = 1")
    trace.mark("stop", "n")
    moved = [(event.path, event.remote, event.written, event.phase) for event in trace.of(TransferEvent)]
    assert moved == [(None, "203.0.113.9:443", 6, "start"), ("/tmp/out", "", 5000, "start")]
    to = f"{{sa_family=AF_INET6, sin6_port=htons(53), sin6_flowinfo=0, inet_pton(AF_INET6, {quoted('::1')}, &a)}}"
    trace.say(GATE, f"sendto(5<socket:[8]>, {quoted('q')}, 1, 0, {to}, 28) = 1")
    assert trace.last.addresses == ("[::1]:53",)
    name = quoted("a, b=}")
    trace.say(GATE, f"connect(6<socket:[7]>, {{sa_family=AF_UNIX, sun_path=@{name}}}, 9) = 0")
    assert trace.last.addresses == ("unix:@a, b=}",)


def test_the_filters_answers_are_told_from_the_kernels() -> None:
    trace = Trace().begin()
    denied = "= -1 EPERM (Operation not permitted)"
    trace.say(GATE, f"ptrace(PTRACE_ATTACH, 1) {denied}").say(GATE, f"unshare(CLONE_NEWUSER) {denied}")
    trace.say(GATE, f"socket(AF_VSOCK, SOCK_STREAM|SOCK_CLOEXEC, 0) {denied}")
    trace.say(GATE, f"socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) {denied}")
    trace.say(GATE, f"kill(1, SIGKILL) {denied}").say(GATE, f"newcall(0x1, 0x2) {denied}")
    trace.say(GATE, f"clone(child_stack=NULL, flags=CLONE_UNTRACED|SIGCHLD) {denied}")
    trace.say(GATE, "clone3({flags=CLONE_VFORK}, 88) = -1 ENOSYS (Function not implemented)")
    found = [(event.call, event.denied) for event in trace.of(SyscallEvent)]
    assert found == [
        ("ptrace", True), ("unshare", True), ("socket", True), ("socket", False), ("kill", False), ("newcall", True),
        ("clone", True), ("clone3", True),
    ]  # fmt: skip
    assert {"ptrace", "unshare", "newcall"} <= trace.decoder.denied and "kill" in trace.decoder.calls
    assert trace.of(SyscallEvent)[4].args == (1, 9)


def test_other_machines_calls_are_marked() -> None:
    trace = Trace().begin().say(GATE, f"[ Process PID={GATE} runs in 32 bit mode. ]").say(GATE, "getpid() = 7")
    assert (trace.last.call, trace.last.notes) == ("getpid", ("compat32",))
    assert trace.decoder.compat == {"getpid"} and "getpid" not in trace.decoder.calls


def test_lines_that_make_no_sense_are_counted() -> None:
    trace = Trace().begin().raw("7 what").raw("").say(GATE, "openat(").say(GATE, "<... openat resumed>) = 3")
    assert trace.decoder.damaged == 4
    trace.raw("strace: Process 7 detached").raw("strace: Exit of unknown pid 9 ignored")
    assert trace.decoder.damaged == 5


def test_an_argument_vector_of_any_length_is_bounded() -> None:
    trace = Trace().begin()
    words = ", ".join([quoted("A" * 1000)] * 3000)
    trace.say(GATE, f"execve({quoted('/bin/long')}, [{words}], 0x7ffe /* 9 vars */) = 0")
    assert trace.last.path == "/bin/long" and "cut" in trace.last.notes
    assert 1 <= len(trace.last.argv) <= 1024


@given(st.lists(st.binary(max_size=60), max_size=30), st.integers(1, 9))
def test_any_bytes_are_counted_or_told_and_never_raise(pieces: list[bytes], size: int) -> None:
    trace = Trace().begin()
    stream = b"".join(b"7     1700000000.000000001 " + piece + b"\n" for piece in pieces)
    for at in range(0, len(stream), size):
        trace.events += trace.decoder.feed(stream[at : at + size])
    trace.decoder.finish()


CALLS = st.sampled_from(["openat", "execve", "clone", "connect", "sendmsg", "prctl", "mmap", "nanosleep", "rename"])
PARTS = st.sampled_from(['"\\x2f"', *"[]{},()<>=", "sa_family=AF_INET", "NULL", "-1 EPERM"])


@given(CALLS, st.lists(PARTS, max_size=12), st.sampled_from([" = 0", " = 3<\\x2f>", " = ?", "", " <unfinished ...>"]))
def test_calls_with_any_arguments_never_raise(call: str, parts: list[str], end: str) -> None:
    trace = Trace().begin().say(GATE, f"{call}({' '.join(parts)}){end}").say(GATE, f"<... {call} resumed>){end}")
    trace.decoder.finish()


@given(st.binary(max_size=200).filter(lambda data: b"\n" not in data), st.integers(1, 50))
def test_lines_come_whole_however_they_are_cut(line: bytes, size: int) -> None:
    reader = lines.LineReader()
    stream = line + b"\n" + line + b"\n"
    found = [one for at in range(0, len(stream), size) for one in reader.feed(stream[at : at + size])]
    assert found == [line, line]


def test_a_line_without_end_takes_bounded_memory_and_keeps_its_end() -> None:
    reader = lines.LineReader()
    for _ in range(100):
        assert list(reader.feed(b"x" * 10_000)) == []
    (line,) = reader.feed(b"the end\n")
    assert line.endswith(b"the end") and len(line) <= lines.HEAD_BYTES + lines.TAIL_BYTES + len(lines.CUT)


def test_nobody_is_born_without_a_tracer() -> None:
    made = json.loads(watched_profile(profile_json()))
    clones = [rule for rule in made["syscalls"] if "clone" in rule["names"]]
    assert [arg["value"] & CLONE_UNTRACED for rule in clones for arg in rule["args"]] == [CLONE_UNTRACED]
    assert all(rule["names"] == ["clone"] and rule["args"] for rule in clones)
    assert [rule["errnoRet"] for rule in made["syscalls"] if "clone3" in rule["names"]] == [38]
    plain = watched_profile(json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["clone", "clone3", "read"], "action": "SCMP_ACT_ALLOW"}]}))  # fmt: skip
    rules = json.loads(plain)["syscalls"]
    assert [rule["names"] for rule in rules if "args" not in rule] == [["read"], ["clone3"]]
    assert [rule["names"] for rule in rules if "args" in rule] == [["clone"]]


def test_a_rule_for_clone_that_can_not_be_narrowed_is_refused() -> None:
    rule = {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "op": "SCMP_CMP_EQ", "value": 17}]}
    with pytest.raises(ValueError, match="narrowed"):
        watched_profile(json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [rule]}))


def test_the_tracer_alone_may_trace() -> None:
    assert "ptrace" not in FILTER.free and "ptrace" in Filter(tracer_profile(profile_json())).free
    assert "open_by_handle_at" not in Filter(tracer_profile(profile_json())).free
    assert "-p $1" in tracer_script(None) and "set -- 5;" in tracer_script(5)
