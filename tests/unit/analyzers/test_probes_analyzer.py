"""The `probes` analyzer on what comes of single messages: each fault is found, and the right answer stays silent."""

from __future__ import annotations

from typing import Any

import pytest
from behavior_sample import Record
from recordings_sample import Tape, manifest, surface

from harness.analyzers.engine import run_one
from harness.model.canary import Canary, CanaryPlace
from harness.model.finding import EvidenceLevel, Severity
from harness.model.options import ActiveLevel, RunOptions
from harness.model.probe import (
    Family,
    HttpReply,
    HttpShape,
    Must,
    Probe,
    ProbeBooks,
    ProbeBooksEvent,
    Probed,
    ProbeEndEvent,
    ProbeEvent,
    Unsent,
)
from harness.model.recording import Anomaly, LimitEvent, StderrEvent
from harness.model.result import AnalyzerResult, AnalyzerStatus

SAFE = manifest(options=RunOptions(active=ActiveLevel.SAFE))
ALIVE = {"jsonrpc": "2.0", "id": 900_500, "result": {}}
ERROR = {"code": -32600, "message": "Invalid request"}


def probe(name: str = "R01", **more: Any) -> Probe:
    fields: dict[str, Any] = {
        "id": name,
        "title": "a message",
        "family": Family.ENVELOPE,
        "sends": ('{"id":900001}',),
        "ids": ("900001",),
        "alive": "{}",
        "alive_id": 900_500,
        "must": Must.REJECT,
        "accepted": Severity.LOW,
        "source": "the text",
    }
    return Probe(**(fields | more))


class ProbeTape(Tape):
    """A session with probes; each `send` is one, with what comes back in between."""

    def send(self, sent: Probe, *answers: Any, state: str = "alive", alive: bool = True, **facts: Any) -> ProbeTape:
        self.enter(f"probe:{sent.id}")
        self.add(ProbeEvent(phase=self.phase, session=self.session, probe=sent))
        for answer in answers:
            self.line(answer) if isinstance(answer, bytes) else self.say(answer)
        if state == "alive" and alive:
            self.say(ALIVE | {"id": sent.alive_id})
        return self.done(sent, state, **facts)

    def done(self, sent: Probe, state: str = "alive", **facts: Any) -> ProbeTape:
        probed = Probed(probe=sent.id, state=state, **({"bytes_sent": 100} | facts))  # type: ignore[arg-type]
        self.add(ProbeEndEvent(phase=self.phase, session=self.session, probed=probed))
        return self

    def judge(self, *unsent: Unsent, books: bool = True, **facts: Any) -> AnalyzerResult:
        if books:
            count = sum(isinstance(event, ProbeEvent) for event in self.events)
            self.add(ProbeBooksEvent(phase="probe", books=ProbeBooks(planned=count + len(unsent), unsent=unsent)))
        return run_one("probes", self.input(surface(), **({"manifest": SAFE} | facts)))


def begun() -> ProbeTape:
    tape = ProbeTape()
    tape.start().handshake()
    return tape


def found(result: AnalyzerResult) -> dict[str, Severity]:
    return {finding.rule_id: finding.severity for finding in result.findings}


def response(identifier: Any = 900_001, **body: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, **(body or {"error": ERROR})}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


SILENT: list[tuple[Probe, tuple[Any, ...]]] = [
    (probe(), ()),  # silence is no violation
    (probe(), (response(),)),
    (probe(), (response(None),)),
    (probe(must=Must.LIVE), (response(result={"tools": []}),)),
    (probe(must=Must.IGNORE, ids=()), ()),
    (probe(family=Family.TOOLS), (response(result=said("no", isError=True)),)),
    (probe(must=Must.NEGOTIATE, version="1999-01-01"), (response(result={"protocolVersion": "2025-11-25"}),)),
    (probe(must=Must.LIVE, answers=2), (response(result={}), response(result={}))),
    (probe(ids=('"900001"',), must=Must.LIVE), (response("900001", result={}),)),
    (probe(), ({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "bad"}},)),
    (probe(), ({"jsonrpc": "2.0", "id": 3, "method": "roots/list"},)),
    (probe(), (response(error={"code": 1, "message": "at least one of: a, b (line 3:14)"}),)),
    (probe(), (response(error={"code": 1, "message": "ENOENT: /home/user/workspace/x"}),)),
    (probe(), (response(error={"code": 1, "message": "no", "data": ["PATH", "HOME"]}),)),
    (probe(family=Family.SIZE), ()),
]


@pytest.mark.parametrize(("sent", "answers"), SILENT)
def test_what_is_in_order_is_silent(sent: Probe, answers: tuple[Any, ...]) -> None:
    result = begun().send(sent, *answers, grown=40 << 20).judge()
    assert (result.status, result.findings, result.coverage.gaps()) == (AnalyzerStatus.COMPLETED, (), ())
    assert result.coverage.subjects["probes"].analyzed == 1


BATCH = [response(result={}), response(900_002, result={})]
TRACE = 'Traceback (most recent call last):\n  File "/app/x.py", line 3, in f\nValueError'
NODE_TRACE = "Error: x\n    at Server.handle (/app/node_modules/x/dist/index.js:12:34)"
FAULTY: list[tuple[Probe, tuple[Any, ...], str, Severity]] = [
    (probe(), (response(result={}),), "probe.accepted", Severity.LOW),
    (probe(accepted=Severity.INFO), (response(result={}),), "probe.lenient", Severity.INFO),
    (probe(ids=("900001", "900002")), (BATCH,), "probe.accepted", Severity.LOW),
    (probe(ids=("null",)), (response(None, result={}),), "probe.accepted", Severity.LOW),
    (probe(ids=("true", "1")), (response(True, result={}),), "probe.accepted", Severity.LOW),
    (probe(family=Family.TOOLS), (response(result=said("done")),), "probe.accepted", Severity.LOW),
    (probe(family=Family.TOOLS), (response(result=said("unknown tool")),), "probe.lenient", Severity.INFO),
    (
        probe(must=Must.NEGOTIATE, version="1999-01-01"),
        (response(result={"protocolVersion": "1999-01-01"}),),
        "probe.accepted",
        Severity.LOW,
    ),
    (
        probe(family=Family.RESOURCES, accepted=Severity.HIGH),
        (response(result={"contents": [{"text": "x"}]}),),
        "probe.accepted",
        Severity.HIGH,
    ),
    (
        probe(family=Family.RESOURCES, accepted=Severity.HIGH),
        (response(result={"contents": []}),),
        "probe.accepted",
        Severity.LOW,
    ),
    (probe(), (response(4242),), "probe.wrong-id", Severity.MEDIUM),
    (probe(), (response("900001"),), "probe.wrong-id", Severity.MEDIUM),
    (probe(ids=('"900001"',)), (response(900_001, result={}),), "probe.wrong-id", Severity.MEDIUM),
    (probe(), (response(), response()), "probe.wrong-id", Severity.MEDIUM),
    (probe(), (ALIVE,), "probe.wrong-id", Severity.MEDIUM),
    (
        probe(ids=("9007199254740993",), must=Must.LIVE),
        (response(9007199254740992, result={}),),
        "probe.lenient",
        Severity.INFO,
    ),
    (probe(must=Must.IGNORE, ids=()), (response(None),), "probe.answered-notification", Severity.LOW),
    (probe(must=Must.IGNORE, ids=()), (response(None, result={}),), "probe.answered-notification", Severity.MEDIUM),
    (
        probe(must=Must.IGNORE, ids=()),
        ({"jsonrpc": "2.0", "result": {}},),
        "probe.answered-notification",
        Severity.MEDIUM,
    ),
    (probe(), (response(error={"code": 1, "message": TRACE}),), "probe.leak", Severity.LOW),
    (probe(), (response(error={"code": 1, "message": "x", "data": NODE_TRACE}),), "probe.leak", Severity.LOW),
    (probe(), (response(None, error={"code": 1, "message": TRACE}),), "probe.leak", Severity.LOW),
    (
        probe(),
        (response(error={"code": 1, "message": "x", "data": {"PATH": "/usr/bin", "HOME": "/home/user"}}),),
        "probe.leak",
        Severity.MEDIUM,
    ),
    (probe(), (response(error={"code": 1, "message": "root:x:0:0:root:/root:/bin/sh"}),), "probe.leak", Severity.HIGH),
    (probe(), (response(error={"code": 1, "message": "key tr0ub4dor-and-3"}),), "probe.leak", Severity.HIGH),
]


@pytest.mark.parametrize(("sent", "answers", "rule", "severity"), FAULTY)
def test_what_is_wrong_is_found_and_nothing_else(
    sent: Probe, answers: tuple[Any, ...], rule: str, severity: Severity
) -> None:
    canary = Canary(value="tr0ub4dor-and-3", name="a", place=CanaryPlace.HOME, kind="text")
    result = begun().send(sent, *answers).judge(manifest=SAFE.model_copy(update={"canaries": (canary,)}))
    assert found(result) == {rule: severity}
    assert sent.id in result.findings[0].description


def test_noise_on_stdout_is_found() -> None:
    tape, sent = begun(), probe()
    tape.enter(f"probe:{sent.id}").add(ProbeEvent(phase=tape.phase, probe=sent))
    tape.line(b"ERROR: bad message", Anomaly.NOT_JSON).say(ALIVE)
    assert found(tape.done(sent).judge()) == {"probe.noise": Severity.LOW}


def test_a_banner_before_the_handshake_is_no_answer() -> None:
    tape, sent = begun(), probe("L03", family=Family.HANDSHAKE, must=Must.LIVE)
    tape.enter(f"probe:{sent.id}").add(ProbeEvent(phase=tape.phase, probe=sent))
    tape.line(b"Server running on stdio", Anomaly.NOT_JSON).say(ALIVE)
    assert found(tape.done(sent).judge()) == {}


def test_a_late_answer_belongs_to_the_message_that_it_answers() -> None:
    tape = begun().send(probe("R01")).send(probe("R02", ids=("900002",), alive_id=900_501), response(result={}))
    result = tape.judge()
    assert found(result) == {"probe.accepted": Severity.LOW}
    assert "R01" in result.findings[0].description and "R02" not in result.findings[0].description


def test_odd_ids_count_only_while_their_message_is_at_hand() -> None:
    tape = begun().send(probe("R04", ids=("true", "1")))
    tape.enter("discover")
    assert found(tape.ask("tools/list").say(response(1, result={"tools": []})) and tape.judge()) == {}


def test_ordinary_answers_that_come_late_are_no_strays() -> None:
    tape = begun()
    tape.ask("prompts/list")
    assert found(tape.send(probe(), response(2, result={"prompts": []})).judge()) == {}


# Deaths


def death(*attempts: str, code: int = 1, by: str = "target", stderr: str = "", **more: Any) -> ProbeTape:
    """A probe sent once for each state, each after a fresh start."""
    tape = begun()
    for number, state in enumerate(attempts, 1):
        if number > 1:
            tape.start(f"again-{number}").handshake()
        tape.send(probe(attempt=number, **more), state=state, closed="end of stream" if state == "closed" else "")
        if state == "closed":
            tape.stop(code=code, by=by)
            tape.add(StderrEvent(phase="stop", session=tape.session, size=1, kept=1, sha256="0", tail=stderr))
    return tape


def test_what_ends_a_server_twice_is_to_blame() -> None:
    result = death("closed", "closed").judge()
    assert found(result) == {"probe.crash": Severity.MEDIUM}
    assert result.findings[0].evidence_level is EvidenceLevel.DYNAMIC
    assert "exit code 1" in result.findings[0].evidence[0].text


def test_what_ended_it_once_is_not_sure() -> None:
    assert found(death("closed", "alive").judge()) == {"probe.crash": Severity.LOW}


def test_an_end_by_memory_is_told() -> None:
    tape = begun().send(probe(), state="closed", closed="end of stream")
    tape.stop(code=None, signal=9, by="target", oom_killed=True)
    assert "memory" in tape.judge().findings[0].description


@pytest.mark.parametrize(
    ("states", "family", "rule", "severity"),
    [
        (("silent", "silent"), Family.ENVELOPE, "probe.hang", Severity.MEDIUM),
        (("silent", "alive"), Family.ENVELOPE, "probe.hang", Severity.LOW),
        (("silent", "silent"), Family.FRAMING, "probe.desync", Severity.MEDIUM),
        (("silent", "alive"), Family.FRAMING, "probe.hang", Severity.LOW),
    ],
)
def test_a_standstill_is_found(states: tuple[str, ...], family: Family, rule: str, severity: Severity) -> None:
    assert found(death(*states, family=family).judge()) == {rule: severity}


def test_a_server_that_knows_no_ping_is_no_hang() -> None:
    assert found(death("silent", family=Family.ALIVE, must=Must.LIVE).judge()) == {}


SDK_TRACE = """  File "/app/lib/python3.13/site-packages/clock/server.py", line 3, in main
Traceback (most recent call last):
  File "/app/lib/python3.13/site-packages/mcp/shared/session.py", line 300, in loop
  File "/app/lib/python3.13/site-packages/pydantic/main.py", line 3, in validate
"""
OWN_TRACE = SDK_TRACE + '  File "/app/lib/python3.13/site-packages/clock/server.py", line 9, in handle\n'
NODE_SDK = "at parse (/app/node_modules/zod/x.js:1:2)\n at on (/app/node_modules/@modelcontextprotocol/sdk/s.js:1:2)\n"


@pytest.mark.parametrize(
    ("stderr", "severity"),
    [
        (SDK_TRACE, Severity.LOW),
        (OWN_TRACE, Severity.MEDIUM),
        (NODE_SDK, Severity.LOW),
        (NODE_SDK + " at x (/app/dist/index.js:3:4)", Severity.MEDIUM),
        ("Killed", Severity.MEDIUM),
        ("", Severity.MEDIUM),
    ],
)
def test_an_old_sdk_is_not_held_against_its_users(stderr: str, severity: Severity) -> None:
    assert found(death("closed", "closed", stderr=stderr).judge()) == {"probe.crash": severity}


def test_a_session_that_we_stopped_reading_is_no_crash() -> None:
    tape = begun()
    sent = probe()
    tape.enter(f"probe:{sent.id}").add(ProbeEvent(phase=tape.phase, probe=sent))
    tape.add(LimitEvent(phase=tape.phase, what="stdout-bytes", bound=1 << 26, seen=1 << 27))
    tape.done(sent, "closed", closed="byte limit").stop()
    assert found(tape.judge()) == {"probe.resources": Severity.MEDIUM}


@pytest.mark.parametrize(
    ("facts", "rule"),
    [({"grown": 300 << 20}, "probe.resources"), ({"grown": 100 << 20, "bytes_sent": 4 << 20}, None), ({}, None)],
)
def test_memory_is_held_against_the_size_of_the_message(facts: dict[str, Any], rule: str | None) -> None:
    assert list(found(begun().send(probe(family=Family.SIZE), **facts).judge())) == ([rule] if rule else [])


def test_much_that_comes_back_is_found() -> None:
    result = begun().send(probe(), response(error={"code": 1, "message": "x" * (2 << 20)})).judge()
    assert found(result) == {"probe.resources": Severity.MEDIUM}


# Effects


def effects(
    *steps: tuple[str, str, tuple[str, ...]], before: tuple[tuple[str, tuple[str, ...]], ...] = (), **more: Any
) -> Any:
    record = Record()
    record.begin("python3", "server.py")
    record.enter("discover")
    for method, arguments in before:
        getattr(record, method)(*arguments)
    for name, method, arguments in steps:
        record.enter(f"probe:{name}")
        sent = probe(name, ids=(), alive_id=900_500 + len(record.events), **more)
        record.add(ProbeEvent(phase=f"probe:{name}", probe=sent))
        getattr(record, method)(*arguments)
        record.add(ProbeEndEvent(phase=f"probe:{name}", probed=Probed(probe=name, state="alive")))
    record.add(ProbeBooksEvent(phase="probe", books=ProbeBooks(planned=len(steps))))
    return record


def judged(record: Any) -> AnalyzerResult:
    tape = Tape()
    tape.events = record.events
    return run_one("probes", tape.input(surface(), manifest=SAFE))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("write", ("/home/user/workspace/x",)),
        ("unlink", ("/home/user/workspace/x",)),
        ("connect", ("198.51.100.7:443",)),
        ("spawn", (50, "/bin/sh", "sh", "-c", "x")),
    ],
)
def test_effects_of_a_message_that_is_rejected_are_found(method: str, arguments: tuple[Any, ...]) -> None:
    result = judged(effects(("R01", method, arguments)))
    assert found(result) == {"probe.side-effect": Severity.MEDIUM}
    assert result.findings[0].evidence[0].phase == "probe:R01"
    assert found(judged(effects(("R01", method, arguments), before=((method, arguments),)))) == {}


@pytest.mark.parametrize("tool", ["now", ""])
@pytest.mark.parametrize("must", [Must.REJECT, Must.IGNORE])
def test_a_call_that_is_passed_on_to_its_service_is_less_than_a_message_that_is_carried_out(
    tool: str, must: Must
) -> None:
    def told(method: str, *arguments: Any) -> dict[str, Severity]:
        return found(judged(effects(("T04", method, arguments), tool=tool, must=must)))

    passed_on = Severity.LOW if tool and must is Must.REJECT else Severity.MEDIUM
    assert told("connect", "93.184.215.14:443") == {"probe.side-effect": passed_on}
    assert told("connect", "169.254.169.254:80") == {"probe.side-effect": Severity.MEDIUM}
    assert told("write", "/home/user/workspace/x") == {"probe.side-effect": Severity.MEDIUM}


@pytest.mark.parametrize("tool", ["now", ""])
def test_a_call_that_is_passed_on_late_is_no_effect_of_the_next_message(tool: str) -> None:
    record = effects(("T04", "open", ("/x",)), tool=tool)
    record.enter("probe:L05")
    record.add(ProbeEvent(phase="probe:L05", probe=probe("L05", ids=(), alive_id=900_999)))
    record.connect("93.184.215.14:443")
    assert found(judged(record)) == {"probe.side-effect": Severity.LOW if tool else Severity.MEDIUM}


@pytest.mark.parametrize(
    ("session", "phases", "chance"),
    [
        ("main", ("look",), False),  # later in the same life it may be the probe's still
        ("second-session", ("stop",), True),
        ("second-session", ("probe:L03", "stop"), True),
        ("second-session", ("probe:R01", "stop"), False),
    ],
)
def test_what_another_life_does_by_itself_is_no_effect_of_a_probe(
    session: str, phases: tuple[str, ...], chance: bool
) -> None:
    """A look for a newer version, say, that took its time."""
    record = effects(("R01", "connect", ("93.184.215.14:443",)))
    record.session = session
    if session != "main":
        record.begin("python3", "server.py")
    for phase in phases:
        record.enter(phase)
    record.connect("93.184.215.14:443")
    assert found(judged(record)) == ({} if chance else {"probe.side-effect": Severity.MEDIUM})


@pytest.mark.parametrize(
    ("early", "ends", "goes_on", "chance"),
    [
        (True, True, True, True),
        (False, True, True, False),  # started after the probe: for it, may be
        (True, False, True, False),  # lives on: a server in a wrapper does
        (True, True, False, False),  # ends with the life: it was the server, and the message ended it
    ],
)
def test_what_a_helper_does_that_was_there_before_and_ends_is_no_effect(
    early: bool, ends: bool, goes_on: bool, chance: bool
) -> None:
    record = Record().begin("python3", "server.py").enter("discover")

    def sent(name: str) -> None:
        record.enter(f"probe:{name}")
        record.add(ProbeEvent(phase=f"probe:{name}", probe=probe(name, ids=(), alive_id=900_500 + len(record.events))))

    def started() -> None:
        record.spawn(50, "/opt/node/22/bin/node", "node", "newer.js").fork(51, pid=50)

    if early:
        started()
    sent("R01")
    if not early:
        started()
    record.connect("93.184.215.14:443", pid=51, parent=50)
    if ends:
        record.exit(0, pid=51, parent=50).exit(0, pid=50)
    if goes_on:
        sent("R02")
    done = found(judged(record))
    assert (Severity.MEDIUM not in done.values()) is chance, done


def test_what_follows_any_malformed_message_is_an_effect_in_every_life() -> None:
    record = effects(("R01", "connect", ("93.184.215.14:443",)))
    record.session = "second-session"
    record.begin("python3", "server.py").enter("probe:L03").connect("93.184.215.14:443")
    record.enter("stop").connect("93.184.215.14:443")
    assert found(judged(record)) == {"probe.side-effect": Severity.MEDIUM}


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("write", ("/tmp/x",)),
        ("open", ("/home/user/workspace/x",)),
        ("connect", ("127.0.0.1:80",)),
        ("connect", ("93.184.215.14:0",)),
        ("spawn", (50, "/usr/bin/uname", "uname", "-r")),
    ],
)
def test_what_no_reader_would_call_an_effect_is_silent(method: str, arguments: tuple[Any, ...]) -> None:
    assert found(judged(effects(("R01", method, arguments)))) == {}


@pytest.mark.parametrize(
    ("path", "flag", "silent"),
    [
        ("/home/user/.sample.log", "O_APPEND", True),
        ("/home/user/.sample.log", "O_TRUNC", False),
        ("/home/user/workspace/sample.log", "O_APPEND", False),
        ("/home/user/.bashrc", "O_APPEND", False),
    ],
)
def test_a_line_more_in_its_log_is_no_effect(path: str, flag: str, silent: bool) -> None:
    result = judged(effects(("R01", "open", (path, "O_WRONLY", "O_CREAT", flag))))
    assert found(result) == ({} if silent else {"probe.side-effect": Severity.MEDIUM})


def test_what_the_sign_of_life_does_is_no_effect_of_a_message() -> None:
    assert found(judged(effects(("A01", "write", ("/home/user/workspace/x",))))) == {}


# HTTP


def over_http(status: int, shape: HttpShape, headers: dict[str, str] | None = None, **more: Any) -> AnalyzerResult:
    sent = probe("H01", family=Family.HTTP, http=shape, ids=(), **more)
    return begun().send(sent, reply=HttpReply(status=status, headers=headers or {})).judge()


FOREIGN = HttpShape(headers={"Origin": "http://foreign.example"})
CHOSEN = HttpShape(session="none", headers={"Mcp-Session-Id": "chosen"})


@pytest.mark.parametrize(
    ("status", "shape", "headers", "severity"),
    [
        (200, FOREIGN, {}, Severity.MEDIUM),
        (403, FOREIGN, {}, None),
        (500, FOREIGN, {}, None),
        (302, FOREIGN, {}, None),
        (403, FOREIGN, {"access-control-allow-origin": "*"}, Severity.MEDIUM),
        (403, FOREIGN, {"access-control-allow-origin": "http://foreign.example"}, Severity.MEDIUM),
        (403, FOREIGN, {"access-control-allow-origin": "http://localhost"}, None),
        (200, CHOSEN, {"mcp-session-id": "chosen"}, Severity.HIGH),
        (404, CHOSEN, {"mcp-session-id": "chosen"}, None),
    ],
)
def test_statuses_and_headers_are_judged(
    status: int, shape: HttpShape, headers: dict[str, str], severity: Severity | None
) -> None:
    result = over_http(status, shape, headers, accepted=Severity.MEDIUM)
    assert max((f.severity for f in result.findings), key=lambda s: s.rank, default=None) == severity


def test_an_answer_is_judged_once() -> None:
    sent = probe("H01", family=Family.HTTP, http=FOREIGN, accepted=Severity.MEDIUM)
    assert found(begun().send(sent, reply=HttpReply(status=200)).judge()) == {}  # its message is what tells


@pytest.mark.parametrize("rule", ["access.rebinding", "access.authentication"])
def test_who_may_not_ask_and_is_served_has_rules_of_its_own(rule: str) -> None:
    assert found(over_http(200, FOREIGN, accepted=Severity.MEDIUM, fault=rule)) == {rule: Severity.MEDIUM}
    assert found(over_http(403, FOREIGN, accepted=Severity.MEDIUM, fault=rule)) == {}
    sent = probe("H19", family=Family.HTTP, http=FOREIGN, accepted=Severity.MEDIUM, fault=rule)
    answered = begun().send(sent, response(result={"tools": []}), reply=HttpReply(status=200)).judge()
    refused = begun().send(sent, response(), reply=HttpReply(status=200)).judge()
    assert (found(answered), found(refused)) == ({rule: Severity.MEDIUM}, {})


def test_what_an_sdk_puts_in_place_of_an_id_is_told_and_held_against_nobody() -> None:
    sent = probe("H01", family=Family.HTTP, http=FOREIGN)
    for body, rule in (({"error": ERROR}, "probe.lenient"), ({"result": {}}, "probe.wrong-id")):
        assert rule in found(begun().send(sent, response("server-error", **body)).judge())
    assert "probe.wrong-id" in found(begun().send(sent, response([1], error=ERROR)).judge())


def test_an_unspecified_request_may_be_answered_and_no_session_adopted() -> None:
    assert found(over_http(200, CHOSEN, {"mcp-session-id": "fresh"}, must=Must.LIVE)) == {}
    assert found(over_http(200, CHOSEN, {"mcp-session-id": "chosen"}, must=Must.LIVE)) == {
        "probe.accepted": Severity.HIGH
    }


# Books


def test_what_was_not_sent_is_a_gap_with_its_reason() -> None:
    unsent = (Unsent(probe="R02", reason="target", detail="dead"), Unsent(probe="R03", reason="limit"))
    result = begun().send(probe()).judge(*unsent)
    assert result.status is AnalyzerStatus.PARTIAL and "R02" in result.reason
    assert len(result.coverage.gaps()) == 2 and result.coverage.subjects["probes"].discovered == 3


def test_a_run_that_sent_nothing_is_not_complete() -> None:
    assert begun().judge(books=False).status is AnalyzerStatus.PARTIAL
    assert begun().send(probe()).judge(complete=False).status is AnalyzerStatus.PARTIAL


def test_at_level_none_there_is_nothing_to_say() -> None:
    assert begun().judge(manifest=manifest()).status is AnalyzerStatus.SKIPPED


def test_the_protocol_analyzer_leaves_what_malformed_messages_bring_to_this_one() -> None:
    tape = begun()
    tape.enter("probe:R01").line(b"\xff", Anomaly.INVALID_UTF8).say(response(77), Anomaly.UNKNOWN_ID)
    tape.stop(code=1, by="target")
    result = run_one("protocol", tape.input(surface(), manifest=SAFE))
    assert result.status is AnalyzerStatus.COMPLETED and found(result) == {}


def test_the_same_twice_is_the_same_finding() -> None:
    first = begun().send(probe("R01"), response(result={})).judge().findings
    other = begun().send(probe("R02", alive_id=900_777), response(result={})).judge().findings
    assert [finding.id for finding in first] == [finding.id for finding in other]
