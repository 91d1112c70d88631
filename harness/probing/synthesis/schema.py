"""A target's JSON Schema, looked at with bounds: local references only, composition merged, nothing evaluated.

Drafts 7 and 2020-12 are read alike; where they differ (`definitions`, `items` as a list, `dependencies`) both are
understood.
"""

from __future__ import annotations

from typing import Any

from harness.model.base import JsonValue

#: So many schemas are looked at for one item; real ones have some hundred.
MOST_NODES = 20_000
#: References and compositions followed at one place.
MOST_STEPS = 64

Schema = dict[str, Any]


class Unmakeable(Exception):
    """No value can be made: the schema contradicts itself, or asks for more than the bounds allow."""


class Schemas:
    """The schema of one item. `root` may be anything that a server sent."""

    def __init__(self, root: JsonValue) -> None:
        self.root: Schema = root if isinstance(root, dict) else {}
        self._left = MOST_NODES
        self._anchors: dict[str, Schema] | None = None

    def view(self, schema: JsonValue, choice: int = 0) -> Schema:
        """One schema with references, `allOf` and the chosen branch of `anyOf`/`oneOf` merged into it.

        Branch 0 is the likeliest: not null, and with the most properties said. Raises Unmakeable.
        """
        merged: Schema = {}
        waiting = [schema]
        for _ in range(MOST_STEPS):
            if not waiting:
                return merged
            self._count()
            here = waiting.pop(0)
            if here is False:
                raise Unmakeable("a schema allows nothing")
            if not isinstance(here, dict):
                continue
            reference = here.get("$ref", here.get("$dynamicRef"))
            if isinstance(reference, str):
                waiting.append(self._local(reference))
            branches = here.get("anyOf") or here.get("oneOf")
            if isinstance(branches, list) and branches:
                ordered = self._ordered(branches)
                waiting.append(ordered[choice % len(ordered)])
            every = here.get("allOf")
            if isinstance(every, list):
                waiting += every[:MOST_STEPS]
            _merge(merged, here)
        raise Unmakeable("its references do not end")

    def branches(self, schema: JsonValue) -> int:
        """How many ways of filling in a schema there are to choose from at its top."""
        for _ in range(8):
            if not isinstance(schema, dict):
                return 1
            found = schema.get("anyOf") or schema.get("oneOf")
            if isinstance(found, list) and found:
                return min(len(found), 16)
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return 1
            try:
                schema = self._local(reference)
            except Unmakeable:
                return 1
        return 1

    def _ordered(self, branches: list[Any]) -> list[Any]:
        """Null last; the rest as the author wrote them."""
        null = [b for b in branches if isinstance(b, dict) and b.get("type") == "null"]
        return [b for b in branches if b not in null] + null

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Unmakeable(f"it has more than {MOST_NODES} parts")

    def _local(self, reference: str) -> JsonValue:
        if not reference.startswith("#"):
            raise Unmakeable("it refers to a schema elsewhere, which is not fetched")
        if reference != "#" and not reference.startswith("#/"):
            return self._anchored(reference[1:])
        value: JsonValue = self.root
        for part in [p for p in reference[1:].split("/") if p]:
            name = part.replace("~1", "/").replace("~0", "~").replace("%24", "$").replace("%25", "%")
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                raise Unmakeable("a reference leads nowhere")
        return value

    def _anchored(self, name: str) -> Schema:
        if self._anchors is None:
            self._anchors = {}
            waiting: list[JsonValue] = [self.root]
            while waiting:
                self._count()
                here = waiting.pop()
                if isinstance(here, dict):
                    for key in ("$anchor", "$dynamicAnchor", "$id"):
                        if isinstance(here.get(key), str):
                            self._anchors.setdefault(here[key].removeprefix("#"), here)
                    waiting += here.values()
                elif isinstance(here, list):
                    waiting += here
        if name not in self._anchors:
            raise Unmakeable("a reference leads nowhere")
        return self._anchors[name]


def _merge(into: Schema, other: Schema) -> None:
    """Add what `other` says; of two bounds the narrower one holds."""
    for key, value in other.items():
        if key in ("$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "$defs", "definitions"):
            continue
        if key not in into:
            into[key] = value
        elif key == "properties" and isinstance(value, dict) and isinstance(into[key], dict):
            into[key] = {**into[key], **{name: _both(into[key].get(name), inner) for name, inner in value.items()}}
        elif key == "required" and isinstance(value, list) and isinstance(into[key], list):
            into[key] = [*into[key], *(name for name in value if name not in into[key])]
        elif key == "enum" and isinstance(value, list) and isinstance(into[key], list):
            into[key] = [item for item in into[key] if item in value]
        elif key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
            into[key] = max(numbers) if (numbers := _numbers(into[key], value)) else value
        elif key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
            into[key] = min(numbers) if (numbers := _numbers(into[key], value)) else value
        elif key == "type":
            into[key] = _types_of_both(into[key], value)
        # For the rest the first one said is kept: titles and descriptions nearer to the argument say more of it.


def _both(one: JsonValue, other: JsonValue) -> JsonValue:
    return other if one is None or one is True else one if other is True else {"allOf": [one, other]}


def _numbers(*values: JsonValue) -> list[float]:
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def _types_of_both(one: JsonValue, other: JsonValue) -> JsonValue:
    ones = one if isinstance(one, list) else [one]
    others = other if isinstance(other, list) else [other]
    common = [name for name in ones if name in others or (name == "integer" and "number" in others)]
    common += [name for name in others if name == "integer" and "number" in ones and name not in common]
    return common[0] if len(common) == 1 else common or one


def types_of(schema: Schema) -> tuple[str, ...]:
    """The types that a merged schema allows, likeliest first; guessed from its keywords where it says none."""
    said = schema.get("type")
    if isinstance(said, str):
        return (said,)
    if isinstance(said, list) and said:
        names = [name for name in said if isinstance(name, str)]
        return tuple(sorted(names, key=lambda name: name == "null"))
    for keyword, name in (
        ("properties", "object"),
        ("additionalProperties", "object"),
        ("items", "array"),
        ("prefixItems", "array"),
        ("minimum", "number"),
        ("maximum", "number"),
    ):
        if keyword in schema:
            return (name,)
    return ("string",)


def text(schema: Schema, key: str, bound: int = 1000) -> str:
    """A text of the schema, bounded; empty where it is something else."""
    value = schema.get(key)
    return value[:bound] if isinstance(value, str) else ""
