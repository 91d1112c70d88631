"""Escaping: what it hides, what it leaves alone, and that it is the same applied twice."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_strategies import HOSTILE, is_raw
from rich.text import Text

from harness.report.escape import markup, one_line, visible, workflow_safe


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred", r"\u001b[31mred"),
        ("bell\x07 null\x00 del\x7f c1\x9b", r"bell\u0007 null\u0000 del\u007f c1\u009b"),
        ("a\rb\nc\td", r"a\u000db\u000ac\u0009d"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\u2066\u2069\u200e\u061c", r"\u2066\u2069\u200e\u061c"),
        ("zero\u200b\u200d\ufeff\u2060\u00ad", r"zero\u200b\u200d\ufeff\u2060\u00ad"),
        ("\U000e0041\U000e007f", r"\U000e0041\U000e007f"),
        ("\ud800", r"\ud800"),
        ("\u2028\u2029\u0085", r"\u2028\u2029\u0085"),
        ("\ue000\U000f0000\uffff", r"\ue000\U000f0000\uffff"),
        ("\ufe0f\U000e0100\u3164\u2800\u034f", r"\ufe0f\U000e0100\u3164\u2800\u034f"),
        ("a\u00a0b", r"a\u00a0b"),
        ("\u0301a", r"\u0301a"),
        ("a" + "\u0301" * 6, "a" + "\u0301" * 4 + r"\u0301\u0301"),
    ],
)
def test_hidden_characters_are_spelled_out(raw: str, shown: str) -> None:
    assert visible(raw) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain text",
        "café naïve",
        "日本語　の説明",
        "한국어",
        "עברית",
        "العربية",
        "हिन्दी",
        "ไทย",
        "🙂 → ½",
        "[x] C:\\new",
        "e\u0301",
    ],
)
def test_ordinary_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_length_is_bounded_and_no_escape_is_cut_in_the_middle() -> None:
    assert visible("a" * 300, 10) == "a" * 9 + "…"
    assert visible("a" * 10, 10) == "a" * 10
    assert visible("aaa\u200bbbb", 10) == r"aaa\u200b…"
    assert visible("aaaa\u200bbbb", 10) == "aaaa…"
    assert one_line("  a\n\n  b\t c ") == "a b c"
    assert len(one_line("word " * 10_000_000, 50)) == 50


@given(HOSTILE, st.integers(min_value=1, max_value=60))
def test_nothing_raw_gets_through_and_twice_is_once(text: str, limit: int) -> None:
    for shown in (visible(text, limit), one_line(text, limit)):
        assert len(shown) <= limit
        assert not any(map(is_raw, shown))
        assert visible(shown, limit) == shown


@given(st.characters())
def test_every_character_of_a_hidden_category_is_spelled_out(character: str) -> None:
    hidden = unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not (hidden and visible(character) == character)


@given(HOSTILE)
def test_markup_is_taken_literally(text: str) -> None:
    printed = Text.from_markup(f"[bold]{markup(text)}[/bold]!", emoji=False)
    assert printed.plain.replace(r"\u005c", "\\") == f"{visible(text)}!"
    assert [(span.start, span.end) for span in printed.spans] == [(0, len(printed.plain) - 1)]


@pytest.mark.parametrize(
    ("line", "safe"),
    [
        ("::error::x", r"\u003a:error::x"),
        ("ok\n  ::stop-commands::t", "ok\n  \\u003a:stop-commands::t"),
        ("\x1b[1m::warning::x", "\x1b[1m\\u003a:warning::x"),
        ("a ##[error]b", r"a #\u0023[error]b"),
        ("##vso[task.setvariable]", r"#\u0023vso[task.setvariable]"),
        ("a::b, ## title, [x]", "a::b, ## title, [x]"),
    ],
)
def test_workflow_commands_are_broken_up(line: str, safe: str) -> None:
    assert workflow_safe(line) == safe


@given(st.lists(st.text(alphabet='#[:\\"vso \n', max_size=20)))
def test_workflow_safe_json_means_the_same(value: list[str]) -> None:
    assert json.loads(workflow_safe(json.dumps(value, indent=2))) == value
