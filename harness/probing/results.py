"""The texts of an answer, in document order and bounded: what a model would be shown of it. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from harness.model.base import JsonValue

#: Characters kept of an answer's head and of its tail.
HEAD_CHARACTERS = 192 << 10
TAIL_CHARACTERS = 64 << 10
#: Base64 longer than this is not decoded.
MOST_BLOB = 4 << 20
#: Members of a result that hold base64 (`data` of images and audio, `blob` of resources).
_BLOBS = frozenset({"data", "blob"})
#: Members whose values are words of the protocol.
_WORDS = frozenset({"type", "mimeType", "role"})


def texts_of(value: JsonValue) -> Iterator[str]:
    """Every string in a result, decoded where a member holds base64; keys of structured content too."""
    stack: list[tuple[str, JsonValue, bool]] = [("", value, False)]
    while stack:
        name, node, structured = stack.pop()
        if isinstance(node, str):
            if name in _BLOBS and not structured and (decoded := _decoded(node)) is not None:
                yield decoded
            elif name not in _WORDS or structured:
                yield node
        elif isinstance(node, dict):
            for key, child in reversed(node.items()):
                stack.append((str(key), child, structured or key == "structuredContent"))
                if structured:
                    stack.append(("", str(key), True))
        elif isinstance(node, list | tuple):
            stack.extend((name, child, structured) for child in reversed(node))
        elif node is not None and not isinstance(node, bool):
            yield str(node)


def joined(value: JsonValue) -> str:
    """The texts, one a line; head and tail of one that is longer than is kept."""
    return bounded("\n".join(texts_of(value)))


def bounded(text: str) -> str:
    """Head and tail of a text."""
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return text
    return f"{text[:HEAD_CHARACTERS]}\n…\n{text[-TAIL_CHARACTERS:]}"


def was_cut(text: str) -> bool:
    """Whether something is missing in the middle of a text that `bounded` gave."""
    return len(text) > HEAD_CHARACTERS + TAIL_CHARACTERS and text[HEAD_CHARACTERS:].startswith("\n…\n")


def _decoded(text: str) -> str | None:
    if len(text) > MOST_BLOB or len(text) < 4:
        return None
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None
