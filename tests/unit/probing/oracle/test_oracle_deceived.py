"""Whole histories in which what looks like a proof is none; each beside the same history with a true one."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from harness.model.base import JsonObject
from harness.model.call import Call, Purpose
from harness.model.finding import EvidenceLevel
from harness.model.payload import Boundary, BoundaryKind, Effect, EffectKind, PayloadClass
from harness.model.recording import Event
from harness.probing.results import HEAD_CHARACTERS, TAIL_CHARACTERS, bounded, was_cut
from tests.unit.probing.oracle.tape import (
    DATA,
    INNER,
    NONCES,
    OUTSIDE,
    ROOT,
    ROOTED,
    Tape,
    call,
    computed,
    connected,
    created,
    disclosed,
    made,
    opened,
    ran,
    reached,
)

USUAL = (
    ("c1", Purpose.PAYLOAD, "", ""),
    ("c2", Purpose.CONTROL, "", ""),
    ("c3", Purpose.DOCUMENTED, "", ""),
    ("c4", Purpose.CONFIRM, "again-1", "w2"),
    ("c5", Purpose.CONFIRM, "again-2", "w3"),
)
QUIET = (Purpose.CONTROL, Purpose.DOCUMENTED)


@dataclass
class Turn:
    """What is sent in one call, and what is seen of it."""

    arguments: JsonObject
    effects: tuple[Effect, ...]
    doings: tuple[Event, ...] = ()
    text: str = ""
    state: str = "answered"
    after: tuple[Event, ...] = ()
    more: dict[str, str] = field(default_factory=dict)


Story = Callable[[Purpose, str, Tape], Turn]
Before = Callable[[Purpose, str, Tape], None]


def level(
    story: Story,
    kind: PayloadClass,
    boundary: Boundary,
    before: Before = lambda purpose, nonce, tape: None,
    after: Before = lambda purpose, nonce, tape: None,
) -> str:
    """The evidence level of what the history shows; empty where nothing is found. `before`, `after`: each call."""
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(boundary)
    for (name, purpose, session, world), nonce in zip(USUAL, NONCES, strict=True):
        if session:
            tape.end()
            tape.start(session, world)
        before(purpose, nonce, tape)
        turn = story(purpose, nonce, tape)
        sent = call(
            name, purpose, turn.arguments, *turn.effects, nonce=nonce, here=tape.here, kind=kind, boundary=boundary,
            about="" if name == "c1" else "c1", **turn.more,
        )  # fmt: skip
        tape.call(sent, *turn.doings, text=turn.text, state=turn.state, after=turn.after)
        after(purpose, nonce, tape)
    tape.end()
    return max((str(finding.evidence_level) for finding in tape.judge().findings), default="")


def benign(tape: Tape, purpose: Purpose, arguments: JsonObject, *doings: Event, text: str = "") -> None:
    """A call without a payload."""
    number = len(tape.events)
    sent: Call = call(
        f"b{number}", purpose, arguments, here=tape.here, kind=None, boundary=None, item="save", payload=""
    )
    tape.call(sent, *doings, text=text)


def there(nonce: str) -> str:
    return f"{OUTSIDE}/made-{nonce}"


def injects(said: Callable[[str], str]) -> Story:
    """A file outside is made by what `said` makes of its nonce."""

    def story(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
        quiet = purpose in QUIET
        doings = () if quiet else (made(there(nonce)),)
        return Turn({"name": f"notes {nonce}" if quiet else said(nonce)}, (created(there(nonce)),), doings)

    return story


@pytest.mark.parametrize(
    ("said", "proves"),
    [
        ("x; touch {path}", True),
        ("{path}", False),
        (" {path} ", False),
        ("file://{path}", False),
        ("file://{coded}", False),
        ("~/private/made-{nonce}", False),
        ("../private/made-{nonce}", False),
        ("notes/../../private/made-{nonce}/", False),
    ],
)
def test_a_file_whose_name_was_an_argument_in_any_form_is_what_was_asked_for(said: str, proves: bool) -> None:
    def form(nonce: str) -> str:
        path = there(nonce)
        return said.format(path=path, nonce=nonce, coded=path.replace("-", "%2D"))

    found = level(injects(form), PayloadClass.COMMAND_INJECTION, DATA)
    assert (found == EvidenceLevel.CONFIRMED) is proves


def test_a_file_that_another_call_makes_by_its_name_is_that_calls() -> None:
    def story(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
        turn = injects(lambda nonce: f"x; touch {there(nonce)}")(purpose, nonce, tape)
        return Turn(turn.arguments, turn.effects, turn.doings if purpose is Purpose.PAYLOAD else ())

    def saves(purpose: Purpose, nonce: str, tape: Tape) -> None:
        if purpose is Purpose.CONFIRM:
            benign(tape, Purpose.BASELINE, {"path": there(nonce)}, made(there(nonce)))

    def wakes(purpose: Purpose, nonce: str, tape: Tape) -> None:
        if purpose is Purpose.CONFIRM:
            benign(tape, Purpose.BASELINE, {"path": "notes.txt"}, made(there(nonce)))

    assert level(story, PayloadClass.COMMAND_INJECTION, DATA, after=saves) != EvidenceLevel.CONFIRMED
    assert level(story, PayloadClass.COMMAND_INJECTION, DATA, after=wakes) == EvidenceLevel.CONFIRMED


def test_a_control_whose_effect_comes_late_beside_a_lesser_one_shows_it() -> None:
    def story(late: bool) -> Story:
        def tell(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
            read = f"{OUTSIDE}/account.txt"
            effects = (created(there(nonce)), Effect(kind=EffectKind.OPENED, path=read))
            done = made(there(nonce))
            if purpose in QUIET:
                return Turn({"name": f"notes {nonce}"}, effects, (opened(read),), after=(done,) if late else ())
            return Turn({"name": f"x; touch {there(nonce)}"}, effects, (opened(read), done))

        return tell

    assert level(story(True), PayloadClass.COMMAND_INJECTION, DATA) != EvidenceLevel.CONFIRMED
    assert level(story(False), PayloadClass.COMMAND_INJECTION, DATA) == EvidenceLevel.CONFIRMED


def reads(answer: Callable[[str], str] = lambda secret: secret, quiet: str = "") -> Story:
    """What stands outside comes back."""

    def story(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
        secret = tape.here.items[1].secret
        return Turn({"path": f"../{nonce}"}, (disclosed(secret),), text=quiet if purpose in QUIET else answer(secret))

    return story


@pytest.mark.parametrize("purpose", [Purpose.BASELINE, Purpose.PREPARE, Purpose.REFUSAL])
@pytest.mark.parametrize("form", ["plain", "base64", "hex", "none"])
def test_what_a_benign_call_told_in_any_form_is_no_secret(purpose: Purpose, form: str) -> None:
    def tells(about: Purpose, nonce: str, tape: Tape) -> None:
        raw = f"id={tape.here.items[1].secret};".encode()
        texts = {"plain": raw.decode(), "base64": base64.b64encode(raw).decode(), "hex": raw.hex(), "none": "fine"}
        if about in (Purpose.PAYLOAD, Purpose.CONFIRM):
            benign(tape, purpose, {"path": "notes.txt"}, text=texts[form])

    found = level(reads(), PayloadClass.TRAVERSAL_READ, ROOTED, before=tells)
    assert (found == EvidenceLevel.CONFIRMED) is (form == "none")


def test_a_control_whose_answer_was_cut_says_nothing_about_what_is_missing() -> None:
    whole = "x" * (HEAD_CHARACTERS + TAIL_CHARACTERS)
    assert not was_cut(bounded(whole)) and was_cut(bounded(whole + "x"))
    cut, kept = reads(quiet=bounded(whole + "x" * 100)), reads(quiet=bounded(whole))
    assert level(cut, PayloadClass.TRAVERSAL_READ, ROOTED) != EvidenceLevel.CONFIRMED
    assert level(kept, PayloadClass.TRAVERSAL_READ, ROOTED) == EvidenceLevel.CONFIRMED


def test_a_constant_beside_a_fresh_value_is_no_second_proof() -> None:
    def story(constant: bool) -> Story:
        def tell(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
            value = f"7006652{int(nonce[:4], 16)}"
            shown = "<class 'object'>" if constant and tape.session == "again-1" else value
            effects = (computed(value), computed("<class 'object'>"))
            return Turn({"name": f"{{{{7*{nonce}}}}}"}, effects, text="" if purpose in QUIET else shown)

        return tell

    assert level(story(True), PayloadClass.TEMPLATE_INJECTION, DATA) != EvidenceLevel.CONFIRMED
    assert level(story(False), PayloadClass.TEMPLATE_INJECTION, DATA) == EvidenceLevel.CONFIRMED


def test_tries_that_show_another_kind_of_effect_than_the_payload_prove_nothing() -> None:
    def tell(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
        effects = (created(there(nonce)), computed(f"7006652{int(nonce[:4], 16)}"))
        if purpose is Purpose.PAYLOAD:
            return Turn({"name": f"x; touch {nonce}"}, effects, (made(there(nonce)),))
        return Turn({"name": f"x; {nonce}"}, effects, text=effects[1].text)  # as the controls do

    assert level(tell, PayloadClass.CODE_EVALUATION, DATA) != EvidenceLevel.CONFIRMED


@pytest.mark.parametrize(
    ("where", "proves"), [({}, True), ({"argument": "/other"}, False), ({"payload": "x/y"}, False)]
)
def test_a_control_is_one_of_the_same_payload_in_the_same_place(where: dict[str, str], proves: bool) -> None:
    def tell(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
        turn = injects(lambda nonce: f"x; touch {there(nonce)}")(purpose, nonce, tape)
        turn.more = where if purpose is Purpose.CONTROL else {}
        return turn

    assert (level(tell, PayloadClass.COMMAND_INJECTION, DATA) == EvidenceLevel.CONFIRMED) is proves


@pytest.mark.parametrize(("result", "proves"), [(0, True), (-115, True), (-111, True), (-13, False), (-101, False)])
def test_a_connection_that_never_left_reached_nobody(result: int, proves: bool) -> None:
    def tell(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
        tried = connected("127.0.0.1:8899").model_copy(update={"result": result})
        quiet = purpose in QUIET
        url = f"http://www/{nonce}" if quiet else f"http://127.0.0.1:8899/{nonce}"
        return Turn({"url": url}, (reached("127.0.0.1:8899"),), () if quiet else (tried,))

    assert (level(tell, PayloadClass.SSRF, INNER) == EvidenceLevel.CONFIRMED) is proves


@pytest.mark.parametrize(
    ("value", "proves"),
    [
        ("ls cat", True),
        ("ls kubectl", False),
        ('["ls" "kubectl"]', False),
        ("ls kubectl:*", False),
        ("ls ^kubectl$", False),
        ("ls 'KUBECTL'", False),
        ("ls *", False),
        ("kubectl-debug", True),
    ],
)
def test_a_program_on_the_list_in_any_spelling_is_allowed(value: str, proves: bool) -> None:
    listed = Boundary(kind=BoundaryKind.ALLOWLIST, source="configuration", value=value)

    def tell(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
        quiet = purpose in QUIET
        doings = () if quiet else (ran("/home/user/tools/bin/kubectl", "kubectl", "get", nonce),)
        effects = (Effect(kind=EffectKind.STUB_CALLED, text=nonce),)
        return Turn({"command": f"ls {nonce}" if quiet else f"kubectl get {nonce}"}, effects, doings)

    assert (level(tell, PayloadClass.ALLOWLIST_BYPASS, listed) == EvidenceLevel.CONFIRMED) is proves


def test_a_server_that_is_not_to_write_is_not_to_write_in_its_root_either() -> None:
    mode = Boundary(kind=BoundaryKind.READ_ONLY, source="arguments", text="--read-only")

    def tell(purpose: Purpose, nonce: str, tape: Tape) -> Turn:
        inside = f"{ROOT}/made-{nonce}"
        quiet = purpose in QUIET
        name = "notes.txt" if quiet else f"made-{nonce}"
        return Turn({"path": name}, (created(inside),), () if quiet else (made(inside),))

    def also_rooted(purpose: Purpose, nonce: str, tape: Tape) -> None:
        if purpose is Purpose.PAYLOAD:
            tape.boundaries(ROOTED)

    assert level(tell, PayloadClass.TRAVERSAL_WRITE, mode, before=also_rooted) == EvidenceLevel.CONFIRMED
    assert level(tell, PayloadClass.TRAVERSAL_WRITE, ROOTED) != EvidenceLevel.CONFIRMED
