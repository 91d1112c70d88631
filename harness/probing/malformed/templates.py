"""From the text of a catalog's entry to the bytes on the wire."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.model.probe import Probe
from harness.model.surface import Era

#: Ids of probes begin here: far above those of the requests that go on in the same session.
FIRST_ID = 900_001

#: Unfolded, one probe is at most so large.
MOST_BYTES = 8 << 20

_NUMBER = re.compile(r'("?)<(id2?)>("?)')
_PLACE = re.compile(r"<(meta0?|tool|arguments|version)>")
_FILL = re.compile(r"<fill:(.+?):(\d{1,8})>", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[rnt])")
_CONTROLS = {"r": "\r", "n": "\n", "t": "\t"}


class Ids:
    """Fresh ids, counted up."""

    def __init__(self, first: int = FIRST_ID) -> None:
        self._next = first

    def take(self) -> int:
        """The next id."""
        self._next += 1
        return self._next - 1


def meta(era: Era | None, *, comma: bool) -> str:
    """The member `_meta` that each request of the stateless revision carries; empty for the others."""
    if era is not Era.STATELESS:
        return ""
    text = (
        '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        '"io.modelcontextprotocol/clientInfo":{"name":"mcp","version":"0.1.0"},'
        '"io.modelcontextprotocol/clientCapabilities":{}}'
    )
    return f",{text}" if comma else text


def fill_in(lines: Sequence[str], values: Mapping[str, str], ids: Ids) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines with their places taken, and the ids in them as JSON texts, in order. Fillings stay folded."""
    numbers: dict[str, int] = {}
    used: dict[str, None] = {}

    def number(found: re.Match[str]) -> str:
        if found[2] not in numbers:
            numbers[found[2]] = ids.take()
        text = f"{found[1]}{numbers[found[2]]}{found[3]}"
        used[text] = None
        return text

    filled = tuple(_PLACE.sub(lambda place: values[place[1]], _NUMBER.sub(number, line)) for line in lines)
    return filled, tuple(used)


def wire_bytes(probe: Probe) -> bytes:
    """The bytes of a probe as they are sent over stdio, each line with its newline.

    Raises ValueError when they would be more than `MOST_BYTES`.
    """
    lines = [_FILL.sub(_filling, line) for line in probe.sends]
    if sum(map(len, lines)) > MOST_BYTES:
        raise ValueError(f"probe {probe.id} is too large")
    return b"".join(line.removesuffix("\n").encode(probe.encoding.value) + b"\n" for line in lines)


def _filling(found: re.Match[str]) -> str:
    times = int(found[2])
    text = _ESCAPE.sub(lambda part: _CONTROLS.get(part[1]) or chr(int(part[1][1:], 16)), found[1])
    text = text.replace("&", ":")
    if len(text) * times > MOST_BYTES:
        raise ValueError("a filling is too large")
    return text * times
