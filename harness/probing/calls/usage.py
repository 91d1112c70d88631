"""What an argument is used for, read off the records of a call: the ground on which classes are ordered. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from harness.model.base import JsonObject, JsonValue
from harness.model.call import Outcome

#: Shorter values turn up by chance.
SHORTEST = 3
MOST_ARGUMENTS = 200
#: Characters of a refusal that are read.
MOST_REACTION = 2_000
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"})
_CHANGES = frozenset({"write", "create", "delete", "rename", "link", "mkdir", "chmod"})
_QUERY = re.compile(
    r"\b(?:sql|sqlite|syntax error|no such (?:table|column)|unrecognized token|near \"|parser error|catalog error"
    r"|relation .{1,80} does not exist)\b",
    re.IGNORECASE,
)
_SQL = re.compile(r"\s*(?:select|insert|update|delete|create|pragma|with|drop|alter|attach|explain)\b", re.IGNORECASE)


def usage_of(arguments: JsonObject, outcome: Outcome, root: str) -> dict[str, frozenset[str]]:
    """By JSON pointer of each string or number in `arguments`: what was observed of it (see `Applies.observed`)."""
    found = {}
    for pointer, value in leaves(arguments):
        seen = frozenset(_seen(value, outcome, root))
        if seen:
            found[pointer] = seen
        if len(found) >= MOST_ARGUMENTS:
            break
    return found


#: What interpreters and parsers say of a text that they can't read, and what that shows (see `matching.SHOWS`).
_REACTIONS = (
    (_QUERY, "in-query"),
    (
        re.compile(
            r"invalid syntax \(<|\bsyntaxerror\b|\bnameerror\b|name '\w{1,80}' is not defined|\w{1,80} is not defined"
            r"|unexpected (?:identifier|eof while parsing)|unterminated string literal",
            re.IGNORECASE,
        ),
        "in-code",
    ),
    (
        re.compile(
            r"not valid json|unexpected token|json at position|expecting value|jsondecodeerror|unpickl|pickle data"
            r"|yaml(?:exception|error|\.scanner|\.parser)|could not determine a constructor"
            r"|not well-formed|xml(?:syntax|parse)? ?error|start tag expected",
            re.IGNORECASE,
        ),
        "in-parser",
    ),
)


def reactions(sent: JsonObject, outcome: Outcome, before: Outcome) -> frozenset[str]:
    """What a refusal of a payload shows of its place, which the answer `before` did not show; echoes don't count."""
    if outcome.state not in ("error", "tool-error"):
        return frozenset()
    text, old = outcome.text[:MOST_REACTION], before.text[:MOST_REACTION]
    for _, echo in leaves(sent):
        text = text.replace(echo, " ") if len(echo) > SHORTEST else text
    return frozenset(use for said, use in _REACTIONS if said.search(text) and not said.search(old))


def leaves(value: JsonValue, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Every string and number with its JSON pointer (RFC 6901), in document order; depth is bounded by framing."""
    stack: list[tuple[str, JsonValue]] = [(pointer, value)]
    while stack:
        place, node = stack.pop()
        if isinstance(node, str):
            yield place, node
        elif isinstance(node, bool) or node is None:
            continue
        elif isinstance(node, int | float):
            yield place, str(node)
        elif isinstance(node, dict):
            for key, child in reversed(node.items()):
                stack.append((f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}", child))
        else:
            stack.extend((f"{place}/{number}", child) for number, child in reversed(list(enumerate(node))))


def _seen(value: str, outcome: Outcome, root: str) -> Iterator[str]:
    text = value.strip()
    if len(text) < SHORTEST:
        return
    path = _path(text, root)
    if path is not None:
        for file in outcome.files:
            if posixpath.normpath(file.path) == path:
                yield "written-path" if file.how in _CHANGES else "opened-path"
    for run in outcome.executions:
        words = [word for word in run.argv[1:] if text in word]
        if words and posixpath.basename(run.argv[0] if run.argv else run.path) in _SHELLS and "-c" in run.argv[:3]:
            yield "in-shell"
        elif words or text in run.argv[:1] or (path is not None and path in run.argv[1:]):
            yield "in-argv"
    host = _host(text)
    if host is not None:
        if host in outcome.names:
            yield "resolved-host"
        if any(
            host in link.names or link.address.rpartition(":")[0].strip("[]") == host for link in outcome.connections
        ):
            yield "connected-host"
    if _SQL.match(text) or (_QUERY.search(outcome.text) and outcome.state != "answered"):
        yield "in-query"
    if text in outcome.text:
        yield "echoed"


def _path(text: str, root: str) -> str | None:
    """The absolute path that a value names, if it can be one."""
    if "\n" in text or "\0" in text or len(text) > 1024:
        return None
    if text.startswith("file://"):
        text = urlsplit(text).path
    if text.startswith("~/"):
        text = posixpath.join(posixpath.dirname(root), text[2:])
    return posixpath.normpath(posixpath.join(root, text))


def _host(text: str) -> str | None:
    """The host in a URL, or a value that is one."""
    try:
        if "://" in text:
            return urlsplit(text).hostname
    except ValueError:
        return None
    return text.casefold() if re.fullmatch(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", text) else None
