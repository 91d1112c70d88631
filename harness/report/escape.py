"""The one place where target-made text becomes safe to print.

`visible` makes text harmless for a terminal, `markup` also for rich's console markup, and `workflow_safe` makes a
finished output harmless for a CI system that reads its own commands from the log. The raw text stays in the bundle.
"""

from __future__ import annotations

import re
import unicodedata

from rich.markup import escape as _escape_markup

#: The longest excerpt that is shown of one text; the JSON report has the whole.
EXCERPT = 200

#: Controls, format characters (bidi, zero-width, TAG), surrogates, private use, unassigned, line and paragraph ends.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

#: Characters of other categories that draw nothing (Unicode's Default_Ignorable_Code_Point; U+2800 is a blank glyph).
_BLANKS = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}.union(
        range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0)
    )
)

#: Spaces that are left as they are: the ordinary one and the wide one of CJK text.
_SPACES = frozenset({0x0020, 0x3000})

#: A base letter carries at most this many marks in ordinary scripts; longer piles paint over the neighbouring lines.
_MARKS = 4

_COMMAND_AT_START = re.compile(r"^((?:\x1b\[[0-9;]*m|[^\S\n])*):(?=:)", re.MULTILINE)
_BACKSLASH_IN_THE_WAY = re.compile(r"\\(?=\\*(?:\[|$))")
_COMMAND_ANYWHERE = re.compile(r"##(?=\w*\[)")


def is_hidden(character: str) -> bool:
    """Whether this one character acts on the terminal, draws nothing, or is no character at all."""
    category = unicodedata.category(character)
    code = ord(character)
    return category in _HIDDEN_CATEGORIES or code in _BLANKS or (category == "Zs" and code not in _SPACES)


def visible(text: str, limit: int = EXCERPT) -> str:
    r"""Show `text` on one line, in at most `limit` characters; what does not fit is replaced by an ellipsis.

    Hidden characters are shown as \uXXXX, beyond the first plane as \UXXXXXXXX. Backslashes of the text stay single,
    so a text that spells an escape looks like one: harmless, and the JSON report tells them apart.
    """
    head = text[: limit + 1]
    if not (head.isascii() and head.isprintable()):
        return _cut(_pieces(head), limit)
    return head if len(head) <= limit else f"{head[: limit - 1]}…"


def one_line(text: str, limit: int = EXCERPT) -> str:
    """Like `visible`, for prose: ordinary white space (space, tab, line ends) collapses to single spaces first."""
    return visible(" ".join(re.split(r"[ \t\r\n]+", text[: 4 * limit])).strip(" "), limit)


def markup(text: str, limit: int = EXCERPT) -> str:
    r"""Like `visible`, and rich's console markup takes it literally (print it with `emoji=False`).

    A backslash before a bracket or at the end is shown as \u005c: markup has no way to write those (rich 15).
    """
    return _escape_markup(_BACKSLASH_IN_THE_WAY.sub(r"\\u005c", visible(text, limit)))


def workflow_safe(output: str) -> str:
    r"""Break up workflow commands in a finished output: `::` where a line begins, and `##[`, `##vso[` … anywhere.

    GitHub Actions, Azure Pipelines and TeamCity act on such lines of a log. The broken character becomes \uXXXX,
    which in a JSON text (they occur only inside its strings) means the same as before.
    """
    return _COMMAND_ANYWHERE.sub(r"#\\u0023", _COMMAND_AT_START.sub(r"\1\\u003a", output))


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    marks = _MARKS
    for character in text:
        mark = unicodedata.category(character) in ("Mn", "Me")
        marks = marks + 1 if mark else 0
        if is_hidden(character) or marks > _MARKS:
            code = ord(character)
            pieces.append(f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
            marks = _MARKS  # nothing of ours may be combined with
        else:
            pieces.append(character)
    return pieces


def _cut(pieces: list[str], limit: int) -> str:
    whole = "".join(pieces)
    if len(whole) <= limit:
        return whole
    kept, length = [], 0
    for piece in pieces:
        if length + len(piece) > limit - 1:
            break
        kept.append(piece)
        length += len(piece)
    return "".join(kept) + "…"
