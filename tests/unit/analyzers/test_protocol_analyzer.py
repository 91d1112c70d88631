"""The `protocol` analyzer on conversations: each fault is found once, and its benign twin stays silent."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from recordings_sample import INITIALIZED, TOOL, Tape, healthy, manifest, surface

from harness.analyzers.engine import run_one
from harness.model.coverage import SkipReason
from harness.model.finding import EvidenceLevel, Severity
from harness.model.recording import Anomaly, DeadlineEvent, LimitEvent, ListEvent
from harness.model.result import AnalyzerResult, AnalyzerStatus
from harness.model.surface import ItemKind, ListEnd


def judge(tape: Tape, *surfaces: Any, **facts: Any) -> AnalyzerResult:
    return run_one("protocol", tape.input(*surfaces, **facts))


def rules(result: AnalyzerResult) -> list[tuple[str, Severity]]:
    return [(finding.rule_id, finding.severity) for finding in result.findings]


def test_a_healthy_server_is_silent_and_complete() -> None:
    result = judge(healthy())
    assert (result.status, result.findings, result.coverage.gaps()) == (AnalyzerStatus.COMPLETED, (), ())
    assert result.coverage.subjects["frames"].discovered == 2
    assert result.coverage.subjects["sessions"].analyzed == 1


def _open() -> Tape:
    return Tape().start().handshake().enter("discover")


FAULTS: dict[str, tuple[Callable[[], Tape], str, Severity]] = {
    "banner": (
        lambda: _open().line(b"Server ready!", Anomaly.NOT_JSON).tools().stop(),
        "protocol.non-json-output",
        Severity.LOW,
    ),
    "invalid utf-8": (
        lambda: _open().line(b"\xff\xfe", Anomaly.INVALID_UTF8).tools().stop(),
        "protocol.malformed-message",
        Severity.MEDIUM,
    ),
    "log line as json": (
        lambda: _open().line(b'{"level":"info"}', Anomaly.NOT_JSONRPC).tools().stop(),
        "protocol.malformed-message",
        Severity.LOW,
    ),
    "duplicate key": (
        lambda: _open().line(b'{"jsonrpc":"2.0","a":1,"a":2}', Anomaly.DUPLICATE_KEY).tools().stop(),
        "protocol.ambiguous-json",
        Severity.MEDIUM,
    ),
    "unknown id": (
        lambda: _open().say({"jsonrpc": "2.0", "id": 99, "result": {}}, Anomaly.UNKNOWN_ID).tools().stop(),
        "protocol.wrong-id",
        Severity.MEDIUM,
    ),
    "uninvited sampling": (
        lambda: _open().say({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage"}).tools().stop(),
        "protocol.uninvited-request",
        Severity.LOW,
    ),
    "no name": (lambda: _open().tools({"inputSchema": {"type": "object"}}).stop(), "protocol.schema", Severity.MEDIUM),
    "no input schema": (lambda: _open().tools({"name": "x"}).stop(), "protocol.schema", Severity.MEDIUM),
    "schema is a list": (
        lambda: _open().tools({"name": "x", "inputSchema": []}).stop(),
        "protocol.schema",
        Severity.MEDIUM,
    ),
    "cursor is a number": (lambda: _open().tools(TOOL, nextCursor=3).stop(), "protocol.schema", Severity.MEDIUM),
    "null description": (
        lambda: _open().tools({**TOOL, "description": None}).stop(),
        "protocol.schema",
        Severity.INFO,
    ),
    "no protocol version": (
        lambda: (
            Tape().start().handshake({"capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}).tools().stop()
        ),
        "protocol.schema",
        Severity.MEDIUM,
    ),
    "result and error": (
        lambda: (
            _open()
            .ask("ping")
            .say({"jsonrpc": "2.0", "id": 2, "result": {}, "error": {"code": 1, "message": ""}})
            .tools()
            .stop()
        ),
        "protocol.schema",
        Severity.MEDIUM,
    ),
    "error without code": (
        lambda: _open().ask("ping").refuse(code="E").tools().stop(),
        "protocol.schema",
        Severity.LOW,
    ),
    "hang": (
        lambda: _open().add(DeadlineEvent(phase="discover", what="tools/list", seconds=20)).tools().stop(),
        "protocol.hang",
        Severity.MEDIUM,
    ),
    "flood": (
        lambda: _open().add(LimitEvent(phase="discover", what="server-requests", bound=32, seen=33)).tools().stop(),
        "protocol.flood",
        Severity.MEDIUM,
    ),
    "exit by itself": (lambda: _open().tools().stop(0, by="target"), "protocol.early-exit", Severity.LOW),
    "crash after all lists": (lambda: _open().tools().stop(None, 11, by="target"), "protocol.crash", Severity.MEDIUM),
    "out of memory": (
        lambda: _open().tools().stop(None, 9, oom_killed=True),
        "protocol.crash",
        Severity.MEDIUM,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_finding_with_protocol_evidence(name: str) -> None:
    make, rule, severity = FAULTS[name]
    result = judge(make())
    assert rules(result) == [(rule, severity)]
    finding = result.findings[0]
    assert finding.evidence_level is EvidenceLevel.PROTOCOL
    assert finding.evidence[0].seq
    assert result.status is AnalyzerStatus.COMPLETED
    assert severity.rank < Severity.HIGH.rank


TWINS: dict[str, Callable[[], Tape]] = {
    "a blank line": lambda: _open().line(b"  ", Anomaly.NOT_JSON).tools().stop(),
    "ping from the server": lambda: _open().say({"jsonrpc": "2.0", "id": "p", "method": "ping"}).tools().stop(),
    "unknown members": lambda: _open().tools({**TOOL, "x-vendor": [1], "annotations": {"zz": 1}}, extra=1).stop(),
    "a notification": lambda: _open().say({"jsonrpc": "2.0", "method": "notifications/zz"}).tools().stop(),
    "silence to server/discover": lambda: (
        Tape().start().add(DeadlineEvent(phase="start", what="server/discover", seconds=2)).handshake().tools().stop()
    ),
    "an error without an id": lambda: (
        _open()
        .say({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}, Anomaly.WRONG_ID_TYPE)
        .tools()
        .stop()
    ),
    "exit code at stop": lambda: _open().tools().stop(1),
    "signal at stop by us": lambda: _open().tools().stop(None, 9),
    "much on stderr": lambda: (
        _open().add(LimitEvent(phase="discover", what="stderr-bytes", bound=1, seen=2)).tools().stop()
    ),
    "not offered": lambda: (
        _open()
        .tools()
        .add(ListEvent(phase="discover", list=ItemKind.PROMPT, pages=0, items=0, end=ListEnd.NOT_OFFERED))
        .stop()
    ),
    "no method for templates": lambda: (
        _open()
        .tools()
        .add(
            ListEvent(
                phase="discover",
                list=ItemKind.RESOURCE_TEMPLATE,
                pages=0,
                items=0,
                end=ListEnd.ERROR,
                detail="error -32601: no",
            )
        )
        .stop()
    ),
    "roots where the client offers them": lambda: (
        Tape()
        .start()
        .ask("initialize", {"capabilities": {"roots": {}}})
        .answer(INITIALIZED)
        .say({"jsonrpc": "2.0", "id": 0, "method": "roots/list"})
        .tools()
        .stop()
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_what_honest_servers_do_stays_silent(name: str) -> None:
    result = judge(TWINS[name]())
    assert result.findings == ()
    assert (result.status, result.coverage.gaps()) == (AnalyzerStatus.COMPLETED, ())


def test_noise_is_one_finding_with_a_count_and_few_examples() -> None:
    tape = _open()
    for number in range(1000):
        tape.line(f"log {number}".encode(), Anomaly.NOT_JSON)
    (finding,) = judge(tape.tools().stop()).findings
    assert "1000 times" in finding.description
    assert len(finding.evidence) == 3
    twice = judge(_open().line(b"other", Anomaly.NOT_JSON).tools().stop()).findings[0]
    assert twice.fingerprint == finding.fingerprint


def test_a_crash_while_in_use_is_told_from_an_exit_code_at_stop() -> None:
    lost = ListEvent(phase="discover", list=ItemKind.TOOL, pages=0, items=0, end=ListEnd.CLOSED)
    result = judge(_open().ask("tools/list").add(lost).stop(3, by="target"))
    assert rules(result) == [("protocol.crash", Severity.MEDIUM)]
    assert result.findings[0].location.phase == "discover"
    assert result.coverage.gaps() == ("lists: list of tools not analyzed, reason target: the list ended with closed",)


def test_a_crash_of_the_stock_client_session_is_not_one_of_the_main_session() -> None:
    tape = healthy()
    tape.start("stock-client").stop(None, 11, by="target")
    result = judge(tape)
    (finding,) = result.findings
    assert finding.location.phase == "stock-client"
    assert "stock client" in finding.title
    assert result.status is AnalyzerStatus.COMPLETED
    assert result.coverage.gaps() == ()


@pytest.mark.parametrize(
    ("tape", "said"),
    [
        (Tape().start().ask("initialize").stop(2, by="target"), "exit code 2"),
        (Tape().start().ask("initialize").stop(None, 9), "no answer came"),
        (Tape().start().ask("initialize").refuse().stop(), "error"),
        (Tape(), "never started"),
    ],
)
def test_a_target_that_never_answered_is_partial(tape: Tape, said: str) -> None:
    result = judge(tape, surface())
    assert result.status is AnalyzerStatus.PARTIAL
    assert said in result.reason
    assert result.coverage.gaps()


def test_a_server_that_hangs_at_start_is_not_called_a_crash() -> None:
    wait = DeadlineEvent(phase="start", what="initialize", seconds=60)
    result = judge(Tape().start().ask("initialize").add(wait).stop(0), surface())
    assert rules(result) == [("protocol.hang", Severity.MEDIUM)]
    assert "no answer came" in result.reason


def test_a_start_that_failed_is_low_and_says_what_to_do() -> None:
    result = judge(Tape().start().ask("initialize").stop(2, by="target"), surface())
    assert rules(result) == [("protocol.early-exit", Severity.LOW)]
    assert "--env" in result.findings[0].remediation


def test_an_incomplete_recording_and_a_stopped_run_are_partial() -> None:
    assert judge(healthy(), complete=False).reason == "the recording is incomplete"
    stopped = judge(healthy(), manifest=manifest(problems=("the engine went away",)))
    assert (stopped.status, stopped.reason) == (AnalyzerStatus.PARTIAL, "the engine went away")


def test_what_was_cut_is_a_gap_of_our_own_bound() -> None:
    result = judge(_open().line(b'{"jsonrpc"', truncated=True).tools().stop())
    (skip,) = result.coverage.subjects["frames"].skipped
    assert skip.reason is SkipReason.LIMIT
    cut = judge(_open().add(LimitEvent(phase="discover", what="stdout-bytes", bound=1, seen=2)).tools().stop())
    assert any("stdout-bytes" in gap for gap in cut.coverage.gaps())
    over = judge(_open().tools().add(DeadlineEvent(phase="discover", what="run", seconds=300)).stop())
    assert over.findings == () and over.coverage.gaps()


def test_a_list_too_long_to_keep_is_checked_by_its_items() -> None:
    def run(*tools: dict[str, Any]) -> AnalyzerResult:
        tape = _open().line(b'{"jsonrpc"', truncated=True).tools().stop()
        frame = next(event.seq for event in tape.events if event.kind == "frame" and event.truncated)
        look = surface(*tools)
        items = tuple(item.model_copy(update={"frame": frame}) for item in look.items)
        return judge(tape, look.model_copy(update={"items": items}))

    assert (run(TOOL).findings, run(TOOL).coverage.gaps()) == ((), ())
    assert rules(run({"name": "x"})) == [("protocol.schema", Severity.MEDIUM)]


def test_names_that_occur_twice_are_found_in_the_surface() -> None:
    result = judge(healthy(), surface(TOOL, TOOL, {**TOOL, "name": "other"}))
    assert rules(result) == [("protocol.duplicate-name", Severity.MEDIUM)]


def test_evidence_is_safe_to_show() -> None:
    (finding,) = judge(_open().line("\x1b[2J\u202egnp\n".encode(), Anomaly.NOT_JSON).tools().stop()).findings
    assert finding.evidence[0].text == "\\u001B[2J\\u202Egnp\\u000A"


def test_only_what_was_received_is_judged() -> None:
    tape = _open()
    from harness.model.recording import Direction

    tape.frame(Direction.SENT, b'{"jsonrpc":"2.0","id":50,"method":"tools/list","params":{"cursor":7}}')
    tape.frame(Direction.SENT, b"not json at all", Anomaly.NOT_JSON)
    assert judge(tape.tools().stop()).findings == ()


@pytest.mark.parametrize(
    "line",
    [b"9" * 5000, b"[" * 60_000, b'{"jsonrpc":"2.0","id":1e999,"result":1}', b'{"id":true,"result":null}', b"null"],
)
def test_strange_frames_never_crash_it(line: bytes) -> None:
    assert judge(_open().line(line).tools().stop()).status is AnalyzerStatus.COMPLETED


def test_memory_does_not_grow_with_the_number_of_events() -> None:
    sample = Tape().start().handshake().enter("discover")
    sample.ask("tools/list").answer({"tools": [{"name": 1}]}).line(b"noise", Anomaly.NOT_JSON)
    sample.say({"jsonrpc": "2.0", "id": 4, "method": "x/y"})

    def peak(rounds: int) -> int:
        def stream() -> Any:
            for number in range(rounds):
                yield from sample.events
                if number % 50 == 0:
                    gc.collect()  # what only waits for the collector is no growth

        given = sample.input()
        given = type(given)(given.facts, stream())
        tracemalloc.start()
        run_one("protocol", given)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(10)
    assert peak(4000) < peak(2000) + 50_000  # what is bounded has reached its bound by then
