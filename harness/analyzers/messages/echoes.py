"""Takes what was sent out of what came back: an echo of ours says nothing about the server. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.base import JsonValue

#: A shorter single word of ours stays in an answer: it says nothing alone, and a server that names its choices could
#: have words of its own taken out.
SHORTEST_ECHO = 12
MAX_ECHOES = 200


def without_echoes(text: str, params: JsonValue) -> str:
    """The text with the values that were sent taken out, the longest first."""
    sent = sorted({leaf for leaf in _leaves(params) if _speaks(leaf)}, key=lambda leaf: (-len(leaf), leaf))
    for leaf in sent[:MAX_ECHOES]:
        text = text.replace(leaf, " ")
    return text


def _speaks(leaf: str) -> bool:
    return len(leaf) >= SHORTEST_ECHO or (" " in leaf.strip() and len(leaf) > 3)


def _leaves(value: JsonValue) -> Iterator[str]:
    stack: list[JsonValue] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
