"""The JSON Schema of a result, generated from the model; its published copy is docs/schema/result-1.json."""

from __future__ import annotations

import json

from harness.model.base import JsonObject
from harness.model.result import COMBINATIONS, SCHEMA_VERSION, ScanResult

#: Where the published copy lies in the source tree.
PUBLISHED = f"docs/schema/result-{SCHEMA_VERSION}.json"


def result_schema() -> JsonObject:
    """The schema (draft 2020-12) of what `harness.report.json` renders, the five combinations included."""
    combinations = [
        {"properties": {"status": {"const": status.value}, "verdict": {"const": verdict.value}}}
        for status, verdict in sorted(COMBINATIONS)
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ScanResult.model_json_schema(mode="serialization"),
        "title": f"Result of a harness scan, schema version {SCHEMA_VERSION}",
        "oneOf": combinations,
    }


def schema_text() -> str:
    """The schema as the published file has it: indented, sorted, ending in one line end."""
    return json.dumps(result_schema(), indent=2, sort_keys=True, ensure_ascii=True) + "\n"
