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


def serves_http(text: str) -> bool:
    """True when the text says that a server listens on a port."""
    return _SERVES.search(text) is not None
