"""What is done between calls, while other lives of the target begin and end."""

from __future__ import annotations

from harness.model.kernel import MarkEvent, Origin, SyscallEvent
from harness.probing.oracle.between import MOST_SESSIONS, Between


def mark(session: str, phase: str) -> MarkEvent:
    return MarkEvent.model_validate(
        {"phase": phase, "session": session, "record": 1, "pid": 2, "tid": 2, "parent": 1, "uid": 0, "comm": "warden",
         "by": Origin.WARDEN, "nonce": "0" * 20}
    )  # fmt: skip


def made(session: str, path: str) -> SyscallEvent:
    return SyscallEvent.model_validate(
        {"phase": "idle", "session": session, "record": 1, "pid": 7, "tid": 7, "parent": 1, "uid": 1, "comm": "s",
         "by": Origin.TARGET, "call": "openat", "result": 3, "flags": ("O_CREAT", "O_WRONLY"), "path": path}
    )  # fmt: skip


def test_a_gap_in_one_session_is_not_ended_by_another_session_and_holds_nothing_of_it() -> None:
    between = Between()
    for event in (mark("main", "idle"), made("main", "/a"), mark("again-1", "stop"), made("again-1", "/b")):
        assert between.take(event) is None
    assert between.take(made("main", "/c")) is None
    ended = between.take(mark("main", "call:x:c2"))
    assert ended is not None and ended[0] == "main"
    assert [file.path for file in ended[1].files] == ["/a", "/c"]
    assert [(session, [file.path for file in outcome.files]) for session, outcome in between.close()] == [
        ("again-1", ["/b"])
    ]


def test_sessions_that_are_over_are_forgotten() -> None:
    between = Between()
    for number in range(3 * MOST_SESSIONS):
        between.take(mark(f"again-{number}", "idle"))
    assert len(list(between.close())) == MOST_SESSIONS
