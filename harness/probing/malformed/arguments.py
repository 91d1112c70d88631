"""Arguments that a tool's own schema refuses, whatever else it says. Never valid ones: the tool must not run."""

from __future__ import annotations

from enum import StrEnum

from harness.model.base import JsonObject, JsonValue

#: Properties that are looked at.
MOST_PROPERTIES = 100
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "null"})


class Fault(StrEnum):
    """What is wrong with the arguments."""

    MISSING = "missing"
    WRONG_TYPE = "wrong-type"


def faulty_arguments(tool: JsonValue, fault: Fault) -> JsonObject | None:
    """Arguments with this fault for a declared tool; None where its schema does not surely refuse any."""
    schema = tool.get("inputSchema") if isinstance(tool, dict) else None
    if not isinstance(schema, dict):
        return None
    required = schema.get("required")
    properties = schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict):
        return None
    names = [name for name in required[:MOST_PROPERTIES] if isinstance(name, str) and name in properties]
    if not names:
        return None
    if fault is Fault.MISSING:
        return {}
    wrong = [name for name in names if _refuses_objects(properties[name])]
    # An object where none may stand, for every argument: no converter makes text or a number of it.
    return {name: {"$gt": ""} for name in wrong} if wrong else None


def _refuses_objects(schema: JsonValue) -> bool:
    """True when the schema says the type, and it is not an object."""
    kinds = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kinds, str):
        return kinds in _TYPES
    return isinstance(kinds, list) and bool(kinds) and all(kind in _TYPES for kind in kinds)
