"""Envelopes, read tolerantly, deviations named."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model.recording import Anomaly
from harness.protocol.messages import Notification, Request, Response, interpret
from harness.protocol.server_requests import answer

V = {"jsonrpc": "2.0"}
ODD = [Anomaly.NOT_JSONRPC]


@pytest.mark.parametrize(
    ("value", "messages", "anomalies"),
    [
        ({**V, "id": 1, "result": {}}, [Response(1, result={})], []),
        ({**V, "id": 1, "result": None}, [Response(1)], []),
        ({**V, "id": 1, "error": {"code": 1}}, [Response(1, error={"code": 1}, failed=True)], []),
        ({**V, "id": None, "error": {"code": 1}}, [Response(None, error={"code": 1}, failed=True)], []),
        ({**V, "id": 1, "method": "ping"}, [Request(1, "ping")], []),
        ({**V, "method": "n"}, [Notification("n")], []),
        ({"id": 1, "result": 3}, [Response(1, result=3)], ODD),
        ({"jsonrpc": "1.0", "method": "n"}, [Notification("n")], ODD),
        ({**V, "id": 1}, [Response(1, whole=False)], ODD),
        ({**V, "id": 1, "result": {}, "error": None}, [Response(1, result={})], ODD),
        ({**V, "id": 1, "result": None, "error": {}}, [Response(1, error={}, failed=True)], ODD),
        ({**V, "id": 1, "result": 1, "error": {}}, [Response(1, result=1)], ODD),
        ({**V, "id": 1, "error": "no"}, [Response(1, error="no", failed=True)], ODD),
        ({**V, "method": 5, "id": 1}, [], ODD),
        ({**V, "result": {}}, [], ODD),
        ({}, [], ODD),
        (42, [], [Anomaly.NOT_AN_OBJECT]),
        ([{**V, "method": "n"}], [Notification("n")], [Anomaly.NOT_AN_OBJECT]),
    ],
)
def test_interpret(value: Any, messages: list[Any], anomalies: list[Anomaly]) -> None:
    assert interpret(value, batches=False) == (messages, anomalies)


def test_a_batch_is_in_order_where_the_revision_has_batches() -> None:
    batch = [{**V, "method": "n"}, {**V, "id": 1, "result": 2}]
    assert interpret(batch, batches=True) == ([Notification("n"), Response(1, result=2)], [])
    assert interpret([7], batches=True) == ([], [Anomaly.NOT_AN_OBJECT])


@pytest.mark.parametrize(
    ("method", "member", "content"),
    [
        ("ping", "result", {}),
        ("roots/list", "result", {"roots": [{"uri": "file:///home/user/workspace", "name": "workspace"}]}),
        ("elicitation/create", "result", {"action": "decline"}),
        ("sampling/createMessage", "error", {"code": -1, "message": "User rejected sampling request"}),
        ("tools/call", "error", {"code": -32601, "message": "Method not found"}),
    ],
)
def test_what_a_server_asks_gets_a_harmless_answer(method: str, member: str, content: object) -> None:
    assert answer(Request("q", method)).message == {**V, "id": "q", member: content}


@pytest.mark.parametrize("identifier", [None, True, {}, [], "x" * 2000])
def test_a_request_that_can_not_be_answered_is_not(identifier: Any) -> None:
    assert answer(Request(identifier, "ping")).message is None
