"""JSON-RPC 2.0 envelopes, read tolerantly: what a received value is, and which member breaks the envelope. Pure.

Facts of the envelope are from the JSON-RPC 2.0 specification, sections 4 to 6. Batches were part of the protocol in
revision 2025-03-26 only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.base import JsonObject, JsonValue
from harness.model.recording import Anomaly

METHOD_NOT_FOUND = -32601


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. `failed`: its `error` counts, else its `result`; `whole` is False where it has neither."""

    id: JsonValue
    result: JsonValue = None
    error: JsonValue = None
    failed: bool = False
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """The server asks the client for something. `params`: empty where they are no object."""

    id: JsonValue
    method: str
    params: JsonObject = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Notification:
    """The server tells something and wants no answer."""

    method: str


Message = Response | Request | Notification


def interpret(value: JsonValue, *, batches: bool) -> tuple[list[Message], list[Anomaly]]:
    """The messages in one received value, and how its envelopes deviate. `batches`: the revision allows arrays.

    Deviating envelopes are still read as far as they can be: a client that is more lenient than the text would.
    """
    anomalies: dict[Anomaly, None] = {}
    entries = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not batches:
        anomalies[Anomaly.NOT_AN_OBJECT] = None
    messages: list[Message] = []
    for entry in entries:
        if not isinstance(entry, dict):
            anomalies[Anomaly.NOT_AN_OBJECT] = None
            continue
        message, regular = _envelope(entry)
        if message is not None:
            messages.append(message)
        if not regular:
            anomalies[Anomaly.NOT_JSONRPC] = None
    return messages, list(anomalies)


def _envelope(entry: JsonObject) -> tuple[Message | None, bool]:
    regular = entry.get("jsonrpc") == "2.0"
    if "method" in entry:
        method = entry["method"]
        if not isinstance(method, str):
            return None, False
        if "id" in entry:
            params = entry.get("params")
            return Request(entry["id"], method, params if isinstance(params, dict) else {}), regular
        return Notification(method), regular
    if "id" not in entry:
        return None, False
    identifier, result, error = entry["id"], entry.get("result"), entry.get("error")
    regular = regular and ("result" in entry) != ("error" in entry)
    # Serializers that write both members with a null in one are common; the one with content counts.
    if "error" in entry and (error is not None or "result" not in entry):
        if result is not None:
            return Response(identifier, result=result), regular
        return Response(identifier, error=error, failed=True), regular and isinstance(error, dict)
    if "result" in entry:
        return Response(identifier, result=result), regular
    return Response(identifier, whole=False), False
