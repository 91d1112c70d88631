"""The digest of a call: what the target did between the call's marks, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.call import Call, CallEndEvent, CallEvent, Outcome, Purpose
from harness.model.flow import FlowEvent, FlowPart
from harness.model.recording import (
    Event,
    MarkEvent,
    Origin,
    ProcessEvent,
    RecorderEndEvent,
    SyscallEvent,
)
from harness.probing import digest as module
from harness.probing.digest import Digest, call_phase, digest
from harness.probing.results import HEAD_CHARACTERS, bounded, joined

CALL = Call(id="c1", item="read", params={}, purpose=Purpose.BASELINE)
PHASE = "call:read:c1"


class Tape:
    """Events as a recording numbers them; the server is process 7, from outside of the namespace."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.exec("/app/server", ("server",))

    def add(self, event: Event) -> None:
        number = len(self.events) + 1
        self.events.append(event.model_copy(update={"seq": number, "t": event.t or number}))

    def _kernel(self, **more: Any) -> dict[str, Any]:
        return {"phase": "x", "session": "main", "record": 1, "pid": 7, "tid": 7, "parent": 0, **more}

    def exec(self, path: str, argv: tuple[str, ...], **more: Any) -> None:
        self.add(ProcessEvent(what="exec", path=path, argv=argv, **self._kernel(**more)))

    def call(self, name: str, path: str | None = None, result: int | None = 3, **more: Any) -> None:
        self.add(SyscallEvent(call=name, path=path, result=result, **self._kernel(**more)))

    def mark(self, phase: str, **more: Any) -> None:
        fields = {"pid": 1, "tid": 1, "by": Origin.WARDEN, "nonce": "n", **more}
        self.add(MarkEvent(**(self._kernel() | fields | {"phase": phase})))

    def begin(self) -> None:
        self.add(CallEvent(phase=PHASE, call=CALL))
        self.mark(PHASE)

    def end(self, **more: Any) -> Outcome:
        self.mark("idle")
        self.add(CallEndEvent(phase=PHASE, call="c1", state="answered", **more))
        return digest(self.events)["c1"]


def test_what_lies_between_the_marks_belongs_to_the_call_and_nothing_before_or_after() -> None:
    tape = Tape()
    tape.call("openat", "/home/user/workspace/before")
    tape.add(CallEvent(phase=PHASE, call=CALL))
    tape.call("openat", "/home/user/workspace/still-before")
    tape.mark(PHASE)
    tape.call("openat", "/home/user/workspace/notes.txt")
    tape.mark("idle")
    tape.call("openat", "/home/user/workspace/after")
    tape.add(CallEndEvent(phase=PHASE, call="c1", state="answered", text="notes", size=5, seconds=0.1, frame=9))
    outcome = digest(tape.events)["c1"]
    assert [file.path for file in outcome.files] == ["/home/user/workspace/notes.txt"]
    assert (outcome.text, outcome.size, outcome.complete, outcome.cut) == ("notes", 5, True, False)


@pytest.mark.parametrize(
    ("name", "flags", "how"),
    [
        ("openat", ("O_RDONLY",), "read"),
        ("openat", ("O_WRONLY", "O_CREAT"), "create"),
        ("open", ("O_RDWR",), "write"),
        ("unlinkat", (), "delete"),
        ("mkdir", (), "mkdir"),
        ("fchmodat", (), "chmod"),
        ("truncate", (), "write"),
        ("faccessat2", (), "access"),
    ],
)
def test_system_calls_become_words(name: str, flags: tuple[str, ...], how: str) -> None:
    tape = Tape()
    tape.begin()
    tape.call(name, "/home/user/private/x", 0, flags=flags)
    (file,) = tape.end().files
    assert (file.path, file.how, file.ok) == ("/home/user/private/x", how, True)


def test_a_rename_takes_one_name_away_and_makes_another() -> None:
    tape = Tape()
    tape.begin()
    tape.call("renameat2", "/home/user/workspace/a", 0, path2="/home/user/private/b", claimed=True)
    assert [(file.path, file.how, file.claimed) for file in tape.end().files] == [
        ("/home/user/workspace/a", "rename", True),
        ("/home/user/private/b", "create", True),
    ]


def test_gate_warden_runtime_and_code_are_left_out() -> None:
    tape = Tape()
    tape.begin()
    tape.call("openat", "/home/user/workspace/x", by=Origin.WARDEN, pid=1)
    tape.call("openat", "/home/user/workspace/x", by=Origin.GATE)
    tape.call("openat", "/home/user/workspace/x", pid=99)  # put there by the container runtime
    tape.call("openat", "/home/user/workspace/x", record=-1)  # told afterwards
    tape.call("openat", "/app/lib/python3.13/json/__init__.py")
    tape.call("openat", "/usr/lib/ssl/openssl.cnf")
    tape.call("openat", "/etc/resolv.conf")
    tape.call("openat", "/dev/null", flags=("O_WRONLY",))
    assert not tape.end().files


def test_what_code_is_never_written_by_itself_is_told() -> None:
    tape = Tape()
    tape.begin()
    tape.call("openat", "/app/lib/x.py", flags=("O_WRONLY", "O_CREAT"))
    tape.call("openat", "/etc/passwd")
    assert [file.path for file in tape.end().files] == ["/app/lib/x.py", "/etc/passwd"]


def test_programs_are_told_with_their_arguments_also_those_that_could_not_be_started() -> None:
    tape = Tape()
    tape.begin()
    tape.exec("/bin/sh", ("sh", "-c", "ls /tmp"), pid=20, parent=7)
    tape.call("execve", "/usr/bin/absent", -2, pid=21, parent=7)
    assert [(run.path, run.argv, run.ok) for run in tape.end().executions] == [
        ("/bin/sh", ("sh", "-c", "ls /tmp"), True),
        ("/usr/bin/absent", (), False),
    ]


def test_reads_without_number_can_not_hide_a_write() -> None:
    tape = Tape()
    tape.begin()
    for number in range(module.MAX_READS + 10):
        tape.call("openat", f"/home/user/workspace/{number}")
    tape.call("openat", "/home/user/private/mark", flags=("O_CREAT", "O_WRONLY"))
    outcome = tape.end()
    assert outcome.cut
    assert outcome.files[-1].path == "/home/user/private/mark"
    assert len(outcome.files) == module.MAX_READS + 1


def flow(number: int, remote: str, application: str, began: int, *parts: tuple[str, str], **more: Any) -> FlowEvent:
    told = tuple(FlowPart(what=what, text=text) for what, text in parts)
    fields = {"phase": "x", "flow": number, "protocol": "tcp", "remote": remote, "application": application}
    return FlowEvent.model_validate({**fields, "began": began, "parts": told, **more})


def test_connections_get_their_names_from_the_flows_that_began_in_the_call() -> None:
    tape = Tape()
    tape.begin()
    began = tape.events[-1].t
    tape.call("connect", remote="203.0.113.9:443", addresses=("203.0.113.9:443",), result=-115)
    tape.call("connect", remote="unix:/run/x", result=0)
    tape.call("socket", result=9, flags=("AF_INET", "SOCK_DGRAM"))
    tape.call("connect", remote="192.0.2.1:53", args=(9,), result=0)
    tape.call("sendmmsg", remote="192.0.2.1:53", args=(9,), result=2)
    tape.call("sendto", remote="", addresses=("AF_NETLINK",), result=20)
    tape.call("connect", remote="203.0.113.77:443", args=(9,), result=0)  # the resolver sorts addresses
    tape.add(flow(1, "192.0.2.1:53", "dns", began + 1, ("dns-question", "a.example.net A")))
    tape.add(
        flow(2, "203.0.113.9:443", "https", began + 1, ("http-request", "GET / HTTP/1.1"), names=("a.example.net",))
    )
    tape.add(flow(3, "203.0.113.10:80", "http", began - 1, ("http-request", "GET /old HTTP/1.1")))
    outcome = tape.end()
    assert outcome.names == ("a.example.net",)
    (connection,) = outcome.connections
    assert (connection.address, connection.names, connection.flow) == ("203.0.113.9:443", ("a.example.net",), 2)
    assert connection.text == "GET / HTTP/1.1"


def test_the_lines_of_each_request_are_what_a_connection_sent() -> None:
    tape = Tape()
    tape.begin()
    told = flow(1, "203.0.113.9:80", "http", tape.events[-1].t, ("http-request", "GET /a"), ("http-request", "GET /b"))
    parts = tuple(part.model_copy(update={"lines": f"{part.text}\r\nX-a: b\r\n\r\n"}) for part in told.parts)
    tape.add(told.model_copy(update={"parts": parts}))
    (connection,) = tape.end().connections
    assert "GET /a\r\nX-a: b" in connection.text and "\nGET /b" in connection.text


def test_a_connection_without_a_flow_is_waited_for() -> None:
    tape = Tape()
    tape.begin()
    tape.call("connect", remote="203.0.113.9:443", result=0)
    fold = Digest()
    for event in tape.events:
        fold.take(event)
    assert [connection.address for connection in fold.pending("c1")] == ["203.0.113.9:443"]
    assert not fold.closed("c1")
    fold.take(flow(1, "203.0.113.9:443", "https", tape.events[-1].t))
    assert not fold.pending("c1")


def test_a_question_to_the_resolver_is_waited_for_where_nothing_else_came_of_it() -> None:
    tape = Tape()
    tape.begin()
    tape.call("sendto", remote="192.0.2.1:53", result=40)
    fold = Digest()
    for event in tape.events:
        fold.take(event)
    assert fold.pending("c1")
    fold.take(flow(1, "192.0.2.1:53", "dns", tape.events[-1].t, ("dns-question", "a.example.net A")))
    assert not fold.pending("c1")


def test_a_flow_that_is_told_before_the_mark_comes_out_is_the_calls_all_the_same() -> None:
    tape = Tape()
    tape.add(CallEvent(phase=PHASE, call=CALL))
    tape.add(flow(1, "203.0.113.9:80", "http", 100, ("http-request", "GET / HTTP/1.1")))
    tape.add(flow(2, "203.0.113.9:81", "http", 10))
    tape.mark(PHASE, t=50)
    tape.call("connect", remote="203.0.113.9:80", result=0)
    fold = Digest()
    for event in tape.events:
        fold.take(event)
    assert not fold.pending("c1")
    tape.mark("idle", t=200)
    assert [(c.address, c.flow) for c in tape.end().connections] == [("203.0.113.9:80", 1)]


def test_without_its_marks_an_outcome_is_not_complete() -> None:
    tape = Tape()
    tape.add(CallEvent(phase=PHASE, call=CALL))
    tape.add(CallEndEvent(phase=PHASE, call="c1", state="answered"))
    assert not digest(tape.events)["c1"].complete


def test_a_recorder_that_ends_within_a_call_leaves_it_incomplete() -> None:
    tape = Tape()
    tape.begin()
    tape.add(RecorderEndEvent(phase="x", early=True))
    assert not tape.end().complete


def test_another_session_is_somebody_elses() -> None:
    tape = Tape()
    tape.begin()
    tape.mark("discover", session="stock-client")
    tape.call("openat", "/home/user/workspace/other", session="stock-client")
    tape.call("openat", "/home/user/workspace/own")
    assert [file.path for file in tape.end().files] == ["/home/user/workspace/own"]


def test_the_phase_of_any_name_fits_a_mark() -> None:
    assert call_phase(CALL) == PHASE
    long = CALL.model_copy(update={"item": "\u0634" * 5000 + "\ud800"})
    assert len(call_phase(long).encode("utf-8")) < 1024


def test_the_texts_of_a_result_are_those_that_a_model_is_shown() -> None:
    result: Any = {
        "content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "c2VjcmV0"},
            {"type": "resource", "resource": {"uri": "memo://1", "text": "two"}},
        ],
        "structuredContent": {"three": 4},
        "isError": False,
    }
    assert joined(result).splitlines() == ["one", "secret", "memo://1", "two", "three", "4"]


def test_a_long_answer_keeps_head_and_tail() -> None:
    text = "a" * HEAD_CHARACTERS + "b" * 10**6 + "the end"
    assert bounded(text).startswith("aaa")
    assert bounded(text).endswith("the end")
    assert len(bounded(text)) < 300_000
