"""Hostile text, and results that hold it in every place where a result holds text."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from harness.model.result import ScanResult

_PIECES = st.sampled_from(
    [
        "\x1b[2J", "\x1b]8;;http://x\x07", "\x9b31m", "\x00", "\x7f", "\r", "\n", "\n\n", "\t", "\u202e", "\u2066",
        "\u200b", "\u200d", "\ufeff", "\U000e0041", "\ufe0f", "\u2028", "\u2029", "\u0085", "\u0301" * 9, "\ud800",
        "\udfff", "\ue000", "\uffff", "[bold]", "[/bold]", "[/]", "[red", "]", "\\", "\\[", "\\\\", ":warning:",
        "[link=file:///x]", "::error::", "##[group]", "##vso[a]", "漢字", "🙂", "e", " ", "   ", "x" * 90, "%s", "{0}",
    ]
)  # fmt: skip
_CHARACTERS = st.characters(exclude_categories=())

#: Text made of what does harm somewhere, mixed with any characters at all, lone surrogates included.
HOSTILE = st.lists(_PIECES | _CHARACTERS, max_size=12).map("".join)

#: The same without what no UTF-8 text can hold.
HOSTILE_UNICODE = HOSTILE.map(lambda text: "".join(c for c in text if unicodedata.category(c) != "Cs"))


def is_raw(character: str) -> bool:
    """Whether a report must not hold this character (line ends are the report's own)."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or character == "\ufe0f"


def poisoned(result: ScanResult, text: str) -> ScanResult:
    """`result` with `text` in place of every free string, keys of free objects included."""
    return ScanResult.model_validate(_poison(result, text))


def _poison(value: Any, text: str) -> Any:
    if isinstance(value, BaseModel):
        fields = {name: _poison(getattr(value, name), text) for name in type(value).model_fields}
        if "fingerprint" in fields:
            fields["id"] = f"F-{fields['fingerprint'][:16]}"
        return fields
    if isinstance(value, Mapping):
        kept = ("name", "description", "inputSchema", "properties", "annotations", "required")
        return {
            (key if key in kept else f"{text}{number}"): _poison(item, text)
            for number, (key, item) in enumerate(value.items())
        }
    if isinstance(value, list | tuple):
        return [_poison(item, text) for item in value]
    # Enumerations are strings of a subclass: they are not free. A reason can't be empty.
    return (text or "-") if type(value) is str else value
