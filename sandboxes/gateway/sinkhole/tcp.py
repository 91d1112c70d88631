"""A TCP connection of the target: found out what it speaks, spoken to accordingly, told when it is over."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import anyio
import anyio.abc
from anyio.abc import SocketAttribute

from sinkhole import dns, hello, websocket
from sinkhole.channel import Channel, Idle
from sinkhole.decoys import banner
from sinkhole.flows import PART_HEAD, Flow, end_text
from sinkhole.http import Exchange, looks_like_http
from sinkhole.lines import BANNERS, SERVER_FIRST, Dialogue, converse
from sinkhole.place import Place
from sinkhole.world import World

#: How long a client may be silent before the server speaks, where that port's servers speak first, and elsewhere.
SERVER_FIRST_SECONDS = 0.3
SILENT_SECONDS = 1.0
HELLO_SECONDS = 5.0
#: Layers that one connection may have: a tunnel, TLS, what is inside, and once more.
MOST_LAYERS = 6
_H2_PREFACE = b"PRI * HTTP/2.0"
#: An empty SETTINGS frame, and a WINDOW_UPDATE that lets a client send its body (RFC 9113, sections 6.5 and 6.9).
_H2_HELLO = bytes(3) + b"\x04" + bytes(5) + b"\x00\x00\x04\x08" + bytes(5) + b"\x00\xff\x00\x00"
_REFUSALS = (
    "unknown ca",
    "unknown_ca",
    "certificate unknown",
    "certificate_unknown",
    "bad certificate",
    "bad_certificate",
)


class Connection:
    """One accepted connection. `original`: where it was made to, where the socket does not say."""

    def __init__(self, world: World, stream: anyio.abc.SocketStream, original: tuple[str, int] | None = None) -> None:
        mine: tuple[Any, ...] = original or tuple(stream.extra(SocketAttribute.local_address))  # noqa: S610
        address, port = str(mine[0]), int(mine[1])
        address = address.removeprefix("::ffff:") if "." in address else address
        peer: tuple[Any, ...] = tuple(stream.extra(SocketAttribute.remote_address))  # noqa: S610
        self.world = world
        flow = world.flow("tcp", end_text(str(peer[0]), int(peer[1])), end_text(address, port), address)
        self.channel = Channel(stream, flow)
        self.place = Place(flow.names[-1] if flow.names else address, port, address)
        self._dialogue: Dialogue | None = None

    @property
    def flow(self) -> Flow:
        """What is told of it; a long connection is told in parts."""
        return self.channel.flow

    async def serve(self) -> None:
        """Serve it to its end and tell of it. Never raises but for cancellation."""
        end = "closed"
        try:
            for _ in range(MOST_LAYERS):
                if not await self._layer():
                    break
        except Idle:
            end = "idle"
        except ssl.SSLError as error:
            self._tls_error(error)
            end = "reset"
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            end = "reset"
        except TimeoutError:
            self.flow.opaque = self.flow.opaque or "the TLS handshake did not end"
            end = "idle"
        except anyio.get_cancelled_exc_class():
            end = "stop"
            raise
        except Exception as error:  # one connection's oddity must cost no other one
            self.flow.opaque = self.flow.opaque or f"the fake server failed on it: {type(error).__name__}"
            end = "reset"
        finally:
            with anyio.CancelScope(shield=True):
                self.flow.application = self.flow.application or ("tls" if self.channel.tls else "stream")
                if self.flow.sent and not self.flow.parts and self.flow.outbound.size <= PART_HEAD:
                    self.flow.part("stream", "", b"".join(self.flow.outbound.parts))
                await self.world.finish(self.flow, end)
                await self.channel.aclose()

    async def _layer(self) -> bool:
        """One layer of the connection; True when there is another one inside."""
        channel, port = self.channel, self.place.port
        if self._dialogue is not None and not self._starts_tls(await channel.peek(3, HELLO_SECONDS)):
            return await self._lines(self._dialogue, greet=False)
        canned = self.world.canned.greeting(self.place.host, port)
        if canned is not None:
            await channel.send(canned)
        first = port in SERVER_FIRST or port in BANNERS
        data = await channel.peek(3, SERVER_FIRST_SECONDS if first else SILENT_SECONDS)
        if self._starts_tls(data):
            await self._tls()
            return True
        if not data and port in SERVER_FIRST:
            return await self._lines(SERVER_FIRST[port](self.place.host), greet=True)
        if not data and port in BANNERS:
            self.flow.application = "ssh" if port in (22, 2222) else "stream"
            if self.flow.application == "ssh":
                self.flow.opaque = "ssh encrypts what follows its key exchange"
            await channel.send(BANNERS[port])
            return await self._absorb()
        if not data:
            data = await channel.peek(3, 60.0)
            if self._starts_tls(data):
                await self._tls()
                return True
        if data.startswith(_H2_PREFACE[: len(data)]) and len(data) >= 3:
            self._spoken("h2")
            self.flow.opaque = "HTTP/2: told as it came, headers compressed"
            await channel.send(_H2_HELLO)
            return await self._absorb()
        if looks_like_http(data):
            return await self._http()
        if port in (53, 853, 5353) and len(data) >= 2:
            return await self._names()
        if data[:2] == b"\x05\x01" or data[:2] == b"\x05\x02":
            return await self._socks()
        if self.flow.decoy in ("loopback", "private", "host") and data:
            await channel.send(banner(self.world.decoys.get(self.flow.decoy, "")))
        return await self._absorb()

    @staticmethod
    def _starts_tls(data: bytes) -> bool:
        return hello.looks_like_tls(data)

    def _spoken(self, application: str) -> None:
        if not self.flow.application or self.flow.application in ("tls", "stream"):
            self.flow.application = application

    async def _tls(self) -> None:
        """Take TLS off; what the client said in its first message is told."""
        flow, message = self.flow, None
        flow.application = flow.application or "tls"
        size = 6
        with anyio.move_on_after(HELLO_SECONDS):
            while message is None:
                data = await self.channel.peek(size, HELLO_SECONDS)
                try:
                    message = hello.handshake_bytes(data)
                except ValueError:
                    break
                if len(data) < size:
                    break
                size = len(data) + 1
        if message is not None:
            try:
                said = hello.parse(message)
            except ValueError:
                pass
            else:
                flow.sni, flow.alpn, flow.ja4 = said.sni, said.alpn, said.ja4()
                flow.part("client-hello", f"{said.sni or self.place.host} {','.join(said.alpn)} {flow.ja4}", message)
                if said.sni:
                    self.place.host = said.sni
        elif not hello_could_follow(data):
            raise ssl.SSLError("the handshake is none")
        try:
            context = self.world.authority.context(self.place.host)
        except (ssl.SSLError, ValueError, UnicodeError):
            context = self.world.authority.context("localhost")
        await self.channel.start_tls(context)

    def _tls_error(self, error: ssl.SSLError) -> None:
        reason = str(error.reason or error).replace("_", " ").lower()
        flow = self.flow
        flow.application = flow.application or "tls"
        if any(word.replace("_", " ") in reason for word in _REFUSALS):
            flow.certificate_refused = True
            flow.opaque = "the client refused our certificate"
        elif not self.channel.tls:
            flow.opaque = f"the TLS handshake failed: {reason[:100]}"

    async def _http(self) -> bool:
        self._spoken("https" if self.channel.tls else "http")
        exchange = Exchange(self.world, self.channel, self.place)
        follows = await exchange.serve()
        if follows == "websocket":
            self.flow.application = "websocket"
            await websocket.serve(self.world, self.channel)
        elif follows == "tunnel":
            self.place = exchange.place
            self.flow.names = tuple(dict.fromkeys((*self.flow.names, self.place.host)))
            return True
        return False

    async def _lines(self, dialogue: Dialogue, *, greet: bool) -> bool:
        self._spoken(dialogue.name)
        self._dialogue = dialogue
        return await converse(self.channel, dialogue, greet=greet) == "tls"

    async def _names(self) -> bool:
        self._spoken("dot" if self.channel.tls else "dns")
        held = b""
        while data := await self.channel.read():
            held += data
            while len(held) >= 2 and len(held) >= 2 + (size := int.from_bytes(held[:2], "big")):
                query, held = held[2 : 2 + size], held[2 + size :]
                found = dns.answer(query, self.world.names)
                for asked in found.asked:
                    self.flow.part("dns-question", asked, query)
                if found.wire:
                    await self.channel.send(len(found.wire).to_bytes(2, "big") + found.wire)
        return False

    async def _socks(self) -> bool:
        """SOCKS 5 without authentication (RFC 1928): whatever is asked for is granted."""
        greeting = await self.channel.peek(2, HELLO_SECONDS)
        await self.channel.peek(2 + greeting[1], HELLO_SECONDS)
        data = await self.channel.read()
        self.channel.put_back(data[2 + greeting[1] :])
        await self.channel.send(b"\x05\x00")
        head = await self.channel.peek(5, HELLO_SECONDS)
        if len(head) < 5:
            return await self._absorb()
        length = {1: 4, 4: 16}.get(head[3], 1 + head[4])
        request = await self.channel.peek(4 + length + 2, HELLO_SECONDS)
        taken = await self.channel.read()
        self.channel.put_back(taken[4 + length + 2 :])
        if head[3] == 3:
            host = request[5 : 5 + head[4]].decode("utf-8", "backslashreplace")
        else:
            family = socket.AF_INET if head[3] == 1 else socket.AF_INET6
            host = socket.inet_ntop(family, request[4 : 4 + length])
        self.place = Place(host, int.from_bytes(request[4 + length : 6 + length], "big"))
        self.flow.names = tuple(dict.fromkeys((*self.flow.names, host)))
        self.flow.part("stream", f"SOCKS to {host}:{self.place.port}", request)
        await self.channel.send(b"\x05\x00\x00\x01" + bytes(6))
        return True

    async def _absorb(self) -> bool:
        self._spoken("stream")
        while await self.channel.read():
            pass
        return False


def hello_could_follow(data: bytes) -> bool:
    """Whether an unfinished ClientHello may still be one, so that the TLS library is to judge."""
    return len(data) < hello.MOST_BYTES
