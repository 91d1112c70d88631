"""The remedies in the order in which they are asked, by what an attempt was like."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.model.plan import Observation
from harness.probing.starting import credentials, drift, files, flags, headers, subcommands, transport, variables
from harness.probing.starting.case import Case, Proposal

Remedy = Callable[[Case], Iterable[Proposal]]

#: For an attempt that ended. Flags come before subcommands where a complaint asks for them by name.
_FOR_AN_END: tuple[Remedy, ...] = (
    headers.asked,
    files.cleared,
    files.unsealed,
    drift.propose,
    variables.propose,
    flags.demanded,
    subcommands.listed,
    flags.shown,
    files.propose,
    subcommands.guessed,
    transport.propose,
    variables.from_source,
)
#: For one that lives and says nothing.
_FOR_SILENCE: tuple[Remedy, ...] = (transport.propose, variables.propose, files.propose)
#: For one that started, and lists no tools, or answers a list with an error.
_FOR_TOOLS: tuple[Remedy, ...] = (credentials.named, credentials.read, headers.read)
_FOR_LISTS: tuple[Remedy, ...] = (credentials.named, files.propose)

#: Those that work with the names that the target's source reads.
FROM_SOURCE: frozenset[Remedy] = frozenset({variables.from_source, credentials.read, headers.read})


def remedies_for(seen: Observation, *, lives: bool) -> tuple[Remedy, ...]:
    """The remedies for an attempt; `lives`: it was answered and did not end by itself."""
    if lives:
        return _FOR_LISTS if seen.tools else _FOR_TOOLS
    return _FOR_SILENCE if seen.silent else _FOR_AN_END
