"""Text for matching: normalised, stemmed, split into sentences, with the way back to the raw text.

Normalisation: NFKC, format characters dropped, marks folded, look-alike letters inside Latin words folded, lower
case, apostrophes unified, contractions expanded, white space collapsed, light stemming (Snowball English).
All of it is linear in the length of the text, and words are cut at `WORD_CHARS`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache

import snowballstemmer

from harness.analyzers.evidence import EVIDENCE_CHARS, render_safe

#: Longer words are cut: no word of a phrase is longer, and encoded data is not prose.
WORD_CHARS = 48

_CHUNK = re.compile(r"\S+|\n\s*\n|\n[ \t]*(?=(?:[-*+\u2022]|\d{1,3}[.)])\s)")
#: The usual shape of a tool's name stays one word: "call open_file" is no order to open a file.
_TOOL_NAME = re.compile(
    r"(?:read|open|load|get|list|fetch|send|run|execute|search|find|create|update|delete|write|copy|upload|download|"
    r"call|set|add|export|query|save|edit|move)_[a-z]+"
)
_PIECE = re.compile(rf"{_TOOL_NAME.pattern}(?![^\W])|[^\W_]+(?:'[^\W_]+)*|[^\w\s]|_")
_SPELLED_OUT = re.compile(r"(?:[^\W\d_][-._\u00b7*]){3,}[^\W\d_]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_APOSTROPHES = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\u2032\u0060\u00b4\uff07"), "'")
#: Kept as tokens: what ends a sentence or quotes. Everything else that is no word is decoration.
_ENDS = frozenset(".!?;\u3002\uff01\uff1f")
_QUOTES = {'"': '"', "\u201c": '"', "\u201d": '"', "\u00ab": '"', "\u00bb": '"', "\u300c": '"', "\u300d": '"'}
_WHOLE = {
    "won't": "will not",
    "can't": "can not",
    "cannot": "can not",
    "shan't": "shall not",
    "let's": "let us",
    "dont": "do not",
    "doesnt": "does not",
    "mustnt": "must not",
    "cant": "can not",
}
_ENDINGS = (("n't", " not"), ("'re", " are"), ("'ve", " have"), ("'ll", " will"), ("'d", " would"), ("'m", " am"))
#: Cyrillic and Greek letters that look like Latin ones, folded only in words that also hold Latin letters or
#: consist of look-alikes alone (a subset of Unicode's confusables.txt).
_LOOKALIKE = str.maketrans(
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0458\u0455\u0501\u04bb\u0261\u03bf\u03b1\u03b5\u03b9\u03bd\u03c1\u03c4\u03c5\u03c7\u043a\u043c\u0442\u0432\u043d",
    "aceopxyijsdhgoaeivptuxkmtbh",
)
_LEET = str.maketrans("013457", "oieast")
_LEET_WORD = re.compile(r"(?=[a-z0-9]*[a-z])[a-z0-9]*[013457][a-z0-9]*")
#: Words of the phrases that are worth writing with digits; nothing else is read that way.
_LEET_TARGETS = frozenset(
    {"ignore", "disregard", "forget", "override", "bypass", "previous", "prior", "instruction", "instructions"}
    | {"prompt", "system", "reveal", "secret", "secrets", "password", "passwords", "send", "credentials", "guidelines"}
    | {"rules", "all", "above", "safety", "guardrails", "your", "token", "tokens"}
)
_LATIN = re.compile("[a-z]")
_PLAIN_LATIN = re.compile("[A-Za-z]")
_STEMMER = snowballstemmer.stemmer("english")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The stem of one lower-case word; words of other scripts come back unchanged."""
    return str(_STEMMER.stemWord(word)) if word.isascii() and len(word) <= 24 else word


def fold(text: str) -> str:
    """One word or chunk, normalised up to but without stemming."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc", "Co"))
        if _PLAIN_LATIN.search(text):
            decomposed = unicodedata.normalize("NFKD", text)
            text = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
    text = text.translate(_APOSTROPHES).lower()
    if not text.isascii():
        shown = text.translate(_LOOKALIKE)
        if shown != text and (_LATIN.search(text) or shown.isascii()):
            text = shown
    return text


def _expand(word: str) -> str:
    if not word.isalpha() and _LEET_WORD.fullmatch(word) and word.translate(_LEET) in _LEET_TARGETS:
        return word.translate(_LEET)
    if word in _WHOLE:
        return _WHOLE[word]
    if "'" in word:
        for ending, full in _ENDINGS:
            if word.endswith(ending):
                return word.removesuffix(ending) + full
        return word.removesuffix("'s").replace("'", " ")
    return word


@dataclass
class Prose:
    """Normalised text. `stems` and `words` are the same tokens joined by single spaces, stemmed and not.

    Sentence ends are the token `.`, quotes the token `"`, opening and closing angle brackets `<` and `>`.
    """

    raw: str
    stems: str = ""
    words: str = ""
    _stem_starts: list[int] = field(default_factory=list)
    _word_starts: list[int] = field(default_factory=list)
    _raw_spans: list[tuple[int, int]] = field(default_factory=list)
    _commas: set[int] = field(default_factory=set)

    def token_at(self, offset: int) -> int:
        """The number of the token that holds this offset of `stems`."""
        return max(0, bisect_right(self._stem_starts, offset) - 1)

    def word_token_at(self, offset: int) -> int:
        """The number of the token that holds this offset of `words`."""
        return max(0, bisect_right(self._word_starts, offset) - 1)

    def word(self, token: int) -> str:
        """The unstemmed token of that number."""
        start = self._word_starts[token]
        end = self._word_starts[token + 1] - 1 if token + 1 < len(self._word_starts) else len(self.words)
        return self.words[start:end]

    def before(self, token: int, number: int) -> list[str]:
        """Up to `number` unstemmed tokens of the same sentence just before that token; a comma is a token here."""
        lead: list[str] = []
        for i in range(token - 1, max(-1, token - 1 - number), -1):
            word = self.word(i)
            if word == ".":
                break
            if i in self._commas:
                lead.append(",")
            lead.append(word)
        return lead[::-1]

    def between(self, first: int, last: int) -> str:
        """The unstemmed tokens from `first` to `last`, joined by spaces."""
        end = self._word_starts[last + 1] if last + 1 < len(self._word_starts) else len(self.words)
        return self.words[self._word_starts[first] : end].rstrip()

    def after(self, token: int, number: int) -> str:
        """Up to `number` unstemmed tokens just after that token, joined by spaces."""
        if token + 1 >= len(self._word_starts):
            return ""
        last = token + 1 + number
        end = self._word_starts[last] if last < len(self._word_starts) else len(self.words)
        return self.words[self._word_starts[token + 1] : end].rstrip()

    def excerpt(self, first: int, last: int, margin: int = 30) -> str:
        """The raw text from token to token with `margin` characters around it, safe to show."""
        start, end = self._raw_spans[first][0], self._raw_spans[last][1]
        lead = "…" if start > margin else ""
        return lead + render_safe(self.raw[max(0, start - margin) : end + margin], EVIDENCE_CHARS - len(lead))


def read_prose(text: str) -> Prose:
    """Normalise `text`. Never raises; time and memory are linear in its length."""
    prose = Prose(text)
    stemmed: list[str] = []
    words: list[str] = []
    at_stem = at_word = 0
    for chunk in _CHUNK.finditer(text):
        span = chunk.span()
        for token in _tokens(chunk.group()):
            short = stem(token)
            prose._stem_starts.append(at_stem)
            prose._word_starts.append(at_word)
            prose._raw_spans.append(span)
            stemmed.append(short)
            words.append(token)
            at_stem += len(short) + 1
            at_word += len(token) + 1
        if chunk.group().endswith((",", ":")) and words:
            prose._commas.add(len(words) - 1)
    prose.stems = " ".join(stemmed)
    prose.words = " ".join(words)
    return prose


def _tokens(chunk: str) -> list[str]:
    if chunk.isspace():
        return ["."]
    tokens: list[str] = []
    folded = fold(_CAMEL.sub(" ", chunk))
    if folded.rstrip(",:)") in ("e.g.", "e.g", "(e.g.", "(e.g"):
        return ["eg"]
    if _SPELLED_OUT.fullmatch(folded):
        folded = "".join(filter(str.isalpha, folded))
    # A dot inside a chunk is part of a name (`id_rsa.pub`, `evil.example`), not the end of a sentence.
    inner = len(folded.rstrip(".!?;:,\"')]}*_"))
    for piece in _PIECE.finditer(folded):
        text = piece.group()
        if text[0].isalnum():
            tokens.extend(part[:WORD_CHARS] if part.isascii() else part for part in _expand(text).split())
        elif text in _ENDS and (piece.start() >= inner or text not in ".;"):
            tokens.append(".")
        elif text in _QUOTES or text == "'":
            tokens.append('"')
        elif text in "<>[]{}|~/.@$":
            tokens.append(text if text != "." else "dot")
    return tokens
