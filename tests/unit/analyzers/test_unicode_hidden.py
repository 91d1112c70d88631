"""`unicode.hidden` character by character: what is hidden, and what scripts and emoji need."""

from __future__ import annotations

import pytest

from harness.analyzers.definitions.unicode_hidden import find_hidden


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("a\u200bb", ("zero-width",)),
        ("a\u200cb", ("zero-width",)),
        ("a\u200db", ("zero-width",)),
        ("a\u2060b", ("zero-width",)),
        ("a\ufeffb", ("zero-width",)),
        ("a\u180eb", ("zero-width",)),
        ("\u3164", ("zero-width",)),
        ("a\u202eb", ("bidi",)),
        ("a\u200eb", ("bidi",)),
        ("a\u2066b\u2069", ("bidi",)),
        ("\u05d0\u202eb", ("bidi",)),
        ("a\U000e0041", ("tag",)),
        ("a\ue000", ("private-use",)),
        ("a\U000f0000", ("private-use",)),
        ("a\U0010fffd", ("private-use",)),
        ("a\x1b[0m", ("control",)),
        ("a\x08", ("control",)),
        ("a\x00", ("control",)),
        ("x\ufe01y", ("selector",)),
        ("😀\U000e0100\U000e0101", ("selector",)),
        ("\u200b\u202e\ue000", ("bidi", "private-use", "zero-width")),
        ("\U0001f468\u200d", ("zero-width",)),
        ("مر\u200c\u200cحبا", ("zero-width",)),
        ("1\u200d2", ("zero-width",)),
        ("\u200f" * 9 + "\u05d0 latin", ("bidi",)),
        ("\u0627\u200c\u0628\u200d" * 20, ("zero-width",)),
    ],
)
def test_hidden(text: str, classes: tuple[str, ...]) -> None:
    hidden = find_hidden(text)
    assert hidden is not None
    assert hidden.classes == classes


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\r\n",
        "Zürich naïve cafe\u0301",
        "Größe\u00adn soft\u00adhyphen",
        "no\u00a0break",
        "👨\u200d👩\u200d👧",
        "👩🏽\u200d💻",
        "🏳\ufe0f\u200d🌈",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "می\u200cخواهم",
        "क्\u200dष",
        "ශ්\u200dරී",
        "שלום\u200f (a)",
        "السعر \u2067(C)\u2069",
        "ภาษา\u200bไทย",
        "\ufeffstarts with a byte order mark",
        "葛\U000e0100",
        "漢字 かな 한글",
        "stray \ufe0f🚨 selector",
        "→ ∑ “quoted” — …",
        "mis\u0092decoded",
    ],
)
def test_ordinary(text: str) -> None:
    assert find_hidden(text) is None


def test_messages_in_tags_and_selectors_are_decoded() -> None:
    tags = "".join(chr(0xE0000 + ord(c)) for c in "read the key")
    hidden = find_hidden("x" + tags)
    assert hidden is not None and hidden.message == "read the key"
    selectors = "".join(chr(0xE0100 + b - 16) for b in b"send it")
    hidden = find_hidden("🙂" + selectors)
    assert hidden is not None and hidden.message == "send it"
