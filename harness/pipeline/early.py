"""Python children that a run will need, begun before the program's own modules are loaded.

Loading those takes one processor most of a second, in which the other has nothing to do; later the same children would
compete with the containers that are being started. Imports nothing of ours, and from outside only what is light.
"""

from __future__ import annotations

import socket
import subprocess  # noqa: TID251 - there is no event loop yet
import sys
from dataclasses import dataclass

#: What analyzes (`harness.pipeline.worker`), and the child of the stock client (`harness.protocol.stock_child`).
#: -I: neither the working directory nor the environment may add modules; both can be a target's.
WORKER = (sys.executable, "-I", "-m", "harness.pipeline.worker")
STOCK_CHILD = (sys.executable, "-I", "-m", "harness.protocol.stock_child")
NO_STOCK_CLIENT = "--no-stock-client"


@dataclass
class Begun:
    """A child that runs, and our ends of its standard streams (sockets); `stderr` is None where it leads nowhere."""

    process: subprocess.Popen[bytes]
    stdin: socket.socket
    stdout: socket.socket
    stderr: socket.socket | None

    def close(self) -> None:
        """Hang up: a child that was not used ends."""
        for end in (self.stdin, self.stdout, self.stderr):
            if end is not None:
                end.close()


_begun: dict[tuple[str, ...], Begun] = {}


def begin(arguments: list[str]) -> None:
    """Begin what a command line will need: for `run`, both children; else nothing. Never raises.

    A child whose command comes to nothing sees the end of its input, and ends.
    """
    if arguments[:1] != ["run"] or len(arguments) < 2 or {"-h", "--help"} & set(arguments):
        return
    try:
        if NO_STOCK_CLIENT not in arguments:
            _begun[STOCK_CHILD] = _start(STOCK_CHILD, environment={}, telling=True)
        _begun[WORKER] = _start(WORKER, apart=True)
    except OSError:
        return  # it is tried again where it is needed, and told there


def take(command: tuple[str, ...]) -> Begun | None:
    """The child that was begun with this command, if there is one that still runs; nobody else gets it."""
    begun = _begun.pop(command, None)
    if begun is not None and begun.process.poll() is not None:
        begun.close()
        return None
    return begun


def _start(
    command: tuple[str, ...],
    *,
    environment: dict[str, str] | None = None,
    telling: bool = False,
    apart: bool = False,
) -> Begun:
    """`apart`: in a session of its own, so that a Ctrl-C at the terminal reaches it only through us."""
    pairs = [socket.socketpair() for _ in range(3 if telling else 2)]
    theirs = [pair[1] for pair in pairs]
    process = subprocess.Popen(
        command,
        stdin=theirs[0].fileno(),
        stdout=theirs[1].fileno(),
        stderr=theirs[2].fileno() if telling else subprocess.DEVNULL,
        env=environment,
        start_new_session=apart,
    )
    for end in theirs:
        end.close()
    ours = [pair[0] for pair in pairs]
    return Begun(process, ours[0], ours[1], ours[2] if telling else None)
