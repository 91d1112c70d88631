"""Proofs that show in results: values worked out, content disclosed; tools that refuse, delay, or do it by design."""

from __future__ import annotations

import pytest

from harness.model.call import CallBooks, Cell, Purpose
from harness.model.coverage import SkipReason
from harness.model.finding import EvidenceLevel, Finding, Severity
from harness.model.payload import Boundary, BoundaryKind, Effect, EffectKind, PayloadClass
from harness.model.recording import Grade
from tests.unit.probing.oracle.tape import (
    DATA,
    INNER,
    NONCES,
    OUTSIDE,
    ROOTED,
    Tape,
    call,
    computed,
    connected,
    created,
    datagram,
    disclosed,
    made,
    opened,
    reached,
)


def reading(answer: str = "{secret}", *, control: str = "no", plain: str = "no", **more: object) -> Tape:
    """A tool that reads paths, with a payload that leads out; `{secret}` in an answer is the world's."""
    tape = Tape(**more)  # type: ignore[arg-type]
    tape.start("main", "w1")
    tape.boundaries(ROOTED)
    steps = (
        ("c1", Purpose.PAYLOAD, "", "../private/account.txt", answer),
        ("c2", Purpose.CONTROL, "", "./notes.txt", control),
        ("c3", Purpose.DOCUMENTED, "", "notes.txt", plain),
        ("c4", Purpose.CONFIRM, "again-1", "../private/account.txt", answer),
        ("c5", Purpose.CONFIRM, "again-2", "../private/account.txt", answer),
    )
    for number, (name, purpose, session, path, text) in enumerate(steps):
        if session:
            tape.start(session, f"w{number}")
        secret = tape.here.items[1].secret
        one = call(
            name,
            purpose,
            {"path": path},
            disclosed(secret),
            nonce=NONCES[number],
            here=tape.here,
            kind=PayloadClass.TRAVERSAL_READ,
            boundary=ROOTED,
            about="" if purpose is Purpose.PAYLOAD else "c1",
            argument="/path",
            payload="traversal-read/dots",
        )
        tape.call(one, text=text.replace("{secret}", secret))
    return tape


def only(tape: Tape) -> Finding:
    (finding,) = tape.judge().findings
    return finding


def test_content_from_outside_of_the_root_is_confirmed() -> None:
    finding = only(reading())
    assert (finding.evidence_level, finding.rule_id) == (EvidenceLevel.CONFIRMED, "traversal.read")
    assert finding.location.tool == "show" and finding.location.field == "/path"
    assert [e.kind for e in finding.evidence[:4]] == ["boundary", "call", "result", "state"]


def test_what_is_disclosed_is_shown_with_the_system_call_that_read_it() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(ROOTED)
    secret = tape.here.items[1].secret
    kind = {"kind": PayloadClass.TRAVERSAL_READ, "boundary": ROOTED, "nonce": NONCES[0], "here": tape.here}
    one = call("c1", Purpose.PAYLOAD, {"path": "../private/account.txt"}, disclosed(secret), **kind)
    tape.call(one, opened(f"{OUTSIDE}/account.txt", "O_RDONLY"), text=secret)
    evidence = {e.kind: e for e in only(tape).evidence}
    seq = evidence["syscall"].seq
    assert seq is not None and tape.events[seq - 1].kind == "syscall"
    assert [kind for kind in evidence if kind != "boundary"] == ["call", "syscall", "result", "state"]


def test_a_control_that_only_opens_the_file_takes_nothing_from_a_disclosure() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(ROOTED)
    for number, (name, purpose, session) in enumerate(
        (
            ("c1", Purpose.PAYLOAD, ""),
            ("c2", Purpose.CONTROL, ""),
            ("c3", Purpose.DOCUMENTED, ""),
            ("c4", Purpose.CONFIRM, "again-1"),
            ("c5", Purpose.CONFIRM, "again-2"),
        )
    ):
        if session:
            tape.start(session, f"w{number}")
        secret = tape.here.items[1].secret
        opening = Effect(kind=EffectKind.OPENED, path=f"{OUTSIDE}/account.txt")
        quiet = purpose in (Purpose.CONTROL, Purpose.DOCUMENTED)
        one = call(
            name,
            purpose,
            {"path": name if quiet else "../private/account.txt"},
            disclosed(secret),
            opening,
            nonce=NONCES[number],
            here=tape.here,
            kind=PayloadClass.TRAVERSAL_READ,
            boundary=ROOTED,
            about="" if name == "c1" else "c1",
        )
        tape.call(one, opened(f"{OUTSIDE}/account.txt", "O_RDONLY"), text="" if quiet else secret)
    assert only(tape).evidence_level is EvidenceLevel.CONFIRMED


def test_a_result_needs_no_record_of_system_calls() -> None:
    assert only(reading(grade=Grade.NONE)).evidence_level is EvidenceLevel.CONFIRMED


def test_a_tool_that_refuses_everything_yields_nothing() -> None:
    tape = reading("Access denied: ../private/account.txt is outside", control="Access denied", plain="Access denied")
    assert tape.judge().findings == ()


def test_a_tool_that_always_shows_it_is_by_design() -> None:
    assert only(reading(plain="{secret}")).rule_id == "capability.reads-files"
    assert only(reading(control="{secret}")).severity is Severity.LOW


def joining(control: dict[str, str], said: str, *, shows: str = "leftab rightcd") -> Tape:
    """A tool that answers without punctuation; the payload's value is its two pieces put together."""
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(DATA)
    for number, (name, purpose, session) in enumerate(
        (
            ("c1", Purpose.PAYLOAD, ""),
            ("c2", Purpose.CONTROL, ""),
            ("c3", Purpose.DOCUMENTED, ""),
            ("c4", Purpose.CONFIRM, "again-1"),
            ("c5", Purpose.CONFIRM, "again-2"),
        )
    ):
        if session:
            tape.start(session, f"w{number}")
        left, right = f"left{'abcde'[number]}", f"right{'abcde'[number]}"
        quiet = purpose in (Purpose.CONTROL, Purpose.DOCUMENTED)
        value = control["value"].format(left, right) if quiet else f"{{{{'{left}'~'{right}'}}}}"
        text = said.format(left + right) if not quiet else shows.format(left + right)
        one = call(
            name,
            purpose,
            {"name": value},
            computed(left + right),
            nonce=NONCES[number],
            here=tape.here,
            kind=PayloadClass.TEMPLATE_INJECTION,
            about="" if purpose is Purpose.PAYLOAD else "c1",
        )
        tape.call(one, text=text)
    return tape


def test_a_tool_that_only_drops_punctuation_is_found_out_by_a_control_of_the_same_pieces() -> None:
    finding = only(joining({"value": "'{}' '{}'"}, "{}", shows="{}"))
    assert finding.evidence_level is EvidenceLevel.DYNAMIC and finding.severity is Severity.LOW


def test_a_control_without_the_pieces_proves_nothing_about_joining() -> None:
    finding = only(joining({"value": "plain"}, "{}"))
    assert finding.evidence_level is EvidenceLevel.DYNAMIC
    assert "only put together" in finding.description and finding.severity is Severity.MEDIUM


def test_pieces_put_together_by_evaluation_alone_are_confirmed() -> None:
    assert only(joining({"value": "'{}' '{}'"}, "{}")).evidence_level is EvidenceLevel.CONFIRMED


def test_a_calculator_that_is_asked_to_calculate_is_by_design() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(DATA)
    for name, purpose, value in (
        ("c1", Purpose.PAYLOAD, "__import__('math').prod([12345, 6789])"),
        ("c3", Purpose.DOCUMENTED, "12345*6789"),
    ):
        one = call(
            name,
            purpose,
            {"name": value},
            computed("83810205"),
            nonce=NONCES[0],
            here=tape.here,
            kind=PayloadClass.CODE_EVALUATION,
            about="" if name == "c1" else "c1",
        )
        tape.call(one, text="83810205")
    assert only(tape).rule_id == "capability.code"


def test_a_variable_that_get_env_returns_is_never_a_confirmed_escape() -> None:
    """A demo server that shows its environment, as its description says, in a start that has a root."""
    tape = reading()
    tape.events.clear()
    tape.start("main", "w1")
    tape.boundaries(ROOTED)
    for number, (name, purpose) in enumerate(
        (("c1", Purpose.PAYLOAD), ("c2", Purpose.CONTROL), ("c3", Purpose.DOCUMENTED), ("c4", Purpose.CONFIRM))
    ):
        secret = tape.here.items[1].secret
        one = call(
            name,
            purpose,
            {"name": "x" + name},
            disclosed(secret),
            nonce=NONCES[number],
            here=tape.here,
            kind=PayloadClass.SECRET_DISCLOSURE,
            boundary=ROOTED,
            about="" if name == "c1" else "c1",
        )
        tape.call(one, text="" if purpose is Purpose.CONTROL else f"TOKEN={secret}")
    assert only(tape).rule_id == "capability.secrets"


def test_an_effect_that_comes_late_is_given_to_the_call_that_caused_it() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(DATA)
    path = f"{OUTSIDE}/made-{NONCES[0]}"
    first = call("c1", Purpose.PAYLOAD, {"name": f"x; touch {path}"}, created(path), nonce=NONCES[0], here=tape.here)
    control = call(
        "c2",
        Purpose.CONTROL,
        {"name": "x"},
        created(f"{OUTSIDE}/made-{NONCES[1]}"),
        nonce=NONCES[1],
        here=tape.here,
        about="c1",
    )
    tape.call(first)
    tape.call(control, made(path))
    (judgement,) = tape.fold().judgements()
    assert judgement.payload.call.id == "c1"
    assert not judgement.controls[0].sightings


@pytest.mark.parametrize("name", [f"made-{NONCES[0]}", "83810205"])
def test_an_effect_after_the_last_call_is_still_seen(name: str) -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(DATA)
    path = f"{OUTSIDE}/{name}"
    one = call("c1", Purpose.PAYLOAD, {"name": f"x; touch {path}"}, created(path), nonce=NONCES[0], here=tape.here)
    tape.call(one, after=(made(path),))
    assert only(tape).evidence_level is EvidenceLevel.DYNAMIC


def test_what_another_origin_does_is_nobodys_effect() -> None:
    tape = Tape()
    tape.start("main", "w1")
    path = f"{OUTSIDE}/made-{NONCES[0]}"
    one = call("c1", Purpose.PAYLOAD, {"name": f"x; touch {path}"}, created(path), nonce=NONCES[0], here=tape.here)
    tape.call(one, made(path).model_copy(update={"by": "warden"}))
    assert tape.judge().findings == ()


def test_a_datagram_socket_that_was_only_connected_is_a_resolver_at_work() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(INNER)
    one = call(
        "c1",
        Purpose.PAYLOAD,
        {"url": "http://127.0.0.1:8899/"},
        reached("127.0.0.1:8899"),
        nonce=NONCES[0],
        here=tape.here,
        kind=PayloadClass.SSRF,
        boundary=INNER,
    )
    tape.call(one, datagram(), connected("127.0.0.1:8899"))
    assert tape.judge().findings == ()
    tape.call(one.model_copy(update={"id": "c2"}), connected("127.0.0.1:8899", descriptor=8))
    assert only(tape).rule_id == "ssrf.internal"


def test_a_secret_that_was_once_sent_is_burned_for_the_session() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(ROOTED)
    secret = tape.here.items[1].secret
    tape.call(call("c0", Purpose.PREPARE, {"path": f"/x/{secret}"}, here=tape.here, kind=None, boundary=None))
    one = call(
        "c1",
        Purpose.PAYLOAD,
        {"path": "../x"},
        disclosed(secret),
        nonce=NONCES[0],
        here=tape.here,
        kind=PayloadClass.TRAVERSAL_READ,
        boundary=ROOTED,
    )
    tape.call(one, text=f"history: /x/{secret}")
    assert tape.judge().findings == ()


def test_what_the_server_tells_without_a_payload_no_payload_discloses() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(ROOTED)
    secret = tape.here.items[1].secret
    baseline = call("c0", Purpose.BASELINE, {"path": "a"}, here=tape.here, kind=None, boundary=None)
    tape.call(baseline, text=f"cannot connect: {secret}", state="tool-error")
    one = call(
        "c1",
        Purpose.PAYLOAD,
        {"path": "../x"},
        disclosed(secret),
        nonce=NONCES[0],
        here=tape.here,
        kind=PayloadClass.TRAVERSAL_READ,
        boundary=ROOTED,
    )
    tape.call(one, text=f"cannot connect: {secret}", state="tool-error")
    assert tape.judge().findings == ()


def test_steps_are_one_try_and_what_the_first_sends_the_second_cannot_disclose() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(ROOTED)
    secret = tape.here.items[1].secret
    kind = {"kind": PayloadClass.TRAVERSAL_READ, "boundary": ROOTED, "nonce": NONCES[0], "here": tape.here, "steps": 2}
    tape.call(call("c1", Purpose.PAYLOAD, {"path": "../private"}, disclosed(secret), step=1, **kind), text="id 7")
    tape.call(call("c2", Purpose.PAYLOAD, {"id": 7}, disclosed(secret), step=2, **kind), text=secret)
    (judgement,) = tape.fold().judgements()
    assert [trace.call.id for trace in judgement.payload.steps] == ["c1", "c2"]
    assert judgement.payload.call.id == "c2"


@pytest.mark.parametrize(
    ("effect", "level", "severity"),
    [
        (Effect(kind=EffectKind.ACCEPTED), EvidenceLevel.PROTOCOL, Severity.MEDIUM),
        (Effect(kind=EffectKind.OPENED, path=f"{OUTSIDE}/account.txt"), EvidenceLevel.DYNAMIC, Severity.MEDIUM),
    ],
)
def test_what_proves_nothing_stays_below_high(effect: Effect, level: EvidenceLevel, severity: Severity) -> None:
    tape, protocol = Tape(), level is EvidenceLevel.PROTOCOL
    tape.start("main", "w1")
    one = call(
        "c1",
        Purpose.PAYLOAD,
        {"name": "x"},
        effect,
        nonce=NONCES[0],
        here=tape.here,
        kind=PayloadClass.MISSING_AUTHENTICATION if protocol else PayloadClass.TRAVERSAL_READ,
        boundary=Boundary(kind=BoundaryKind.SESSION, source="convention") if protocol else ROOTED,
    )
    tape.call(one, opened(f"{OUTSIDE}/account.txt"))
    finding = only(tape)
    assert (finding.evidence_level, finding.severity) == (level, severity)


def test_the_books_become_coverage() -> None:
    tape = Tape()
    cells = (
        Cell(item="a", argument="/p", payload_class=PayloadClass.SSRF, state="executed"),
        Cell(item="a", argument="/p", payload_class=PayloadClass.SQL, state="operator", detail="no budget"),
        Cell(item="a", argument="/p", payload_class=PayloadClass.XXE, state="operator", detail="no budget"),
        Cell(item="b", state="target", detail="baseline failed"),
        Cell(item="c", argument="/q", payload_class=PayloadClass.SQL, state="limit", detail="out of time"),
    )
    tape.books(CallBooks(cells=cells))
    coverage = tape.judge().coverage
    tally = coverage.subjects["calls"]
    assert (tally.discovered, tally.analyzed) == (5, 1)
    assert {(s.item, s.reason, s.count) for s in tally.skipped} == {
        ("a /p", SkipReason.OPERATOR, 2),
        ("b", SkipReason.TARGET, 1),
        ("c /q", SkipReason.LIMIT, 1),
    }
    assert len(coverage.gaps()) == 2
    assert Tape().judge().coverage.gaps()


def test_a_call_that_hangs_the_server_is_told_without_any_boundary() -> None:
    tape = Tape()
    tape.start("main", "w1")
    effect = Effect(kind=EffectKind.EXHAUSTED)
    kind = PayloadClass.EXHAUSTION
    one = call("c1", Purpose.PAYLOAD, {"name": "a" * 99}, effect, here=tape.here, kind=kind, boundary=None)
    tape.call(one, state="timeout")
    finding = only(tape)
    assert (finding.rule_id, finding.evidence_level) == ("exhaustion.input", EvidenceLevel.DYNAMIC)


def test_what_one_tool_lets_in_and_another_gives_out_is_the_first_one_s_fault() -> None:
    tape = Tape()
    tape.start("main", "w1")
    bound = ROOTED.model_copy(update={"tool": "attach"})
    tape.boundaries(bound)
    for number, (name, purpose, session) in enumerate(
        (
            ("c1", Purpose.PAYLOAD, ""),
            ("c2", Purpose.CONTROL, ""),
            ("c3", Purpose.DOCUMENTED, ""),
            ("c4", Purpose.CONFIRM, "again-1"),
            ("c5", Purpose.CONFIRM, "again-2"),
        )
    ):
        if session:
            tape.start(session, f"w{number}")
        secret = tape.here.items[1].secret
        quiet = purpose in (Purpose.CONTROL, Purpose.DOCUMENTED)
        for step, item in enumerate(("attach", "show"), 1):
            value = {"id": f"handle{number}"} if step == 2 else {"path": name if quiet else "../private/account.txt"}
            one = call(
                f"{name}{step}",
                purpose,
                value,
                disclosed(secret),
                nonce=NONCES[number],
                here=tape.here,
                kind=PayloadClass.TRAVERSAL_READ,
                boundary=bound,
                about="" if name == "c1" else "c12",
                argument="/path",
                item=item,
                step=step,
                steps=2,
            )
            tape.call(one, text=secret if step == 2 and not quiet else f"id: handle{number}")
    finding = only(tape)
    assert finding.evidence_level is EvidenceLevel.CONFIRMED
    assert (finding.location.tool, finding.location.field) == ("attach", "/path")
