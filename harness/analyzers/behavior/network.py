"""`behavior.network`: where a server connects to, what it listens on, as far as attempts are recorded.

Without a network an attempt still names its destination; where a gateway answered, `behavior.egress` knows more of
it, and only sockets of the machine itself are judged here. UDP `connect` to a resolved name sends nothing: C libraries
sort addresses with it; it is not counted.
"""

from __future__ import annotations

import re
from typing import Any

from harness.analyzers.behavior.addresses import Destination, Reach, destination
from harness.analyzers.behavior.attribution import CALL
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.ledger import Kind
from harness.model.finding import Severity, Threat
from harness.model.recording import ProcessEvent, SyscallEvent

METADATA = Kind(
    "behavior.network.metadata",
    "Asked for the machine's cloud credentials",
    Severity.MEDIUM,
    "The server tried to reach an address where clouds give a machine its credentials.",
    threat=Threat.EXFILTRATION,
    cwe=918,
    remediation="Fine where the server is for that cloud: its client library asks; otherwise ask the author.",
)
CONTROL = Kind(
    "behavior.network.control-socket",
    "Reached for a socket that controls the machine",
    Severity.HIGH,
    "The server tried to connect to a socket that gives control over containers, keys or the desktop.",
    cwe=250,
)
PUBLIC = Kind(
    "behavior.network.connect",
    "Connected elsewhere unasked",
    Severity.LOW,
    "The server tried to connect to another machine before it was asked for anything.",
    threat=Threat.EXFILTRATION,
    remediation="See whether what the server is for explains it.",
)
PRIVATE = Kind(
    "behavior.network.private",
    "Connected to a private address unasked",
    Severity.LOW,
    "The server tried to connect to an address of the local network, or to a local port, before it was asked.",
    threat=Threat.SSRF,
    remediation="See whether what the server is for explains it.",
)
LOOKUP = Kind(
    "behavior.network.lookup",
    "Asked for an address unasked",
    Severity.INFO,
    "The server tried to look up a name before it was asked for anything.",
    threat=Threat.UNCATEGORIZED,
    remediation="A fact to know.",
)
LISTENS = Kind(
    "behavior.network.listens",
    "Listens for connections from elsewhere",
    Severity.LOW,
    "The server listens on all addresses of the machine, so that others on the network can reach it.",
    cwe=1327,
    threat=Threat.UNCATEGORIZED,
    remediation="Have it listen on 127.0.0.1, or keep it off networks that others use.",
)
IN_CALL = Kind(
    "behavior.network.in-call",
    "A tool connects elsewhere",
    Severity.INFO,
    "Calls of this tool try to connect elsewhere.",
    threat=Threat.UNCATEGORIZED,
    remediation="A fact to know.",
)

_CONTROL = re.compile(
    r".*/(?:docker|containerd|podman|crio)[^/]*\.sock|.*/ssh-[^/]+/agent\.\d+|.*/S\.gpg-agent[^/]*|.*/keyring/\w+"
    r"|.*/systemd/private|.*/system_bus_socket|.*/run/user/\d+/bus"
)
#: Memory for sockets whose kind is known: file descriptors of living processes.
MAX_SOCKETS = 4096


class NetworkFold(BehaviorFold):
    """Memory: kinds of open sockets by process and descriptor, and addresses bound to."""

    calls = frozenset({"socket", "connect", "sendto", "sendmsg", "sendmmsg", "bind", "listen"})

    def __init__(self, analyzer: BehaviorAnalyzer, facts: Any) -> None:
        super().__init__(analyzer, facts)
        manifest = self.facts.manifest
        self._gateway = manifest is not None and manifest.network != "none"
        self._datagram: dict[tuple[str, int, int], bool] = {}
        self._bound: dict[tuple[str, int, int], str] = {}

    def process(self, event: ProcessEvent) -> None:
        """Nothing: what is asked for is told by calls."""

    def syscall(self, event: SyscallEvent) -> None:
        """Judge one attempt."""
        call = event.call
        key = (event.session, event.pid, event.args[0] if event.args else -1)
        if call == "socket":
            if event.result is not None and event.result >= 0:
                opened = (event.session, event.pid, event.result)
                _remember(self._datagram, opened, "SOCK_DGRAM" in event.flags)
        elif call == "bind":
            if event.addresses and event.result == 0:
                _remember(self._bound, key, event.local or event.addresses[0])
        elif call == "listen":
            self._listen(event, event.local or self._bound.get(key, ""))
        elif call in self.calls:
            datagram = call == "connect" and self._datagram.get(key, False)
            for address in _addresses(event):
                self._reach(event, destination(address), address, datagram=datagram)

    def _listen(self, event: SyscallEvent, local: str) -> None:
        at = destination(local) if local else None
        if event.result == 0 and at is not None and at.host in ("0.0.0.0", "::"):  # noqa: S104 - compared only
            where = self.attribution.where(event)
            self.ledger.note(LISTENS, "all-addresses", event, where, f"listens on {local}")

    def _reach(self, event: SyscallEvent, to: Destination, address: str, *, datagram: bool) -> None:
        if to.reach is Reach.NOWHERE:
            return
        where = self.attribution.where(event)
        text = f"{event.call} to {address}"
        if to.reach is Reach.SOCKET_FILE:
            if _CONTROL.fullmatch(to.host):
                self.ledger.note(CONTROL, f"socket:{to.host.rpartition('/')[2]}", event, where, text)
        elif self._gateway:
            return
        elif to.reach is Reach.METADATA:
            self.ledger.note(METADATA, "metadata", event, where, text)
        elif to.reach is Reach.RESOLVER:
            if where.phase != CALL:
                self.ledger.note(LOOKUP, "lookup", event, where, text)
        elif datagram:
            return
        elif where.phase == CALL:
            self.ledger.note(IN_CALL, to.reach.value, event, where, text)
        elif to.reach is Reach.PUBLIC:
            self.ledger.note(PUBLIC, f"{to.host}:{to.port}", event, where, text)
        else:
            self.ledger.note(PRIVATE, f"{to.reach}:{to.port}", event, where, text)


def _addresses(event: SyscallEvent) -> tuple[str, ...]:
    """Where it goes: the kernel's peer where the call succeeded and there is one, else what the call said."""
    if event.call == "connect" and event.result == 0 and event.remote:
        return (event.remote,)
    return event.addresses


def _remember(memory: dict[Any, Any], key: object, value: object) -> None:
    memory.pop(key, None)
    if len(memory) >= MAX_SOCKETS:
        del memory[next(iter(memory))]
    memory[key] = value


class NetworkAnalyzer(BehaviorAnalyzer):
    """Judges attempts to connect and to listen."""

    name = "behavior.network"
    description = "attempts to connect: other machines, cloud credentials, sockets that control the machine"
    fold = NetworkFold
    kinds = (METADATA, CONTROL, PUBLIC, PRIVATE, LOOKUP, LISTENS, IN_CALL)
