"""What a client answers when it is asked for something: plausible, bounded, and the same for the same request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.model.base import JsonObject
from harness.model.call import Call, ClientAnswer, Purpose
from harness.model.world import World
from harness.probing.answers import ELICITATION, REFUSALS, SAMPLING, plausible, result_of, secret_fields
from harness.probing.calls.kit import Known, Tried
from harness.probing.calls.subjects import Subject
from harness.probing.oracle.sent import sent_texts
from tests.unit.probing.calling import READ, READ_AGAIN, SHELL, Says, SmallKit, hold, tool
from tests.unit.probing.calling import world as small_world

FORM: JsonObject = {
    "type": "object",
    "properties": {
        "filename": {"type": "string"},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "confirm": {"type": "boolean"},
        "copies": {"type": "integer", "minimum": 2, "maximum": 9},
        "apiKey": {"type": "string", "title": "Your key"},
    },
    "required": ["filename"],
}


def prompt(text: str) -> JsonObject:
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 50}


def test_a_form_is_filled_in_whole_and_agreed_to() -> None:
    answer = plausible(ELICITATION, {"message": "Which?", "requestedSchema": FORM}, small_world(), typed="canary-7")
    content = answer.content
    assert content.keys() == {"filename", "colour", "confirm", "copies", "apiKey"}
    assert content["filename"] == "/home/user/workspace/notes.txt"
    assert (content["colour"], content["confirm"], content["apiKey"]) == ("red", True, "canary-7")
    assert isinstance(content["copies"], int) and 2 <= content["copies"] <= 9
    assert result_of(answer) == {"action": "accept", "content": content}
    again = plausible(ELICITATION, {"message": "Which?", "requestedSchema": FORM}, small_world(), typed="canary-7")
    assert again == answer


@pytest.mark.parametrize("name", ["password", "api_key", "accessToken", "one-time code", "PIN", "seed_phrase"])
def test_fields_for_secrets_are_known_by_their_names(name: str) -> None:
    assert secret_fields({"properties": {name: {"type": "string"}}}) == (name,)


@pytest.mark.parametrize("name", ["keyboard", "spinner", "path", "monkey", "shipping"])
def test_other_fields_are_not(name: str) -> None:
    assert secret_fields({"properties": {name: {"type": "string"}}}) == ()


def test_a_model_says_what_the_prompt_is_about() -> None:
    answer = plausible(SAMPLING, prompt("Which file shall be shown?"), small_world())
    assert answer.content == {"answer": "/home/user/workspace/notes.txt"}
    result = result_of(answer)
    assert result is not None and result["role"] == "assistant" and result["stopReason"] == "endTurn"
    assert result["content"] == {"type": "text", "text": "/home/user/workspace/notes.txt"}


def test_a_model_that_is_asked_for_json_says_json() -> None:
    answer = plausible(SAMPLING, prompt("Answer with JSON only: which fields does this have?"), small_world())
    assert isinstance(json.loads(str(answer.content["answer"])), dict)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"messages": "no"},
        {"messages": [None]},
        {"messages": [{"content": [1, {"text": 3}]}]},
        {"requestedSchema": 7},
        {"requestedSchema": {"type": "string"}},
        {"requestedSchema": {"properties": {"a": {"$ref": "#/properties/a"}}}},
        {"requestedSchema": {"properties": {"a": False}, "required": ["a"]}},
    ],
)
@pytest.mark.parametrize("method", [SAMPLING, ELICITATION])
def test_whatever_is_asked_gets_an_answer(method: str, params: Any) -> None:
    assert result_of(plausible(method, params)) is not None


def test_a_field_is_told_by_its_title_and_the_forms_message() -> None:
    for field, message in (({"title": "File name of the chapter"}, "Which?"), ({}, "Which file shall be shown?")):
        schema: JsonObject = {"type": "object", "properties": {"x": {"type": "string", **field}}, "required": ["x"]}
        answer = plausible(ELICITATION, {"message": message, "requestedSchema": schema}, small_world())
        assert answer.content == {"x": "/home/user/workspace/notes.txt"}


def test_a_page_is_not_opened_and_each_refusal_has_its_form() -> None:
    assert result_of(plausible(ELICITATION, {"mode": "url", "url": "https://example.com"})) == {"action": "decline"}
    assert [result_of(answer) for answer in REFUSALS[ELICITATION]] == [{"action": "decline"}, {"action": "cancel"}]
    assert [result_of(answer) for answer in REFUSALS[SAMPLING]] == [None]


# Conversations


def asking(call: Call, method: str = ELICITATION, field: str = "name", number: int = 1) -> dict[str, object]:
    """A request during the call, with what the plan says or `plain`."""
    default = ClientAnswer(method=method, number=number, content={field: "plain"})
    chosen = next((a for a in call.answers if a.method == method and a.number in (0, number)), default)
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    params = {"requestedSchema": schema} if method == ELICITATION else {}
    return {"method": method, "number": number, "params": params, "answer": chosen}


def answer_in(call: Call, field: str = "name") -> str:
    asked = asking(call, field=field)["answer"]
    assert isinstance(asked, ClientAnswer)
    return str(asked.content.get(field, asked.action))


def test_the_answer_is_a_place_and_what_is_seen_there_is_confirmed_in_clean_starts() -> None:
    def server(call: Call, world: World) -> Says:
        text = world.items[1].secret if READ.id in answer_in(call) else "fine"
        return Says(text, more={"asked": (asking(call),)})

    talk = hold(server, tool("save"), kit=SmallKit(payloads=(READ,)))
    found = [call for call in talk.of(Purpose.PAYLOAD) if call.asked]
    assert [(c.item, c.asked, c.argument, c.place) for c in found] == [
        ("save", ELICITATION, "/name", "elicitation-answer")
    ]
    assert found[0].params == {"name": "save", "arguments": {}}
    assert found[0].holder == found[0].answers[0].content and READ.id in str(found[0].holder)
    assert len(talk.of(Purpose.CONTROL)) == 1 and len(talk.of(Purpose.CONFIRM)) == 2
    assert {call.asked for call in talk.of(Purpose.CONTROL, Purpose.DOCUMENTED, Purpose.CONFIRM)} == {ELICITATION}
    assert any(READ.id in text for text in sent_texts(found[0]))
    items = {cell.item for cell in talk.books.cells}
    assert items == {"save", "save, answer to elicitation/create"}


def test_each_way_to_refuse_is_tried_once_and_twice_where_the_server_ends() -> None:
    def server(call: Call, world: World) -> Says:
        gone = answer_in(call) == "cancel"
        return Says(state="closed" if gone else "answered", gone=gone, more={"asked": (asking(call),)})

    talk = hold(server, tool("save"), kit=SmallKit(payloads=()))
    assert [call.answers[0].action for call in talk.of(Purpose.REFUSAL)] == ["decline", "cancel", "cancel"]
    assert talk.kinds.count("restart") == 2


def test_an_answer_that_is_refused_is_followed_by_another_and_the_one_that_worked_is_kept() -> None:
    def server(call: Call, world: World) -> Says:
        good = answer_in(call) == "/name-1"
        return Says(
            "fine" if good else "bad name", "answered" if good else "tool-error", more={"asked": (asking(call),)}
        )

    talk = hold(server, tool("save", "path"), kit=SmallKit(payloads=(SHELL,)))
    assert {cell.state for cell in talk.books.cells} == {"executed"}
    plain = [call for call in talk.of(Purpose.PAYLOAD) if not call.asked]
    assert [call.answers[0].content for call in plain] == [{"name": "/name-1"}]


def test_requests_beyond_a_bound_get_no_payloads_of_their_own() -> None:
    talk = hold(
        lambda call, world: Says(more={"asked": tuple(asking(call, number=n) for n in range(1, 9))}),
        tool("save"),
        kit=SmallKit(payloads=(SHELL,)),
    )
    assert len({(call.asked, call.answers[0].number) for call in talk.of(Purpose.PAYLOAD)}) == 4


def test_the_same_server_gets_the_same_calls() -> None:
    def server(call: Call, world: World) -> Says:
        return Says(more={"asked": (asking(call), asking(call, SAMPLING, "answer"))})

    one, two = (hold(server, tool("save", "path")) for _ in range(2))
    assert [call.model_dump() for call in one.calls] == [call.model_dump() for call in two.calls]


def test_a_tool_that_has_to_be_a_task_is_called_as_one() -> None:
    item = tool("research", "path", execution={"taskSupport": "required"})
    talk = hold(lambda call, world: Says(), item, kit=SmallKit(payloads=()))
    assert talk.calls[0].params["task"] == {"ttl": 120_000}
    few = hold(lambda call, world: Says(), item, kit=SmallKit(payloads=(READ, READ_AGAIN, SHELL)))
    assert [call.payload for call in few.of(Purpose.PAYLOAD)] == [READ.id, SHELL.id]
    other = hold(lambda call, world: Says(), tool("research", execution={"taskSupport": "optional"}))
    assert "task" not in other.calls[0].params


@pytest.mark.parametrize(("description", "calls"), [("Ask the user for clarification if wanted.", 2), ("Saves.", 1)])
def test_what_speaks_of_asking_is_invited_to(description: str, calls: int) -> None:
    def server(call: Call, world: World) -> Says:
        arguments = call.params["arguments"]
        wanted = isinstance(arguments, dict) and arguments.get("ask") is True
        return Says(more={"asked": (asking(call),) if wanted else ()})

    value: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}, "ask": {"type": "boolean"}}}
    item = tool("save", "path", description=description, inputSchema=value)
    talk = hold(server, item, kit=OnlyPath(payloads=()))
    assert [call.params["arguments"] for call in talk.of(Purpose.BASELINE)] == [
        {"path": "/path-0"},
        {"path": "/path-0", "ask": True},
    ][:calls]
    assert len(talk.of(Purpose.REFUSAL)) == (2 if calls == 2 else 0)


class OnlyPath(SmallKit):
    """Leaves out what it need not give."""

    def baseline(self, subject: Subject, world: World, known: Known, tried: Tried) -> JsonObject | None:
        made = super().baseline(subject, world, known, tried)
        return {name: value for name, value in made.items() if name != "ask"} if made is not None else None
