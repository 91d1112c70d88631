"""What the report says of attempts: planted values by name only, the target's own words bounded and last."""

from __future__ import annotations

import re

from harness.model.plan import Adjustment
from harness.probing.starting.case import Case

_LAST = 240
_NAMES = 12


def differences(adjustment: Adjustment) -> str:
    """How an attempt differed from what the metadata says."""
    parts: list[str] = []
    if adjustment.of_its_time:
        parts.append("dependencies as of the release")
    if adjustment.unsealed:
        parts.append("a copy of its installation that it can write to")
    if adjustment.subcommand:
        parts.append(f"subcommand {' '.join(adjustment.subcommand)}")
    if adjustment.arguments:
        parts.append(f"arguments {' '.join(_shown(part) for part in adjustment.arguments)}")
    if adjustment.environment:
        names = sorted(adjustment.environment)
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        parts.append(f"planted variables {', '.join(names[:_NAMES])}{more}")
    if adjustment.files:
        parts.append(f"planted files {', '.join(f'~/{path}' for path in sorted(adjustment.files))}")
    if adjustment.headers:
        parts.append(f"headers {', '.join(sorted(adjustment.headers))}")
    if adjustment.port is not None:
        parts.append(f"HTTP on port {adjustment.port}, {adjustment.path}")
    return "; ".join(parts) or "nothing added"


def ending(case: Case) -> str:
    """How an attempt ended, in words that follow `it`."""
    seen = case.seen
    if seen.exit_signal is not None:
        how = f"ended with signal {seen.exit_signal}"
    elif seen.exit_code is not None:
        how = f"ended with exit code {seen.exit_code}"
    elif seen.usable:
        how = "answered a list with an error" if seen.tools else "listed no tools"
    else:
        how = "gave no answer"
    last = last_words(case)
    return f'{how} ("{last}")' if last else how


def last_words(case: Case) -> str:
    """The line that tells most of why it ended: the last error, else the last line."""
    lines = [line.strip() for line in case.lines if line.strip() and not line.strip().startswith(("at ", '{"jsonrpc"'))]
    errors = [
        line for line in lines if re.search(r"error|required|missing|not (?:set|found|provided)|please", line, re.I)
    ]
    return (errors or lines or [""])[-1][:_LAST]


def _shown(part: str) -> str:
    """An argument by name: values that were made up are not shown."""
    if part.startswith("-"):
        return part.partition("=")[0] + ("=…" if "=" in part else "")
    return part if re.fullmatch(r"[a-z]{2,12}|/home/user[\w./-]*", part) else "…"
