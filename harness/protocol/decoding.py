"""One received line to a JSON value, with every oddity of its bytes named. Pure, linear in the line's length.

The value handed on is safe to store and print: no lone surrogate, no NaN or infinity, no integer beyond 64 bits
(those become text, as written). What was replaced is told by the anomalies; the raw bytes stay with the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from harness.model.base import JsonValue
from harness.model.recording import Anomaly

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: Longer number literals stay text. The longest exact decimal form of a finite double with 17 digits and an
#: exponent is far shorter; CPython refuses to convert more than 4,300 digits (`sys.int_info`).
NUMBER_CHARACTERS = 400

#: Signed and unsigned 64 bits: what serializers of common languages emit as a plain integer.
INTEGER_BOUNDS = (-(2**63), 2**64 - 1)

# Possessive and atomic: one pass, never back.
_STRING = re.compile(rb'"(?>[^"\\]+|\\.)*+"', re.DOTALL)
_BACKSLASHES_AT_END = re.compile(rb"\\++\Z")
_BLOCK_BYTES = 1 << 16
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
_NOT_MARKS = bytes(code for code in range(256) if code not in b"[{,:")

#: Up to this many of these characters, how many of them stand in strings is not worth finding out.
_FEW_VALUES = 10_000
_STEP = [1 if code in b"[{" else -1 for code in range(256)]
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89abAB]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """The value of one line. `parsed` is False (and `value` None) when the line holds no JSON value we would read.

    `values`: about how many values (keys count too) it holds, at most; memory goes with them more than with bytes.
    """

    parsed: bool
    value: JsonValue
    anomalies: tuple[Anomaly, ...]
    values: int = 0


def decode(raw: bytes, *, depth: int, values: int = 250_000) -> Decoded:
    """Parse `raw`, one line without its newline, at most `depth` deep and holding at most about `values` values.

    Raises nothing, whatever the bytes.

    Invalid UTF-8 is read with U+FFFD in its place; of duplicate keys the last wins. Both are tagged.
    """
    reader = _Reader()
    body = raw
    if body.startswith(BYTE_ORDER_MARK):
        reader.seen[Anomaly.BYTE_ORDER_MARK] = None
        body = body[len(BYTE_ORDER_MARK) :]
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        reader.seen[Anomaly.INVALID_UTF8] = None
        text = body.decode("utf-8", "replace")
    if nests_deeper(body, depth):
        reader.seen[Anomaly.TOO_DEEP] = None
        return Decoded(False, None, tuple(reader.seen))
    held = count_values(body)
    if held > values:
        reader.seen[Anomaly.TOO_MANY_VALUES] = None
        return Decoded(False, None, tuple(reader.seen), held)
    try:
        value = reader.read(text)
        if _SURROGATE_ESCAPE.search(body):
            value = reader.without_surrogates(value)
    except RecursionError:  # only with a bound far above the default
        reader.seen[Anomaly.TOO_DEEP] = None
        return Decoded(False, None, tuple(reader.seen))
    except ValueError:
        return Decoded(False, None, (*reader.before_parsing(), Anomaly.NOT_JSON))
    return Decoded(True, value, tuple(reader.seen), held)


def count_values(body: bytes) -> int:
    """At least as many as the JSON text `body` holds values and keys: what opens or separates them is counted.

    A small number may count what stands in strings.
    """
    count = body.count(b"[") + body.count(b"{") + body.count(b",") + body.count(b":")
    if count <= _FEW_VALUES:
        return count + 1
    return sum(len(piece.translate(None, _NOT_MARKS)) for piece in _outside_strings(body)) + 1


def nests_deeper(body: bytes, depth: int) -> bool:
    """True when brackets outside of strings nest more than `depth` levels. Linear, and cheap for small lines."""
    if body.count(b"[") + body.count(b"{") <= depth:
        return False
    level = 0
    for piece in _outside_strings(body):
        steps = list(accumulate(map(_STEP.__getitem__, piece.translate(None, _NOT_BRACKETS)), initial=level))
        if max(steps) > depth:
            return True
        level = steps[-1]
    return False


def _outside_strings(body: bytes) -> Iterator[bytes]:
    """What stands outside of strings, block by block: the pieces between millions of strings take too much at once."""
    start, inside = 0, False
    while start < len(body):
        block = body[start : start + _BLOCK_BYTES]
        start += len(block)
        if (slashes := _BACKSLASHES_AT_END.search(block)) is not None and len(slashes[0]) % 2:
            block += body[start : start + 1]  # an escape is not cut in two
            start += 1
        rest = _STRING.sub(b"", b'"' + block if inside else block)
        outside, quote, _ = rest.partition(b'"')
        inside = bool(quote)
        yield outside


class _Reader:
    """The hooks of one `json` run and what they noticed, in the order noticed (a dict as an ordered set)."""

    def __init__(self) -> None:
        self.seen: dict[Anomaly, None] = {}
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._float,
            parse_constant=self._constant,
        )

    def read(self, text: str) -> JsonValue:
        """The value of `text`. Raises ValueError when it isn't JSON (NaN and Infinity are let through, tagged)."""
        return self._decoder.decode(text)

    def before_parsing(self) -> tuple[Anomaly, ...]:
        """What was noticed about the bytes; remarks of a parse that failed half-way mean nothing."""
        return tuple(tag for tag in self.seen if tag in (Anomaly.BYTE_ORDER_MARK, Anomaly.INVALID_UTF8))

    def without_surrogates(self, value: JsonValue) -> JsonValue:
        """`value` with U+FFFD for each lone surrogate, in keys too."""
        if isinstance(value, str):
            replaced, count = _SURROGATE.subn("\ufffd", value)
            if count:
                self.seen[Anomaly.LONE_SURROGATE] = None
            return replaced
        if isinstance(value, list):
            return [self.without_surrogates(entry) for entry in value]
        if isinstance(value, dict):
            return self._object(
                [(self.without_surrogates(key), self.without_surrogates(entry)) for key, entry in value.items()]
            )
        return value

    def _object(self, pairs: list[tuple[str, JsonValue]]) -> JsonValue:
        made = dict(pairs)
        if len(made) != len(pairs):
            self.seen[Anomaly.DUPLICATE_KEY] = None
        return made

    def _integer(self, text: str) -> int | str:
        low, high = INTEGER_BOUNDS
        if len(text) <= NUMBER_CHARACTERS and low <= (number := int(text)) <= high:
            return number
        self.seen[Anomaly.HUGE_NUMBER] = None
        return text

    def _float(self, text: str) -> float | str:
        if len(text) <= NUMBER_CHARACTERS and abs(number := float(text)) != float("inf"):
            return number
        self.seen[Anomaly.HUGE_NUMBER] = None
        return text

    def _constant(self, text: str) -> str:
        self.seen[Anomaly.NON_FINITE] = None
        return text
