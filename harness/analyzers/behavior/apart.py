"""Does it behave otherwise where nothing of the sandbox shows in its network?

A target that shares the gateway's network namespace can read there that something listens to everything. One that
read such tables lives once more with an interface of its own (`LIFE`); what it does there alone is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.analyzers.behavior.attribution import Where
from harness.analyzers.behavior.ledger import Kind, Ledger
from harness.model.finding import Severity, Threat
from harness.model.recording import Event, EventBase, FlowEvent, LookEvent, ProcessEvent, SyscallEvent

#: The session, and the look, in which the target has an interface of its own.
LIFE = "own-interface"
_TABLES = re.compile(
    r"/proc/(?:\d+/(?:task/\d+/)?|self/|thread-self/)?net(?:/.*)?|/sys/(?:class|devices/virtual)/net(?:/.*)?", re.DOTALL
)
#: Hosts and programs are chosen by the target: so many are remembered.
MAX_KNOWN = 4096

OTHERWISE = Kind(
    "behavior.evasion.otherwise-unwatched",
    "Does more where nothing shows that it is watched",
    Severity.MEDIUM,
    "The server read tables that show what else is in its network namespace. Started again where these show a "
    "desktop's network and nothing else, it did what it did in no other life.",
    threat=Threat.SANDBOX_EVASION,
    remediation="See what it does there; loopback ports that are closed in that life could be a reason too.",
)


def doings(event: FlowEvent | ProcessEvent) -> Iterator[tuple[tuple[str, str], str]]:
    """What a flow, or a program that began, is about: the kind and name of it, and words for people."""
    if isinstance(event, ProcessEvent):
        path = event.path or event.requested
        yield ("program", path), f"program: {path}"
    elif not event.decoy:
        names = [part.text.partition(" ")[0].rstrip(".").lower() for part in event.parts if part.what == "dns-question"]
        for host in names or [event.host]:
            yield ("host", host), f"{event.application or event.protocol} to {host}"


def shows_network(event: Event) -> bool:
    """Whether an event is a look at tables of the network namespace, in a life that shares the gateway's."""
    if not isinstance(event, SyscallEvent) or event.session == LIFE or event.path is None:
        return False
    return event.path.startswith(("/proc/", "/sys/")) and _TABLES.fullmatch(event.path) is not None


class Apart:
    """Memory: hosts and programs of all lives, bounded."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()
        self._alone: dict[tuple[str, str], tuple[EventBase, Where, str]] = {}

    def take(self, event: FlowEvent | ProcessEvent | LookEvent, where: Where) -> None:
        """Take a flow, a program that began, or a later look at the declarations."""
        if isinstance(event, LookEvent):
            if event.look == LIFE and event.changed:
                self._note(("declarations", ""), event, where, "declares otherwise")
        else:
            for key, text in doings(event):
                self._note(key, event, where, text)

    def _note(self, key: tuple[str, str], event: EventBase, where: Where, text: str) -> None:
        if event.session != LIFE:
            if len(self._known) < MAX_KNOWN:
                self._known.add(key)
        elif len(self._alone) < MAX_KNOWN:
            self._alone.setdefault(key, (event, where, text))

    def close(self, ledger: Ledger) -> None:
        """Tell what was done in that life alone. Where more was known than is remembered, nothing can be told."""
        if len(self._known) >= MAX_KNOWN:
            return
        for key, (event, where, text) in self._alone.items():
            if key not in self._known:
                ledger.note(OTHERWISE, key[0], event, where, text)
