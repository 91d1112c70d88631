"""What needs privileges, done once before anything of the target runs: addresses, rules, sockets; then all are dropped.

Nothing here reads a byte that a target sent.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess  # noqa: TID251 - there is no event loop yet
from dataclasses import dataclass, field
from pathlib import Path

from sinkhole import capture, filters

#: The target's own addresses: a home network's, as a developer's machine has them.
OWN_V4, OWN_V6 = "192.168.1.24", "fd5e:8c1a:77b2::24"
OWN = (OWN_V4, OWN_V6, "127.0.0.1", "::1")
#: With a cable between the target's namespace and ours: the router's addresses, ours; both ends; and their hardware
#: addresses (the first three bytes are vendors': of a router, and of a desktop's network card).
ROUTER_V4, ROUTER_V6 = "192.168.1.1", "fd5e:8c1a:77b2::1"
INSIDE, OUTSIDE = "eth0", "lan"
_INSIDE_MAC, _OUTSIDE_MAC = "a4:bb:6d:4e:19:c7", "c0:56:27:8a:33:1e"
CAPTURE_FILE = "/tmp/capture"  # noqa: S108 - a memory file system of the container's own
UNPRIVILEGED = 65533
#: Outside of the kernel's range for clients.
_PORTS = range(21_000, 31_000)
_TRANSPARENT4, _ORIGINAL4, _TRANSPARENT6, _ORIGINAL6 = 19, 20, 75, 74
_SO_RCVBUFFORCE = 33
_PROBED = ("203.0.113.1", 9)
_PR_SET_DUMPABLE, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 4, 47, 4

_TPROXY = """
  meta nfproto ipv4 meta l4proto {{ tcp, udp }} tproxy ip to :{port} accept
  meta nfproto ipv6 meta l4proto {{ tcp, udp }} tproxy ip6 to :{port} accept
"""
_SPARE = """
  ip daddr {{ 224.0.0.0/4, 255.255.255.255 }} accept
  ip6 daddr ff00::/8 accept
  ip daddr {{ 127.0.0.0/8, {v4} }} meta l4proto {{ tcp, udp }} {known}
  ip6 daddr {{ ::1, {v6} }} meta l4proto {{ tcp, udp }} {known}
"""
_KNOWN = "socket wildcard { 0, 1 } accept"


class SetupError(Exception):
    """The machine lacks what a gateway needs; the message says what."""


@dataclass
class Prepared:
    """All that was opened. `redirected`: destinations come from the connection tracking, datagrams from packets.

    `apart`: the target is at the other end of a cable, and its sockets on loopback are not here.
    """

    port: int
    mechanism: str
    ipv6: bool
    capture: capture.Capture
    packets: socket.socket
    apart: bool = False
    listeners: list[socket.socket] = field(default_factory=list)
    receivers: list[socket.socket] = field(default_factory=list)
    senders: dict[int, socket.socket] = field(default_factory=dict)

    @property
    def redirected(self) -> bool:
        """The fallback is in use."""
        return self.mechanism == "redirect"


def prepare(wanted: str = "auto", *, apart: bool = False) -> Prepared:
    """Do it all. `wanted`: auto, or redirect to take the fallback.

    `apart`: the target joins the namespace of the first process of our pid namespace (`sinkhole.cable`), to which a
    cable is laid, instead of ours. Raises SetupError, OSError.
    """
    ipv6 = _cable() if apart else _addresses()
    port, listeners, receivers = _sockets(ipv6)
    mechanism = _rules(port, ipv6, wanted, listeners[0])
    if apart and mechanism != "tproxy":
        raise SetupError("a cable needs tproxy, which this kernel lacks")
    senders = {4: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)}
    if ipv6:
        senders[6] = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
    interface = OUTSIDE if apart else "lo"
    packets = capture.packet_socket(socket.SOCK_DGRAM, 16 << 20, interface)
    filter_packets(packets, attempts=False, datagrams=mechanism == "redirect")
    for made in (*listeners, *receivers, *senders.values(), packets):
        made.setblocking(False)
    writer = capture.start(CAPTURE_FILE, drop_privileges, interface)
    return Prepared(port, mechanism, ipv6, writer, packets, apart, listeners, receivers, senders)


def filter_packets(packets: socket.socket, *, attempts: bool, datagrams: bool) -> None:
    """Choose what the packet socket sees (no privilege needed)."""
    argument, held = filters.sock_fprog(filters.program(attempts=attempts, datagrams=datagrams))
    packets.setsockopt(socket.SOL_SOCKET, filters.SO_ATTACH_FILTER, argument)
    del held


def drop_privileges() -> None:
    """Become nobody in particular, without any capability, for good."""
    os.setgroups([])
    os.setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
    os.setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if _capabilities():
        raise SetupError("privileges could not be given up")


def _capabilities() -> int:
    with Path("/proc/self/status").open(encoding="ascii") as status:
        held = [
            int(line.split()[1], 16) for line in status if line.startswith(("CapPrm", "CapEff", "CapInh", "CapAmb"))
        ]
    return held[0] | held[1] | held[2] | held[3] if len(held) == 4 else -1


def _addresses() -> bool:
    """Make every address of the world local; True where IPv6 works too."""
    _run(
        ["ip", "-batch", "-"],
        f"link set lo up\naddr add {OWN_V4}/32 dev lo\nroute add local default dev lo src {OWN_V4}\n",
    )
    lines = f"addr add {OWN_V6}/128 dev lo nodad\nroute add local default dev lo src {OWN_V6}\n"
    try:
        _run(["ip", "-6", "-batch", "-"], lines)
    except SetupError:
        return False
    return True


def _cable() -> bool:
    """Lay a cable to the target's namespace; every address but the target's is then local here."""
    configure(
        4,
        f"link set lo up\nlink add {OUTSIDE} address {_OUTSIDE_MAC} type veth"
        f" peer name {INSIDE} address {_INSIDE_MAC} netns 1\n"
        f"addr add {ROUTER_V4}/32 dev {OUTSIDE}\nlink set {OUTSIDE} up\n"
        f"route add local default dev lo src {ROUTER_V4}\nroute add {OWN_V4}/32 dev {OUTSIDE} table local\n",
    )
    try:
        configure(
            6,
            f"addr add {ROUTER_V6}/128 dev {OUTSIDE} nodad\nroute add local default dev lo src {ROUTER_V6}\n"
            f"route add {OWN_V6}/128 dev {OUTSIDE} table local\n",
        )
    except SetupError:
        return False
    return True


def configure(version: int, lines: str) -> None:
    """Have `ip` do what the lines say, for IPv4 or IPv6. Raises SetupError."""
    _run(["ip", f"-{version}", "-batch", "-"], lines)


def _run(command: list[str], text: str) -> None:
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{command[0]} could not be run: {error}") from error
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())
        raise SetupError(f"{command[0]}: {said[:200]}")


def _sockets(ipv6: bool) -> tuple[int, list[socket.socket], list[socket.socket]]:
    for port in _PORTS:
        listeners: list[socket.socket] = []
        receivers: list[socket.socket] = []
        try:
            for family in (socket.AF_INET, socket.AF_INET6) if ipv6 else (socket.AF_INET,):
                listeners.append(_listener(family, port))
                receivers.append(_receiver(family, port))
        except OSError as error:
            for made in (*listeners, *receivers):
                made.close()
            if error.errno == 98:  # EADDRINUSE
                continue
            raise
        return port, listeners, receivers
    raise SetupError("no port is free")


def _bound(family: int, kind: int, port: int) -> socket.socket:
    made = socket.socket(family, kind)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_IPV6, _TRANSPARENT6, 1)
    else:
        made.setsockopt(socket.IPPROTO_IP, _TRANSPARENT4, 1)
    made.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))  # noqa: S104 - in a namespace of its own
    return made


def _listener(family: int, port: int) -> socket.socket:
    made = _bound(family, socket.SOCK_STREAM, port)
    made.listen(4096)
    return made


def _receiver(family: int, port: int) -> socket.socket:
    made = _bound(family, socket.SOCK_DGRAM, port)
    six = family == socket.AF_INET6
    made.setsockopt(socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP, _ORIGINAL6 if six else _ORIGINAL4, 1)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
    return made


def original_of(ancillary: list[tuple[int, int, bytes]]) -> tuple[str, int] | None:
    """Where a received datagram was sent to."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _ORIGINAL4):
            return socket.inet_ntop(socket.AF_INET, data[4:8]), struct.unpack_from("!H", data, 2)[0]
        if (level, kind) == (socket.IPPROTO_IPV6, _ORIGINAL6):
            return socket.inet_ntop(socket.AF_INET6, data[8:24]), struct.unpack_from("!H", data, 2)[0]
    return None


def redirected_from(connection: socket.socket) -> tuple[str, int] | None:
    """Where a redirected connection was made to (SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST)."""
    try:
        if connection.family == socket.AF_INET6:
            data = connection.getsockopt(socket.IPPROTO_IPV6, 80, 28)
            return socket.inet_ntop(socket.AF_INET6, data[8:24]), struct.unpack_from("!H", data, 2)[0]
        data = connection.getsockopt(socket.IPPROTO_IP, 80, 16)
        return socket.inet_ntop(socket.AF_INET, data[4:8]), struct.unpack_from("!H", data, 2)[0]
    except OSError:
        return None


def _rules(port: int, ipv6: bool, wanted: str, listener: socket.socket) -> str:
    """Lead everything to `port`; returns the mechanism that works here."""
    spare = _SPARE.format(v4=OWN_V4, v6=OWN_V6, known=_KNOWN)
    if wanted != "redirect":
        try:
            hook = "type filter hook prerouting priority mangle; policy accept;"
            _run(
                ["nft", "-f", "-"], f"table inet edge {{ chain pre {{ {hook}{spare}{_TPROXY.format(port=port)} }}\n}}\n"
            )
            if _works(listener):
                return "tproxy"
        except SetupError:
            pass
        _run(["nft", "flush", "ruleset"], "")
    # Locally made connections are translated as they leave; there no rule can ask for sockets, so the target's own
    # addresses are left alone and a closed loopback port is refused. Datagrams are dropped once they were seen.
    lead = "type nat hook output priority -100; policy accept;"
    filtered = "type filter hook prerouting priority mangle; policy accept;"
    text = (
        f"table inet edge {{ chain known {{ {filtered}{spare}  meta l4proto udp drop\n }}\n"
        f" chain lead {{ {lead} ip daddr {{ 127.0.0.0/8, {OWN_V4}, 224.0.0.0/4 }} accept;"
        f" ip6 daddr {{ ::1, {OWN_V6}, ff00::/8 }} accept; meta l4proto tcp redirect to :{port}; }}\n}}\n"
    )
    _run(["nft", "-f", "-"], text)
    if not _works(listener):
        raise SetupError("this kernel leads packets to us neither by tproxy nor by redirect")
    return "redirect"


def _works(listener: socket.socket) -> bool:
    """Whether a connection to some address in the world arrives here."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        listener.settimeout(1.0)
        try:
            probe.connect(_PROBED)
            accepted, _ = listener.accept()
        except OSError:
            return False
        with accepted:
            return accepted.getsockname() == _PROBED or redirected_from(accepted) == _PROBED
