"""The gateway in its container: started, told how to answer, listened to, and asked at the end what it saw.

It is the only thing in the target's network namespace, and it is spoken to over stdin and stdout only. When it is gone,
nothing answers and nothing gets out; the record then says that it ended early.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import anyio.lowlevel

from harness.model.base import Record
from harness.model.errors import EngineError, HarnessError
from harness.model.flow import GatewayEndEvent
from harness.model.network import CannedAnswer
from harness.model.recording import Phase
from harness.model.world import PlantedHost
from harness.sandbox.base import HOME, LaunchSpec
from harness.sandbox.containers import Doomed, background, remove_container
from harness.sandbox.engine import Engine
from harness.sandbox.gateway_frames import FrameReader, Message, SeenFlow, encode, flow_of
from harness.sandbox.relay import Relay
from harness.sandbox.streams import ContainerStreams, attach

GATEWAY_IMAGE = "gateway"
READY_SECONDS = 30.0
ANSWER_SECONDS = 15.0
#: Connections that are still open, the datagrams, and a full capture.
STOP_SECONDS = 30.0
STDERR_BYTES = 8192
#: How many flows are held for a slow reader before the gateway is made to wait.
HELD_FLOWS = 64

#: Where the run's authority lies in the target's HOME, and the variables by which clients find it.
TRUST_FILE = ".local/share/ca-certificates/ca-bundle.crt"
TRUST = dict.fromkeys(
    ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"),
    f"{HOME}/{TRUST_FILE}",
)


class GatewayUnavailable(EngineError):
    """This kernel or engine does not let a gateway work; the message says why."""


class GatewaySetup(Record):
    """How one gateway is to answer. `seed`: 64 hex digits, from which the authority's key is made.

    `decoys`: what stands at addresses inside, by kind (metadata, loopback, private, host, link-local). `hosts` and
    `answers` are pages that must be there. `missing`: names that must not exist.
    """

    seed: str
    mode: str = "answer"
    decoys: dict[str, str] = {}
    hosts: tuple[PlantedHost, ...] = ()
    answers: tuple[CannedAnswer, ...] = ()
    missing: tuple[str, ...] = ()

    def message(self) -> Message:
        """As the gateway wants it."""
        canned = [*(_answer(answer) for answer in self.answers), *_pages(self.hosts)]
        said = {"seed": self.seed, "mode": self.mode, "decoys": self.decoys, "missing": list(self.missing)}
        return {"do": "configure", **said, "canned": canned}


class Gateway:
    """One gateway, made by `start_gateway`. Its container is removed by whoever collects it.

    `flows` must be read for the gateway to go on; it ends after the last flow.
    """

    def __init__(self, engine: Engine, collected: Doomed, name: str, config: dict[str, Any]) -> None:
        self.name = name
        self.container = ""
        self.ended = anyio.Event()
        self._engine, self._collected, self._config = engine, collected, config
        self._streams: ContainerStreams | None = None
        self._started, self._ready, self._configured = anyio.Event(), anyio.Event(), anyio.Event()
        self._error: EngineError | None = None
        self._trust = b""
        self._session, self._phase, self._epoch = "main", str(Phase.START), 0
        self._mode, self._mechanism = "answer", "tproxy"
        self._stopping = False
        self._end: Message | None = None
        self._damaged = self._told = 0
        self._capture: IO[bytes] | None = None
        self._out, self._in = anyio.create_memory_object_stream[SeenFlow](HELD_FLOWS)
        self._relay = Relay(self._tell)
        self._telling = anyio.Lock()

    @property
    def usable(self) -> bool:
        """It may still be taken by a launch."""
        return not self.ended.is_set()

    async def started(self) -> None:
        """Return when the container runs, so that others can join its network namespace. Raises `EngineError`."""
        await self._await(self._started, READY_SECONDS)

    async def joinable(self, _container: str) -> None:
        """The same, for what waits with a container that is to join."""
        await self.started()

    async def ready(self) -> None:
        """Return when it listens and has given up its privileges. Raises `GatewayUnavailable`, `EngineError`."""
        await self._await(self._ready, READY_SECONDS)

    async def configure(self, setup: GatewaySetup, *, session: str = "main", epoch: int = 0) -> bytes:
        """Say how to answer; returns the authority's certificate (PEM). Call it once, after `ready`.

        The flows carry `session`, and times in nanoseconds since `epoch`. Raises `EngineError`.
        """
        self._session, self._epoch, self._mode = session, epoch, setup.mode
        await self._tell(setup.message())
        await self._await(self._configured, ANSWER_SECONDS)
        return self._trust

    async def flows(self) -> AsyncIterator[SeenFlow]:
        """The flows in the order in which they ended, until the gateway does; for one reader."""
        with suppress(anyio.ClosedResourceError):
            async for flow in self._in:
                yield flow

    async def connect(self, port: int) -> anyio.abc.ByteStream:
        """A connection to what the target serves on a TCP port of its loopback; ends with the gateway.

        Raises `ConnectionRefusedError` when nobody listens there, `EngineError` when the gateway is gone.
        """
        return await self._relay.connect(port)

    @property
    def relayed(self) -> set[tuple[str, str, str]]:
        """Protocol, local and remote end of each connection made by `connect`: ours, and nobody's egress."""
        return self._relay.ends

    async def stop(self, capture: Path | None = None) -> GatewayEndEvent:
        """Have it tell of what is still open and finish; the packets go into the new file `capture`.

        Somebody must read `flows` meanwhile. Never raises for a gateway that is gone: the answer says so.
        """
        self._stopping = not self.ended.is_set()
        if capture is not None:
            self._capture = capture.open("xb")
        with suppress(EngineError):
            await self._tell({"do": "stop"})
        with anyio.move_on_after(STOP_SECONDS):
            await self.ended.wait()
        if self._capture is not None:
            self._capture.close()
            self._capture = None
        return self.outcome()

    def outcome(self) -> GatewayEndEvent:
        """What is known about what it saw; whole only after `stop`."""
        end = self._end or {}
        captured = end.get("capture")
        said: Message = captured if isinstance(captured, dict) else {}
        lost = {"damaged": self._damaged, "untold": _number(end, "untold")}
        lost["capture"] = 0 if said or self._end is None else 1  # the capturing process is gone
        lost["stream"] = max(0, _number(end, "flows") - self._told - self._damaged)
        early = not self._stopping or self._end is None
        return GatewayEndEvent(
            phase=Phase.STOP,
            session=self._session,
            early=early,
            reason=str(self._error or "the gateway is gone") if early else "stopped",
            mode=self._mode,
            mechanism=self._mechanism,
            flows=self._told,
            lost={name: number for name, number in lost.items() if number},
            packets=_number(said, "packets"),
            captured_bytes=_number(said, "bytes"),
            capture_dropped=_number(said, "dropped"),
            capture_skipped=_number(said, "skipped"),
        )

    def close(self) -> None:
        """Hang up: the gateway ends, and what was not read of its flows is thrown away."""
        if self._streams is not None:
            self._streams.close()
        self._in.close()
        self._out.close()

    async def run(self) -> None:
        """Make and start the container and listen to it until it ends; errors are kept for those who wait."""
        try:
            self._streams = streams = await self._start()
            self._started.set()
            async with background() as tasks:
                tasks.start_soon(streams.pump)
                await self._listen(streams)
                if not self._stopping or self._end is None:
                    self._error = EngineError(await _last_words(streams))
        except HarnessError as error:
            self._error = error if isinstance(error, EngineError) else EngineError(error.message, remedy=error.remedy)
        finally:
            if self._streams is not None:
                self._streams.close()
            self._relay.end()
            self._out.close()
            self.ended.set()

    async def _start(self) -> ContainerStreams:
        try:
            return await self._create(self._config)
        except EngineError as error:
            if "ipv6" not in error.message:
                raise
        # An engine without IPv6: what there is not can't be used to get out either.
        await remove_container(self._engine, self.name)
        host = {name: value for name, value in self._config["HostConfig"].items() if name != "Sysctls"}
        return await self._create({**self._config, "HostConfig": host})

    async def _create(self, config: dict[str, Any]) -> ContainerStreams:
        self.container = await self._collected.create(self.name, config)
        streams = await attach(self._engine, self.container, STDERR_BYTES)
        try:
            await self._engine.call(self._engine.api.start, self.container)
        except EngineError:
            streams.close()
            raise
        return streams

    async def _listen(self, streams: ContainerStreams) -> None:
        reader = FrameReader()
        with suppress(anyio.EndOfStream):
            while self._end is None:
                for message, body in reader.feed(await streams.stdout.receive()):
                    await self._frame(message, body)
                await anyio.lowlevel.checkpoint()

    async def _frame(self, message: Message, body: bytes) -> None:
        match message.get("kind"):
            case "flow":
                seen = flow_of(message, body, session=self._session, phase=self._phase, epoch=self._epoch)
                if seen is None:
                    self._damaged += 1
                    return
                self._told += 1
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads any more
                    await self._out.send(seen)
            case "capture":
                if self._capture is not None:
                    self._capture.write(body)
            case "ready":
                self._mechanism = str(message.get("mechanism", ""))[:20]
                self._ready.set()
            case "configured":
                self._trust = body
                self._configured.set()
            case "failed":
                raise GatewayUnavailable(
                    f"the gateway can't work here: {str(message.get('reason', ''))[:300]}",
                    remedy="use --network none, and know less",
                )
            case "end":
                self._end = message
            case "opened" | "refused" | "data" | "more" | "closed":
                self._relay.hear(message, body)
            case _:
                self._damaged += 1

    async def _tell(self, message: Message, body: bytes = b"") -> None:
        try:
            if self._streams is None:
                raise self._error or EngineError("the gateway was not started")
            async with self._telling:
                # Half a frame would spoil all that follow: whoever is cancelled meanwhile waits for its end.
                with anyio.fail_after(ANSWER_SECONDS, shield=True):
                    await self._streams.stdin.send(encode(message, body))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError):
            raise self._error or EngineError("the gateway does not listen") from None

    async def _await(self, event: anyio.Event, seconds: float) -> None:
        async def until_ended() -> None:
            await self.ended.wait()
            tasks.cancel_scope.cancel()

        with anyio.move_on_after(seconds):
            async with background() as tasks:
                tasks.start_soon(until_ended)
                await event.wait()
        if not event.is_set():
            raise self._error or EngineError(
                "the gateway did not answer in time", remedy="the machine may be overloaded; try again"
            )


async def enter_world(gateway: Gateway, spec: LaunchSpec) -> bytes:
    """Have a gateway answer as a launch wants it; returns the certificate to trust. Raises `EngineError`."""
    await gateway.ready()
    setup = GatewaySetup(
        seed=spec.authority or secrets.token_hex(32),
        mode=spec.network,
        decoys=spec.decoys,
        hosts=spec.hosts,
        answers=spec.answers,
    )
    return await gateway.configure(setup, session=spec.session, epoch=spec.epoch)


def start_gateway(
    engine: Engine, tasks: anyio.abc.TaskGroup, collected: Doomed, name: str, config: dict[str, Any]
) -> Gateway:
    """Begin to make and start a gateway in `tasks`; wait for `ready` before relying on it."""
    gateway = Gateway(engine, collected, name, config)
    tasks.start_soon(gateway.run)
    return gateway


async def _last_words(streams: ContainerStreams) -> str:
    words = b""
    with anyio.move_on_after(1), suppress(anyio.EndOfStream, anyio.ClosedResourceError):
        while True:
            words = (words + await streams.stderr.receive())[-400:]
    text = " ".join(words.decode("utf-8", "replace").split())
    return f"the gateway ended early: {text or 'it said nothing'}"


def _number(message: Message, name: str) -> int:
    value = message.get(name, 0)
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else 0


def _answer(answer: CannedAnswer) -> Message:
    body = answer.body if answer.encoded else base64.b64encode(answer.body.encode()).decode()
    greeting = base64.b64encode(answer.greeting.encode()).decode()
    kept = answer.model_dump(exclude={"body", "encoded", "greeting", "headers"})
    return {**kept, "headers": list(answer.headers.items()), "body": body, "greeting": greeting}


def _pages(hosts: Iterable[PlantedHost]) -> list[Message]:
    """The rules by which planted pages and redirects are there."""
    rules: list[Message] = []
    for host in hosts:
        parts = urlsplit(host.url)
        name, _, port = host.address.rpartition(":")
        place: Message = {"host": name.strip("[]"), "port": int(port), "path": parts.path or "/"}
        if host.redirect:
            rules.append({**place, "status": 302, "headers": [["location", host.redirect]]})
        elif host.secret:
            page = f"status: active\naccount: {host.secret}\n"
            rules.append({**place, "body": base64.b64encode(page.encode()).decode()})
    return rules
