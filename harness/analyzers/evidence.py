"""Text of a target as evidence: what does not show, or steers a display, becomes an escape; and it is bounded."""

from __future__ import annotations

import unicodedata

#: The bound on evidence text (tool-definitions.md).
EVIDENCE_CHARS = 200


def render_safe(text: str, limit: int = EVIDENCE_CHARS) -> str:
    """`text` with everything that is invisible or steers a display shown as an escape, cut to `limit` and `…`."""
    shown: list[str] = []
    room = limit
    for char in text:
        piece = char if _visible(char) else _escape(char)
        if len(piece) > room:
            while shown and room < 1:
                room += len(shown.pop())
            return "".join(shown) + "…"
        shown.append(piece)
        room -= len(piece)
    return "".join(shown)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _visible(char: str) -> bool:
    if " " <= char <= "~":
        return True
    code = ord(char)
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or code in (0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800):
        return False
    category = unicodedata.category(char)
    return category[0] != "C" and category not in ("Zl", "Zp") and (category != "Zs")
