"""Headers of requests as places for payloads: those that a server's own words or sources name.

Over HTTP some servers take an address, a folder or a credential from a header. Which ones they are stands in
descriptions, in instructions, in a refusal, or in the source as a text; nothing is guessed. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.probing.synthesis.draft import InjectionPoint
from harness.probing.synthesis.words import words_of

MOST_NAMES = 40
MOST_CHARACTERS = 80
_NAME = re.compile(r"(?<![\w-])[Xx]-[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?![\w-])")
#: Any other name, where the source reads it from the headers of a request.
_READ = re.compile(
    r"(?i:(?:\b|get|_)headers?)[\"']?\]?\s*(?:\(\s*\)\s*)?(?:\.\s*get\w*\s*\(|\[|\()\s*b?[\"'`]([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+)[\"'`]"
)
#: Headers that proxies and browsers set and that no server takes an address from; those of HTTP and of the protocol.
_USUAL = re.compile(
    r"x-(?:forwarded|real-ip|request|correlation|amzn|powered|frame|content|xss|dns|ua|cache|ratelimit|rate-limit)"
    r"|(?:content|accept|access-control|cache|if|last|set|sec|www|proxy|mcp|transfer|user|keep|strict|retry|upgrade)-",
    re.IGNORECASE,
)
_ADDRESSES = frozenset({"url", "uri", "host", "endpoint", "server", "base", "domain", "instance", "site"})
_CREDENTIALS = frozenset({"token", "key", "secret", "password", "authorization", "auth", "pat", "credential", "cookie"})
#: Other words that say what a header's value is used for, and the role that this is in arguments.
_ROLES = (
    ("directory", frozenset({"directory", "folder", "root", "workspace", "working"})),
    ("path", frozenset({"path", "file"})),
    ("command", frozenset({"command", "shell", "exec"})),
    ("sql", frozenset({"sql"})),
    ("database", frozenset({"database"})),
    ("template", frozenset({"template"})),
)


def header_names(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of own headers that texts speak of, as they are written there first.

    Those that are read from a request come before any other `X-…`, which may be one that is sent to somebody else.
    """
    read: dict[str, str] = {}
    spoken: dict[str, str] = {}
    for text in texts:
        for pattern, found in ((_READ, read), (_NAME, spoken)):
            for name in pattern.findall(text):
                if not _USUAL.match(name) and len(found) < MOST_NAMES and len(name) <= MOST_CHARACTERS:
                    found.setdefault(name.lower(), name)
    return tuple((read | {key: name for key, name in spoken.items() if key not in read}).values())[:MOST_NAMES]


def header_points(names: Iterable[str]) -> tuple[InjectionPoint, ...]:
    """A place for each header that an address is taken from; its pointer is the header's name."""
    return tuple(
        InjectionPoint(pointer=name, place="header", name=name, value="", role="url", optional=True)
        for name in names
        if _ADDRESSES & set(words_of(name))
    )


def other_points(names: Iterable[str]) -> tuple[InjectionPoint, ...]:
    """The same for the others but credentials, by the role that their names give them, which may be none."""
    return tuple(
        InjectionPoint(pointer=name, place="header", name=name, value="", role=_role(name), optional=True)
        for name in names
        if not (_ADDRESSES | _CREDENTIALS) & set(words_of(name))
    )


def is_credential(name: str) -> bool:
    """Whether a header's name says that a credential stands there."""
    return bool(_CREDENTIALS & set(words_of(name))) and not _ADDRESSES & set(words_of(name))


def headers_beside(name: str, names: Iterable[str], credential: str) -> dict[str, str]:
    """The headers that go with one: credentials of the same family, so that the address is used at all."""
    family = name.lower().split("-")[:2]
    return {other: credential for other in names if other.lower().split("-")[:2] == family and is_credential(other)}


def _role(name: str) -> str:
    words = set(words_of(name))
    return next((role for role, said in _ROLES if said & words), "")
