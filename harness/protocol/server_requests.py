"""What the harness answers when a server asks its client for something, where nobody chose another answer: canned,
harmless, and the same every time. Then no capability is declared that invites these requests, so each is a fact.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.base import JsonObject, JsonValue
from harness.protocol.messages import METHOD_NOT_FOUND, Request

#: The planted workspace, the only root. The same place as `harness.sandbox.base.WORKSPACE`, which may not be imported.
WORKSPACE_URI = "file:///home/user/workspace"

#: The code that the protocol's text uses in its example of a refused sampling request (2025-11-25, client/sampling).
REFUSED = -1

_ID_CHARACTERS = 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """The frame to send (None: the request can't be answered), and one word for the record."""

    message: JsonObject | None
    summary: str


def answer(request: Request) -> Reply:
    """The reply to one server-initiated request."""
    if not _usable(request.id):
        return Reply(None, "ignored: unusable id")
    match request.method:
        case "ping":
            return with_result(request, {})
        case "roots/list":
            return with_result(request, {"roots": [{"uri": WORKSPACE_URI, "name": "workspace"}]})
        case "elicitation/create":
            return with_result(request, {"action": "decline"})
        case "sampling/createMessage":
            return _error(request.id, REFUSED, "User rejected sampling request")
        case _:
            return _error(request.id, METHOD_NOT_FOUND, "Method not found")


def _usable(identifier: JsonValue) -> bool:
    if isinstance(identifier, str):
        return len(identifier) <= _ID_CHARACTERS
    return isinstance(identifier, int | float) and not isinstance(identifier, bool)


def with_result(request: Request, result: JsonObject, summary: str = "result") -> Reply:
    """A reply with a result; none where the request can't be answered."""
    if not _usable(request.id):
        return Reply(None, "ignored: unusable id")
    return Reply({"jsonrpc": "2.0", "id": request.id, "result": result}, summary)


def _error(identifier: JsonValue, code: int, message: str) -> Reply:
    return Reply({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}, f"error {code}")
