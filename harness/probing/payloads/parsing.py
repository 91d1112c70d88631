"""A payload's file, read from its text. Every complaint names the file and the line."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from pydantic import ValidationError

from harness.model.errors import UsageError
from harness.model.payload import BoundaryKind, Payload, PayloadClass
from harness.probing.payloads.placeholders import ENCODINGS, problems

_TABLE = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_.\"-]+)\s*\]\]?")
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")
_LINE = re.compile(r"at line (\d+)")

#: What a payload may be tried at, and what an argument can be seen to do (`Applies`).
PLACES = frozenset(
    {
        "argument", "element", "key", "resource-uri", "prompt-argument", "header", "sampling-answer",
        "elicitation-answer",
    }
)  # fmt: skip
OBSERVED = frozenset(
    {"opened-path", "written-path", "in-argv", "in-shell", "resolved-host", "connected-host", "in-query", "echoed"}
)
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_NEEDED = ("title", "cwe", "boundary", "template", "control", "effects", "source")


def parse_payload(text: str, file: str) -> Payload:
    """The payload of a file `<class>/<name>.toml`, of which `file` is the path as it is shown.

    Raises UsageError, whose message begins with `file:line:`.
    """
    folder, _, name = file.rpartition("/")
    class_name = folder.rpartition("/")[2]
    try:
        payload_class = PayloadClass(class_name)
    except ValueError:
        raise _wrong(file, 1, f"there is no class {class_name!a}") from None
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        raise _wrong(file, int(line[1]) if line else text.count("\n") + 1, f"not TOML: {error}") from None
    lines = _Lines(text)
    for key in _NEEDED:
        if key not in said:
            raise _wrong(file, 1, f"{key} is missing")
    for key in ("id", "payload_class"):
        if key in said:
            raise _wrong(file, lines.of((key,)), f"{key} comes from the file's place and name")
    try:
        payload = Payload.model_validate(
            {**said, "id": f"{class_name}/{name.removesuffix('.toml')}", "payload_class": payload_class}
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = tuple(first["loc"])
        raise _wrong(file, lines.of(where), f"{'.'.join(map(str, where))}: {first['msg'].lower()}") from None
    _check(payload, said, file, lines)
    return payload


def _check(payload: Payload, said: dict[str, Any], file: str, lines: _Lines) -> None:
    for where, value in _texts(said, ()):
        for problem in problems(value):
            raise _wrong(file, lines.of(where), problem)
    applies = payload.applies
    for key, values, known in (
        ("types", applies.types, _TYPES),
        ("places", applies.places, PLACES),
        ("observed", applies.observed, OBSERVED),
    ):
        for value in values:
            if value not in known:
                raise _wrong(file, lines.of(("applies", key)), f"{value!a} is none of {', '.join(sorted(known))}")
    for word in payload.encoding:
        if word not in ENCODINGS:
            raise _wrong(file, lines.of(("encoding",)), f"there is no encoding {word!a}")
    for words in (*applies.names, *applies.descriptions):
        if words != words.lower():
            raise _wrong(file, lines.of(("applies",)), f"{words!a} has to be in lower case")
    if not payload.effects:
        raise _wrong(file, lines.of(("effects",)), "nothing is predicted")
    if payload.network not in ("", "answer", "refuse"):
        raise _wrong(file, lines.of(("network",)), "the network either answers or refuses")
    if payload.boundary is BoundaryKind.NONE:
        raise _wrong(file, lines.of(("boundary",)), "an effect that crosses no boundary is no fault")
    if payload.cwe < 1:
        raise _wrong(file, lines.of(("cwe",)), "not the number of a weakness")
    for key, mine, control in (
        ("control", (payload.template,), (payload.control,)),
        ("control_elements", payload.elements, payload.control_elements),
        ("control_steps", payload.steps, payload.control_steps),
        ("control_step_elements", payload.step_elements, payload.control_step_elements),
    ):
        if len(mine) != len(control):
            said_at = key if key in said else key.removeprefix("control_")
            raise _wrong(
                file, lines.of((said_at,)), f"{key} has {len(control)} parts where the payload has {len(mine)}"
            )
    if (payload.template, payload.elements) == (payload.control, payload.control_elements) and (
        payload.steps == payload.control_steps
    ):
        raise _wrong(file, lines.of(("control",)), "the control is the payload")


def _texts(value: Any, where: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        return [(where, value)]
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in _texts(inner, (*where, key))]
    if isinstance(value, list):
        return [found for number, inner in enumerate(value) for found in _texts(inner, (*where, number))]
    return []


class _Lines:
    """Where the keys of a TOML text stand; enough for texts whose keys each begin a line."""

    def __init__(self, text: str) -> None:
        self._at: dict[tuple[str | int, ...], int] = {}
        table: tuple[str | int, ...] = ()
        counts: dict[str, int] = {}
        quoted = ""
        for number, line in enumerate(text.splitlines(), 1):
            if quoted:
                quoted = "" if quoted in line else quoted
                continue
            head, key = _TABLE.match(line), _KEY.match(line)
            if head and not key:
                name = head[2]
                if head[1] == "[[":
                    table = (name, counts.get(name, 0))
                    counts[name] = counts.get(name, 0) + 1
                else:
                    table = tuple(name.split("."))
                self._at[table] = number
                self._at.setdefault(table[:1], number)
            elif key:
                self._at[(*table, key[1])] = number
            for mark in ("'''", '"""'):
                if line.count(mark) % 2:
                    quoted = mark

    def of(self, where: tuple[str | int, ...]) -> int:
        """The line of the key, or of the nearest one around it; 1 when there is none."""
        while where:
            if where in self._at:
                return self._at[where]
            where = where[:-1]
        return 1


def _wrong(file: str, line: int, what: str) -> UsageError:
    return UsageError(f"{file}:{line}: {' '.join(what.split())[:300]}")
