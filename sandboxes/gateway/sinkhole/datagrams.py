"""UDP, and all that is neither TCP nor UDP: joined per flow, told when nothing more comes, answered where it is DNS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio

from sinkhole import dns, quic
from sinkhole.flows import Flow, end_text
from sinkhole.packets import ICMP, ICMP6, TCP, UDP, Packet
from sinkhole.world import World

#: A resolver's exchange is over sooner than another.
ANSWERED_SECONDS, IDLE_SECONDS, SWEEP_SECONDS = 0.4, 5.0, 0.2
MOST_LIVE = 4096
#: Parts of one flow that show single datagrams; what follows is in the stream.
MOST_SHOWN = 64
_NAME_PORTS = (53, 5353, 5355)
#: What the kernel sends by itself: answers and neighbour discovery (RFC 792, RFC 4443, RFC 4861).
_KERNEL_ICMP, _KERNEL_ICMP6 = (0, 3), (1, 3, 129, *range(130, 138), 143)

#: Sends a datagram: from, to, payload.
Sender = Callable[[tuple[str, int], tuple[str, int], bytes], None]


@dataclass
class _Live:
    flow: Flow
    touched: float
    patience: float


class Datagrams:
    """All datagram flows of a run. `refusing`: nothing is answered, and TCP attempts come here too."""

    def __init__(self, world: World, send: Sender) -> None:
        self.refusing = False
        self._world, self._send = world, send
        self._live: dict[tuple[str, str, str], _Live] = {}

    async def packet(self, packet: Packet) -> None:
        """Take one packet from the packet socket."""
        kind = packet.payload[:1]
        if packet.protocol == ICMP and kind and kind[0] in _KERNEL_ICMP:
            return
        if packet.protocol == ICMP6 and kind and kind[0] in _KERNEL_ICMP6:
            return
        if packet.protocol == UDP:
            await self.datagram((packet.source, packet.source_port), (packet.destination, packet.port), packet.payload)
            return
        if packet.protocol == TCP:
            ends = (end_text(packet.source, packet.source_port), end_text(packet.destination, packet.port))
        else:
            ends = (packet.source, packet.destination)
        live = await self._of(packet.name, *ends, packet.destination)
        live.flow.packets += 1
        if packet.protocol == TCP:
            live.flow.application = "stream"
            return
        self._take(live, packet.payload, packet.name)

    async def datagram(self, source: tuple[str, int], destination: tuple[str, int], data: bytes) -> None:
        """Take one UDP datagram of the target."""
        ends = (end_text(*source), end_text(*destination))
        if ("udp", ends[1], ends[0]) in self._live:
            return  # our own answer, seen on its way back
        live = await self._of("udp", *ends, destination[0])
        flow = live.flow
        flow.packets += 1
        if destination[1] in _NAME_PORTS:
            found = dns.answer(data, self._world.names, limit=1232)
            if found.asked:
                flow.application = "dns"
                flow.sends(data)
                for asked in found.asked:
                    flow.part("dns-question", asked, data)
                if found.wire and not self.refusing and flow.decoy != "multicast":
                    live.patience = ANSWERED_SECONDS
                    flow.gets(found.wire)
                    self._send(destination, source, found.wire)
                return
        if quic.looks_like_initial(data):
            said = quic.client_hello(data)
            flow.application = "quic"
            flow.opaque = flow.opaque or "QUIC encrypts its payload"
            if said is not None and not flow.sni:
                hello, message = said
                flow.sni, flow.alpn, flow.ja4 = hello.sni, hello.alpn, hello.ja4("q")
                flow.part("client-hello", f"{hello.sni} {','.join(hello.alpn)} {flow.ja4}", message)
        self._take(live, data, "datagram")

    def _take(self, live: _Live, data: bytes, application: str) -> None:
        flow = live.flow
        flow.application = flow.application or application
        flow.sends(data)
        if flow.packets <= MOST_SHOWN:
            flow.part("datagram", "", data)
        elif flow.packets == MOST_SHOWN + 1:
            flow.parts_cut += 1

    async def _of(self, protocol: str, local: str, remote: str, address: str) -> _Live:
        key, now = (protocol, local, remote), anyio.current_time()
        live = self._live.get(key)
        if live is None:
            if len(self._live) >= MOST_LIVE:
                oldest = next(iter(self._live))
                await self._world.finish(self._live.pop(oldest).flow, "limit")
            live = self._live[key] = _Live(self._world.flow(protocol, local, remote, address), now, IDLE_SECONDS)
        live.touched = now
        return live

    async def sweep(self) -> None:
        """Tell of flows that have become quiet, for ever."""
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            now = anyio.current_time()
            for key, live in list(self._live.items()):
                if now - live.touched > live.patience and self._live.pop(key, None) is not None:
                    await self._world.finish(live.flow, "refused" if self.refusing else "idle")

    async def finish(self) -> None:
        """Tell of all that are left."""
        while self._live:
            _, live = self._live.popitem()
            await self._world.finish(live.flow, "refused" if self.refusing else "stop")
