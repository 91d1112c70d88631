"""One call over the wire: what the server asks meanwhile is answered within bounds, and tasks are followed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.model.call import Call, ClientAnswer, Purpose
from harness.model.surface import Era
from harness.pipeline.answering import MOST_IN_CALL, MOST_OUTSIDE, Answerer
from harness.pipeline.exchange import exchanged
from harness.probing.answers import ELICITATION, SAMPLING
from harness.protocol.era import ANSWERING
from harness.protocol.handshake import greet
from harness.protocol.outcomes import Answer, TimedOut
from tests.unit.protocol.scripted import conversation, echo, reply

pytestmark = pytest.mark.anyio

NAME = {"type": "object", "properties": {"nickname": {"type": "string"}}, "required": ["nickname"]}


def a_call(*answers: ClientAnswer, **params: Any) -> Call:
    given = {"name": "t", "arguments": {}, **params}
    return Call(id="c1", item="t", params=given, purpose=Purpose.BASELINE, answers=answers)


def a_request(method: str, number: int = 1) -> bytes:
    params = {"message": "who?", "requestedSchema": NAME} if method == ELICITATION else {"messages": []}
    return json.dumps({"jsonrpc": "2.0", "id": f"a{number}", "method": method, "params": params}).encode() + b"\n"


class Asking:
    """A server that asks `times` times during a call, one after the other, and then answers it."""

    def __init__(self, method: str, times: int = 1) -> None:
        self.method, self.times = method, times
        self.answers: list[dict[str, Any]] = []
        self.called: Any = None

    def __call__(self, message: dict[str, Any]) -> bytes | None:
        if message.get("method") == "tools/call":
            self.called = message["id"]
        elif "method" not in message:
            self.answers.append(message)
        else:
            return echo(message)
        if len(self.answers) < self.times:
            return a_request(self.method, len(self.answers) + 1)
        return reply(self.called, result={"content": []})


async def answered(server: Asking, call: Call) -> tuple[tuple[Any, ...], list[str]]:
    """What the plan is told of the requests, and the notes."""
    async with conversation(server) as (session, _, ledger):
        session.offers = ANSWERING
        answerer = session.answerer = Answerer(session.note, typed="canary")
        answerer.begin(call, None)
        outcome = await exchanged(call, session, Era.HANDSHAKE, seconds=5, quiet=False)
        assert isinstance(outcome, Answer)
        return answerer.end(), [event.text for event in ledger.of("note")]


async def test_a_plan_chooses_the_answer_and_what_it_does_not_choose_is_plausible() -> None:
    chosen = ClientAnswer(method=ELICITATION, number=2, content={"nickname": "$(id)"})
    server = Asking(ELICITATION, 2)
    asked, _ = await answered(server, a_call(chosen))
    first, second = (answer["result"] for answer in server.answers)
    assert first["action"] == "accept" and first["content"]["nickname"] not in ("", "$(id)")
    assert second == {"action": "accept", "content": {"nickname": "$(id)"}}
    assert [(a.method, a.number, a.params["requestedSchema"]) for a in asked] == [
        (ELICITATION, 1, NAME),
        (ELICITATION, 2, NAME),
    ]
    assert asked[1].answer == chosen


async def test_refusals_are_an_action_or_an_error() -> None:
    server = Asking(ELICITATION)
    await answered(server, a_call(ClientAnswer(method=ELICITATION, action="cancel")))
    assert server.answers[0]["result"] == {"action": "cancel"}
    server = Asking(SAMPLING)
    await answered(server, a_call(ClientAnswer(method=SAMPLING, action="decline")))
    assert server.answers[0]["error"]["code"] == -1


async def test_a_loop_of_sampling_ends_and_is_said() -> None:
    server = Asking(SAMPLING, MOST_IN_CALL + 3)
    asked, notes = await answered(server, a_call())
    assert len(asked) == MOST_IN_CALL
    assert ["result" in answer for answer in server.answers] == [True] * MOST_IN_CALL + [False] * 3
    assert notes == [
        f"it asked its client for something more than {MOST_IN_CALL} times in one call; further requests were refused"
    ]


async def test_outside_of_calls_there_is_a_bound_too() -> None:
    async with conversation() as (session, server, ledger):
        session.answerer = Answerer(session.note)
        for number in range(MOST_OUTSIDE + 2):
            server.say(a_request(SAMPLING, number))
        for _ in range(3):
            await session.request("ping", timeout=5)
        assert len(ledger.of("note")) == 1


async def test_what_is_offered_is_declared() -> None:
    for offers in (ANSWERING, {}):
        async with conversation() as (session, server, _):
            session.offers = offers
            await greet(session, start_timeout=5, call_timeout=5)
            assert server.sent[0]["params"]["capabilities"] == offers


class Tasks:
    """A server that makes a task of a call; the task needs `looks` looks, then has `status`."""

    def __init__(self, looks: int, status: str = "completed") -> None:
        self.looks, self.status = looks, status
        self.methods: list[str] = []

    def __call__(self, message: dict[str, Any]) -> bytes | None:
        method = message.get("method", "")
        self.methods.append(method)
        if method == "tools/call":
            task = {"taskId": "t-1", "status": "working", "pollInterval": 1, "ttl": None}
            return reply(message["id"], result={"task": task})
        if method == "tasks/get":
            self.looks -= 1
            status = "working" if self.looks > 0 else self.status
            return reply(message["id"], result={"taskId": "t-1", "status": status})
        if method == "tasks/result":
            return reply(message["id"], result={"content": [{"type": "text", "text": "done"}]})
        return None


@pytest.mark.parametrize("status", ["completed", "input_required", "failed"])
async def test_a_task_is_looked_at_until_it_is_over_or_wants_something(status: str) -> None:
    server = Tasks(3, status)
    async with conversation(server) as (session, _, _):
        outcome = await exchanged(a_call(task={"ttl": 1}), session, Era.HANDSHAKE, seconds=5, quiet=False)
    assert server.methods == ["tools/call", "tasks/get", "tasks/get", "tasks/get", "tasks/result"]
    assert isinstance(outcome, Answer) and isinstance(outcome.result, dict)
    assert outcome.result["content"] == [{"type": "text", "text": "done"}]


async def test_a_task_that_never_ends_is_given_up_in_time() -> None:
    def play(message: dict[str, Any]) -> bytes | None:
        return None if message.get("method") == "tasks/result" else Tasks(9)(message)

    async with conversation(play) as (session, _, ledger):
        outcome = await exchanged(a_call(task={"ttl": 1}), session, Era.HANDSHAKE, seconds=1.2, quiet=False)
    assert isinstance(outcome, TimedOut)
    assert [event.what for event in ledger.of("deadline")] == ["tasks/result"]


async def test_a_task_that_was_not_asked_for_is_an_answer_like_others() -> None:
    server = Tasks(3)
    async with conversation(server) as (session, _, _):
        await exchanged(a_call(), session, Era.HANDSHAKE, seconds=5, quiet=False)
    assert server.methods == ["tools/call"]


async def test_a_result_that_wants_more_input_gets_it_with_the_call_again() -> None:
    def play(message: dict[str, Any]) -> bytes | None:
        if "inputResponses" in message["params"]:
            return reply(message["id"], result={"content": []})
        wanted = {"who": {"method": ELICITATION, "params": {"requestedSchema": NAME}}}
        return reply(
            message["id"], result={"resultType": "input_required", "inputRequests": wanted, "requestState": "s"}
        )

    call = a_call(ClientAnswer(method=ELICITATION, number=1, content={"nickname": "x"}))
    async with conversation(play) as (session, server, _):
        session.offers = ANSWERING
        answerer = session.answerer = Answerer(session.note)
        answerer.begin(call, None)
        outcome = await exchanged(call, session, Era.STATELESS, seconds=5, quiet=False)
        assert [asked.number for asked in answerer.end()] == [1]
    assert isinstance(outcome, Answer)
    second = server.sent[1]["params"]
    assert second["inputResponses"] == {"who": {"action": "accept", "content": {"nickname": "x"}}}
    assert (second["requestState"], second["name"]) == ("s", "t")
    assert second["_meta"]["io.modelcontextprotocol/clientCapabilities"] == ANSWERING
