"""Signs in what a silent server prints: that it serves HTTP instead of its standard streams."""

from __future__ import annotations

import re

_SERVES = re.compile(
    r"(?:listening|running|started|serving|available|ready|server)\b[^\n]{0,80}(?:https?://(?:localhost|\d|\[)|\bport\b\W{0,3}\d{2,5}"
    r"|(?:localhost|\d\.\d{1,3}|\*|::\]?|\s):\d{4,5}\b)"
    r"|uvicorn running|application startup complete|listening on|streamable ?http|\bsse (?:server|endpoint|transport)"
    r"|\bin http mode",
    re.IGNORECASE,
)


_PLACE = re.compile(r"https?://[\w.\-\[\]:*]{1,60}?:(\d{2,5})(/[\w./\-]{0,80})?", re.IGNORECASE)
_PORT = re.compile(r"\bport\b\W{0,3}(\d{2,5})\b|(?:localhost|\d\.\d{1,3}|\*|::\]?):(\d{2,5})\b", re.IGNORECASE)
#: Where servers serve when they do not say it: what the SDKs have as defaults.
_PATHS = ("/mcp", "/sse", "/")


#: Paths in an announcement that are no endpoint of the protocol.
_OTHER = re.compile(r"/?|/(?:health|docs|metrics|ready|live|status|oauth|auth|callback|login)\b.*", re.IGNORECASE)
MOST_PLACES = 4


def named_places(text: str) -> list[tuple[int, str]]:
    """Ports and paths of the addresses at which the text says that a server listens; a few at most."""
    if not serves_http(text):
        return []
    found = [(int(port), path.rstrip(".,")) for port, path in _PLACE.findall(text)[:16]]
    return list(dict.fromkeys(place for place in found if place[0] < 65536 and not _OTHER.fullmatch(place[1])))[:2]


def likely_places(text: str) -> list[tuple[int, str]]:
    """Ports that the text names without a path, with the paths that are usual; a few at most."""
    if not serves_http(text):
        return []
    ports = [int(port) for port, _ in _PLACE.findall(text)[:8]]
    ports += [int(first or second) for first, second in _PORT.findall(text)[:8]]
    found = [(port, path) for port in dict.fromkeys(ports) if 0 < port < 65536 for path in _PATHS]
    return [place for place in found if place not in named_places(text)][:MOST_PLACES]


def serves_http(text: str) -> bool:
    """True when the text says that a server listens on a port."""
    return _SERVES.search(text) is not None
