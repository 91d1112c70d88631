"""Bytes that processes moved through files and sockets, and the ends of sockets, as a trace tells them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.model.recording import TransferEvent

MAX_COUNTED = 1024
MAX_SOCKETS = 4096
_EINPROGRESS = -115


class Moved(NamedTuple):
    """What one process moved through one file (`path`) or socket."""

    pid: int
    path: bytes | None
    local: str
    remote: str
    read: int
    written: int

    def event(self, common: dict[str, object]) -> TransferEvent:
        """The event, given the fields that all kernel events have."""
        facts = {"local": self.local, "remote": self.remote, "read": self.read, "written": self.written}
        return TransferEvent.model_validate({**common, "pid": self.pid, **facts})


class Transfers:
    """Counts until asked. Files are known by path, sockets by what the kernel calls them (`socket:[9]`)."""

    def __init__(self) -> None:
        self._counted: dict[tuple[int, bytes], list[int]] = {}
        self._ends: dict[bytes, tuple[str, str]] = {}

    @property
    def full(self) -> bool:
        """Whether it is time to ask."""
        return len(self._counted) >= MAX_COUNTED

    def add(self, pid: int, behind: bytes, size: int, *, written: bool) -> None:
        """A process moved bytes through a descriptor; pipes and devices are not counted."""
        if behind.startswith((b"/dev/", b"/proc/")) or not behind.startswith((b"/", b"socket:")):
            return
        self._counted.setdefault((pid, behind), [0, 0])[written] += size

    def ends(self, call: str, socket: bytes, address: str, result: int | None) -> tuple[str, str]:
        """The socket's own end and its peer's after this call, as far as calls have named them."""
        local, remote = self._ends.get(socket, ("", ""))
        if call == "bind" and result == 0:
            local = address
        elif call == "connect" and result in (0, _EINPROGRESS):
            remote = address
        if local or remote:
            self._ends.pop(socket, None)
            while len(self._ends) >= MAX_SOCKETS:
                del self._ends[next(iter(self._ends))]
            self._ends[socket] = local, remote
        return local, remote

    def taken(self, pid: int | None) -> Iterator[Moved]:
        """Yield and forget what that process moved, or all."""
        for key in [key for key in self._counted if pid is None or key[0] == pid]:
            read, written = self._counted.pop(key)
            owner, behind = key
            local, remote = self._ends.get(behind, ("", ""))
            path = behind if behind.startswith(b"/") else None
            yield Moved(owner, path, local, remote, read, written)
