"""`unicode.hidden`: characters that a person does not see and a model reads, in any string of an item, raw.

Ordinary uses stay silent: joiners inside emoji and in the scripts that need them, flag tag sequences, direction
marks in right-to-left text, a byte order mark at the start. Blocks are those of the Unicode Standard 15.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from harness.analyzers.base import Rule
from harness.analyzers.definitions.check import Hit
from harness.analyzers.definitions.view import ItemView, RegistryView
from harness.analyzers.evidence import EVIDENCE_CHARS, render_safe
from harness.model.finding import Signal, Threat, Tier

_SUSPECT = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ue000-\uf8ff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_PICTURE = re.compile(
    "[#*0-9\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\ufe0f\u20e3]"
)
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f")
_TAGS = re.compile("[\U000e0020-\U000e007e]{4,}")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
#: Scripts whose spelling uses ZWNJ and ZWJ (Arabic, Syriac, Indic, Sinhala, Tibetan, Myanmar, Mongolian, Khmer).
_JOINING = re.compile(
    "[\u0600-\u07bf\u0840-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff]"
)
#: Scripts written without spaces, which use ZWSP between words (Thai, Lao, Myanmar, Khmer).
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
#: A joiner after more than this share of letters is a code, not a spelling.
_JOINER_SHARE = 0.34


@dataclass(frozen=True)
class Hidden:
    """What one text hides: the classes found, the first place, and a decoded message if any."""

    classes: tuple[str, ...]
    first: int
    count: int
    message: str = ""


def find_hidden(text: str) -> Hidden | None:
    """Look for hidden characters in raw text; None when there are none out of the ordinary."""
    if text.isascii() and text.isprintable():
        return None
    flags = [match.span() for match in _FLAG.finditer(text)]
    classes: dict[str, int] = {}
    first = -1
    joiners: list[int] = []
    marks: list[int] = []
    flag = 0
    for match in _SUSPECT.finditer(text):
        at = match.start()
        while flag < len(flags) and flags[flag][1] <= at:
            flag += 1
        if flag < len(flags) and flags[flag][0] <= at:
            continue
        kind = _kind(text, at)
        if kind == "mark":
            marks.append(at)
            continue
        if kind == "joiner":
            joiners.append(at)
            continue
        if kind:
            classes[kind] = classes.get(kind, 0) + 1
            first = at if first < 0 else first
    coded = len(joiners) >= 8 and len(joiners) > _JOINER_SHARE * sum(map(str.isalpha, text))
    # Direction marks belong to right-to-left text, and there they are fewer than its letters.
    stray = bool(marks) and len(marks) > _rtl_letters(text)
    for kind, places in (("zero-width", joiners if coded else []), ("bidi", marks if stray else [])):
        if places:
            classes[kind] = classes.get(kind, 0) + len(places)
            first = places[0] if first < 0 else min(first, places[0])
    if not classes:
        return None
    return Hidden(tuple(sorted(classes)), first, sum(classes.values()), _decode(_FLAG.sub("", text)))


def _kind(text: str, at: int) -> str:
    """The class of the suspect character at `at`; "" when it is ordinary there."""
    char = text[at]
    code = ord(char)
    if code < 0xA0:
        # Most C1 controls are the debris of a wrong decoding; these three start terminal sequences.
        return "control" if code < 0x80 or code in (0x90, 0x9B, 0x9D) else ""
    if code in (0x202D, 0x202E):
        return "bidi"
    if code in (0x200E, 0x200F, 0x061C, 0x202A, 0x202B, 0x202C) or 0x2066 <= code <= 0x2069:
        return "mark"
    if code in (0x200C, 0x200D):
        return _joiner(text, at)
    if 0xFE00 <= code <= 0xFE0F:
        return "" if _single_selector(text, at) else "selector"
    if 0xE0100 <= code <= 0xE01EF:
        # Ideographic variation sequences: one selector after a Han character.
        return "" if at and unicodedata.category(text[at - 1]) == "Lo" and ord(text[at - 1]) > 0x2E7F else "selector"
    if 0xE0000 <= code <= 0xE0FFF:
        return "tag"
    if code == 0x200B and 0 < at < len(text) - 1 and _SPACELESS.match(text[at - 1]) and _SPACELESS.match(text[at + 1]):
        return ""
    if code == 0x180E and at and 0x1800 <= ord(text[at - 1]) <= 0x18AF:
        return ""
    if code == 0xFEFF and at == 0:
        return ""
    if 0xE000 <= code <= 0xF8FF or code >= 0xF0000:
        return "private-use"
    return "zero-width"


def _single_selector(text: str, at: int) -> bool:
    """True for one variation selector alone: the two for emoji anywhere, the others after what is no ASCII."""
    around = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
    if any(0xFE00 <= ord(char) <= 0xFE0F or ord(char) >= 0xE0000 for char in around):
        return False
    return text[at] in "\ufe0e\ufe0f" or (at > 0 and not text[at - 1].isascii() and not text[at - 1].isspace())


def _joiner(text: str, at: int) -> str:
    before, after = text[at - 1] if at else " ", text[at + 1] if at + 1 < len(text) else " "
    if _JOINING.match(before) and (_JOINING.match(after) or (not after.isalnum() and ord(after) < 0x2000)):
        return "joiner"
    if text[at] == "\u200d" and _PICTURE.match(before) and _PICTURE.match(after) and not after.isascii():
        return "" if not before.isascii() else "zero-width"
    return "zero-width"


def _rtl_letters(text: str) -> int:
    return sum(unicodedata.bidirectional(char) in ("R", "AL") for char in text if char.isalpha())


def _decode(text: str) -> str:
    """The message in tag characters, or in the bytes of variation selectors; "" when there is none."""
    tags = "".join(chr(ord(c) - 0xE0000) for run in _TAGS.findall(text) for c in run)
    if tags:
        return tags
    for run in _SELECTORS.findall(text):
        data = bytes(ord(c) - 0xFE00 if ord(c) < 0xE0000 else ord(c) - 0xE0100 + 16 for c in run)
        decoded = data.decode("utf-8", "replace")
        if "\ufffd" not in decoded and decoded.isprintable():
            return decoded
    return ""


class UnicodeHidden:
    """One signal an item, however many characters are hidden in it."""

    rule = Rule(id="unicode.hidden", title="Hidden characters in a declaration")

    def inspect(self, item: ItemView, registry: RegistryView) -> tuple[Hit, ...]:
        """Scan every string of the item, keys included."""
        found = [(text, hidden) for text in item.texts if (hidden := find_hidden(text.raw))]
        if not found:
            return ()
        classes = sorted({name for _, hidden in found for name in hidden.classes})
        message = next((hidden.message for _, hidden in found if hidden.message), "")
        text, hidden = found[0]
        start = max(0, hidden.first - 20)
        shown = f"{', '.join(classes)}: " + text.raw[start : hidden.first + 60]
        if message:
            shown = f"{', '.join(classes)}, decodes to: {message}"
        signal = Signal(
            check=self.rule.id,
            tier=Tier.HARD,
            confidence=0.97 if message or len(classes) >= 3 else 0.8,
            evidence=render_safe(shown, EVIDENCE_CHARS),
        )
        fact = f"{self.rule.id}:{','.join(classes)}:{message}"
        return (Hit(signal, fact, Threat.TOOL_POISONING, text.path),)
