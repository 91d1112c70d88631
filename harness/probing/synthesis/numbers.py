"""Numbers that a schema allows, likeliest first."""

from __future__ import annotations

import math

from harness.model.base import JsonValue
from harness.probing.synthesis.schema import Schema, Unmakeable
from harness.probing.synthesis.words import words_of

#: Word of a name: values that make sense for it.
_USUAL: dict[str, tuple[float, ...]] = {
    "latitude": (52.52,),
    "longitude": (13.405,),
    "port": (8080,),
    "year": (2026,),
    "month": (1,),
    "day": (5,),
    "hour": (10,),
    "minute": (30,),
    "limit": (10, 5),
    "max": (10, 100),
    "count": (2, 10),
    "size": (10,),
    "page": (1,),
    "offset": (0,),
    "start": (0, 1),
    "end": (10,),
    "width": (100, 800),
    "height": (100, 600),
    "timeout": (5, 5000),
    "seconds": (1,),
    "duration": (1,),
    "depth": (2,),
    "level": (1,),
    "precision": (2,),
    "temperature": (0.5,),
    "amount": (10,),
    "price": (10,),
    "quality": (80,),
    "index": (0, 1),
    "number": (1, 2),
}


def numbers_for(schema: Schema, name: str, *, whole: bool) -> tuple[JsonValue, ...]:
    """Numbers between the bounds. Raises Unmakeable when there is none."""
    low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
    above, below = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    # Draft 4 has booleans there, which a good many servers still send.
    if schema.get("exclusiveMinimum") is True:
        low, above = None, low
    if schema.get("exclusiveMaximum") is True:
        high, below = None, high
    step = _bound(schema, "multipleOf") or 0

    def fits(value: float) -> bool:
        return (
            (low is None or value >= low)
            and (high is None or value <= high)
            and (above is None or value > above)
            and (below is None or value < below)
            and (not whole or value == int(value))
            and (step <= 0 or math.isclose(value / step, round(value / step), abs_tol=1e-9))
        )

    floor = low if low is not None else above
    ceiling = high if high is not None else below
    usual = [value for word in words_of(name) for value in _USUAL.get(word, ())]
    tried: list[float] = [*usual, 1, 2, 10, 0]
    for edge in (floor, ceiling):
        if edge is not None:
            tried += [edge, edge + 1, edge - 1, math.ceil(edge), math.floor(edge)]
    if floor is not None and ceiling is not None:
        tried += [(floor + ceiling) / 2, math.ceil((floor + ceiling) / 2)]
    if step > 0:
        first = math.ceil((floor if floor is not None else 0) / step) * step
        tried += [first, first + step]
    found: list[JsonValue] = []
    for value in tried:
        if fits(value) and value not in found:
            found.append(int(value) if value == int(value) else value)
    if not found:
        raise Unmakeable("no number lies between its bounds")
    return tuple(found[:6])


def _bound(schema: Schema, key: str) -> float | None:
    value = schema.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e15 else math.copysign(1e15, value)
