"""The walk through a schema that makes one value with everything in it, and notes its leaves and places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from harness.model.base import JsonObject, JsonValue
from harness.probing.synthesis.draft import Context, InjectionPoint, Leaf
from harness.probing.synthesis.numbers import numbers_for
from harness.probing.synthesis.pointers import KEY, join
from harness.probing.synthesis.roles import Clues, role_of
from harness.probing.synthesis.schema import Schema, Schemas, Unmakeable, text, types_of
from harness.probing.synthesis.spoken import spoken_slots, spoken_values
from harness.probing.synthesis.values import PLANTED, UNTOLD, fallbacks, relative_files, values_for

#: Bounds of what is made, whatever a schema asks for. No real tool needs more.
MOST_DEPTH = 12
MOST_OPTIONAL_DEPTH = 4
MOST_PROPERTIES = 200
MOST_ELEMENTS = 64
MOST_CHARACTERS = 100_000
MOST_LEAVES = 1_000


class Regexes(Protocol):
    """What is known of schemas whose evaluation can be endless: their regular expressions, and their validation.

    Neither is ever run in this process.
    """

    def fitting(self, pattern: str, values: tuple[str, ...]) -> tuple[str, ...]:
        """Values that match, those given first, then made ones; empty when nothing is known."""
        ...

    def refused(self, schema: JsonValue, arguments: JsonObject) -> bool:
        """Whether these arguments are known to be invalid by this schema."""
        ...

    def spare(self, schema: JsonValue) -> tuple[JsonObject, ...]:
        """Valid arguments that were made by other means."""
        ...


class Unknown:
    """Nothing is known: values are kept as they are."""

    def fitting(self, pattern: str, values: tuple[str, ...]) -> tuple[str, ...]:
        return ()

    def refused(self, schema: JsonValue, arguments: JsonObject) -> bool:
        return False

    def spare(self, schema: JsonValue) -> tuple[JsonObject, ...]:
        return ()


@dataclass
class Walk:
    """One walk. `choice` picks the branch wherever there is a choice (0: the likeliest)."""

    schemas: Schemas
    context: Context
    tool: str
    tool_description: str
    regexes: Regexes
    place: str = "argument"
    choice: int = 0
    leaves: list[Leaf] = field(default_factory=list)
    points: list[InjectionPoint] = field(default_factory=list)
    optional: list[str] = field(default_factory=list)

    def arguments(self) -> JsonObject:
        """An object with every property. Raises Unmakeable."""
        schema = self.schemas.view(self.schemas.root, self.choice)
        if "object" not in types_of(schema) and schema.keys() - {"$schema", "title", "description"}:
            raise Unmakeable("the arguments are no object")
        return self._object(schema, "", "", True, 0)

    def _value(self, raw: JsonValue, pointer: str, name: str, required: bool, depth: int, place: str) -> JsonValue:
        if depth > MOST_DEPTH:
            raise Unmakeable("it goes too deep")
        schema = self.schemas.view(raw, self.choice)
        kinds = types_of(schema)
        kind = kinds[min(self.choice, len(kinds) - 1)] if self.choice else kinds[0]
        fixed = _fixed(schema)
        if fixed is not None and not isinstance(fixed[0], dict | list):
            return self._leaf(schema, pointer, name, required, place, "choice", fixed, closed=True)
        if fixed is not None:
            return fixed[0]
        match kind:
            case "object":
                return self._object(schema, pointer, name, required, depth)
            case "array":
                return self._array(schema, pointer, name, required, depth)
            case "boolean":
                values: tuple[JsonValue, ...] = tuple(dict.fromkeys((*_said(schema, bool), False, True)))
                return self._leaf(schema, pointer, name, required, place, "boolean", values)
            case "null":
                return None
            case "integer" | "number":
                made = numbers_for(schema, name, whole=kind == "integer")
                said = tuple(n for n in _said(schema, int, float) if not isinstance(n, bool))
                return self._leaf(schema, pointer, name, required, place, kind, tuple(dict.fromkeys((*said, *made))))
            case _:
                return self._string(schema, pointer, name, required, place)

    def _object(self, schema: Schema, pointer: str, name: str, required: bool, depth: int) -> JsonObject:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        needed = [key for key in schema.get("required") or [] if isinstance(key, str)]
        made: JsonObject = {}
        for key in [*properties, *(key for key in needed if key not in properties)][:MOST_PROPERTIES]:
            is_needed = key in needed
            if not is_needed and depth >= MOST_OPTIONAL_DEPTH:
                continue
            below = join(pointer, key)
            mark = len(self.leaves), len(self.points), len(self.optional)
            if not is_needed:
                self.optional.append(below)
            try:
                made[key] = self._value(
                    properties.get(key, True), below, key, required and is_needed, depth + 1, self.place
                )
            except Unmakeable:
                if is_needed:
                    raise
                del self.leaves[mark[0] :], self.points[mark[1] :], self.optional[mark[2] :]
        free = _free(schema)
        least = _count(schema, "minProperties", 0)
        if free is not None and (not properties or len(made) < least):
            for key in self._keys(schema, max(1, least - len(made))):
                below = join(pointer, key)
                if required and pointer and not least:
                    self.optional.append(below)
                made[key] = self._value(free, below, name or key, required, depth + 1, "argument")
                about = Clues("", "", text(schema, "description"), self.tool, self.tool_description)
                self._note(schema, below + KEY, name, key, required, "key", "string", role=role_of(about))
        return made

    def _keys(self, schema: Schema, count: int) -> list[str]:
        names = schema.get("propertyNames")
        if isinstance(names, dict):
            said = names.get("enum")
            if isinstance(said, list):
                return [key for key in said if isinstance(key, str)][:count]
            if isinstance(names.get("pattern"), str):
                return list(self.regexes.fitting(names["pattern"], ("name", "key1")))[:count] or ["name"]
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict) and patterns:
            fitting = self.regexes.fitting(next(iter(patterns)), ("name", "key1", "1"))
            return list(fitting)[:1] or ["name"]
        return ["name", *(f"key{number}" for number in range(1, min(count, MOST_ELEMENTS)))]

    def _array(self, schema: Schema, pointer: str, name: str, required: bool, depth: int) -> list[JsonValue]:
        least, most = _count(schema, "minItems", 0), _count(schema, "maxItems", MOST_ELEMENTS)
        if least > MOST_ELEMENTS or most < least:
            raise Unmakeable(f"it asks for {least} elements")
        command = self._command(schema, pointer, name, required, least)
        if command is not None:
            return command
        said = _said(schema, list)
        if said and said[0] and all(isinstance(item, str) for item in said[0]) and len(said[0]) >= least:
            self._elements(schema, pointer, name, required, list(said[0])[:MOST_ELEMENTS])
            return list(said[0])[:MOST_ELEMENTS]
        first = schema.get("prefixItems")
        items = schema.get("items")
        if isinstance(items, list):
            first, items = items, schema.get("additionalItems", True)
        first = first if isinstance(first, list) else []
        made: list[JsonValue] = []
        wanted = min(most, max(least, 1, len(first[:least]) if first else 0))
        for number in range(wanted):
            inner = first[number] if number < len(first) else (True if items is None else items)
            mark = len(self.leaves), len(self.points), len(self.optional)
            try:
                below = join(pointer, number)
                made.append(self._value(inner, below, name, required, depth + 1, "element"))
            except Unmakeable:
                if number < least:
                    raise
                del self.leaves[mark[0] :], self.points[mark[1] :], self.optional[mark[2] :]
                break
        if schema.get("uniqueItems") is True:
            made = _distinct(made)
        if made and all(isinstance(item, str) for item in made):
            role = role_of(self._clues(schema, name))
            self._note(schema, pointer, name, made, required, self.place, "array", role=role, siblings=True)
        return made

    def _command(self, schema: Schema, pointer: str, name: str, required: bool, least: int) -> list[JsonValue] | None:
        """A command line as a list of words, where the list is one: program first."""
        items = schema.get("items")
        clues = self._clues(schema, name)
        if role_of(clues) != "command" or (isinstance(items, dict) and items.keys() - {"type", "title", "description"}):
            return None
        lines: tuple[JsonValue, ...] = tuple(str(line).split() for line in values_for("command", clues, self.context))
        fitting = tuple(line for line in lines if len(line) >= least)
        if not fitting:
            return None
        self.leaves.append(Leaf(pointer=pointer, name=name, role="command", values=fitting, required=required))
        self._elements(schema, pointer, name, required, fitting[0], "command")
        return list(fitting[0])

    def _clues(self, schema: Schema, name: str) -> Clues:
        return Clues(name, text(schema, "format"), text(schema, "description"), self.tool, self.tool_description)

    def _elements(
        self, schema: Schema, pointer: str, name: str, required: bool, values: list[JsonValue], role: str = ""
    ) -> None:
        role = role or role_of(self._clues(schema, name))
        self._note(schema, pointer, name, values, required, self.place, "array", role=role, siblings=True)
        for number, value in enumerate(values[:4]):
            self._note(schema, join(pointer, number), name, value, required, "element", "string", role=role)

    def _string(self, schema: Schema, pointer: str, name: str, required: bool, place: str) -> str:
        least, most = _count(schema, "minLength", 0), _count(schema, "maxLength", MOST_CHARACTERS)
        if least > MOST_CHARACTERS or most < least:
            raise Unmakeable(f"it asks for a text of {least} characters")
        clues = self._clues(schema, name)
        role = role_of(clues)
        said = [value for value in _said(schema, str) if value or not least]
        made = [str(value) for value in values_for(role, clues, self.context)]
        spoken = spoken_values(clues.description)
        if role in UNTOLD or role == "template":
            spoken = (*spoken_slots(f"{clues.description} {clues.tool_description}"), *spoken)
        if self.place == "resource-uri" and role in UNTOLD:
            made = [*relative_files(self.context), *made]
        # What is planted is there; what a description names as a path or an address seldom is.
        known = {value for values in self.context.found.values() for value in values}
        told = [value for value in made if value in known]
        first = [] if role in PLANTED else [*told, *spoken]
        pool = [*(s for s in said if s), *first, *made, *spoken, *said]
        values = tuple(dict.fromkeys(_sized(value, least, most) for value in pool))
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            values = self.regexes.fitting(pattern, values) or values
        spare = fallbacks(self.context) if role in UNTOLD else ()
        chosen = self._leaf(schema, pointer, name, required, place, role, values, spare=spare)
        return str(chosen)

    def _leaf(
        self,
        schema: Schema,
        pointer: str,
        name: str,
        required: bool,
        place: str,
        role: str,
        values: tuple[JsonValue, ...],
        *,
        closed: bool = False,
        spare: tuple[str, ...] = (),
    ) -> JsonValue:
        if len(self.leaves) >= MOST_LEAVES:
            raise Unmakeable(f"it has more than {MOST_LEAVES} values")
        said = text(schema, "description", 300)
        self.leaves.append(
            Leaf(
                pointer=pointer,
                name=name,
                role=role,
                values=values,
                required=required,
                description=said,
                spare=spare,
            )
        )
        value = values[0]
        kind = types_of(schema)[0] if not isinstance(value, str) else "string"
        self._note(schema, pointer, name, value, required, place, kind, role=role, closed=closed)
        return value

    def _note(
        self,
        schema: Schema,
        pointer: str,
        name: str,
        value: JsonValue,
        required: bool,
        place: str,
        kind: str,
        *,
        role: str = "",
        closed: bool = False,
        siblings: bool = False,
    ) -> None:
        if isinstance(value, bool):
            return
        most = schema.get("maxLength")
        self.points.append(
            InjectionPoint(
                pointer=pointer,
                place=place,
                name=name,
                value=value,
                type=kind,
                format=text(schema, "format", 60),
                description=text(schema, "description"),
                role=role,
                pattern=text(schema, "pattern"),
                max_length=most if isinstance(most, int) and not isinstance(most, bool) else None,
                closed=closed,
                optional=any(pointer == path or pointer.startswith((f"{path}/", path + KEY)) for path in self.optional),
                numeric=kind in ("integer", "number") or (isinstance(value, str) and value.isdecimal()),
                siblings=siblings,
            )
        )


def _fixed(schema: Schema) -> tuple[JsonValue, ...] | None:
    """The values that a schema lists; the default first."""
    if "const" in schema:
        return (schema["const"],)
    said = schema.get("enum")
    if not isinstance(said, list):
        return None
    if not said:
        raise Unmakeable("a list of allowed values is empty")
    default = schema.get("default")
    listed = [value for value in said if value is not None] or said
    return tuple(sorted(listed[:100], key=lambda value: value != default))


def _said(schema: Schema, *kinds: type) -> tuple[JsonValue, ...]:
    """Default and examples of the right type."""
    examples = schema.get("examples")
    listed = [schema.get("default"), schema.get("example"), *(examples[:5] if isinstance(examples, list) else [])]
    return tuple(value for value in listed if isinstance(value, kinds))


def _free(schema: Schema) -> JsonValue:
    """The schema of an object's further entries; None when it takes none, or is not meant to."""
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict) and patterns:
        return next(iter(patterns.values()))
    more = schema.get("additionalProperties")
    if isinstance(more, dict) or (more is True and not schema.get("properties")):
        return more
    return None


def _count(schema: Schema, key: str, default: int) -> int:
    value = schema.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else default


def _sized(value: str, least: int, most: int) -> str:
    if len(value) < least:
        value += "a" * (least - len(value))
    return value[:most]


def _distinct(values: list[JsonValue]) -> list[JsonValue]:
    made: list[JsonValue] = []
    for number, value in enumerate(values):
        if value in made:
            value = (
                f"{value}{number}" if isinstance(value, str) else value + number if isinstance(value, int) else value
            )
        made.append(value)
    return made
