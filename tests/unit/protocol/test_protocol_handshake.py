"""The era probe as conversations: what is asked, in which order, and what is agreed."""

from __future__ import annotations

from typing import Any

import pytest
from scripted import conversation, reply

from harness.model.surface import Era
from harness.protocol import handshake
from harness.protocol.handshake import Greeting, greet
from harness.protocol.outcomes import Answer, Closed, RpcError, TimedOut

pytestmark = pytest.mark.anyio

STATELESS = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}


class Play:
    """Answers `initialize` by revision and `server/discover`; None is silence."""

    def __init__(self, initialize: dict[str, Any], discover: Any = None) -> None:
        self._initialize, self._discover = initialize, discover
        self.asked: list[str] = []

    def __call__(self, message: dict[str, Any]) -> bytes | None:
        method = message["method"]
        if method == "initialize":
            revision = message["params"]["protocolVersion"]
            self.asked.append(revision)
            members = self._initialize.get(revision, self._initialize.get("*"))
        else:
            self.asked.append(method)
            members = self._discover if method == "server/discover" else None
        return None if members is None else reply(message["id"], **members)


async def _greet(play: Play, start_timeout: float = 5) -> Greeting:
    async with conversation(play) as (session, _, _):
        return await greet(session, start_timeout=start_timeout, call_timeout=5)


def agreed(revision: str, **more: Any) -> dict[str, Any]:
    return {"result": {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s"}, **more}}


def refused(code: int = -32601, **data: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": "no"} | ({"data": data} if data else {})}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "9999-01-01"])
async def test_a_handshake_server_is_asked_once(revision: str) -> None:
    play = Play({"*": agreed(revision, instructions="Do.")})
    greeting = await _greet(play)
    assert play.asked == ["2025-11-25", "notifications/initialized"]
    assert greeting == Greeting(Era.HANDSHAKE, revision, {"name": "s"}, {}, "Do.")
    assert greeting.params({}) is None
    assert greeting.params({"cursor": "c"}) == {"cursor": "c"}


async def test_members_of_another_type_count_as_absent() -> None:
    play = Play({"*": {"result": {"protocolVersion": 5, "capabilities": [], "serverInfo": "x", "instructions": {}}}})
    assert await _greet(play) == Greeting(Era.HANDSHAKE, None, {}, {}, None)


async def test_a_stateless_server_is_found_by_its_refusal() -> None:
    play = Play({"*": refused(-32022, supported=["2026-07-28"])}, {"result": STATELESS})
    greeting = await _greet(play)
    assert play.asked == ["2025-11-25", "server/discover"]
    assert (greeting.era, greeting.protocol_version) == (Era.STATELESS, "2026-07-28")
    params = greeting.params({"cursor": "c"})
    assert params is not None
    assert params["cursor"] == "c"
    assert set(params["_meta"]) == {
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/clientCapabilities",
    }


async def test_a_refusal_that_names_a_revision_is_followed() -> None:
    play = Play({"2025-06-18": agreed("2025-06-18"), "*": refused(supported=["2024-11-05", "2025-06-18", 7])})
    assert (await _greet(play)).protocol_version == "2025-06-18"
    assert play.asked == ["2025-11-25", "2025-06-18", "notifications/initialized"]


async def test_a_bare_refusal_ends_with_the_oldest_revision() -> None:
    play = Play({"2024-11-05": agreed("2024-11-05"), "*": refused(-32602)}, refused())
    assert (await _greet(play)).protocol_version == "2024-11-05"
    assert play.asked == ["2025-11-25", "server/discover", "2024-11-05", "notifications/initialized"]


async def test_a_discover_answer_with_handshake_revisions_only_is_followed() -> None:
    play = Play({"2025-03-26": agreed("2025-03-26"), "*": refused()}, {"result": {"supportedVersions": ["2025-03-26"]}})
    assert (await _greet(play)).protocol_version == "2025-03-26"


async def test_a_server_that_refuses_everything_fails_with_its_first_refusal() -> None:
    play = Play({"*": refused(-32600)}, refused())
    failure = (await _greet(play)).failure
    assert isinstance(failure, RpcError)
    assert failure.code == -32600


async def test_a_result_that_is_no_object_is_not_understood() -> None:
    assert isinstance((await _greet(Play({"*": {"result": "hello"}}, refused()))).failure, Answer)


async def test_silence_gets_one_short_question_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "AFTER_SILENCE_SECONDS", 0.05)
    play = Play({})
    assert (await _greet(play, start_timeout=0.05)).failure == TimedOut(0.05)
    assert play.asked == ["2025-11-25", "server/discover"]
    found = await _greet(Play({}, {"result": STATELESS}), start_timeout=0.05)
    assert found.era is Era.STATELESS


async def test_a_server_that_hangs_up_is_asked_nothing_more() -> None:
    async with conversation(lambda _: None) as (session, server, _):
        server.hang_up()
        assert isinstance((await greet(session, start_timeout=5, call_timeout=5)).failure, Closed)
    assert len(server.sent) == 1
