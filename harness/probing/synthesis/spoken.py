"""Values that a description gives in passing: examples (`for example 2+3`), and short lists (`one of: a, b or c`)."""

from __future__ import annotations

import re

MOST_CHARACTERS = 1_000
MOST_VALUES = 6
_EXAMPLE = re.compile(
    r"(?:\be\.?g\.?|\bfor (?:example|instance)|\bsuch as|\bexamples?:|\blike:)[,:]?\s+([^\n]{1,200})", re.IGNORECASE
)
_ONE = r"[\"'`]?[\w.-]{1,40}[\"'`]?"
_LIST = re.compile(
    rf"(?::|\bone of|\beither|\bmust be|\bcan be)\s+"
    rf"((?:{_ONE}, ?){{0,8}}{_ONE},? or [\"'`]?[\w-]{{1,40}}[\"'`]?)(?:[.;)\s]|$)",
    re.IGNORECASE,
)
#: Single words in quotes, each in brackets or before what it means: `local branches ('local') or all ('all')`,
#: `'asc' for ascending, 'desc' for descending`. One alone is as likely another argument's name.
_CHOICE = re.compile(
    r"\(\s*[\"'`]([\w.-]{1,40})[\"'`]\s*\)|(?<!\w)[\"'`]([\w.-]{1,40})[\"'`](?= ?(?:for|means|[=:–-])\s)"
)
_SLOT = re.compile(r"\{\{ ?[A-Za-z_][\w.]{0,40} ?\}\}|\$?\{[A-Za-z_][\w.]{0,40}\}|\$[A-Z_]{2,40}\b")
_QUOTED = re.compile(r"\"([^\"]{1,100})\"|'([^']{1,100})'|`([^`]{1,100})`")
_END = re.compile(r"[;)\n]|\.(?:\s|$)|,\s| or | and | \(")


def spoken_values(description: str) -> tuple[str, ...]:
    """The values, in their order; empty where the text gives none.

    An example is what stands in quotes, or the text up to the next sign of punctuation.
    """
    text = description[:MOST_CHARACTERS]
    found: list[str] = []
    for listed in _LIST.findall(text):
        found += [part.strip(" \"'`") for part in re.split(r",| or ", listed)]
    choices = [first or second for first, second in _CHOICE.findall(text)]
    found += choices if len(set(choices)) > 1 else []
    for example in _EXAMPLE.findall(text):
        quoted = _QUOTED.match(example)
        words = next(filter(None, quoted.groups())) if quoted else _END.split(example, maxsplit=1)[0]
        found.append(words.strip())
    return tuple(value for value in dict.fromkeys(found) if value)[:MOST_VALUES]


def spoken_slots(description: str) -> tuple[str, ...]:
    """Texts with what is filled in, as the description writes it: `{name}`, `{{ name }}`, `${name}`, `$NAME`."""
    found = _SLOT.findall(description[:MOST_CHARACTERS])
    return tuple(f"A short text for {slot}." for slot in dict.fromkeys(found))[:2]
