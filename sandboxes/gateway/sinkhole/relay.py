"""Connections of the harness to what the target serves: bytes between frames and sockets inside the namespace.

A connection goes to a socket that listens, or nowhere: without a look at the kernel's table it would lead to the
sinkhole itself. `ends` are its own ends of such connections, so that nobody takes them for the target's.

Orders are `connect` (id, port), `data`, `eof`, `close` and `more` (bytes that the harness took); answers are `opened`,
`refused`, `data`, `closed` and `more`. Neither side sends more than `WINDOW` bytes beyond what the other took.
"""

from __future__ import annotations

import errno
import itertools
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc

from sinkhole.flows import end_text
from sinkhole.wire import Message, encode

WINDOW = 256 << 10
MOST = 64
CONNECT_SECONDS = 5.0
_CHUNK = 32 << 10
#: Our own ends, one after the other and outside of the kernel's range for clients. A port that was used a short while
#: ago would meet what is left of the last connection (TIME_WAIT), which nft takes for no socket: the sinkhole gets it.
_PORTS = range(61_000, 65_536)
_LISTEN = "0A"

#: Local addresses of listeners as the kernel's tables write them, and where they are reached.
_REACHED = {
    "00000000": "127.0.0.1",
    "0100007F": "127.0.0.1",
    "00000000000000000000000000000000": "::1",
    "00000000000000000000000001000000": "::1",
    "0000000000000000FFFF00000100007F": "127.0.0.1",
}


def reached_at(tables: Iterable[str], port: int) -> str | None:
    """The address at which the tables (texts of /proc/net/tcp and tcp6) say that somebody listens on `port`."""
    for table in tables:
        for line in table.splitlines()[1:]:
            fields = line.split()
            if len(fields) < 4 or fields[3] != _LISTEN:
                continue
            address, _, number = fields[1].rpartition(":")
            if int(number, 16) != port:
                continue
            if address in _REACHED:
                return _REACHED[address]
            if len(address) == 8:
                return socket.inet_ntop(socket.AF_INET, bytes.fromhex(address)[::-1])
    return None


def _tables() -> list[str]:
    found = []
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            found.append(Path(f"/proc/net/{name}").read_text(encoding="ascii"))
    return found


class _Relayed:
    """One connection: what is to be written, and how much may be read."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.held = 0
        self.eof = False
        self.allowed = WINDOW
        self.scope = anyio.CancelScope()
        self.changed = anyio.Event()

    def change(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


class Relay:
    """All of them. `own`: the port of the sinkhole itself."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], own: int) -> None:
        self.ends: set[tuple[str, int]] = set()
        self._send, self._own = send, own
        self._live: dict[int, _Relayed] = {}
        self._ports = itertools.cycle(_PORTS)

    def order(self, order: Message, body: bytes, tasks: anyio.abc.TaskGroup) -> None:
        """Do what an order says; never waits."""
        number = int(order.get("id", 0))
        if order["do"] == "connect":
            relayed = self._live[number] = _Relayed()
            tasks.start_soon(self._run, number, int(order.get("port", 0)), relayed)
            return
        found = self._live.get(number)
        if found is None:
            return  # over already
        match order["do"]:
            case "data":
                found.pieces.append(body)
                found.held += len(body)
                if found.held > WINDOW:
                    found.scope.cancel()
            case "eof":
                found.eof = True
            case "more":
                found.allowed += int(order.get("bytes", 0))
            case "close":
                found.scope.cancel()
        found.change()

    async def _run(self, number: int, port: int, relayed: _Relayed) -> None:
        try:
            with relayed.scope:
                await self._serve(number, port, relayed)
        finally:
            self._live.pop(number, None)
            with anyio.CancelScope(shield=True):
                await self._say("closed", number)

    async def _serve(self, number: int, port: int, relayed: _Relayed) -> None:
        address = reached_at(_tables(), port) if port != self._own else None
        if address is None or len(self._live) > MOST:
            await self._say("refused", number)
            return
        made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        own: tuple[str, int] | None = None
        try:
            made.setblocking(False)
            self._bind(made, "::1" if ":" in address else "127.0.0.1")
            own = made.getsockname()[0], made.getsockname()[1]
            self.ends.add(own)
            with anyio.fail_after(CONNECT_SECONDS):
                await _connect(made, (address, port))
            local, remote = end_text(*own), end_text(address, port)
            async with await anyio.abc.SocketStream.from_socket(made) as stream:
                await self._say("opened", number, local=local, remote=remote)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write, number, stream, relayed)
                    await self._read(number, stream, relayed)
                    tasks.cancel_scope.cancel()
        except (OSError, TimeoutError):
            await self._say("refused", number)
        finally:
            made.close()
            if own is not None:
                self.ends.discard(own)

    def _bind(self, made: socket.socket, address: str) -> None:
        for _ in range(MOST):
            port = next(self._ports)
            try:
                made.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return
        raise OSError(errno.EADDRINUSE, "no port is free")

    async def _read(self, number: int, stream: anyio.abc.SocketStream, relayed: _Relayed) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                while relayed.allowed <= 0:
                    await relayed.changed.wait()
                data = await stream.receive(min(_CHUNK, relayed.allowed))
                relayed.allowed -= len(data)
                await self._send(encode({"kind": "data", "id": number}, data))

    async def _write(self, number: int, stream: anyio.abc.SocketStream, relayed: _Relayed) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            while True:
                while not relayed.pieces:
                    if relayed.eof:
                        await stream.send_eof()
                        return
                    await relayed.changed.wait()
                data = relayed.pieces.pop(0)
                await stream.send(data)
                relayed.held -= len(data)
                await self._say("more", number, bytes=len(data))

    async def _say(self, kind: str, number: int, **more: object) -> None:
        await self._send(encode({"kind": kind, "id": number, **more}))


async def _connect(made: socket.socket, place: tuple[str, int]) -> None:
    try:
        made.connect(place)
    except BlockingIOError:
        await anyio.wait_writable(made)
        error = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, "not connected") from None
