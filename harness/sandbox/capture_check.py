"""Does every captured flow have an event? `python -m harness.sandbox.capture_check FILE`, a process of its own.

Packets are hostile and the reader of the file is scapy's, so this runs with limits and can be killed. In: a line of
JSON, the flows that were told, as lists of protocol, local and remote end. Out: a line of JSON, a `CaptureCheck`.
"""

from __future__ import annotations

import resource
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from harness.model.base import Record

MEMORY_BYTES, CPU_SECONDS = 1 << 30, 60
MOST_FLOWS = 200_000
MOST_TOLD = 50
_ETHERNET = 14
_TCP, _UDP = 6, 17
_NAMES = {1: "icmp", 2: "igmp", 4: "ipip", 6: "tcp", 17: "udp", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 58: "icmp6",
          89: "ospf", 132: "sctp", 136: "udplite"}  # fmt: skip
#: What the kernel sends by itself: answers, errors and neighbour discovery (RFC 792, 4443, 4861, 3810).
_KERNEL = {1: {0, 3}, 58: {1, 3, 129, *range(130, 138), 143}}
_SYN, _ACK, _RST = 0x02, 0x10, 0x04

Key = tuple[str, str, str]
FLOWS: TypeAdapter[list[Key]] = TypeAdapter(list[Key])


class CaptureCheck(Record):
    """What the capture says. `unmatched`: flows that no event tells of, at most 50 and then a count.

    `dissected`: one line for each flow that is neither TCP nor UDP. `local`: flows that ended at the target's own
    listeners, and are nobody else's business.
    """

    packets: int = 0
    flows: int = 0
    local: int = 0
    unmatched: tuple[str, ...] = ()
    dissected: tuple[str, ...] = ()


@dataclass
class _Seen:
    """What the packets of one flow showed."""

    began: bool = False
    answered: bool = False
    own: bool = False
    packet: bytes = field(default=b"", repr=False)


def check(packets: Iterable[bytes], told: Iterable[Key], own: frozenset[str]) -> CaptureCheck:
    """Compare. `packets` begin with their Ethernet header; `own` are the target's addresses."""
    known = {key for protocol, local, remote in told for key in ((protocol, local, remote), (protocol, remote, local))}
    seen: dict[Key, _Seen] = {}
    count = 0
    for packet in packets:
        count += 1
        read = _read(packet)
        if read is None:
            continue
        key, address, flags = read
        back = (key[0], key[2], key[1])
        if back in seen:
            flow = seen[back]
            flow.answered = flow.answered or key[0] != "tcp" or (flags & (_SYN | _ACK)) == _SYN | _ACK
            continue
        if key not in seen and len(seen) < MOST_FLOWS:
            seen[key] = _Seen(own=address in own, packet=packet if key[0] not in ("tcp", "udp") else b"")
        if key in seen and (key[0] != "tcp" or flags & (_SYN | _ACK) == _SYN):
            seen[key].began = True
    missing = [key for key, flow in seen.items() if key not in known and flow.began]
    local = [key for key in missing if seen[key].own and (key[0] == "udp" or seen[key].answered)]
    strange = [key for key in missing if key not in set(local)]
    names = [f"{key[0]} {key[1]} to {key[2]}" for key in strange[:MOST_TOLD]]
    if len(strange) > MOST_TOLD:
        names.append(f"{len(strange) - MOST_TOLD} more")
    others = [flow.packet for flow in seen.values() if flow.packet][:MOST_TOLD]
    return CaptureCheck(
        packets=count, flows=len(seen), local=len(local), unmatched=tuple(names), dissected=tuple(_dissected(others))
    )


def _read(packet: bytes) -> tuple[Key, str, int] | None:
    """Key, destination address and TCP flags of an IP packet; None for what the kernel sends by itself, or is cut."""
    try:
        data = packet[_ETHERNET:]
        if data[0] >> 4 == 4:
            at, protocol = (data[0] & 15) * 4, data[9]
            ends = [socket.inet_ntop(socket.AF_INET, data[start : start + 4]) for start in (12, 16)]
        elif data[0] >> 4 == 6:
            at, protocol = 40, data[6]
            ends = [socket.inet_ntop(socket.AF_INET6, data[start : start + 16]) for start in (8, 24)]
            while protocol in (0, 43, 60):
                protocol, at = data[at], at + 8 + 8 * data[at + 1]
        else:
            return None
        flags, destination = 0, ends[1]
        if protocol in _KERNEL and data[at] in _KERNEL[protocol]:
            return None
        if protocol in (_TCP, _UDP):
            ports = struct.unpack_from("!HH", data, at)
            flags = data[at + 13] if protocol == _TCP else 0
            ends = [_end(address, port) for address, port in zip(ends, ports, strict=True)]
    except (IndexError, struct.error, ValueError):
        return None
    return (_NAMES.get(protocol, f"ip-{protocol}"), ends[0], ends[1]), destination, flags


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _dissected(packets: list[bytes]) -> Iterator[str]:
    if not packets:
        return
    import scapy.layers.all  # noqa: F401 - only now: it takes half a second, and binds the layers to each other
    from scapy.layers.l2 import Ether

    for packet in packets:
        try:
            yield str(Ether(packet).summary())[:300]
        except Exception as error:  # a dissector that a packet breaks must not cost the rest
            yield f"not dissected: {type(error).__name__}"


def main() -> None:
    """Read flows from stdin and packets from the file named, and print the answer."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from scapy.utils import RawPcapReader

    told = FLOWS.validate_json(sys.stdin.buffer.read())
    with RawPcapReader(sys.argv[1]) as reader:
        answer = check((data for data, _ in reader), told, frozenset(sys.argv[2:]))
    sys.stdout.write(answer.model_dump_json() + "\n")


if __name__ == "__main__":
    main()
