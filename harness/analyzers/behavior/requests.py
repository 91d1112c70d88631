"""What the client asked for: requests by their ids, so that an answer can be laid at the door of its tool."""

from __future__ import annotations

import json
from typing import NamedTuple

from harness.model.base import JsonValue
from harness.model.finding import Location
from harness.model.recording import FrameEvent

MOST_REQUESTS = 256
#: Of one request with what was answered meanwhile, about so much is kept.
MOST_CHARACTERS = 256 << 10
#: Lists of declared items by their names in results, and what an item's place is called.
_LISTS = {"tools": "tool", "prompts": "prompt", "resources": "resource", "resourceTemplates": "resource_template"}
_CALLS = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}


class Request(NamedTuple):
    """A request as it was sent. `text` is the whole of it, lower case."""

    method: str
    item: str
    text: str


class Requests:
    """The last requests of each life."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str], Request] = {}
        self._last: dict[str, tuple[str, str]] = {}

    def sent(self, event: FrameEvent) -> None:
        """Remember one."""
        message = parsed(event)
        if isinstance(message, dict) and "result" in message:
            self._answer(event)
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        item, method = params.get("name", params.get("uri", "")), str(message["method"])
        if method.startswith("tasks/") and event.phase.startswith("call:"):
            method, item = "tools/call", event.phase[len("call:") :].rpartition(":")[0]  # asked for what came of it
        if len(self._requests) >= MOST_REQUESTS:
            del self._requests[next(iter(self._requests))]
        key = self._last[event.session] = event.session, json.dumps(message["id"])
        self._requests[key] = Request(
            method, item if isinstance(item, str) else "", event.raw.decode("utf-8", "replace").lower()
        )

    def _answer(self, event: FrameEvent) -> None:
        """What is answered while a request is open is part of what was asked."""
        key = self._last.get(event.session)
        request = self._requests.get(key) if key is not None else None
        if key is not None and request is not None and len(request.text) < MOST_CHARACTERS:
            more = event.raw[:MOST_CHARACTERS].decode("utf-8", "replace").lower()
            self._requests[key] = request._replace(text=f"{request.text}\n{more}")

    def answered(self, event: FrameEvent) -> tuple[Request | None, JsonValue]:
        """The request that a received message answers, None where it answers none; and the message."""
        message = parsed(event)
        if not isinstance(message, dict) or "id" not in message or "method" in message:
            return None, message
        try:
            key = (event.session, json.dumps(message["id"]))
        except (TypeError, ValueError):
            return None, message
        return self._requests.get(key), message


def parsed(event: FrameEvent) -> JsonValue:
    """The message of a frame; None where it is none."""
    try:
        return json.loads(event.raw)
    except (ValueError, RecursionError):
        return None


def location_of(request: Request | None) -> Location | None:
    """The item that a request called; None where it called none."""
    kind = _CALLS.get(request.method) if request is not None else None
    if request is None or kind is None or not request.item:
        return None
    return Location.model_validate({kind: request.item[:200]})


def declared_in(message: JsonValue) -> list[tuple[Location, str]]:
    """The items that a list's page declares, each with its JSON; empty for any other message."""
    result = message.get("result") if isinstance(message, dict) else None
    if not isinstance(result, dict):
        return []
    found = []
    for key, kind in _LISTS.items():
        entries = result.get(key)
        for entry in entries if isinstance(entries, list) else ():
            name = entry.get("uri") or entry.get("uriTemplate") or entry.get("name") if isinstance(entry, dict) else ""
            place = Location.model_validate({kind: name[:200]}) if isinstance(name, str) and name else Location()
            found.append((place, json.dumps(entry, ensure_ascii=False)))
    return found
