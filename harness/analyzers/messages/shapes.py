"""The shapes of results that discovery asks for, by protocol revision; unknown members are never violations.

From the schemas of the revisions 2024-11-05 to 2025-11-25 and 2026-07-28. `null` for an optional member is a habit
of some SDKs and INFO, as are the cache hints that clients of 2026-07-28 do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.model.base import JsonObject, JsonValue
from harness.model.finding import Severity
from harness.model.surface import Era

BROKEN, ODD, HABIT = Severity.MEDIUM, Severity.LOW, Severity.INFO


@dataclass(frozen=True)
class Violation:
    """`code` names the kind and is the same wherever it occurs; `where` is the place in this one result."""

    code: str
    severity: Severity
    description: str
    where: str


@dataclass(frozen=True)
class Member:
    """A member of an object: its JSON type, and whether it must be there (`missing` is then how bad its lack is)."""

    name: str
    type: str
    missing: Severity | None = None
    wrong: Severity = ODD


_TYPES: dict[str, type | tuple[type, ...]] = {
    "a string": str,
    "an object": dict,
    "an array": list,
    "a boolean": bool,
    "a number": (int, float),
}
_TITLES = (Member("title", "a string"), Member("description", "a string"), Member("_meta", "an object"))

_INITIALIZE = (
    Member("protocolVersion", "a string", BROKEN, BROKEN),
    Member("capabilities", "an object", BROKEN, BROKEN),
    Member("serverInfo", "an object", BROKEN, BROKEN),
    Member("instructions", "a string"),
)
_DISCOVER = (
    Member("supportedVersions", "an array", BROKEN, BROKEN),
    Member("capabilities", "an object", BROKEN, BROKEN),
    Member("instructions", "a string"),
)
_STATELESS = (
    Member("resultType", "a string", HABIT),
    Member("ttlMs", "a number", HABIT),
    Member("cacheScope", "a string", HABIT),
)
_IMPLEMENTATION = (Member("name", "a string", BROKEN, BROKEN), Member("version", "a string", ODD, ODD), *_TITLES[:2])
_TOOL = (
    Member("name", "a string", BROKEN, BROKEN),
    Member("inputSchema", "an object", BROKEN, BROKEN),
    Member("outputSchema", "an object", None, BROKEN),
    Member("annotations", "an object"),
    *_TITLES,
)
_HINTS = tuple(
    Member(name, "a boolean") for name in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
)
_PROMPT = (Member("name", "a string", BROKEN, BROKEN), Member("arguments", "an array"), *_TITLES)
_ARGUMENT = (Member("name", "a string", BROKEN, BROKEN), Member("required", "a boolean"), *_TITLES[:2])
_RESOURCE = (
    Member("uri", "a string", BROKEN, BROKEN),
    Member("name", "a string", ODD, ODD),
    Member("mimeType", "a string"),
    *_TITLES,
)
_TEMPLATE = (
    Member("uriTemplate", "a string", BROKEN, BROKEN),
    Member("name", "a string", ODD, ODD),
    Member("mimeType", "a string"),
    *_TITLES,
)
#: Method, member that holds the list, shape of its entries, what an entry is called.
_LISTS: dict[str, tuple[str, tuple[Member, ...], str]] = {
    "tools/list": ("tools", _TOOL, "tool"),
    "prompts/list": ("prompts", _PROMPT, "prompt"),
    "resources/list": ("resources", _RESOURCE, "resource"),
    "resources/templates/list": ("resourceTemplates", _TEMPLATE, "template"),
}
METHODS = frozenset({"initialize", "server/discover", *_LISTS})


def check_result(method: str, result: JsonValue, era: Era | None) -> Iterator[Violation]:
    """What is wrong with the result of `method`; nothing for methods that discovery does not use."""
    if method not in METHODS:
        return
    if not isinstance(result, dict):
        yield Violation(f"{method}: result", BROKEN, f"The result of {method} is no object.", method)
        return
    if era is Era.STATELESS or method == "server/discover":
        yield from _members(result, _STATELESS, method, method)
    if method == "initialize":
        yield from _initialize(result)
    elif method == "server/discover":
        yield from _members(result, _DISCOVER, method, method)
        versions = result.get("supportedVersions")
        if isinstance(versions, list) and not all(isinstance(version, str) for version in versions):
            yield Violation(f"{method}: supportedVersions", BROKEN, "A supported version is no string.", method)
    else:
        yield from _list(method, result)


def check_error(error: JsonValue) -> Iterator[Violation]:
    """What is wrong with an error answer."""
    if not isinstance(error, dict):
        yield Violation("error", BROKEN, "The error of an answer is no object.", "error")
        return
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        yield Violation("error: code", ODD, "An error's code is no whole number.", "error.code")
    if not isinstance(error.get("message"), str):
        yield Violation("error: message", ODD, "An error's message is no string.", "error.message")


def _initialize(result: JsonObject) -> Iterator[Violation]:
    yield from _members(result, _INITIALIZE, "initialize", "initialize")
    info, capabilities = result.get("serverInfo"), result.get("capabilities")
    if isinstance(info, dict):
        yield from _members(info, _IMPLEMENTATION, "serverInfo", "serverInfo")
    if isinstance(capabilities, dict):
        known = tuple(Member(name, "an object") for name in ("tools", "prompts", "resources", "logging", "completions"))
        yield from _members(capabilities, known, "capabilities", "capabilities")


def _list(method: str, result: JsonObject) -> Iterator[Violation]:
    member = _LISTS[method][0]
    yield from _members(result, (Member(member, "an array", BROKEN, BROKEN),), method, method)
    cursor = result.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        yield Violation(f"{method}: nextCursor", BROKEN, f"The cursor of {method} is no string.", method)
    entries = result.get(member)
    yield from check_entries(method, entries if isinstance(entries, list) else [])


def check_entries(method: str, entries: Sequence[JsonValue]) -> Iterator[Violation]:
    """What is wrong with the entries of the list that `method` (one of the list methods) gives."""
    member, shape, called = _LISTS[method]
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            yield Violation(f"{called}: type", BROKEN, f"A {called} is no object.", f"{member}[{number}]")
            continue
        name = entry.get("name")
        where = f"{called} {name!r}" if isinstance(name, str) else f"{member}[{number}]"
        yield from _members(entry, shape, called, where)
        if called == "tool":
            yield from _tool(entry, where)
        elif called == "prompt" and isinstance(entry.get("arguments"), list):
            for argument in entry["arguments"]:
                if isinstance(argument, dict):
                    yield from _members(argument, _ARGUMENT, "prompt argument", where)
                else:
                    yield Violation("prompt argument: type", ODD, "An argument of a prompt is no object.", where)


def _tool(entry: JsonObject, where: str) -> Iterator[Violation]:
    if isinstance(schema := entry.get("inputSchema"), dict) and schema.get("type") != "object":
        yield Violation("tool: inputSchema.type", ODD, "The type of a tool's input schema is not `object`.", where)
    if isinstance(hints := entry.get("annotations"), dict):
        yield from _members(hints, _HINTS, "tool annotations", where)
    if entry.get("name") == "":
        yield Violation("tool: empty name", ODD, "A tool's name is empty.", where)


def _members(value: JsonObject, shape: tuple[Member, ...], called: str, where: str) -> Iterator[Violation]:
    for member in shape:
        code = f"{called}: {member.name}"
        if member.name not in value:
            if member.missing is not None:
                yield Violation(f"{code} missing", member.missing, f"`{member.name}` is missing in {called}.", where)
            continue
        found = value[member.name]
        if found is None and member.missing is None:
            yield Violation(f"{code} null", HABIT, f"`{member.name}` is null in {called}; left out is right.", where)
        elif not _is(found, member.type):
            yield Violation(f"{code} type", member.wrong, f"`{member.name}` in {called} is not {member.type}.", where)


def _is(value: JsonValue, wanted: str) -> bool:
    return isinstance(value, _TYPES[wanted]) and (wanted != "a number" or not isinstance(value, bool))
