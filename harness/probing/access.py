"""The credentials that a server over HTTP was started with to ask others for, found by their names. Pure.

A key for a service that the server itself calls is none: its name says whose it is, or does not say that it is for
those who come. So `MCP_AUTH_TOKEN` and `--bearer-token` count, `GITLAB_TOKEN` and `API_KEY` do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.probing.synthesis.words import words_of

MOST = 3
_KINDS = frozenset({"token", "key", "secret", "password"})
_OF_ITS_OWN = frozenset({"mcp", "http", "server", "auth", "authorization", "bearer", "sse", "transport", "inbound"})
_BESIDE = frozenset({"api", "access", "static", "shared", "x", "proxy", "session"})


def own_credentials(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values, the likeliest first, each once; a few at most. `arguments`: what it was started with."""
    pairs = [*environment.items(), *_options(arguments)]
    found = [value for name, value in pairs if value.strip() and _is_own(name)]
    return tuple(dict.fromkeys(found))[:MOST]


def ways_to_show(values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Headers in which a credential is shown, and their values: as RFC 6750 has it, then as gateways do."""
    return tuple((name, f"{lead}{value}") for name, lead in _WAYS for value in values)


_WAYS = (("Authorization", "Bearer "), ("X-API-Key", ""))


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option.startswith("-"):
            following = arguments[number + 1] if number + 1 < len(arguments) else ""
            yield option.lstrip("-"), value if equals else "" if following.startswith("-") else following


def _is_own(name: str) -> bool:
    words = set(words_of(name))
    return bool(words & _KINDS and words & _OF_ITS_OWN) and words <= _KINDS | _OF_ITS_OWN | _BESIDE
