"""Classic BPF programs for packet sockets: which packets the unprivileged part gets to see at all. Pure.

Instructions are as in linux/filter.h; a program begins at the network header (SOCK_DGRAM).
"""

from __future__ import annotations

import ctypes
import struct
from typing import Literal

_LD_HALF, _LD_BYTE, _LD_BYTE_X, _LDX_IP4 = 0x28, 0x30, 0x50, 0xB1
_AND, _JEQ, _JGE, _RET = 0x54, 0x15, 0x35, 0x06
#: Where a packet's EtherType is, for the filter (SKF_AD_OFF + SKF_AD_PROTOCOL).
_PROTOCOL = 0xFFFFF000
SO_ATTACH_FILTER = 26

Step = tuple[str, int, int, str, str]


def program(*, attempts: bool, datagrams: bool) -> bytes:
    """The filter: all that is neither TCP nor UDP, and UDP to many.

    With `datagrams` all UDP too, with `attempts` the first packets of TCP connections.
    """
    tcp4: Literal["syn4", "drop"] = "syn4" if attempts else "drop"
    tcp6: Literal["syn6", "drop"] = "syn6" if attempts else "drop"
    udp4, udp6 = ("keep", "keep") if datagrams else ("many4", "many6")
    steps: list[Step] = [
        ("", _LD_HALF, _PROTOCOL, "", ""),
        ("", _JEQ, 0x0800, "v4", "not4"),
        ("not4", _JEQ, 0x86DD, "v6", "drop"),
        ("v4", _LD_BYTE, 9, "", ""),
        ("", _JEQ, 6, tcp4, "other4"),
        ("other4", _JEQ, 17, udp4, "keep"),
        ("many4", _LD_BYTE, 16, "", ""),
        ("", _JGE, 224, "keep", "drop"),
        ("syn4", _LDX_IP4, 0, "", ""),
        ("", _LD_BYTE_X, 13, "", ""),
        ("", _AND, 0x12, "", ""),
        ("", _JEQ, 2, "keep", "drop"),
        ("v6", _LD_BYTE, 6, "", ""),
        ("", _JEQ, 6, tcp6, "other6"),
        ("other6", _JEQ, 17, udp6, "keep"),
        ("many6", _LD_BYTE, 24, "", ""),
        ("", _JEQ, 255, "keep", "drop"),
        ("syn6", _LD_BYTE, 53, "", ""),
        ("", _AND, 0x12, "", ""),
        ("", _JEQ, 2, "keep", "drop"),
        ("keep", _RET, 0xFFFFFFFF, "", ""),
        ("drop", _RET, 0, "", ""),
    ]
    places = {label: number for number, (label, *_) in enumerate(steps) if label}
    made = b""
    for number, (_, code, value, yes, no) in enumerate(steps):
        jumps = [places[label] - number - 1 if label else 0 for label in (yes, no)]
        made += struct.pack("=HBBI", code, *jumps, value)
    return made


def sock_fprog(code: bytes) -> tuple[bytes, object]:
    """The argument of SO_ATTACH_FILTER, and what must live as long as the call."""
    buffer = ctypes.create_string_buffer(code, len(code))
    return struct.pack(
        "HxxxxxxP" if struct.calcsize("P") == 8 else "HxxP", len(code) // 8, ctypes.addressof(buffer)
    ), buffer
