"""Socket addresses as the recorder writes them, by what is behind them."""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class Reach(StrEnum):
    """How far an address leads."""

    NOWHERE = "nowhere"
    LOCAL = "local"
    RESOLVER = "resolver"
    METADATA = "metadata"
    PRIVATE = "private"
    PUBLIC = "public"
    SOCKET_FILE = "socket-file"


#: Where clouds tell a machine its credentials: AWS, Azure, Google, Oracle; Alibaba; AWS over IPv6 and for containers.
METADATA = frozenset({"169.254.169.254", "100.100.100.200", "fd00:ec2::254", "169.254.170.2", "169.254.170.23"})
DNS_PORTS = frozenset({53, 853, 5353})


class Destination(NamedTuple):
    """An address taken apart. `host` is a path or an abstract name for a socket file."""

    reach: Reach
    host: str
    port: int = 0


@lru_cache(maxsize=4096)
def destination(text: str) -> Destination:
    """Take an address apart (`203.0.113.1:443`, `[2001:db8::1]:443`, `unix:/path`, `unix:@name`, a family's name)."""
    if text.startswith("unix:"):
        return Destination(Reach.SOCKET_FILE, text[5:])
    host, colon, port = text.rpartition(":")
    try:
        number = int(port) if colon else 0
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return Destination(Reach.NOWHERE, text)
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped if mapped is not None else address
    shown = str(address)
    if shown in METADATA:
        return Destination(Reach.METADATA, shown, number)
    if number in DNS_PORTS:
        return Destination(Reach.RESOLVER, shown, number)
    if address.is_loopback:
        return Destination(Reach.LOCAL, shown, number)
    if address.is_unspecified or address.is_multicast:
        return Destination(Reach.NOWHERE, shown, number)
    return Destination(Reach.PUBLIC if address.is_global else Reach.PRIVATE, shown, number)
