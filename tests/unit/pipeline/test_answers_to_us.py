"""What a server writes to a connection of ours leads nowhere, and what it writes elsewhere does."""

from __future__ import annotations

from typing import Any

from harness.model.recording import SyscallEvent
from harness.pipeline.flows import without_ours


class Network:
    relayed = frozenset({("tcp", "127.0.0.1:40000", "127.0.0.1:8000")})


def sent(local: str, remote: str) -> SyscallEvent:
    return SyscallEvent(
        phase="start", pid=7, tid=7, call="sendto", args=(4, 0, 9), result=9, local=local, remote=remote
    )


def test_only_ends_of_ours_are_left_out() -> None:
    network: Any = Network()
    ours, other = sent("127.0.0.1:8000", "127.0.0.1:40000"), sent("127.0.0.1:8000", "127.0.0.1:40001")
    first, second = without_ours([ours, other], network)
    assert isinstance(first, SyscallEvent) and (first.local, first.remote, first.notes) == ("", "", ("relayed",))
    assert second is other
    assert without_ours([ours], None) == [ours]
