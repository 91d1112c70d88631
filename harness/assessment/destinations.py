"""Where a target talked to, as facts: one row a destination, way and phase, from flows and from the kernel's record.

A flow names what an address only numbers, so a connection of which a flow tells is told by the flow alone. Connecting
a datagram socket sends nothing (C libraries sort addresses so) and is not told. Bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.model.base import JsonObject
from harness.model.flow import split_end
from harness.model.recording import FlowEvent, SyscallEvent

MAX_ROWS = 200
MAX_PORTS = 8192
TEXT_CHARS = 300


class Destinations:
    """A fold over the flows and the sending system calls of the target."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, ...], dict[str, Any]] = {}
        self._flows: dict[tuple[str, ...], dict[str, Any]] = {}
        self._ports: dict[tuple[str, int], str] = {}
        self._of_flows: set[tuple[str, int]] = set()
        self._remotes: set[str] = set()
        self._datagrams: dict[tuple[str, int, int], None] = {}
        self._more = 0
        self.any_flow = False

    def call(self, event: SyscallEvent, phase: str, program: str) -> None:
        """One sending system call of a program, or one that opens a socket."""
        descriptor = event.args[0] if event.args else -1
        if event.call == "socket":
            self._opened(event)
            return
        port = split_end(event.local)[1] if event.local and not event.local.startswith("unix:") else 0
        if port:
            if len(self._ports) >= MAX_PORTS:
                del self._ports[next(iter(self._ports))]
            self._ports[event.session, port] = program
        if event.call == "connect" and (event.session, event.pid, descriptor) in self._datagrams:
            return
        destinations = (event.remote,) if event.remote and event.result == 0 else event.addresses
        for destination in destinations:
            if not destination or destination.startswith(("unix:@", "AF_")) or destination == "unix:":
                continue
            key = (destination[:TEXT_CHARS], event.call, phase)
            fresh = {"destination": key[0], "call": event.call, "phase": phase, "program": program, "ends": set()}
            row = self._row(self._calls, key, {**fresh, "count": 0, "succeeded": 0})
            if row is not None:
                row["count"] += 1
                row["succeeded"] += event.result is not None and event.result >= 0
                row["ends"].add((event.session, port))

    def _opened(self, event: SyscallEvent) -> None:
        if event.result is None or event.result < 0:
            return
        key = (event.session, event.pid, event.result)
        self._datagrams.pop(key, None)
        if "SOCK_DGRAM" in event.flags:
            if len(self._datagrams) >= MAX_PORTS:
                del self._datagrams[next(iter(self._datagrams))]
            self._datagrams[key] = None

    def flow(self, event: FlowEvent, phase: str) -> None:
        """One flow. A question for a name is told by the name."""
        self.any_flow = True
        port = split_end(event.local)[1]
        if len(self._of_flows) < MAX_PORTS:
            self._of_flows.add((event.session, port))
            self._remotes.add(event.remote)
        way = event.application or event.protocol
        questions = [part.text.split()[0] for part in event.parts if part.what == "dns-question" and part.text.split()]
        at = f":{event.port}" if event.port else ""
        for name in questions or [f"{event.host}{at}"]:
            key = (name[:TEXT_CHARS], way, phase)
            fresh = {"destination": key[0], "application": way, "protocol": event.protocol, "phase": phase,
                     "address": event.address, "port": event.port, "end": (event.session, port), "count": 0,
                     "sent": 0, "received": 0, "unreadable": 0}  # fmt: skip
            row = self._row(self._flows, key, fresh)
            if row is not None:
                row["count"] += 1
                row["sent"] += event.sent
                row["received"] += event.received
                row["unreadable"] += bool(event.opaque)

    def _row(self, rows: dict[tuple[str, ...], dict[str, Any]], key: tuple[str, ...], fresh: dict[str, Any]) -> Any:
        row = rows.get(key)
        if row is None:
            if len(rows) >= MAX_ROWS:
                self._more += 1
                return None
            row = rows[key] = fresh
        return row

    def rows(self) -> tuple[JsonObject, ...]:
        """The rows in the order of first sight, flows first; what was left out is one more row."""
        rows = [self._told(row) for row in self._flows.values()]
        rows += [
            {name: value for name, value in row.items() if name != "ends"}
            for row in self._calls.values()
            if row["destination"] not in self._remotes and not self._same(row["ends"])
        ]
        left = max(0, len(rows) - MAX_ROWS) + self._more
        return (*rows[:MAX_ROWS], *([{"more": left}] if left else []))

    def _same(self, ends: Iterable[tuple[str, int]]) -> bool:
        """True when flows tell of all of these connections."""
        return all(port != 0 and (session, port) in self._of_flows for session, port in ends)

    def _told(self, row: dict[str, Any]) -> JsonObject:
        told = {name: value for name, value in row.items() if name not in ("end", "unreadable")}
        told["program"] = self._ports.get(row["end"], "")
        if row["unreadable"]:
            told["unreadable"] = row["unreadable"]
        return told
