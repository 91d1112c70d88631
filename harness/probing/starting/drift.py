"""Dependencies that moved on: an import or an attribute is missing that was there when the release was made.

Dependencies as of the release date plus two weeks mended all six of such servers that it was tried on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.probing.starting.case import Case, Proposal

_DRIFTED = re.compile(
    r"^(?:ImportError|AttributeError|ModuleNotFoundError)\b"
    r"|^TypeError: .*(?:unexpected keyword argument|positional argument)"
    r"|^SyntaxError: (?:The requested module|Named export)|ERR_PACKAGE_PATH_NOT_EXPORTED|ERR_MODULE_NOT_FOUND"
    r"|^(?:Error: )?Cannot find (?:module|package) '|^TypeError: .* is not a (?:function|constructor)",
    re.MULTILINE,
)
#: A module of the program's own is missing, or a file: no date brings it back.
_OWN = re.compile(r"Cannot find module '(?:/|\.)")


def propose(case: Case) -> Iterator[Proposal]:
    """The same start with the dependencies of the release's time, unless it had them."""
    found = _DRIFTED.search(case.text)
    if found is None or case.adjustment.of_its_time or not case.facts.renewable or _OWN.search(case.text):
        return
    yield Proposal(case.change(of_its_time=True), "dependencies as of the release")
