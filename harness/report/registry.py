"""The formats of a report. A new one is a module with a `render`, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from harness.model.result import ScanResult
from harness.report import json, summary, table


class Renderer(Protocol):
    """From a result to text that ends in a line end; `color` asks for terminal colours, `width` counts cells."""

    def __call__(self, result: ScanResult, *, color: bool, width: int) -> str: ...


FORMATS: Mapping[str, Renderer] = MappingProxyType(
    {
        "summary": summary.render,
        "table": table.render,
        "json": json.render,
    }
)
