"""IP packets: reading what a packet socket gives, and making the datagrams that answer. Pure."""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass

TCP, UDP, ICMP, ICMP6, SCTP = 6, 17, 1, 58, 132
NAMES = {1: "icmp", 2: "igmp", 4: "ipip", 6: "tcp", 17: "udp", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 58: "icmp6",
         89: "ospf", 132: "sctp", 136: "udplite"}  # fmt: skip
_EXTENSIONS = (0, 43, 60)
_FRAGMENT = 44


@dataclass(frozen=True)
class Packet:
    """One IP packet. Ports are 0 where the protocol has none; `payload` begins after the header that was read."""

    version: int
    protocol: int
    source: str
    destination: str
    source_port: int
    port: int
    flags: int
    payload: bytes

    @property
    def name(self) -> str:
        """The protocol's name, or its number."""
        return NAMES.get(self.protocol, f"ip-{self.protocol}")


def read(data: bytes) -> Packet | None:
    """Read a packet from its IP header on; None for what is none or ends too early."""
    try:
        if data[0] >> 4 == 4:
            at, protocol = (data[0] & 15) * 4, data[9]
            source, destination = (
                socket.inet_ntop(socket.AF_INET, data[12:16]),
                socket.inet_ntop(socket.AF_INET, data[16:20]),
            )
            total = int.from_bytes(data[2:4], "big")
            data = data[:total] if at <= total <= len(data) else data
        elif data[0] >> 4 == 6:
            at, protocol = 40, data[6]
            source, destination = (
                socket.inet_ntop(socket.AF_INET6, data[8:24]),
                socket.inet_ntop(socket.AF_INET6, data[24:40]),
            )
            while protocol in _EXTENSIONS:
                protocol, at = data[at], at + 8 + 8 * data[at + 1]
            if protocol == _FRAGMENT:
                protocol, at = data[at], at + 8
        else:
            return None
        version, ports, flags = data[0] >> 4, (0, 0), 0
        if protocol in (TCP, UDP, 132, 136):
            ports = struct.unpack_from("!HH", data, at)
            if protocol == TCP:
                flags = data[at + 13]
                at += (data[at + 12] >> 4) * 4
            else:
                at += 12 if protocol == SCTP else 8
    except (IndexError, struct.error, ValueError, OSError):
        return None
    return Packet(version, protocol, source, destination, *ports, flags, data[at:])


def datagram(source: tuple[str, int], destination: tuple[str, int], payload: bytes) -> bytes:
    """A UDP datagram with its IP header, checksums included (RFC 768, 791, 8200)."""
    from_, to = ipaddress.ip_address(source[0]), ipaddress.ip_address(destination[0])
    size = 8 + len(payload)
    pseudo = from_.packed + to.packed
    pseudo += struct.pack("!BBH", 0, UDP, size) if from_.version == 4 else struct.pack("!IHBB", size, 0, 0, UDP)
    header = struct.pack("!HHHH", source[1], destination[1], size, 0)
    header = header[:6] + struct.pack("!H", checksum(pseudo + header + payload) or 0xFFFF)
    if from_.version == 6:
        return struct.pack("!IHBB", 6 << 28, size, UDP, 64) + from_.packed + to.packed + header + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size, 0, 0, 64, UDP, 0) + from_.packed + to.packed
    return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + header + payload


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
