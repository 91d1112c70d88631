"""Any sequence of events: the behaviour analyzers never raise, stay small, say the same twice, and never hide a gap."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import pytest
from behavior_sample import ENTRY, started
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings_sample import manifest, surface

from harness.analyzers import registry
from harness.analyzers.base import AnalysisFacts, RecordingInput
from harness.analyzers.behavior import apart, attribution, evasion, execution, later, network, places
from harness.analyzers.behavior import made as made_paths
from harness.analyzers.behavior.fold import NOT_ASKED, BehaviorAnalyzer, BehaviorFold
from harness.analyzers.engine import run_analyzer
from harness.model.options import RecorderChoice, RunOptions
from harness.model.recording import EVENT_ADAPTER, Event, Grade, SyscallEvent
from harness.model.result import AnalyzerStatus

ANALYZERS = tuple(a for a in registry.ANALYZERS if isinstance(a, BehaviorAnalyzer))
HINTS = {"name": "now", "annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}}
JUDGED = AnalysisFacts(manifest=manifest(recorder="ebpf", grade=Grade.TRUSTED), surfaces=(surface(HINTS),))

names = sorted({call for a in ANALYZERS for call in a.fold.calls} | {"read", "chdir", "fchdir", "syscall-999"})
pieces = ["", "/", "..", ".", "~", "home", "user", ".ssh", "id_rsa", ".bashrc", "proc", "1", "self", "root", "cwd",
          "environ", "etc", "cron.d", ".git", "hooks", "workspace", "a\nb", "\x1b[2J", "\u202e", "x" * 300,
          ".dockerenv", "usr", "bin", "sh", "memfd:x", "n0", "app", "tmp"]  # fmt: skip
path = st.lists(st.sampled_from(pieces), max_size=6).map("/".join) | st.text(max_size=20)
phases = st.sampled_from(["install", "start", "discover", "call:now:n0", "call:now:n1", "call::", "call:", "stop", ""])
sessions = st.sampled_from(["main", "install", "stock-client", "\x1b", ""])
numbers = st.integers(-(2**63), 2**63 - 1)
small = st.integers(0, 9)
addresses = st.sampled_from(
    ["", "127.0.0.1:80", "169.254.169.254:80", "[::1]:53", "unix:/run/docker.sock", "unix:@x", "AF_NETLINK", "a:b:c",
     "[::ffff:1.2.3.4]:9", "999.1.1.1:1", "1.1.1.1:x", "[fe80::1%lo]:1"]
) | st.text(max_size=12)  # fmt: skip
flags = st.lists(
    st.sampled_from(
        ["O_RDONLY", "O_WRONLY", "O_CREAT", "O_DIRECTORY", "O_PATH", "AF_VSOCK", "SOCK_RAW", "SOCK_DGRAM",
         "CLONE_NEWUSER", "PTRACE_TRACEME", "PR_CAP_AMBIENT", "PR_SET_DUMPABLE", "99 s", "s"]
    ),
    max_size=3,
)  # fmt: skip
notes = st.lists(st.sampled_from(["escaped", "cut", "relative", "deleted", "detached", "compat32", "x32"]), max_size=2)
common: dict[str, Any] = {
    "seq": st.integers(0, 10**6), "t": numbers, "phase": phases, "session": sessions,
}  # fmt: skip
kernel: dict[str, Any] = {
    **common, "record": st.integers(-1, 50), "pid": small, "tid": small, "parent": small, "comm": st.text(max_size=5),
    "by": st.sampled_from(["target", "target", "gate", "warden"]), "notes": notes,
}  # fmt: skip


def made(kind: str, base: dict[str, Any], **more: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"kind": st.just(kind), **base, **more}).map(EVENT_ADAPTER.validate_python)


events = st.one_of(
    made(
        "syscall", kernel, call=st.sampled_from(names), args=st.lists(numbers, max_size=6),
        result=st.none() | st.sampled_from([0, 3, -1, -2, -13, -17]) | numbers, denied=st.booleans(), flags=flags,
        path=st.none() | path, path2=st.none() | path, decoy=st.booleans(), local=addresses, remote=addresses,
        addresses=st.lists(addresses, max_size=3),
    ),
    made(
        "process", kernel, what=st.sampled_from(["exec", "fork", "thread", "exit"]), path=st.none() | path,
        requested=path, interpreter=path, directory=path, argv=st.lists(path, max_size=4), child=small,
        code=st.none() | small, signal=st.none() | small,
    ),
    made("transfer", kernel, path=st.none() | path, read=small, written=small),
    made("mark", kernel, nonce=st.sampled_from(["n0", "n1", ""])),
    made(
        "recorder-end", common, loaded=st.booleans(), early=st.booleans(), reason=st.text(max_size=9),
        matched=st.integers(0, 9), lost=st.dictionaries(st.text(max_size=4), st.integers(-5, 10**9), max_size=3),
        marks_missing=st.lists(st.text(max_size=4), max_size=2),
    ),
    made("attempt", common, number=small, argv=st.lists(path, max_size=2)),
    made("phase", common, nonce=st.text(max_size=3)),
    made("install-step", common, argv=st.lists(path, max_size=2), code=small),
    made("frame", common, direction=st.sampled_from(["sent", "received"]), data=st.text(max_size=30), size=small),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(events, max_size=40))
def test_any_events_are_judged_and_the_same_way_twice(given_events: list[Event]) -> None:
    for analyzer in ANALYZERS:
        first = run_analyzer(analyzer, RecordingInput(JUDGED, iter(given_events)))
        assert first.status in (AnalyzerStatus.COMPLETED, AnalyzerStatus.PARTIAL), first.reason
        assert first == run_analyzer(analyzer, RecordingInput(JUDGED, iter(given_events)))
        assert "\x1b" not in first.model_dump_json() and "\u202e" not in first.model_dump_json()


@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=20), st.sampled_from(["lost", "early", "marks", "loaded", "none"]))
def test_a_record_that_is_not_whole_never_completes(given_events: list[Event], fault: str) -> None:
    record = started()
    if fault != "none":
        record.end(
            lost={"bulk": 1} if fault == "lost" else {},
            early=fault == "early",
            marks_missing=("n",) if fault == "marks" else (),
            loaded=fault != "loaded",
        )
    rest = [event for event in given_events if event.kind != "recorder-end"]
    for analyzer in ANALYZERS:
        if analyzer.name == "behavior.install":
            continue
        result = run_analyzer(analyzer, RecordingInput(JUDGED, iter([*record.events, *rest])))
        assert result.status is AnalyzerStatus.PARTIAL
        assert result.reason
        assert result.coverage.gaps()


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=lambda a: a.name)
@pytest.mark.parametrize("grade", [Grade.TAMPERABLE, Grade.NONE])
def test_a_record_that_could_be_forged_is_not_enough(analyzer: BehaviorAnalyzer, grade: Grade) -> None:
    facts = AnalysisFacts(manifest=manifest(recorder="strace", grade=grade))
    record = started().step("npm").end()
    result = run_analyzer(analyzer, RecordingInput(facts, iter(record.events)))
    assert result.status is AnalyzerStatus.PARTIAL
    assert "grade" in result.reason or analyzer.name == "behavior.install"


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=lambda a: a.name)
def test_a_recorder_that_could_not_be_had_is_a_gap_and_one_not_asked_for_is_none(analyzer: BehaviorAnalyzer) -> None:
    def judged(choice: RecorderChoice) -> Any:
        facts = AnalysisFacts(manifest=manifest(recorder="none", options=RunOptions(recorder=choice)))
        plain = [event for event in started().step("npm").events if not isinstance(event, SyscallEvent)]
        return run_analyzer(analyzer, RecordingInput(facts, iter(plain)))

    assert judged(RecorderChoice.AUTO).status is AnalyzerStatus.PARTIAL
    skipped = judged(RecorderChoice.NONE)
    assert (skipped.status, skipped.reason) == (AnalyzerStatus.SKIPPED, NOT_ASKED)


def test_a_recording_that_was_cut_off_is_partial() -> None:
    for problem in ({"complete": False}, {"manifest": manifest(recorder="ebpf", grade="trusted", problems=("p",))}):
        for analyzer in ANALYZERS:
            assert started().end().judge(analyzer.name, **problem).status is AnalyzerStatus.PARTIAL


def test_a_session_without_a_program_of_the_target_is_blind() -> None:
    blind = started().end()
    blind.events = [event for event in blind.events if event.kind != "process"]
    assert blind.judge("behavior.exec").status is AnalyzerStatus.PARTIAL


def test_every_start_needs_its_own_record() -> None:
    record = started().end()
    record.begin("again")
    assert record.judge("behavior.files").status is AnalyzerStatus.PARTIAL
    assert record.end().judge("behavior.files").status is AnalyzerStatus.COMPLETED


def held(thing: object) -> int:
    """How many objects a fold holds on to, as far as containers and attributes lead."""
    seen: set[int] = set()
    waiting: deque[object] = deque([thing])
    while waiting:
        value = waiting.popleft()
        if id(value) in seen or isinstance(value, str | int | type | None.__class__) or callable(value):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting.extend([*value.keys(), *value.values()])
        elif isinstance(value, list | tuple | set | frozenset | deque):
            waiting.extend(value)
        else:
            waiting.extend(vars(value).values() if hasattr(value, "__dict__") else ())
            waiting.extend(getattr(value, slot, None) for slot in getattr(type(value), "__slots__", ()))
    return len(seen)


@pytest.mark.parametrize("analyzer", ANALYZERS, ids=lambda a: a.name)
def test_memory_does_not_grow_with_the_number_of_events(
    analyzer: BehaviorAnalyzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New names in every event: after the bounds are reached, twice as many events hold nothing more."""
    for module, bound in (
        (attribution, "MAX_PROCESSES"), (made_paths, "MAX_PATHS"), (network, "MAX_SOCKETS"), (places, "REMEMBERED"),
        (execution, "MAX_TRIED"), (evasion, "MAX_LOOKERS"), (apart, "MAX_KNOWN"), (later, "MAX_KNOWN"),
    ):  # fmt: skip
        monkeypatch.setattr(module, bound, 100)
    fold = analyzer.fold(analyzer, JUDGED)
    for event in started().events:
        fold.event(event)
    sizes = []
    for start in (0, 5_000):
        _feed(fold, start, 5_000)
        sizes.append(held(fold))
    assert sizes[1] <= sizes[0] + 500
    assert sys.getsizeof(fold.ledger._entries) < 1 << 20


def _feed(fold: BehaviorFold, start: int, count: int) -> None:
    session = "install" if fold.install else "main"
    base: dict[str, Any] = {"phase": "start", "session": session, "tid": ENTRY}
    write, read = ("O_WRONLY", "O_CREAT"), ("O_RDONLY",)
    for n in range(start, start + count):
        parts: list[dict[str, Any]] = [
            {"call": "openat", "path": f"/home/user/.ssh/id_{n}", "flags": read, "result": 3},
            {"call": "openat", "path": f"/home/user/x{n}/y", "flags": write, "result": 3},
            {"call": "openat", "path": f"/d{n}", "flags": ("O_DIRECTORY",), "result": n},
            {"call": "unlink", "path": f"/home/user/workspace/{n}", "result": 0},
            {"call": "connect", "addresses": (f"203.{n % 200}.{n // 200 % 250}.1:{n % 60000}",), "result": -101},
            {"call": "socket", "flags": ("AF_INET", "SOCK_DGRAM"), "result": n},
            {"call": "execve", "path": f"/p{n}/curl", "result": -2, "pid": n + 10},
            {"call": "newfstatat", "path": "/.dockerenv", "result": 0, "pid": n + 10},
        ]
        fields = {"kind": "syscall", "seq": n, "record": n, "t": n, "pid": ENTRY, "parent": 5, **parts[n % len(parts)]}
        fold.event(EVENT_ADAPTER.validate_python({**base, **fields}))
        if n % 8 == 0:
            forked = {"kind": "process", "record": n, "pid": ENTRY, "parent": 5, "what": "fork", "child": n + 10}
            fold.event(EVENT_ADAPTER.validate_python({**base, **forked}))
            program = {"what": "exec", "path": f"/p{n}", "argv": ("a", "b"), "pid": n + 10, "parent": ENTRY}
            fold.event(EVENT_ADAPTER.validate_python({**base, "kind": "process", "record": n, **program}))
