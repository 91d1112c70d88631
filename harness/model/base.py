"""The base class of every record, and the JSON type.

Only pydantic and the standard library may be imported in `harness.model`. Records are frozen and refuse
unknown fields, so that a bundle written by a newer version is refused instead of half-read.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

#: A parsed JSON value. Text in it is always encodable as UTF-8: framing replaces lone surrogates.
JsonValue: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


class Record(BaseModel):
    """An immutable record; two records with equal fields are equal."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


def canonical_json(value: JsonValue) -> str:
    """Render `value` as JSON text that is the same on every machine: sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def sha256_hex(data: bytes | str) -> str:
    """The SHA-256 of `data` (text as UTF-8), as 64 lower-case hex digits."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()
