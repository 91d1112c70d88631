"""Frames: what a sentence says as a few concepts near each other, whatever its words and their order.

A text becomes occurrences of concepts (concepts.py, languages.py). Rules (frame_rules.py) join them from the bottom
up: `cancel <>6 rules` holds where an occurrence of one stands at most six tokens from one of the other in the same
sentence, and is an occurrence itself. Each occurrence is joined with its nearest partners only, and a rule keeps at
most as many occurrences as there are tokens, so that time stays linear in the length of the text.

Notation of a rule: operands and operators from left to right, operands being names or `a|b`. `<>6` either order, `>6`
the right one after the left, `>>16` the same across sentences; `!name` at the end: not where `name` occurs in the same
sentence. The first operand holds the verb that decides about the position.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from harness.analyzers.definitions.text import Prose, fold, stem
from harness.model.finding import Threat

#: Tokens first and last, and the token of the verb: one occurrence of a concept.
Span = tuple[int, int, int]

_OPERATOR = re.compile(r"(<>|>>|>)(\d+)")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PREFIX_CHARS = range(3, 13)
_TOP = frozenset(
    [
        "com",
        "net",
        "org",
        "io",
        "xyz",
        "example",
        "test",
        "dev",
        "site",
        "ru",
        "cn",
        "co",
        "me",
        "app",
        "cc",
        "info",
        "invalid",
        "tk",
        "top",
        "click",
        "link",
        "cloud",
        "ai",
        "sh",
        "to",
    ]
)

_INTO = frozenset({"as", "in", "into", "inside", "to", "with", "via", "through", "within", "fill", "using"})


@dataclass(frozen=True)
class Frame:
    """A rule whose occurrences are reported: its family, confidence, threat and the derived concept that it looks for.

    `parameters`: only where the text describes a parameter.
    """

    family: str
    concept: str
    confidence: float
    threat: Threat
    parameters: bool = False


@dataclass(frozen=True)
class _Step:
    operands: tuple[str, ...]
    operator: str = ""
    reach: int = 0


@dataclass(frozen=True)
class Rule:
    """How occurrences of a derived concept are made of those of others."""

    name: str
    steps: tuple[_Step, ...]
    unless: tuple[str, ...]


def parse_rule(name: str, text: str) -> Rule:
    """Read the notation above. Raises ValueError when it is not that."""
    steps: list[_Step] = []
    unless: list[str] = []
    operator, reach = "", 0
    for word in text.split():
        if word.startswith("!"):
            unless.append(word[1:])
        elif made := _OPERATOR.fullmatch(word):
            operator, reach = made[1], int(made[2])
        elif bool(steps) == bool(operator):
            steps.append(_Step(tuple(word.split("|")), operator, reach))
            operator = ""
        else:
            raise ValueError(f"no operator before '{word}' in the rule '{name}: {text}'")
    return Rule(name, tuple(steps), tuple(unless))


class Lexicon:
    """Concept tables compiled for look-up by token.

    An entry is a word or several joined by `_`, compared by their stems, or as written in the table `exact` and behind
    `=`; `word*` is how a word begins; entries of scripts without spaces are looked for inside tokens.
    """

    def __init__(self, stemmed: Mapping[str, str], exact: Mapping[str, str]) -> None:
        self._stemmed: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._written: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._prefixes: dict[str, set[str]] = {}
        inside: dict[str, set[str]] = {}
        for table in (stemmed, exact):
            for concept, entries in table.items():
                for entry in entries.split():
                    if _CJK.search(entry):
                        inside.setdefault(concept, set()).add(entry)
                    elif entry.endswith("*"):
                        self._prefixes.setdefault(fold(entry[:-1]), set()).add(concept)
                    else:
                        as_written = table is exact or entry[0] == "="
                        parts = [fold(part) for part in entry.removeprefix("=").split("_")]
                        keys = tuple(parts if as_written else map(stem, parts))
                        known = self._written if as_written else self._stemmed
                        known.setdefault(keys[0], []).append((keys, concept))
        self._inside = {
            concept: re.compile("|".join(sorted(map(re.escape, words), key=lambda w: (-len(w), w))))
            for concept, words in inside.items()
        }
        self._begins = lru_cache(maxsize=20_000)(self._begins_uncached)

    def _begins_uncached(self, word: str) -> tuple[str, ...]:
        found: set[str] = set()
        for length in _PREFIX_CHARS:
            if length > len(word):
                break
            found |= self._prefixes.get(word[:length], set())
        return tuple(sorted(found))

    def occurrences(self, words: list[str], stems: list[str]) -> dict[str, list[Span]]:
        """Every occurrence of every concept, in the order of the text."""
        found: dict[str, list[Span]] = {}
        for i, word in enumerate(words):
            for known, tokens in ((self._stemmed, stems), (self._written, words)):
                for keys, concept in known.get(tokens[i], ()):
                    if len(keys) == 1 or tuple(tokens[i : i + len(keys)]) == keys:
                        found.setdefault(concept, []).append((i, i + len(keys) - 1, i))
            for concept in self._begins(word):
                found.setdefault(concept, []).append((i, i, i))
            if not word.isascii() and _CJK.search(word):
                for concept, pattern in self._inside.items():
                    if pattern.search(word):
                        found.setdefault(concept, []).append((i, i, i))
        for i, word in enumerate(words):
            for concept, last in _forms(words, i, word):
                found.setdefault(concept, []).append((i, last, i))
        for spans in found.values():
            spans.sort()
        return found


def _forms(words: list[str], i: int, word: str) -> Iterable[tuple[str, int]]:
    """What is known by its form: addresses, host names, long numbers."""
    if word in ("http", "https") and words[i + 1 : i + 3] == ["/", "/"]:
        if words[i + 3 : i + 4] not in _OWN_HOSTS:
            yield "address", i + 2
    elif word == "@" and 0 < i < len(words) - 1 and words[i + 2 : i + 3] == ["dot"]:
        yield "address", i + 3 if i + 3 < len(words) else i + 2
    elif word == "dot" and 0 < i < len(words) - 1 and (words[i + 1] in _TOP or words[i - 1].isdigit()):
        if not _loopback(words, i):
            yield "address", i + 1
    elif word == '"' and words[i + 2 : i + 3] == ['"'] and i and words[i - 1] in _INTO:
        # A single word in quotes or backticks behind such a preposition is the name of a parameter.
        yield "carrier", i + 2
    elif (
        (len(word) >= 14 and sum(map(str.isdigit, word)) >= 10 and word.isalnum())
        or (word.isdigit() and len(word) >= 7)
        or (word.startswith("0x") and len(word) > 20)
    ):
        yield "number", i


#: The machine itself is nowhere that something could be sent to.
_OWN_HOSTS = (["127"], ["localhost"])


def _loopback(words: list[str], i: int) -> bool:
    """Whether the dot at `i` stands in an address of the machine itself (127.0.0.0/8, RFC 1122)."""
    while i > 2 and words[i - 2] == "dot" and words[i - 3].isdigit():
        i -= 2
    return words[i - 1] == "127"


def find_spans(prose: Prose, lexicon: Lexicon, rules: Iterable[Rule]) -> dict[str, list[Span]]:
    """The occurrences of all concepts, those of the rules included, each sorted by place."""
    words, stems = prose.words.split(" "), prose.stems.split(" ")
    sentence: list[int] = []
    whole = {i for i, word in enumerate(words) if not word.isascii() and _CJK.search(word)}
    number = 0
    for word in words:
        sentence.append(number)
        number += word == "."
    found = lexicon.occurrences(words, stems)
    for rule in rules:
        spans = _gather(found, rule.steps[0].operands)
        for step in rule.steps[1:]:
            spans = _join(spans, _gather(found, step.operands), step, sentence, whole) if spans else spans
        if spans and rule.unless:
            barred = {sentence[span[0]] for name in rule.unless for span in found.get(name, ())}
            spans = [span for span in spans if sentence[span[0]] not in barred]
        if spans:
            found[rule.name] = sorted({*found.get(rule.name, ()), *spans})
    return found


def _gather(found: Mapping[str, list[Span]], names: tuple[str, ...]) -> list[Span]:
    if len(names) == 1:
        return found.get(names[0], [])
    return sorted({span for name in names for span in found.get(name, ())})


def _join(left: list[Span], right: list[Span], step: _Step, sentence: list[int], whole: set[int]) -> list[Span]:
    """The spans of each left one with its nearest right one behind and, in either order, inside or before it.

    `whole`: tokens that are whole clauses (scripts without spaces), inside which the order is not looked at.
    """
    joined: dict[tuple[int, int], Span] = {}
    starts = [span[0] for span in right]
    for number, (first, last, head) in enumerate(left):
        if step.operator == "<>" and first < last:
            at = bisect_left(starts, first)
            if at < len(right) and right[at][0] <= last:
                joined.setdefault((first, last), (first, last, head))
                continue
        at = bisect_left(starts, last if last in whole else last + 1)
        if at < len(right):
            start, end, _ = right[at]
            near = start - last - 1 <= step.reach
            # "no-override (says to ignore your rules)": of two verbs the nearer one has the object.
            nearer = number + 1 < len(left) and last < left[number + 1][0] and left[number + 1][1] < start
            if near and not nearer and (step.operator == ">>" or sentence[start] == sentence[last]):
                joined.setdefault((first, end), (first, end, head))
        if step.operator == "<>":
            at = bisect_left(starts, first) - 1
            tries = 5
            while at >= 0 and right[at][1] >= first and tries:
                at, tries = at - 1, tries - 1
            if at >= 0 and right[at][1] < first:
                start, end, _ = right[at]
                if first - end - 1 <= step.reach and sentence[end] == sentence[first]:
                    joined.setdefault((start, last), (start, last, head))
    return sorted(joined.values())
