"""What a refusal tells of a schema that was not declared: the properties that a server says it misses. Pure.

Servers whose schema library and its converter don't fit each other declare objects without properties, and still
check them. Their refusals name what is missing, level by level; a property that is declared is left as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from harness.model.base import JsonObject, JsonValue

MOST_CHARACTERS = 8_000
MOST_ISSUES = 50
MOST_DEPTH = 6

#: Types as the validation libraries name them.
_TYPES = {
    "string": "string",
    "str": "string",
    "number": "number",
    "float": "number",
    "int": "integer",
    "integer": "integer",
    "boolean": "boolean",
    "bool": "boolean",
    "array": "array",
    "list": "array",
    "object": "object",
    "dict": "object",
    "record": "object",
}
_NAME = r"['\"`]?([A-Za-z_$][\w$.-]{0,63})['\"`]?"
_MISSING = (
    re.compile(rf"required propert(?:y|ies):? {_NAME}", re.IGNORECASE),
    re.compile(rf"{_NAME} is a required property", re.IGNORECASE),
    re.compile(rf"^{_NAME}\s*\n\s*(?:Field required|Missing required argument)", re.MULTILINE),
    re.compile(
        rf"missing (?:\d+ )?required (?:positional |keyword-only )*(?:argument|parameter|field|input)s?:? {_NAME}",
        re.IGNORECASE,
    ),
    re.compile(rf"missing or invalid {_NAME}", re.IGNORECASE),
    re.compile(r"['\"`]([A-Za-z_$][\w$.-]{0,63})['\"`] (?:is|are) (?:required|missing)", re.IGNORECASE),
)


def learn(schema: JsonValue, refusal: str) -> JsonObject | None:
    """The schema with what the refusal names and the schema lacks; None when it names nothing new."""
    made: JsonObject = json.loads(json.dumps(schema)) if isinstance(schema, dict) else {}
    new = False
    for path, kind in _issues(refusal[:MOST_CHARACTERS]):
        new |= _add(made, path, kind)
    return made if new else None


def _issues(text: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Paths of what is missing, and the types that are expected there."""
    count = 0
    for issue in _listed(text):
        path, expected = issue.get("path"), issue.get("expected")
        parts = tuple(p for p in path if isinstance(p, str | int)) if isinstance(path, list) else ()
        if parts and isinstance(parts[0], str) and len(parts) <= MOST_DEPTH and count < MOST_ISSUES:
            count += 1
            yield parts, _TYPES.get(expected.casefold(), "string") if isinstance(expected, str) else "string"
    if count:
        return
    for pattern in _MISSING:
        for name in pattern.findall(text)[: MOST_ISSUES - count]:
            count += 1
            yield (name,), "string"


def _listed(text: str) -> Iterator[JsonObject]:
    """The issues of a zod error: a JSON list of objects somewhere in the text."""
    start, end = text.find("["), text.rfind("]")
    if not 0 <= start < end:
        return
    try:
        value: JsonValue = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return
    yield from (entry for entry in value if isinstance(entry, dict)) if isinstance(value, list) else ()


def _add(schema: JsonObject, path: tuple[str | int, ...], kind: str) -> bool:
    """Put a property where the path leads; False when it is there already, or something else stands in the way."""
    node = schema
    for number, part in enumerate(path):
        last = number == len(path) - 1
        if isinstance(part, int):
            node.setdefault("type", "array")
            child = node.setdefault("items", {})
        else:
            node.setdefault("type", "object")
            properties = node.setdefault("properties", {})
            if not isinstance(properties, dict):
                return False
            if last and part in properties:
                return False
            required = node.setdefault("required", [])
            if isinstance(required, list) and part not in required:
                required.append(part)
            child = properties.setdefault(part, {})
        if not isinstance(child, dict):
            return False
        if last:
            if child.get("type") == kind:
                return False
            child["type"] = kind
        node = child
    return True
