"""A small language for phrases, compiled to patterns over stems.

A phrase is elements separated by spaces: `word` (stemmed), `a/b/c_d` (any of them; `_` joins the words of one),
`{name}` (a list of the vocabulary), `~4` (up to four tokens of the same sentence), `^4` (the same across sentences);
`?` behind an element makes it optional, and `!` as the last one says that the sentence ends there. Gaps are bounded,
so a match takes constant time from each start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.analyzers.definitions.text import stem

#: An underscore that joins words, not one inside the name of a list.
_JOINS = re.compile(r"_(?![^{}]*\})")


def compile_phrase(text: str, vocabulary: Mapping[str, str]) -> re.Pattern[str]:
    """The pattern for a phrase. Raises KeyError for an unknown list; lists may use lists, without circles."""
    return re.compile(rf"(?<![^ ])(?:{_sequence(text, vocabulary)})(?![^ ])")


def _sequence(text: str, vocabulary: Mapping[str, str]) -> str:
    parts: list[str] = []
    elements = text.split()
    for number, element in enumerate(elements):
        last = number == len(elements) - 1 or elements[number + 1] == "!"
        if element == "!":
            parts.append(r"(?= \.| \"|$)")
            continue
        if element[0] in "~^" and element[1:].isdigit():
            token = "[^ .]+" if element[0] == "~" else "[^ ]+"
            parts.append(f"(?:{token} ){{0,{element[1:]}}}")
            continue
        optional = element.endswith("?")
        pattern = _element(element.removesuffix("?"), vocabulary)
        if last:
            parts.append(pattern)
        else:
            parts.append(f"(?:{pattern} )?" if optional else f"{pattern} ")
    return "".join(parts)


def _element(element: str, vocabulary: Mapping[str, str]) -> str:
    alternatives = {_alternative(part, vocabulary) for part in element.split("/")}
    # The longest first: alternation takes the first that fits, and the rest is then anchored at a space.
    return "(?:" + "|".join(sorted(alternatives, key=lambda a: (-len(a), a))) + ")"


def _alternative(part: str, vocabulary: Mapping[str, str]) -> str:
    words: list[str] = []
    for word in _JOINS.split(part):
        if word.startswith("{"):
            value = vocabulary[word[1:-1]]
            words.append(f"(?:{value[3:]})" if value.startswith("re:") else _choices(value, vocabulary))
        else:
            words.append(re.escape(stem(word)))
    return " ".join(words)


def _choices(value: str, vocabulary: Mapping[str, str]) -> str:
    # A list of the vocabulary is one choice a line, each a phrase of its own.
    return "(?:" + "|".join(_sequence(line, vocabulary) for line in value.splitlines() if line.strip()) + ")"
