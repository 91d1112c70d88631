"""The oracle on payloads in what the client answers: the same proof, told by the request that was answered."""

from __future__ import annotations

import pytest

from harness.model.call import Call, CallEvent, ClientAnswer, Outcome, Purpose
from harness.model.finding import EvidenceLevel, Finding
from harness.model.payload import Effect, EffectKind
from harness.model.recording import Event
from harness.probing.answers import ELICITATION, SAMPLING
from harness.probing.oracle.effects import sightings
from harness.probing.oracle.reissue import Reissue
from harness.probing.oracle.sent import sent_texts
from tests.unit.probing.oracle.scripts import Script
from tests.unit.probing.oracle.tape import Tape, world


def answered(call: Call, method: str) -> Call:
    """The same payload, in an answer and not in the arguments."""
    content = call.params["arguments"]
    assert isinstance(content, dict)
    field = {SAMPLING: "sampling-answer", ELICITATION: "elicitation-answer"}[method]
    answer = ClientAnswer(method=method, number=1, content=content)
    params = {"name": call.item, "arguments": {"plain": "1"}}
    return call.model_copy(update={"params": params, "answers": (answer,), "into": 0, "place": field})


def judged(tape: Tape, method: str) -> Finding:
    def moved(event: Event) -> Event:
        if not isinstance(event, CallEvent):
            return event
        return event.model_copy(update={"call": answered(event.call, method)})

    tape.events = [moved(event) for event in tape.events]
    (finding,) = tape.judge().findings
    return finding


@pytest.mark.parametrize(
    ("method", "words", "field"),
    [
        (SAMPLING, "in the answer to sampling of tool show", "sampling-answer/name"),
        (ELICITATION, "in field name of the answer to elicitation of tool show", "elicitation-answer/name"),
    ],
)
def test_a_payload_in_an_answer_is_proven_and_told_as_such(method: str, words: str, field: str) -> None:
    finding = judged(Script().tape(), method)
    assert finding.evidence_level is EvidenceLevel.CONFIRMED
    assert words in finding.title and "Whoever controls that answer" in finding.description
    assert (finding.location.tool, finding.location.field) == ("show", field)
    (plain,) = Script().tape().judge().findings
    assert plain.id != finding.id


def test_a_control_that_is_the_payload_itself_is_seen_in_the_answer_too() -> None:
    tape = Script().tape()
    calls = [event for event in tape.events if isinstance(event, CallEvent)]
    same = calls[0].call.params
    tape.events = [
        event.model_copy(update={"call": event.call.model_copy(update={"params": same})})
        if isinstance(event, CallEvent) and event.call.id == "c2"
        else event
        for event in tape.events
    ]
    finding = judged(tape, SAMPLING)
    assert finding.evidence_level is EvidenceLevel.DYNAMIC and "is the payload itself" in finding.description


def test_an_echo_of_what_was_answered_is_no_effect() -> None:
    effect = Effect(kind=EffectKind.COMPUTED, text="marker-123456")
    answer = ClientAnswer(method=SAMPLING, number=1, content={"answer": "marker-123456"})
    call = Call(id="c", item="t", params={}, purpose=Purpose.PAYLOAD, effects=(effect,), answers=(answer,), into=0)
    assert "marker-123456" in sent_texts(call)
    assert not sightings(call, Outcome(call="c", state="answered", text="marker-123456"), world("w1"))


def test_an_answer_is_made_anew_for_another_world() -> None:
    old, new = world("w1"), world("w2")
    answer = ClientAnswer(method=ELICITATION, number=1, content={"file": f"{old.domain} 0a1b2c3d4e5f60718293"})
    call = Call(id="c", item="t", params={}, purpose=Purpose.CONFIRM, answers=(answer,), into=0)
    made = Reissue(old, new, "0a1b2c3d4e5f60718293", "f9e8d7c6b5a493827160").call(call, "r1")
    assert made.answers[0].content == {"file": f"{new.domain} f9e8d7c6b5a493827160"}
    assert made.holder == made.answers[0].content
