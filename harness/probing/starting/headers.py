"""A server over HTTP that wants something in the headers of every request: given, each shaped as its name says.

Servers that serve many people take each one's credential from a header, and list no tools, or answer nothing, without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.probing.payloads.headers import header_names, header_points, is_credential
from harness.probing.starting.case import Case, Proposal
from harness.probing.starting.shapes import value_for

#: At most so many are sent at once.
MOST = 12
_REFUSED = re.compile(r"HTTP status 4\d\d:? ?[^\n]*", re.IGNORECASE)
_BEARER = re.compile(r"\bbearer\b|\bauthorization\b", re.IGNORECASE)


def asked(case: Case) -> Iterator[Proposal]:
    """Those that the refusal of the greeting names."""
    said = "\n".join(_REFUSED.findall(case.text))
    if not said:
        return
    names = list(header_names([said]))
    if not names and _BEARER.search(said):
        names = ["Authorization"]
    yield from _send(case, names, "that its refusal asks for", guess=False)


def read(case: Case) -> Iterator[Proposal]:
    """Credentials and addresses that its source reads from headers, for one that lists no tools."""
    if case.over_http:
        names = [name for name in case.source_headers if is_credential(name) or header_points([name])]
        yield from _send(case, names, "read by its source", guess=True)


def _send(case: Case, names: Iterable[str], whence: str, *, guess: bool) -> Iterator[Proposal]:
    fresh = [name for name in names if name not in case.adjustment.headers][:MOST]
    if not fresh:
        return
    values = {}
    for name in fresh:
        plain = re.sub(r"^x-", "", name, flags=re.IGNORECASE)
        text = value_for(plain, "", case.facts.home, case.facts.workspace, case.material).text
        values[name] = f"Bearer {text}" if name == "Authorization" else text
    change = case.change(headers={**case.adjustment.headers, **values})
    yield Proposal(change, f"headers {whence}: {', '.join(fresh)}", guess)
