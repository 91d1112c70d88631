"""Names and the addresses they were given: every name its own, all of them looking public. Pure."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict

#: Allocated, globally routable space, so that clients which refuse private answers go on (RFC 6890 registries).
_V4_BASE, _V4_BITS = int(ipaddress.IPv4Address("23.192.0.0")), 21
_V6_BASE = int(ipaddress.IPv6Address("2600:1406::"))
#: Odd, so that multiplying by it visits every address once; neighbours in time are none in the address space.
_STRIDE = 0x0B5C53
MOST_NAMES = 50_000

#: Ends of names that no public resolver knows (RFC 6761, RFC 6762, RFC 7686, RFC 8375, RFC 9476).
_NOWHERE = ("invalid", "test", "example", "local", "onion", "home.arpa", "alt", "internal", "localdomain", "lan")
RESOLVER = "192.168.1.1"
METADATA_V4, METADATA_V6 = "169.254.169.254", "fd00:ec2::254"
#: Names with an address of their own meaning.
FIXED = {
    "localhost": ("127.0.0.1", "::1"),
    "metadata.google.internal": (METADATA_V4, METADATA_V6),
    "metadata": (METADATA_V4, METADATA_V6),
    "instance-data": (METADATA_V4, METADATA_V6),
    "instance-data.ec2.internal": (METADATA_V4, METADATA_V6),
    "host.docker.internal": ("192.168.65.254", ""),
    "gateway.docker.internal": ("192.168.65.1", ""),
    "kubernetes.docker.internal": ("127.0.0.1", ""),
}


class Names:
    """The run's resolver data. `missing`: names (and all below them) that must not exist."""

    def __init__(self, missing: tuple[str, ...] = ()) -> None:
        self.missing = missing
        self._by_name: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._by_address: dict[str, list[str]] = {}
        self._count = 0

    def resolve(self, name: str) -> tuple[str, str] | None:
        """The IPv4 and IPv6 address of a name (either may be empty); None for one that does not exist."""
        name = name.rstrip(".").lower()
        if name in FIXED:
            addresses = FIXED[name]
            self._remember(name, addresses)
            return addresses
        if not name or "." not in name or any(_below(name, end) for end in (*_NOWHERE, *self.missing)):
            return None
        known = self._by_name.get(name)
        if known is not None:
            return known
        self._count += 1
        if self._is_literal(name):
            return None
        spread = (self._count * _STRIDE) % (1 << _V4_BITS)
        addresses = (
            str(ipaddress.IPv4Address(_V4_BASE + spread)),
            str(ipaddress.IPv6Address(_V6_BASE + (spread << 64) + 0x17)),
        )
        self._remember(name, addresses)
        return addresses

    def names_of(self, address: str) -> tuple[str, ...]:
        """Under which names an address was given out."""
        return tuple(self._by_address.get(address, ()))

    def _remember(self, name: str, addresses: tuple[str, str]) -> None:
        if name in self._by_name:
            return
        if len(self._by_name) >= MOST_NAMES:
            old, gone = self._by_name.popitem(last=False)
            for address in gone:
                if old in self._by_address.get(address, ()):
                    self._by_address[address].remove(old)
        self._by_name[name] = addresses
        for address in addresses:
            if address:
                self._by_address.setdefault(address, []).append(name)

    @staticmethod
    def _is_literal(name: str) -> bool:
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _below(name: str, end: str) -> bool:
    end = end.rstrip(".").lower()
    return name == end or name.endswith("." + end)


def decoy_of(address: str, own: tuple[str, ...] = ()) -> str:
    """What an address stands for, where it is none of the public internet (metadata, host, loopback …), else ""."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    text = str(parsed)
    if text in (METADATA_V4, METADATA_V6, "100.100.100.200", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"):
        return "metadata"
    if text == RESOLVER:
        return "resolver"
    if text in ("192.168.65.254", "192.168.65.1", "172.17.0.1"):
        return "host"
    if parsed.is_loopback or text in own or parsed.is_unspecified:
        return "loopback"
    if parsed.is_multicast or text == "255.255.255.255":
        return "multicast"
    if parsed.is_link_local:
        return "link-local"
    if parsed.is_private or not parsed.is_global:
        return "private"
    return ""
