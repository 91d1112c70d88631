"""What changed between two vetted versions of a server: surface, behaviour, findings, the least that it needs."""

from __future__ import annotations

from typing import Literal

from harness.model.base import JsonValue, Record
from harness.model.result import ScanStatus, TargetFacts, Verdict


class Change(Record):
    """One difference. `kind`: what it is about (tool, prompt, program, destination, syscall, finding …), `name` which.

    `field`: JSON pointer to what changed inside it, with its value `before` and `after` (None where there is none).
    """

    change: Literal["added", "removed", "changed"]
    kind: str
    name: str
    field: str = ""
    before: JsonValue = None
    after: JsonValue = None


class Side(Record):
    """One of the two results."""

    target: TargetFacts
    status: ScanStatus
    verdict: Verdict


class Comparison(Record):
    """All differences by section, each in a stable order; `caveats`: why a difference may come from how they were run.

    `left_out`: differences past the bound, by section.
    """

    format: Literal[1] = 1
    before: Side
    after: Side
    surface: tuple[Change, ...] = ()
    behavior: tuple[Change, ...] = ()
    findings: tuple[Change, ...] = ()
    profile: tuple[Change, ...] = ()
    caveats: tuple[str, ...] = ()
    left_out: dict[str, int] = {}
