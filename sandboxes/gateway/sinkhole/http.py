"""HTTP/1.1 as a server: every request is told with headers and body, and gets a plausible answer."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import parse_qs, urlsplit

import anyio
import h11

from sinkhole import dns, websocket
from sinkhole.channel import Channel
from sinkhole.decoys import decoy_page
from sinkhole.flows import Part
from sinkhole.pages import Page, Request, public_page
from sinkhole.place import Place
from sinkhole.world import World

#: Headers may carry a payload too.
MOST_HEADER_BYTES = 1 << 20
#: How much of a body the answer may look at.
LOOKED_AT = 64 << 10
#: How long a client may take for its next request before the exchange so far is told.
KEPT_OPEN_SECONDS = 0.3
_METHODS = (
    b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE ", b"PROPFIND ",
    b"REPORT ", b"SEARCH ", b"MKCOL ",
)  # fmt: skip


def looks_like_http(data: bytes) -> bool:
    """Whether a stream that begins so is HTTP/1."""
    return any(data.startswith(method) or (len(data) >= 3 and method.startswith(data)) for method in _METHODS)


class Exchange:
    """The requests of one connection, one after another. `place`: where it leads."""

    def __init__(self, world: World, channel: Channel, place: Place) -> None:
        self._world, self._channel = world, channel
        self.place = place
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADER_BYTES)

    async def serve(self) -> str:
        """Answer until the connection ends (""), or becomes something else: `tunnel` or `websocket`.

        What belongs to that is put back. Raises what the channel raises.
        """
        try:
            while True:
                event = await self._next()
                if not isinstance(event, h11.Request):
                    return ""
                follows = await self._one(event)
                if follows:
                    self._channel.put_back(self._connection.trailing_data[0])
                    return follows
                if self._connection.our_state is h11.MUST_CLOSE:
                    return ""
                self._connection.start_next_cycle()
                await self._between()
        except h11.RemoteProtocolError as error:
            await self._refuse(error)
            return ""

    async def _between(self) -> None:
        """A client that keeps its connection may be silent for long: what was exchanged is told before."""
        if self._connection.trailing_data[0]:
            return
        await self._channel.peek(1, KEPT_OPEN_SECONDS)
        if self._channel.waiting:
            await self._world.part_of(self._channel)

    async def _next(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self._connection.next_event()
            if isinstance(event, h11.Event) or event is h11.PAUSED:
                return event
            if self._connection.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._connection.receive_data(await self._channel.read())

    async def _send(self, *events: h11.Event) -> None:
        data = b"".join(self._connection.send(event) or b"" for event in events)
        if data:
            await self._channel.send(data)

    async def _one(self, event: h11.Request) -> str:
        flow = self._channel.flow
        headers: dict[str, str] = {}
        for name, value in event.headers:
            headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        method, target = event.method.decode("latin-1"), event.target.decode("latin-1")
        head = [f"{method} {target} HTTP/{event.http_version.decode()}".encode("latin-1")]
        head += [name + b": " + value for name, value in event.headers.raw_items()]
        flow.part("http-request", f"{method} {target}", b"\r\n".join(head) + b"\r\n\r\n")
        if method == "CONNECT":
            await self._send(h11.Response(status_code=200, headers=[]))
            self._target_of(target)
            return "tunnel"
        key = headers.get("sec-websocket-key")
        if key and headers.get("upgrade", "").lower() == "websocket":
            await self._send(h11.InformationalResponse(status_code=101, headers=websocket.upgrade(key, headers)))
            return "websocket"
        body, beginning = None, bytearray()
        while isinstance(piece := await self._next(), h11.Data):
            if body is None:
                body = flow.part("http-body", headers.get("content-type", ""), encoding=_coding(headers))
            assert body.content is not None
            body.content.add(bytes(piece.data))
            beginning += piece.data[: LOOKED_AT - len(beginning)]
        await self._answer(self._request(method, target, headers, bytes(beginning)), body)
        return ""

    def _request(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Request:
        host = headers.get("host", "")
        if "://" in target.partition("?")[0]:  # a client that takes us for its proxy
            parts = urlsplit(target)
            host, target = parts.netloc, parts._replace(scheme="", netloc="").geturl() or "/"
        name = host.rpartition("@")[2]
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        place = self.place
        return Request(
            method, target, name or place.host, place.port, self._channel.tls, headers, body, address=place.address
        )

    async def _answer(self, request: Request, body: Part | None) -> None:
        flow, world = self._channel.flow, self._world
        page = world.canned.page(request)
        if page is None:
            page = self._name_service(request)
        if page is None and flow.decoy:
            page = decoy_page(request, flow.decoy, world.decoys.get(flow.decoy, ""))
        if page is None:
            page = public_page(request)
        bodiless = page.status in (204, 304) or page.status < 200
        headers = [(name, value) for name, value in page.headers if name.lower() != "content-length"]
        if not bodiless:
            headers.append(("content-length", str(len(page.body))))
        events: list[h11.Event] = [h11.Response(status_code=page.status, headers=headers)]
        if page.body and request.method != "HEAD" and not bodiless:
            events.append(h11.Data(data=page.body))
        await self._send(*events, h11.EndOfMessage())

    def _name_service(self, request: Request) -> Page | None:
        """DNS over HTTPS (RFC 8484), and the JSON form that public resolvers have."""
        query = parse_qs(urlsplit(request.target).query)
        kind = "application/dns-message"
        if request.headers.get("content-type") == kind:
            wire = request.body
        elif "dns" in query:
            try:
                wire = base64.urlsafe_b64decode(query["dns"][0] + "==")
            except (binascii.Error, ValueError):
                return None
        else:
            return None
        found = dns.answer(wire, self._world.names)
        self._channel.flow.application = "doh"
        for asked in found.asked:
            self._channel.flow.part("dns-question", asked, wire)
        return Page(200, (("content-type", kind),), found.wire)

    def _target_of(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self.place = Place(host.strip("[]"), int(port) if port.isdigit() else self.place.port)

    async def _refuse(self, error: h11.RemoteProtocolError) -> None:
        """What is no HTTP after all is answered as servers do; the rest is read as it comes."""
        if self._connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            page = [("content-length", "0"), ("connection", "close")]
            await self._send(h11.Response(status_code=error.error_status_hint, headers=page), h11.EndOfMessage())
        with anyio.move_on_after(5):
            while await self._channel.read():
                pass


def _coding(headers: dict[str, str]) -> str:
    return headers.get("content-encoding", "").strip().lower()
