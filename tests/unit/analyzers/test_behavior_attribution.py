"""Who did it and when: phases by marks, calls by nonce and by time, process trees, paths, noise, bounds."""

from __future__ import annotations

from behavior_sample import ENTRY, PYTHON, WORKSPACE, Record, started

from harness.analyzers.behavior import attribution as bounds
from harness.analyzers.behavior.attribution import Attribution, Where
from harness.model.call import Call, CallEvent, Purpose
from harness.model.recording import KernelEvent, MarkEvent, Origin, ProcessEvent, SyscallEvent


def told(record: Record, *texts: str) -> tuple[Attribution, Where]:
    """Where the last event of the record belongs."""
    attribution = Attribution()
    for event in record.events:
        attribution.take(event)
    last = record.events[-1]
    assert isinstance(last, KernelEvent)
    return attribution, attribution.where(last, *texts)


def test_the_phase_is_that_of_the_last_mark_in_the_trace() -> None:
    record = started().enter("discover")
    record.phase = "what the event itself says"
    assert told(record.open("/x"))[1].phase == "discover"


def test_without_a_mark_the_event_has_the_word() -> None:
    record = Record(phase="idle").open("/x")
    assert told(record)[1].phase == "idle"


def test_what_is_told_afterwards_is_put_in_order_by_its_time() -> None:
    record = started()
    early = record.events[-1].t + 1
    record.enter("discover").open("/x").enter("stop")
    assert told(record.transfer("/y", 5, t=early, record=-1))[1].phase == "start"
    assert told(record.transfer("/y", 5, t=record.events[-2].t + 1, record=-1))[1].phase == "stop"


def test_sessions_have_phases_and_processes_of_their_own() -> None:
    record = started().enter("discover")
    record.session = "stock-client"
    record.begin("other")
    assert told(record.open("/x"))[1][:2] == ("stock-client", "start")
    record.session = "main"
    _, where = told(record.open("/y"))
    assert (where.phase, where.process.argv) == ("discover", ("python", "server.py"))


def test_a_call_is_found_by_time_and_by_the_nonce_in_what_was_done() -> None:
    record = started().enter("call:look:aaaa1111").enter("call:write:bbbb2222").open("/x")
    _, by_time = told(record)
    assert (by_time.tool, by_time.call, by_time.number) == ("write", "bbbb2222", 2)
    _, by_nonce = told(record, "/tmp/aaaa1111.txt")
    assert (by_nonce.tool, by_nonce.call, by_nonce.number) == ("look", "aaaa1111", 1)


def test_tools_may_have_colons_in_their_names() -> None:
    assert told(started().enter("call:a:b:cccc").open("/x"))[1].tool == "a:b"


def test_a_late_effect_is_after_its_call_and_never_of_the_next() -> None:
    record = started().enter("call:look:aaaa1111").fork(20)
    record.enter("call:write:bbbb2222").open("/x", pid=20)
    _, where = told(record)
    assert (where.tool, where.after) == (None, 1)
    assert told(record.open("/y"))[1].tool == "write"
    assert told(record.enter("idle").open("/z"))[1].after == 2
    assert told(record.open("/z", pid=20))[1].after == 1


def test_a_child_of_a_late_process_is_late_too() -> None:
    record = started().enter("call:look:aaaa1111").fork(20).enter("call:write:bbbb2222").fork(21, pid=20)
    assert told(record.open("/x", pid=21))[1].after == 1


def test_the_tree_tells_who_started_whom() -> None:
    record = started().spawn(20, "/usr/bin/dash", "sh", "-c", "id").fork(21, pid=20)
    record.exec("/usr/bin/id", "id", pid=21, parent=20)
    _, where = told(record)
    assert where.process.name == "id"
    assert where.process.ancestors == ("/usr/bin/dash", PYTHON)
    assert where.process.parent_name == "dash"


def test_an_exec_chain_keeps_its_history() -> None:
    record = started().spawn(20, "/usr/bin/env", "env", "node").exec("/usr/bin/node", "node", pid=20)
    assert told(record)[1].process.ancestors == ("/usr/bin/env", PYTHON)


def test_a_number_that_is_used_again_is_another_process() -> None:
    record = started().spawn(20, "/usr/bin/id", "id").exit(pid=20).fork(20)
    _, where = told(record.open("/x", pid=20))
    assert where.process.name == "python3.13"


def test_a_new_start_begins_a_new_tree() -> None:
    record = started().spawn(20, "/usr/bin/id", "id")
    record.begin("again")
    _, where = told(record)
    assert (where.process.entry, where.process.argv, where.process.ancestors) == (True, ("again",), ())


def paths(record: Record, path: str, **more: object) -> str:
    attribution = Attribution()
    for event in record.events:
        attribution.take(event)
    fields = {"phase": "start", "pid": ENTRY, "tid": ENTRY, "call": "openat", "args": (-100, 0, 0)}
    event = SyscallEvent.model_validate({**fields, "path": path, **more})
    return attribution.path(event, path)


def test_relative_paths_start_where_the_process_is() -> None:
    assert paths(started(), "x") == f"{WORKSPACE}/x"
    assert paths(started(), "../x") == "/home/user/x"
    assert paths(started().call("chdir", path="/tmp"), "x") == "/tmp/x"
    assert paths(started().call("chdir", path="sub").call("chdir", path="/no", result=-2), "x") == f"{WORKSPACE}/sub/x"
    assert paths(started().call("chdir", path="/tmp").fork(20), "x", pid=20, parent=ENTRY) == "/tmp/x"


def test_relative_paths_start_at_the_descriptor_that_was_given() -> None:
    record = started().open("/etc/cron.d", "O_RDONLY", "O_DIRECTORY", result=5)
    assert paths(record, "x", args=(5, 0, 0)) == "/etc/cron.d/x"
    assert paths(record, "x", args=(9, 0, 0)) == "x"
    assert paths(record.call("fchdir", args=(5,)), "x") == "/etc/cron.d/x"
    attribution = Attribution()
    for event in record.events:
        attribution.take(event)
    move = SyscallEvent(phase="start", pid=ENTRY, tid=ENTRY, call="renameat2", args=(-100, 0, 5, 0, 0))
    assert attribution.path(move, "y", second=True) == "/etc/cron.d/y"


def test_detours_through_proc_lead_where_they_lead() -> None:
    assert paths(started(), "/proc/self/root/etc/shadow") == "/etc/shadow"
    assert paths(started(), "/proc/self/cwd/.git/hooks/x") == f"{WORKSPACE}/.git/hooks/x"
    assert paths(started(), "/home//user/./a/../.ssh/id_rsa") == "/home/user/.ssh/id_rsa"


def test_gate_warden_and_the_containers_start_are_noise() -> None:
    record = started()
    attribution = Attribution()
    for event in record.events:
        attribution.take(event)

    def noise(**more: object) -> bool:
        fields = {"phase": "start", "pid": ENTRY, "tid": ENTRY, "call": "mount"}
        return attribution.noise(SyscallEvent.model_validate({**fields, **more}))

    assert noise(by=Origin.GATE)
    assert noise(by=Origin.WARDEN)
    assert not noise()
    assert not noise(pid=20, parent=ENTRY)
    assert noise(pid=30, parent=0)  # put there from outside: the container runtime of a further step
    for path, expected in ((bounds.GATE, True), ("/usr/bin/npm", False)):
        attribution.take(ProcessEvent(phase="install", pid=30, tid=30, what="exec", path=path))
        assert noise(pid=30, parent=0) is expected


def test_the_target_stays_the_target_when_its_processes_were_forgotten() -> None:
    record = started()
    for child in range(100, 100 + bounds.MAX_PROCESSES + 50):
        record.fork(child)
    attribution, _ = told(record.open("/x"))
    assert not attribution.noise(record.events[-1])  # type: ignore[arg-type]


def test_memory_is_bounded() -> None:
    attribution = Attribution()
    for number in range(3 * bounds.MAX_PROCESSES):
        session = f"s{number % 200}"
        common = {"phase": "start", "session": session, "pid": number, "tid": number, "record": number}
        attribution.take(ProcessEvent.model_validate({**common, "what": "fork", "child": number + 1}))
        mark = {**common, "by": "warden", "nonce": "n", "phase": f"call:t:{number}"}
        attribution.take(MarkEvent.model_validate(mark))
        opened = {**common, "call": "openat", "path": f"/d{number}", "flags": ("O_DIRECTORY",), "result": number}
        attribution.take(SyscallEvent.model_validate(opened))
    assert len(attribution._sessions) <= bounds.MAX_SESSIONS + 1
    assert len(attribution._calls) <= bounds.MAX_CALLS >= len(attribution._by_phase)
    for session_state in attribution._sessions.values():
        assert len(session_state.processes) <= bounds.MAX_PROCESSES
        assert len(session_state.marks) <= bounds.MAX_MARKS
        assert all(len(p.folders) <= bounds.MAX_FOLDERS for p in session_state.processes.values())


def test_the_short_id_of_a_call_is_no_nonce_but_the_one_it_announces_is() -> None:
    record = started().enter("call:look:c1").enter("call:write:c2").open("/x")
    _, where = told(record, "/tmp/abc1def")
    assert (where.tool, where.call) == ("write", "c2")
    call = Call(id="c1", item="look", params={}, purpose=Purpose.PAYLOAD, nonce="0123456789abcdef0123")
    record = started()
    record.add(CallEvent(phase="call:look:c1", call=call))
    record.enter("call:look:c1").enter("call:write:c2").open("/x")
    _, where = told(record, "/tmp/0123456789abcdef0123")
    assert (where.tool, where.attacked) == ("look", True)
