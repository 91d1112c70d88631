"""The record of an install keeps each telling event once, counts the rest, and says when it is not whole."""

from __future__ import annotations

from harness.model.recording import Event, MarkEvent, ProcessEvent, RecorderEndEvent, SyscallEvent
from harness.sandbox import install_record
from harness.sandbox.install_record import InstallKeeper

END = RecorderEndEvent(phase="install", session="install")


def call(name: str, path: str | None = None, *flags: str, **fields: object) -> SyscallEvent:
    given = {"phase": "install", "session": "install", "pid": 7, "tid": 7, "call": name, "path": path, "flags": flags}
    return SyscallEvent.model_validate({**given, **fields})


def kept(*events: Event) -> list[Event]:
    keeper = InstallKeeper()
    keeper.take(list(events))
    record = keeper.record(END)
    assert len(record.events) + record.counted == len(events)
    return list(record.events)


def test_what_installing_is_gets_counted_only() -> None:
    assert not kept(
        call("openat", "/app/lib/x.py", "O_WRONLY", "O_CREAT"),
        call("openat", "/input/wheels/a.whl"),
        call("openat", "/usr/lib/python3.13/os.py"),
        call("openat", "/proc/42/status"),
        call("rename", "/app/a", path2="/app/b"),
        call("unlink", "/tmp/x"),
    )


def test_what_tells_something_is_kept_once() -> None:
    telling: list[Event] = [
        MarkEvent(phase="install", session="install", pid=1, tid=1, nonce="n"),
        ProcessEvent(phase="install", session="install", pid=9, tid=9, what="exec", path="/bin/sh", argv=("sh", "-c")),
        call("openat", "/home/user/.ssh/id_rsa"),
        call("openat", "/etc/shadow"),
        call("openat", "/proc/1/cgroup"),
        call("openat", "/home/user/.bashrc", "O_WRONLY"),
        call("openat", "/usr/bin/evil", "O_WRONLY", "O_CREAT"),
        call("rename", "/app/a", path2="/home/user/.profile"),
        call("connect", None, remote="203.0.113.1:443", result=-101),
        call("unshare", None, "CLONE_NEWUSER", denied=True),
        call("openat", "/app/x", denied=True),
    ]
    assert kept(*telling, *telling) == telling


def test_one_program_does_not_hide_what_another_does() -> None:
    def run(pid: int, path: str) -> Event:
        return ProcessEvent(phase="install", session="install", pid=pid, tid=pid, what="exec", path=path, argv=(path,))

    asked = call("openat", "/etc/shadow", result=-13, pid=9, tid=9)
    stolen = call("openat", "/etc/shadow", result=-13, pid=10, tid=10)
    su, thief = run(9, "/usr/bin/su"), run(10, "/app/bin/thief")
    assert kept(su, asked, thief, stolen, asked, stolen) == [su, asked, thief, stolen]


def test_more_than_the_bound_counts_as_lost(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(install_record, "MAX_EVENTS", 3)
    keeper = InstallKeeper()
    keeper.take([call("openat", f"/home/user/{number}") for number in range(5)])
    record = keeper.record(END)
    assert len(record.events) == 3
    assert record.end.lost == {"record": 2} and not record.end.complete
