"""The recorder's stream as events: any bytes, any cut, any order."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import HarnessError
from harness.model.recording import EVENT_ADAPTER, Event, MarkEvent, Origin, ProcessEvent, SyscallEvent, TransferEvent
from harness.sandbox import records, records_frames, records_parts
from harness.sandbox.records import RecordDecoder
from harness.sandbox.records_frames import CallNames, FrameReader

READY = b"arch x86_64\n2 open\n42 connect\n257 openat\n41 socket\n272 unshare\n437 openat2\n32 20 getpid\n"
GATE, TARGET, WARDEN = 7, 9, 1


def part(tag: int, data: bytes, flags: int = 0) -> bytes:
    return records.PART.pack(tag, flags, len(data)) + data


def record(
    kind: int,
    sequence: int,
    *parts: bytes,
    pid: int = TARGET,
    number: int = 0,
    result: int = 0,
    flags: int = 0,
    parent: int = 1,
    space: int = 0,
) -> bytes:
    body = b"".join(parts)
    size = records.RECORD.size + len(body)
    time = 1_000 + min(sequence, 1 << 40)
    head = (size, kind, flags, 65532, sequence, time, pid, pid, parent, number, result, b"comm", space, 0)
    return records.RECORD.pack(*head) + body


def mark(sequence: int, path: bytes, *, by: Origin) -> bytes:
    pid, flags = (WARDEN, records.FLAG_FIRST) if by is Origin.WARDEN else (GATE, 0)
    return record(
        records.MARK, sequence, part(records_parts.PART_PATH, path, records_parts.CLAIM), pid=pid, flags=flags
    )


def arguments(*values: int) -> bytes:
    return part(records_parts.PART_ARGUMENTS, struct.pack(f"<{len(values)}q", *values))


def decoder() -> RecordDecoder:
    return RecordDecoder(CallNames(READY), session="main", phase="start", epoch=1_000)


def decoded(*batch: bytes, opened: bool = True) -> list[Event]:
    made = decoder()
    if opened:
        made.add(mark(0, b"/.mark/gate", by=Origin.GATE))
        made.add(record(records.EXEC, 0, pid=GATE))
    made.add(b"".join(batch))
    events = made.finish()
    assert made.damaged == 0
    return events[2:] if opened else events


def one(*parts: bytes, number: int = 257, **options: int) -> SyscallEvent:
    (event,) = decoded(record(records.CALL, 5, *parts, number=number, **options))
    assert isinstance(event, SyscallEvent)
    assert EVENT_ADAPTER.validate_json(event.model_dump_json()) == event
    return event


@given(st.lists(st.binary(max_size=300)))
def test_no_bytes_take_the_frame_reader_down(pieces: list[bytes]) -> None:
    reader = FrameReader()
    try:
        for piece in pieces:
            for kind, payload in reader.feed(piece):
                assert 0 <= kind < 256 and len(payload) <= records_frames.FRAME_BYTES
    except HarnessError as error:
        assert "out of order" in error.message


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=200))), st.integers(1, 50))
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames: list[tuple[int, bytes]], size: int) -> None:
    stream = b"".join(records_frames.FRAME.pack(kind, len(payload)) + payload for kind, payload in frames)
    reader = FrameReader()
    pieces = (stream[at : at + size] for at in range(0, len(stream), size))
    assert [frame for piece in pieces for frame in reader.feed(piece)] == frames


def test_a_frame_that_is_too_large_is_refused() -> None:
    with pytest.raises(HarnessError, match="out of order"):
        list(FrameReader().feed(records_frames.FRAME.pack(records_frames.RECORDS, records_frames.FRAME_BYTES + 1)))


PARTS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 31), st.binary(max_size=60)), max_size=6)


@given(st.binary(max_size=2000))
def test_no_batch_takes_the_decoder_down(batch: bytes) -> None:
    made = decoder()
    made.add(batch)
    made.finish()
    assert made.damaged or not batch


@given(
    st.integers(0, 255), st.integers(0, 255), PARTS, st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
)
def test_no_record_takes_the_decoder_down(
    kind: int, flags: int, parts: list[tuple[int, int, bytes]], number: int, result: int
) -> None:
    made = decoder()
    body = [part(tag, data, flags) for tag, flags, data in parts]
    made.add(record(kind, 0, *body, number=number, result=result, flags=flags))
    for event in made.finish():
        assert EVENT_ADAPTER.validate_json(event.model_dump_json()) == event
        event.model_dump_json().encode()


@given(st.permutations(range(40)), st.integers(1, 10))
def test_events_come_in_the_order_of_their_numbers(order: list[int], limit: int) -> None:
    made = decoder()
    for sequence in order:
        assert made.add(record(records.CALL, sequence, number=257)) == []
    first: list[Event] = []
    while some := made.read_up_to(25, limit):
        assert len(some) <= limit
        first += some
    assert [event.record for event in first] == list(range(25))  # type: ignore[union-attr]
    assert [event.record for event in made.finish()] == list(range(25, 40))  # type: ignore[union-attr]
    assert (made.received, made.late, made.damaged) == (40, 0, 0)


def test_a_late_record_is_passed_on_and_counted() -> None:
    made = decoder()
    made.add(record(records.CALL, 3))
    assert len(made.read_up_to(4)) == 1
    made.add(record(records.CALL, 1))
    assert len(made.finish()) == 1
    assert made.late == 1


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "HELD", 10)
    made = decoder()
    told = [event for sequence in range(100) for event in made.add(record(records.CALL, sequence))]
    assert [event.record for event in told] == list(range(len(told)))  # type: ignore[union-attr]
    assert len(told) >= 90


def test_a_truncated_batch_is_noticed() -> None:
    made = decoder()
    made.add(record(records.CALL, 0) + record(records.CALL, 1)[:-1])
    assert len(made.finish()) == 1
    assert made.damaged == 1


def test_until_its_exec_the_gate_acts_and_pid_one_is_the_warden() -> None:
    events = decoded(
        record(records.CALL, 0, pid=GATE, number=257),
        mark(1, b"/.mark/n1", by=Origin.GATE),
        record(records.CALL, 2, pid=GATE, number=257),
        record(records.CALL, 3, pid=WARDEN, number=257, flags=records.FLAG_FIRST),
        record(records.EXEC, 4, pid=GATE),
        record(records.CALL, 5, pid=GATE, number=257),
        record(records.CALL, 6, pid=TARGET, number=257),
        opened=False,
    )
    target = Origin.TARGET
    assert [event.by for event in events] == [  # type: ignore[union-attr]
        Origin.GATE, Origin.GATE, Origin.GATE, Origin.WARDEN, target, target, target,
    ]  # fmt: skip


def test_a_later_step_is_the_gates_until_its_second_exec_and_no_sibling_passes_for_one() -> None:
    step, forged = 20, 21
    events = decoded(
        mark(1, b"/.mark/n1", by=Origin.GATE),
        record(records.EXEC, 2, pid=GATE, parent=0),  # the first step begins
        record(records.CALL, 3, pid=GATE, parent=0),
        record(records.FORK, 4, pid=GATE, parent=0, result=forged),  # clone(CLONE_PARENT)
        record(records.EXEC, 5, pid=forged, parent=0),
        record(records.CALL, 6, pid=forged, parent=0),
        record(records.CALL, 7, pid=step, parent=0),  # the engine sets up the second one
        record(records.EXEC, 8, pid=step, parent=0),  # it becomes the gate
        record(records.CALL, 9, pid=step, parent=0),
        record(records.EXEC, 10, pid=step, parent=0),
        record(records.CALL, 11, pid=step, parent=0),
        record(records.EXIT, 12, pid=step, parent=0),
        record(records.CALL, 13, pid=step, parent=0),  # its number, given out again
        opened=False,
    )
    gate, target = Origin.GATE, Origin.TARGET
    assert [event.by for event in events] == [  # type: ignore[union-attr]
        gate, target, target, target, target, target, gate, gate, gate, target, target, target, gate,
    ]  # fmt: skip


def test_of_several_spaces_a_decoder_takes_its_own() -> None:
    made = RecordDecoder(CallNames(READY), session="other", phase="start", epoch=0, space=3)
    made.add(b"".join(record(records.CALL, 5, number=2 + space, space=space) for space in range(5)))
    (event,) = made.finish()
    assert isinstance(event, SyscallEvent) and (event.session, event.call) == ("other", "syscall-5")
    assert (made.received, made.damaged) == (1, 0)


def test_a_sleep_says_how_long() -> None:
    event = one(arguments(0, 0), number=35, result=600, flags=records.FLAG_ENTERED)
    assert (event.flags, event.result) == (("600 s",), None)
    assert one(number=231, flags=records.FLAG_ENTERED).flags == ()


def test_flags_of_openat2_are_named() -> None:
    event = one(arguments(-100, 0, 0o102, 24), number=437)
    assert event.flags == ("O_RDWR", "O_CREAT")


def test_phases_follow_the_wardens_marks_only() -> None:
    made = decoder()
    made.add(mark(0, b"/.mark/n0", by=Origin.GATE) + record(records.CALL, 1))
    made.add(mark(2, b"/.mark/call:a%20b:77/n1", by=Origin.WARDEN) + record(records.CALL, 3))
    events = made.finish()
    assert [event.phase for event in events] == ["start", "start", "call:a b:77", "call:a b:77"]
    assert [event.nonce for event in events if isinstance(event, MarkEvent)] == ["n0", "n1"]
    assert made.marks == ("n0", "n1")


def test_no_heartbeat_of_the_warden_is_forgotten_however_many_there_are() -> None:
    made = decoder()
    made.add(mark(0, b"/.mark/n0", by=Origin.GATE))
    for number in range(1, 6000):
        made.add(mark(number, b"/.mark/call:a:77/w%d" % number, by=Origin.WARDEN))
        made.read_up_to(number)
    made.finish()
    assert made.marks[0] == "n0" and made.marks[1:] == tuple(f"w{number}" for number in range(1, 6000))


def test_marks_that_look_like_the_gates_are_bounded_and_the_first_one_stays() -> None:
    made = decoder()
    for number in range(3000):
        made.add(mark(number, b"/.mark/g%d" % number, by=Origin.GATE))
    made.finish()
    assert made.marks[0] == "g0" and len(made.marks) == records.GATE_MARKS


def test_a_kernel_path_is_turned_around_and_is_no_claim() -> None:
    event = one(
        arguments(-100, 0, 0o1101, 0o600),
        part(records_parts.PART_IDENTITY, records_parts.IDENTITY.pack(12, 3, 0o100644)),
        part(records_parts.PART_FILE, b"id_rsa/.ssh/user/home/", records_parts.REVERSED),
        result=4,
    )
    assert (event.path, event.claimed, event.identity, event.result) == ("/home/user/.ssh/id_rsa", False, "3:12", 4)
    assert event.flags == ("O_WRONLY", "O_CREAT", "O_TRUNC")


@pytest.mark.parametrize(
    ("flags", "path", "notes"),
    [
        (records_parts.REVERSED | records_parts.CUT, ".../home", {"cut"}),
        (records_parts.REVERSED | records_parts.DELETED, "/home", {"deleted"}),
        (records_parts.REVERSED | records_parts.DETACHED, "/home", {"detached"}),
    ],
)
def test_what_is_odd_about_a_path_is_noted(flags: int, path: str, notes: set[str]) -> None:
    event = one(part(records_parts.PART_FILE, b"home/", flags))
    assert (event.path, set(event.notes)) == (path, notes)


def test_a_claim_that_changed_is_noted() -> None:
    event = one(part(records_parts.PART_PATH, b"/a", records_parts.CLAIM), part(records_parts.PART_CHANGED, b""))
    assert event.claimed and event.notes == ("changed",)


def test_the_root_itself_has_no_components() -> None:
    assert one(part(records_parts.PART_FILE, b"", records_parts.REVERSED)).path == "/"


def test_a_claimed_path_is_resolved_against_its_directory() -> None:
    event = one(
        part(records_parts.PART_PATH, b"../a/./b", records_parts.CLAIM),
        part(records_parts.PART_BASE, b"work/user/", records_parts.REVERSED),
        result=-2,
    )
    assert (event.path, event.claimed, event.result) == ("/user/a/b", True, -2)
    assert "relative" in event.notes


def test_a_socket_and_its_addresses_are_told() -> None:
    four = struct.pack("<H", 2) + struct.pack(">H", 443) + bytes([203, 0, 113, 9])
    six = struct.pack("<H", 10) + struct.pack(">H", 53) + bytes(4) + bytes(15) + b"\1"
    event = one(
        part(records_parts.PART_SOCKET, bytes(8)),
        part(records_parts.PART_LOCAL, four),
        part(records_parts.PART_REMOTE, six),
        part(records_parts.PART_ADDRESS, four),
        number=42,
    )
    assert (event.call, event.local, event.remote) == ("connect", "203.0.113.9:443", "[::1]:53")
    assert event.addresses == ("203.0.113.9:443",)


def test_flags_that_say_how_a_call_went() -> None:
    denied = one(arguments(40, 1, 0), number=41, result=-1, flags=records.FLAG_DENIED)
    assert denied.denied and denied.flags == ("AF_VSOCK", "SOCK_STREAM")
    old = one(arguments(1), number=20, result=20, flags=records.FLAG_COMPAT | records.FLAG_DENIED)
    assert (old.call, old.result, old.denied) == ("getpid", None, True)
    assert "compat32" in old.notes
    assert one(number=257, flags=records.FLAG_ENTERED).result is None
    assert one(number=999).call == "syscall-999"


def test_processes_begin_become_and_end() -> None:
    exec_, fork, thread, ended, killed = decoded(
        record(
            records.EXEC,
            1,
            part(records_parts.PART_FILE, b"dash/bin/usr/", records_parts.REVERSED),
            part(records_parts.PART_REQUESTED, b"./run"),
            part(records_parts.PART_INTERPRETER, b"/bin/sh"),
            part(records_parts.PART_DIRECTORY, b"app/", records_parts.REVERSED),
            part(records_parts.PART_ARGV, b"sh\0-c\0a\nb \xff\0\0"),
            part(records_parts.PART_ENVIRONMENT, b"HOME\0PATH\0"),
        ),
        record(records.FORK, 2, number=0, result=11),
        record(records.FORK, 3, number=1, result=12),
        record(records.EXIT, 4, result=3 << 8),
        record(records.EXIT, 5, result=9),
    )
    assert isinstance(exec_, ProcessEvent)
    assert (exec_.path, exec_.requested, exec_.interpreter) == ("/usr/bin/dash", "./run", "/bin/sh")
    assert (exec_.directory, exec_.environment) == ("/app", ("HOME", "PATH"))
    assert exec_.argv == ("sh", "-c", "a\nb \\xff", "")
    assert "escaped" in exec_.notes
    assert isinstance(fork, ProcessEvent) and (fork.what, fork.child) == ("fork", 11)
    assert isinstance(thread, ProcessEvent) and (thread.what, thread.child) == ("thread", 12)
    assert isinstance(ended, ProcessEvent) and (ended.code, ended.signal) == (3, None)
    assert isinstance(killed, ProcessEvent) and (killed.code, killed.signal) == (None, 9)


def test_bytes_that_went_through_a_file_are_told_afterwards_in_their_place() -> None:
    body = records.TRANSFER.pack(1, 12, 3, 0o100644, 77, TARGET, 5, 6, 8) + bytes(8)
    events = decoded(
        record(records.CALL, 5, number=257),
        record(records.TRANSFERRED, records.UNNUMBERED, part(records_parts.PART_ARGUMENTS, body)),
    )
    transfer = events[-1]
    assert isinstance(transfer, TransferEvent)
    assert (transfer.read, transfer.written, transfer.identity, transfer.record) == (5, 6, "3:12", -1)


def test_bitmaps_name_the_calls() -> None:
    names = CallNames(READY)
    words = [0] * 16
    for number in (2, 42, 257, 600):
        words[number // 64] |= 1 << number % 64
    bitmap = "".join(f"{word:016x}" for word in words)
    assert names.set_in(bitmap) == ("connect", "open", "openat", "syscall-600")
    assert names.set_in("not hex") == ()


def test_counters_are_parsed() -> None:
    assert records_frames.parse_counters(b"matched 12\nentered 00ff\n\n") == {"matched": "12", "entered": "00ff"}
