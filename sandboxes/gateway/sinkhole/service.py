"""The unprivileged part: connections, datagrams and orders of the harness, in one event loop."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel

from sinkhole import packets, setup
from sinkhole.authority import Authority
from sinkhole.capture import Capture
from sinkhole.datagrams import Datagrams
from sinkhole.names import Names
from sinkhole.relay import Relay
from sinkhole.responding import Canned
from sinkhole.tcp import Connection
from sinkhole.wire import FrameError, FrameReader, encode
from sinkhole.world import World

MOST_CONNECTIONS = 2048
#: After the target's end its connections end by themselves; how long what is on its way is waited for. It goes over
#: loopback, in one go: what is to come is there, and only has to be taken, a turn of the loop for each step.
SETTLE_SECONDS, QUIET_SECONDS, QUIET_TURNS = 3.0, 0.005, 3
CAPTURE_CHUNK = 1 << 20
_READ = 64 << 10


def serve(prepared: setup.Prepared) -> None:
    """Serve until told to stop, or until stdin ends."""
    anyio.run(Service(prepared).run)


class Stdout:
    """Frames to the harness, whole and one after another; a slow reader holds up those who tell."""

    def __init__(self) -> None:
        os.set_blocking(1, False)
        self._lock = anyio.Lock()

    async def send(self, frame: bytes) -> None:
        """Write a frame. Ends the process when nobody reads any more."""
        async with self._lock:
            with anyio.CancelScope(shield=True):
                rest = memoryview(frame)
                while rest:
                    try:
                        rest = rest[os.write(1, rest) :]
                    except BlockingIOError:
                        await anyio.wait_writable(1)
                    except OSError:
                        os._exit(0)


class Service:
    """One gateway."""

    def __init__(self, prepared: setup.Prepared) -> None:
        self._prepared = prepared
        self._live: dict[Connection, anyio.CancelScope] = {}
        self._accepted = 0

    async def run(self) -> None:
        """Everything, until the end."""
        self._stdout = Stdout()
        self._world = World(Authority(os.urandom(32)), self._stdout.send, own=setup.OWN)
        self._datagrams = Datagrams(self._world, self._reply)
        prepared = self._prepared
        self._relay = Relay(self._stdout.send, prepared.port)
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._scope = anyio.CancelScope()
            for listener in prepared.listeners:
                tasks.start_soon(self._accept, listener)
            for receiver in prepared.receivers:
                tasks.start_soon(self._receive, receiver)
            tasks.start_soon(self._watch_packets)
            tasks.start_soon(self._datagrams.sweep)
            ready = {"kind": "ready", "mechanism": prepared.mechanism, "ipv6": prepared.ipv6, "port": prepared.port}
            await self._stdout.send(encode(ready))
            await self._obey()
            tasks.cancel_scope.cancel()

    async def _obey(self) -> None:
        reader = FrameReader()
        os.set_blocking(0, False)
        while True:
            await anyio.wait_readable(0)
            try:
                data = os.read(0, _READ)
            except BlockingIOError:
                continue
            if not data:
                os._exit(0)  # the harness is gone: nobody wants to know
            try:
                for order, body in reader.feed(data):
                    if await self._order(order, body):
                        return
            except FrameError:
                os._exit(2)

    async def _order(self, order: dict[str, Any], body: bytes) -> bool:
        """Do what the harness says; True for the last order."""
        what = order.get("do")
        if what == "configure":
            self._world.authority = Authority(bytes.fromhex(order["seed"]))
            self._world.decoys = dict(order.get("decoys", {}))
            self._world.names = Names(tuple(order.get("missing", ())))
            self._world.canned = Canned.read(order.get("canned", []))
            if order.get("mode") == "refuse":
                self._refuse()
            await self._stdout.send(encode({"kind": "configured"}, self._world.authority.pem))
        elif what == "stop":
            await self._end()
            return True
        elif what in ("connect", "data", "eof", "more", "close"):
            self._relay.order(order, body, self._tasks)
        return False

    def _refuse(self) -> None:
        """From now on nobody answers: the kernel refuses, and packets alone tell what was tried."""
        self._datagrams.refusing = True
        setup.filter_packets(self._prepared.packets, attempts=True, datagrams=True)
        for made in (*self._prepared.listeners, *self._prepared.receivers):
            anyio.notify_closing(made)
            made.close()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                await anyio.wait_readable(listener)
                while True:
                    accepted, peer = listener.accept()
                    if (peer[0], peer[1]) in self._relay.ends:
                        accepted.close()  # ours: who listened there has stopped
                    else:
                        self._begin(accepted)
                    await anyio.lowlevel.checkpoint()
            except BlockingIOError:
                continue
            except (OSError, anyio.ClosedResourceError):
                if listener.fileno() < 0:
                    return
                await anyio.sleep(0.01)

    def _begin(self, accepted: socket.socket) -> None:
        self._accepted += 1
        if len(self._live) >= MOST_CONNECTIONS:
            oldest = next(iter(self._live))
            oldest.flow.end = "limit"
            self._live.pop(oldest).cancel()
        self._tasks.start_soon(self._connection, accepted)

    async def _connection(self, accepted: socket.socket) -> None:
        original = setup.redirected_from(accepted) if self._prepared.redirected else None
        try:
            stream = await anyio.abc.SocketStream.from_socket(accepted)
            connection = Connection(self._world, stream, original)
        except (OSError, anyio.BrokenResourceError):  # gone already
            accepted.close()
            return
        with anyio.CancelScope() as scope:
            self._live[connection] = scope
            await connection.serve()
        self._live.pop(connection, None)

    async def _receive(self, receiver: socket.socket) -> None:
        while True:
            try:
                await anyio.wait_readable(receiver)
                for _ in range(64):
                    data, ancillary, _, source = receiver.recvmsg(65_536, 256)
                    destination = setup.original_of(ancillary)
                    if destination is not None:
                        await self._datagrams.datagram((source[0], source[1]), destination, data)
            except BlockingIOError:
                continue
            except (OSError, anyio.ClosedResourceError):
                if receiver.fileno() < 0:
                    return
            await anyio.lowlevel.checkpoint()

    async def _watch_packets(self) -> None:
        taps = self._prepared.packets
        while True:
            await anyio.wait_readable(taps)
            try:
                for _ in range(64):
                    found = packets.read(taps.recv(262_144))
                    if found is not None and not self._known(found):
                        await self._datagrams.packet(found)
            except BlockingIOError:
                pass
            await anyio.lowlevel.checkpoint()

    def _known(self, packet: packets.Packet) -> bool:
        """Whether a packet is for a socket of the target's own, which is nobody else's business."""
        if packet.protocol not in (packets.TCP, packets.UDP) or packet.destination not in setup.OWN:
            return False
        if (packet.source, packet.source_port) in self._relay.ends:
            return True
        name = "tcp" if packet.protocol == packets.TCP else "udp"
        for path in (f"/proc/net/{name}", f"/proc/net/{name}6"):
            try:
                with Path(path).open(encoding="ascii") as table:
                    next(table)
                    for line in table:
                        fields = line.split()
                        if int(fields[1].rpartition(":")[2], 16) == packet.port and fields[3] in ("0A", "07", "01"):
                            return True
            except OSError:
                continue
        return False

    def _reply(self, source: tuple[str, int], destination: tuple[str, int], data: bytes) -> None:
        made = packets.datagram(source, destination, data)
        sender = self._prepared.senders.get(6 if ":" in destination[0] else 4)
        if sender is None:
            return
        with suppress(OSError):  # its buffers are full: a datagram may be lost
            sender.sendto(made, (destination[0], 0))

    async def _end(self) -> None:
        """Let what is on its way arrive, tell of what is still open, hand over the capture, and say goodbye."""
        with anyio.move_on_after(SETTLE_SECONDS):
            seen, quiet = -1, 0
            while quiet < QUIET_TURNS:
                quiet = 0 if self._live or seen != self._accepted else quiet + 1
                seen = self._accepted
                await anyio.sleep(QUIET_SECONDS)
        for connection, scope in list(self._live.items()):
            connection.flow.end = "stop"
            scope.cancel()
        with anyio.move_on_after(SETTLE_SECONDS):
            while self._live:  # noqa: ASYNC110 - they end one by one
                await anyio.sleep(0.005)
        await self._datagrams.finish()
        said = await _captured(self._prepared.capture)
        left = int(said.get("bytes", 0))
        at = 0
        while at < left and (piece := os.pread(self._prepared.capture.file, CAPTURE_CHUNK, at)):
            await self._stdout.send(encode({"kind": "capture"}, piece))
            at += len(piece)
        end = {"kind": "end", "flows": self._world.told, "untold": self._world.untold, "capture": said}
        await self._stdout.send(encode(end))


async def _captured(capture: Capture) -> dict[str, Any]:
    """What the capturing process says at its end; empty when it is gone."""
    try:
        capture.stop()
        with anyio.fail_after(5):
            await anyio.wait_readable(capture.answer)
        said = json.loads(os.read(capture.answer, 4096) or b"{}")
    except (OSError, TimeoutError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
