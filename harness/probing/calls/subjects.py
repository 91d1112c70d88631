"""What can be called: tools, prompts, resources and resource templates, each with a schema of what it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from urllib.parse import quote

from harness.model.base import JsonObject, JsonValue
from harness.model.call import Asked
from harness.model.errors import UsageError
from harness.model.surface import Item, ItemKind, ListEnd, Surface
from harness.probing.answers import PLACES as ANSWER_PLACES
from harness.probing.answers import wanted

#: Arguments of one prompt or template whose completion is asked for.
MOST_COMPLETIONS = 8
#: How long a task is to be kept by the server.
TASK_MILLISECONDS = 120_000
#: Names told when one is unknown.
MOST_NAMES = 40
_GLOB = re.compile(r"[*?\[]")
#: A variable of a URI template (RFC 6570), its operator and modifiers included.
_VARIABLE = re.compile(r"\{([+#./;?&]?)([^{}]{1,200})\}")

METHODS = {
    ItemKind.TOOL: "tools/call",
    ItemKind.PROMPT: "prompts/get",
    ItemKind.RESOURCE: "resources/read",
    ItemKind.RESOURCE_TEMPLATE: "resources/read",
}
_PLACES = {
    ItemKind.TOOL: "argument",
    ItemKind.PROMPT: "prompt-argument",
    ItemKind.RESOURCE: "resource-uri",
    ItemKind.RESOURCE_TEMPLATE: "resource-uri",
}


@dataclass(frozen=True, eq=False)
class Subject:
    """One item that can be called, itself and no copy of it.

    `schema`: JSON Schema of its arguments, as declared, or made from its declaration. `of`: the prompt or template
    whose arguments are completed, where that is what is called. `task`: it is called as a task (revision 2025-11-25).
    `asks`: the method, and `number`: which of its requests, where the arguments are what the client answers while
    `within` is called.
    """

    kind: ItemKind
    name: str
    schema: JsonValue
    description: str = ""
    annotations: JsonObject | None = None
    of: str = ""
    task: bool = False
    asks: str = ""
    number: int = 1
    within: Subject | None = None

    @property
    def title(self) -> str:
        """Its name in the books."""
        number = f" {self.number}" if self.number > 1 else ""
        return f"{self.name}, answer{number} to {self.asks}" if self.asks else self.name

    @property
    def method(self) -> str:
        """The request that calls it."""
        return "completion/complete" if self.of else METHODS[self.kind]

    @property
    def place(self) -> str:
        """What a payload in its arguments stands in (see `Applies.places`)."""
        return ANSWER_PLACES[self.asks] if self.asks else _PLACES[self.kind]

    def asking(self, asked: Asked) -> Subject:
        """What is asked for when this is called, as a subject whose arguments are the answer."""
        schema = wanted(asked.method, asked.params)
        return replace(self, schema=schema, asks=asked.method, number=asked.number, within=self)

    def params(self, arguments: JsonObject) -> JsonObject:
        """The parameters of a call with these arguments."""
        if self.of:
            prompt = self.kind is ItemKind.PROMPT
            name, value = next(iter(arguments.items()), ("", ""))
            reference = {"type": "ref/prompt", "name": self.of} if prompt else {"type": "ref/resource", "uri": self.of}
            return {"ref": reference, "argument": {"name": name, "value": value}}
        if self.kind is ItemKind.TOOL:
            call: JsonObject = {"name": self.name, "arguments": arguments}
            return {**call, "task": {"ttl": TASK_MILLISECONDS}} if self.task else call
        if self.kind is ItemKind.PROMPT:
            texts = {name: value if isinstance(value, str) else str(value) for name, value in arguments.items()}
            return {"name": self.name, "arguments": texts}
        if self.kind is ItemKind.RESOURCE:
            return {"uri": arguments.get("uri", self.name)}
        return {"uri": expand_uri(self.name, arguments)}


def subjects_of(surface: Surface) -> tuple[Subject, ...]:
    """Everything that can be called, in the order served; of several with one name the first."""
    found: dict[tuple[ItemKind, str], Subject] = {}
    for kind in (ItemKind.TOOL, ItemKind.PROMPT, ItemKind.RESOURCE_TEMPLATE, ItemKind.RESOURCE):
        for item in surface.of(kind):
            if item.name and isinstance(item.value, dict):
                found.setdefault((kind, item.name), _subject(item, item.value))
    completions = _completions(tuple(found.values())) if "completions" in surface.capabilities else ()
    return (*found.values(), *completions)


def _completions(subjects: tuple[Subject, ...]) -> Iterator[Subject]:
    """What completes the arguments of prompts and templates, one subject for each argument."""
    for subject in subjects:
        properties = subject.schema.get("properties") if isinstance(subject.schema, dict) else None
        if subject.kind in (ItemKind.PROMPT, ItemKind.RESOURCE_TEMPLATE) and isinstance(properties, dict):
            for argument, schema in list(properties.items())[:MOST_COMPLETIONS]:
                yield Subject(
                    subject.kind,
                    f"{subject.name} {argument}?",
                    {"type": "object", "properties": {argument: schema}, "required": [argument]},
                    of=subject.name,
                )


def allowed(subjects: tuple[Subject, ...], allow: tuple[str, ...]) -> tuple[Subject, ...]:
    """Those that the operator allowed, by exact name or glob, in the order served."""
    return tuple(subject for subject in subjects if any(matches(subject.of or subject.name, name) for name in allow))


def check_names(surface: Surface, allow: tuple[str, ...]) -> None:
    """Raises UsageError for a name that matches nothing, with the names there are; not where a list was cut short."""
    whole = all(outcome.end in (ListEnd.COMPLETE, ListEnd.NOT_OFFERED) for outcome in surface.lists)
    names = [item.name for item in surface.items if item.name]
    unknown = [name for name in allow if not any(matches(known, name) for known in names)]
    if not unknown or not whole:
        return
    tools = list(dict.fromkeys(item.name for item in surface.of(ItemKind.TOOL) if item.name))
    shown = ", ".join(tools[:MOST_NAMES]) + (f" and {len(tools) - MOST_NAMES} more" if len(tools) > MOST_NAMES else "")
    raise UsageError(f"--allow {unknown[0]}: the server has no such tool", remedy=f"it has: {shown or 'none at all'}")


def matches(name: str, pattern: str) -> bool:
    """Whether a name is the one allowed, or fits the glob."""
    return name == pattern or (_GLOB.search(pattern) is not None and fnmatchcase(name, pattern))


def expand_uri(template: str, values: Mapping[str, JsonValue]) -> str:
    """A URI template filled in: simply, reserved (`+`, `#`) or with the other operators of RFC 6570, one value each.

    A value stands as it is given after `+` and `#`, and for a variable with `*`: there a path is expected.
    """

    def fill(found: re.Match[str]) -> str:
        operator, names = found[1], [part.strip() for part in found[2].split(",")]
        parts = []
        for part in names:
            name = part.rstrip("*").partition(":")[0]
            value = values.get(name, "")
            text = value if isinstance(value, str) else str(value)
            raw = operator in ("+", "#") or part.endswith("*")
            text = text if raw else quote(text, safe="")
            parts.append(f"{name}={text}" if operator in (";", "?", "&") else text)
        joiner = {"": ",", "+": ",", "#": ",", "?": "&"}.get(operator, operator)
        lead = "" if operator in ("", "+") else operator
        return lead + joiner.join(parts)

    return _VARIABLE.sub(fill, template)


def variables_of(template: str) -> tuple[str, ...]:
    """The names of a URI template's variables."""
    names = [
        part.strip().rstrip("*").partition(":")[0]
        for found in _VARIABLE.findall(template)
        for part in found[1].split(",")
    ]
    return tuple(dict.fromkeys(name for name in names if name))


def _subject(item: Item, value: JsonObject) -> Subject:
    said = value.get("description")
    description = said if isinstance(said, str) else ""
    annotations = value.get("annotations")
    schema: JsonValue
    if item.kind is ItemKind.TOOL:
        schema = value.get("inputSchema")
    elif item.kind is ItemKind.PROMPT:
        schema = _prompt_schema(value.get("arguments"))
    elif item.kind is ItemKind.RESOURCE:
        schema = {"type": "object", "properties": {"uri": {"type": "string", "const": item.name}}, "required": ["uri"]}
    else:
        names = variables_of(item.name)
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}
    execution = value.get("execution")
    return Subject(
        item.kind,
        item.name,
        schema,
        description,
        annotations if isinstance(annotations, dict) else None,
        task=isinstance(execution, dict) and execution.get("taskSupport") == "required",
    )


def _prompt_schema(arguments: JsonValue) -> JsonObject:
    properties: JsonObject = {}
    required: list[JsonValue] = []
    for entry in arguments if isinstance(arguments, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            properties[entry["name"]] = {"type": "string", "description": entry.get("description") or ""}
            required.append(entry["name"])
    return {"type": "object", "properties": properties, "required": required}
