"""The target's end of a cable: a network namespace with an interface as a desktop has it, and nothing of ours in it.

Runs in a container of its own, whose namespace the target joins; the gateway, in the same pid namespace, makes the
pair of interfaces and hands over one end. What is here only waits for that, configures it, gives up its privileges,
says so in one line, and lives until its stdin ends. It never reads anything that a target sends.
"""

from __future__ import annotations

import os
import socket
import sys
import time

from sinkhole.setup import INSIDE, OWN_V4, OWN_V6, ROUTER_V4, ROUTER_V6, SetupError, configure, drop_privileges

PATIENCE_SECONDS = 25.0
_STEP_SECONDS = 0.004


def main() -> None:
    """Run. Prints `ready`, or `failed: …` and exits with 1."""
    try:
        _await_interface()
        configure(
            4,
            f"link set lo up\naddr add {OWN_V4}/24 brd + dev {INSIDE}\nlink set {INSIDE} up\n"
            f"route add default via {ROUTER_V4} dev {INSIDE}\n",
        )
        _six()
        drop_privileges()
    except (SetupError, OSError) as error:
        os.write(1, f"failed: {' '.join(str(error).split())[:200]}\n".encode())
        sys.exit(1)
    os.write(1, b"ready\n")
    while os.read(0, 4096):
        pass


def _six() -> None:
    """The same for IPv6, where the engine has it."""
    try:
        configure(6, f"addr add {OWN_V6}/64 dev {INSIDE} nodad\nroute add default via {ROUTER_V6} dev {INSIDE}\n")
    except SetupError:
        return


def _await_interface() -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            socket.if_nametoindex(INSIDE)
        except OSError:
            time.sleep(_STEP_SECONDS)  # noqa: TID251 - there is no event loop
        else:
            return
    raise SetupError("the gateway made no interface")
