"""The lines in which a server says what it misses, apart from banners, stack traces and lists of options."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMPLAINT = re.compile(
    r"required|missing|\bmust\b|\bnot? (?:been )?(?:set|provided|found|specified|configured|defined|given|exist)"
    r"|undefined|please|provide|\bneeds?\b|expected|invalid|\bunset\b"
    r"|\bno [\w -]{0,30}(?:key|token|url|credentials?|password|config)"
    r"|cannot be empty|could not|unable|failed|error|\bset (?:the|it|up|your|either|[A-Z])|specify|configure|export ",
    re.IGNORECASE,
)
_TRACE = re.compile(r"^\s*(?:at .*[(:]|File \"|\^+\s*$|\.\.\. \d+ lines)")
_STRONG = re.compile(
    r"required|missing|\bmust\b|\bnot (?:been )?(?:set|provided|found|specified|configured|defined)|please|KeyError"
    r"|cannot be empty|\bno [\w -]{0,30}(?:key|token|url|credentials?|password)|\bset (?:it|[A-Z]{2})",
    re.IGNORECASE,
)
#: A setting named as code names it, of which only the source or a guess tells the variable or the flag.
SETTING = re.compile(
    r"\b([a-z]+(?:_[a-z]+){1,6})[\"'`]? (?:cannot be (?:None|empty|null)|is (?:required|not set|missing)"
    r"|must be (?:set|provided))"
)
#: How many lines below a complaint may list what it means.
_BELOW = 8


def complaints(lines: Sequence[str], *, strong: bool = False) -> list[str]:
    """The lines that complain, each with the list below it; `strong`: only those that say that something is missing."""
    pattern = _STRONG if strong else _COMPLAINT
    found: dict[int, str] = {}
    for number, line in enumerate(lines):
        if _TRACE.search(line) or not pattern.search(line):
            continue
        found[number] = line
        for below in range(number + 1, min(number + 1 + _BELOW, len(lines))):
            if not _TRACE.search(lines[below]):
                found[below] = lines[below]
    return [found[number] for number in sorted(found)]
