"""Headers of requests as places for payloads: those that a server's own words or sources name.

Over HTTP some servers take an address or a credential from a header. Which ones they are stands in descriptions, in
instructions, or in the source as a text; nothing is guessed. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.probing.synthesis.draft import InjectionPoint
from harness.probing.synthesis.words import words_of

MOST_NAMES = 40
_NAME = re.compile(r"(?<![\w-])[Xx]-[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?![\w-])")
#: Headers that proxies and browsers set and that no server takes an address from.
_USUAL = re.compile(r"x-(?:forwarded|real-ip|request|correlation|amzn|powered|frame|content|xss|dns|ua|cache)", re.I)
_ADDRESSES = frozenset({"url", "uri", "host", "endpoint", "server", "base", "domain", "instance", "site"})
_CREDENTIALS = frozenset({"token", "key", "secret", "password", "authorization", "auth", "pat", "credential", "cookie"})


def header_names(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of own headers (`X-…`) that texts speak of, as they are written there first."""
    found: dict[str, str] = {}
    for text in texts:
        for name in _NAME.findall(text):
            if not _USUAL.match(name) and len(found) < MOST_NAMES:
                found.setdefault(name.lower(), name)
    return tuple(found.values())


def header_points(names: Iterable[str]) -> tuple[InjectionPoint, ...]:
    """A place for each header that an address is taken from; its pointer is the header's name."""
    return tuple(
        InjectionPoint(pointer=name, place="header", name=name, value="", role="url", optional=True)
        for name in names
        if _ADDRESSES & set(words_of(name))
    )


def headers_beside(name: str, names: Iterable[str], credential: str) -> dict[str, str]:
    """The headers that go with one: credentials of the same family, so that the address is used at all."""
    family = name.lower().split("-")[:2]
    return {
        other: credential
        for other in names
        if other.lower().split("-")[:2] == family and _CREDENTIALS & set(words_of(other))
    }
