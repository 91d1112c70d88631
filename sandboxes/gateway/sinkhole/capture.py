"""The packet capture: a process of its own that writes what crosses `lo` into a bounded pcap file.

It is forked before anything of the target runs, gives up its privileges, and parses nothing. File format: libpcap's
classic one with nanoseconds (magic 0xa1b23c4d), link type Ethernet.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FULL_BYTES = 64 << 20
#: Once so much was written whole, only headers follow, and then nothing.
HEADER_BYTES = 16 << 20
SNAP_FULL, SNAP_HEADER = 262_144, 160
RECEIVE_BUFFER = 64 << 20
_WRITE_BYTES = 1 << 20
_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_IGNORE_OUTGOING = 263, 6, 23
_SO_RCVBUFFORCE = 33
GLOBAL_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_FULL, 1)


@dataclass(frozen=True)
class Capture:
    """The parent's side: the file's descriptor, and the ends of the pipe for orders and the answer."""

    file: int
    orders: int
    answer: int
    pid: int

    def stop(self) -> None:
        """Ask for the end; the answer is then readable."""
        os.close(self.orders)


def packet_socket(kind: socket.SocketKind, force: int, interface: str = "lo", *, both: bool = False) -> socket.socket:
    """A packet socket that sees each packet that comes in once (on `lo` all do), and what goes out with `both`.

    Needs CAP_NET_RAW, and CAP_NET_ADMIN for its buffer.
    """
    made = socket.socket(socket.AF_PACKET, kind, 0)
    if not both:
        made.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, force)
    made.bind((interface, _ETH_P_ALL))
    return made


def start(path: str, drop: object, interface: str = "lo") -> Capture:
    """Fork the capturing process; `drop` is called there to give up privileges. Returns the parent's side."""
    taps = packet_socket(socket.SOCK_RAW, RECEIVE_BUFFER, interface, both=interface != "lo")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.write(file, GLOBAL_HEADER)
    orders_in, orders_out = os.pipe()
    answer_in, answer_out = os.pipe()
    pid = os.fork()
    if pid:
        taps.close()
        os.close(orders_in)
        os.close(answer_out)
        return Capture(file, orders_out, answer_in, pid)
    code = 1
    try:
        # Nothing else may live on here: a listener that the parent closes must be closed.
        kept = {2, taps.fileno(), file, orders_in, answer_out}
        for inherited in {int(path.name) for path in Path("/proc/self/fd").iterdir()} - kept:
            with suppress(OSError):
                os.close(inherited)
        assert callable(drop)
        drop()
        _write_all(taps, file, orders_in, answer_out)
        code = 0
    finally:
        os._exit(code)


def _write_all(taps: socket.socket, file: int, orders: int, answer: int) -> None:
    buffer = bytearray(SNAP_FULL)
    view = memoryview(buffer)
    pending = bytearray()
    written, packets, skipped, snap = len(GLOBAL_HEADER), 0, 0, SNAP_FULL
    taps.setblocking(False)
    poll = select.poll()
    poll.register(taps, select.POLLIN)
    poll.register(orders, select.POLLIN)
    going = True
    while going:
        going = not any(found == orders for found, _ in poll.poll(200))
        while True:
            try:
                size = taps.recv_into(buffer, 0, socket.MSG_TRUNC)
            except BlockingIOError:
                break
            packets += 1
            if snap == 0:
                skipped += 1
                continue
            now = time.time_ns()
            kept = min(size, snap)
            pending += struct.pack("<IIII", now // 1_000_000_000, now % 1_000_000_000, kept, size)
            pending += view[:kept]
            written += 16 + kept
            if snap == SNAP_FULL and written > FULL_BYTES:
                snap = SNAP_HEADER
            elif written > FULL_BYTES + HEADER_BYTES:
                snap = 0
            if len(pending) > _WRITE_BYTES:
                _flush(file, pending)
        _flush(file, pending)
    _, dropped = struct.unpack("II", taps.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
    said = {"packets": packets, "bytes": written, "dropped": dropped, "skipped": skipped, "cut": snap != SNAP_FULL}
    os.write(answer, json.dumps(said).encode())


def _flush(file: int, pending: bytearray) -> None:
    view = memoryview(pending)
    at = 0
    while at < len(view):
        at += os.write(file, view[at:])
    view.release()
    pending.clear()
