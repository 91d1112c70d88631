"""The result as JSON, schema version 1 (docs/schema/result-1.json): complete, for programs.

ASCII only, so that neither a terminal, a log nor a locale can change or act on it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from enum import Enum
from io import StringIO
from operator import itemgetter

from pydantic import BaseModel

from harness.model.base import JsonValue
from harness.model.result import ScanResult
from harness.report.escape import workflow_safe

_SURROGATE = re.compile("[\ud800-\udfff]")


def render(result: ScanResult, *, color: bool = False, width: int = 0) -> str:
    """Render `result` as indented JSON, ending in one line end. `color` and `width` change nothing.

    Equal results give equal bytes: fields come in the order of the model, keys of free objects sorted. Lists keep
    their order. `ScanResult.model_validate_json` reads it back.
    """
    sheet = StringIO()  # `json.dumps` keeps all pieces of a large surface until it joins them
    for piece in json.JSONEncoder(indent=2, ensure_ascii=True, allow_nan=False).iterencode(_plain(result)):
        sheet.write(piece)
    return workflow_safe(sheet.getvalue()) + "\n"


def _plain(value: object) -> JsonValue:
    """What `model_dump(mode="json")` gives, with sorted free objects, and total on text that is no Unicode."""
    match value:
        case BaseModel():
            fields = type(value).model_fields.items()
            return {name: _plain(getattr(value, name)) for name, field in fields if not field.exclude}
        case Enum():
            return value.value
        case str():
            return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
        case Mapping():
            return {str(_plain(key)): _plain(item) for key, item in sorted(value.items(), key=itemgetter(0))}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value
