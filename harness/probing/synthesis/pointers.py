"""JSON pointers (RFC 6901) into arguments; nothing is changed in place."""

from __future__ import annotations

from harness.model.base import JsonValue

#: Marks, at the end of a pointer, the key of an entry instead of its value.
KEY = "#"


def join(pointer: str, part: str | int) -> str:
    """The pointer one step further down."""
    return f"{pointer}/{str(part).replace('~', '~0').replace('/', '~1')}"


def parts_of(pointer: str) -> list[str]:
    """The steps of a pointer. Raises ValueError for one that does not begin with a slash."""
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def get(value: JsonValue, pointer: str) -> JsonValue:
    """The value at a pointer. Raises KeyError when nothing is there."""
    for part in parts_of(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise KeyError(pointer)
    return value


def put(value: JsonValue, pointer: str, new: JsonValue) -> JsonValue:
    """A copy with `new` at the pointer; missing objects are made, a list grows by one element at most.

    Raises KeyError when a scalar or a gap in a list stands in the way.
    """
    steps = parts_of(pointer)
    if not steps:
        return new
    first, rest = steps[0], pointer.split("/", 2)
    below = f"/{rest[2]}" if len(rest) > 2 else ""
    if isinstance(value, list):
        index = int(first) if first.isdecimal() else len(value) + 1
        if index > len(value):
            raise KeyError(pointer)
        inner = value[index] if index < len(value) else None
        return [*value[:index], put(inner, below, new), *value[index + 1 :]]
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise KeyError(pointer)
    return {**value, first: put(value.get(first), below, new)}


def rename(value: JsonValue, pointer: str, new: str) -> JsonValue:
    """A copy in which the entry that the pointer leads to has another key. Raises KeyError."""
    parent, _, last = pointer.rpartition("/")
    (key,) = parts_of(f"/{last}")
    entries = get(value, parent)
    if not isinstance(entries, dict) or key not in entries:
        raise KeyError(pointer)
    return put(value, parent, {new if name == key else name: inner for name, inner in entries.items()})


def remove(value: JsonValue, pointer: str) -> JsonValue:
    """A copy without the property that the pointer leads to; the same when it isn't there."""
    parent, _, last = pointer.rpartition("/")
    (key,) = parts_of(f"/{last}")
    try:
        entries = get(value, parent)
    except KeyError:
        return value
    if not isinstance(entries, dict):
        return value
    return put(value, parent, {name: inner for name, inner in entries.items() if name != key})
