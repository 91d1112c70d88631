"""The fake internet in real containers: every way out leads to an event with its payload, and none leads out."""

from __future__ import annotations

import gzip
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import pytest

from harness.model.flow import FlowEvent, GatewayEndEvent
from harness.model.network import CannedAnswer
from harness.model.options import NetworkChoice
from harness.model.recording import ImageFact
from harness.sandbox import docker as docker_module
from harness.sandbox.base import LaunchSpec, SandboxedProcess
from harness.sandbox.capture import check_capture
from harness.sandbox.docker import DockerSandbox, docker_sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.hardening import gateway_config
from harness.sandbox.images import ensure_image
from harness.sandbox.lease import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.alone]

ATTEMPTS = (Path(__file__).parent.parent / "servers" / "egress_attempts.py").read_text()
DECOYS = {kind: f"decoy-{kind}" for kind in ("metadata", "host", "loopback", "link-local", "private")}


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[DockerSandbox]:
    async with Engine() as engine:

        async def images(name: str) -> ImageFact:
            return await ensure_image(engine, name, lambda _: None)

        async with docker_sandbox(engine, "egress", images, state=StateDirectory(tmp_path / "state")) as sandbox:
            yield sandbox


@dataclass
class Life:
    """What a target's life left: its flows, the bytes they point to, its output, and the gateway's last words."""

    process: SandboxedProcess
    flows: list[FlowEvent] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    output: bytes = b""
    end: GatewayEndEvent = field(default_factory=lambda: GatewayEndEvent(phase="stop"))

    def payload(self, flow: FlowEvent) -> bytes:
        refs = [flow.outbound, *(part.content for part in flow.parts)]
        data = b"\n".join(self.blobs[ref.sha256] for ref in refs if ref is not None)
        for part in flow.parts:
            if part.encoding == "gzip" and part.content is not None:
                data += gzip.decompress(self.blobs[part.content.sha256])
        return data


#: The full size, 10 GB and 50,000 connections, takes minutes: HARNESS_FLOODS=20.
FLOODS = int(os.environ.get("HARNESS_FLOODS", "1"))
MEGABYTES, CONNECTIONS = 600 * FLOODS, 2500 * FLOODS


@asynccontextmanager
async def living(sandbox: DockerSandbox, capture: Path, code: str, **fields: object) -> AsyncIterator[Life]:
    """Run Python code with a fake internet; everything is there after the body, which may do things meanwhile."""
    wanted = {"network": NetworkChoice.ANSWER, "decoys": DECOYS, "image": "python313", **fields}
    spec = LaunchSpec.model_validate({"volume": None, "argv": ("python3", "-c", code), **wanted})
    async with sandbox.launch(spec) as process, anyio.create_task_group() as tasks:
        life = Life(process)
        network = process.network
        assert network is not None

        async def read() -> None:
            async for seen in network.flows():
                life.flows.append(seen.event)
                life.blobs.update(seen.blobs)

        async def listen() -> None:
            try:
                while True:
                    life.output += await process.stdout.receive()
            except anyio.EndOfStream:
                pass

        tasks.start_soon(read)
        tasks.start_soon(listen)
        with anyio.fail_after(120 * FLOODS):
            yield life
            await process.wait()
            life.end = await network.stop(capture)


async def test_every_way_out_is_told_and_none_leads_out(sandbox: DockerSandbox, tmp_path: Path) -> None:
    wire = Wire()
    async with living(sandbox, tmp_path / "pcap", ATTEMPTS) as life:
        pass
    left = wire.close()
    lines = [line.split(" ", 1) for line in life.output.decode().splitlines()]
    assert len(lines) == ATTEMPTS.count("\n@way\n")
    assert [line for line in lines if line[1] != "ok"] == []
    names = [name for name, _ in lines]
    told = {name: [f for f in life.flows if f"marker-{name}-end".encode() in life.payload(f)] for name in names}
    assert [name for name, flows in told.items() if not flows] == []
    kinds = {name: flows[0].application for name, flows in told.items()}
    assert kinds["https_post"] == "https" and kinds["dns_dot"] == "dot" and kinds["dns_doh"] == "doh"
    assert kinds["websocket"] == "websocket" and kinds["smtp_starttls"] == "smtp" and kinds["http2_prior"] == "h2"
    (post,) = told["https_post"]
    assert post.sni == "api.drop.com" and post.names == ("api.drop.com",) and post.ja4.startswith("t13d")
    assert post.remote.endswith(":443") and re.match(r"192\.168\.1\.24:\d+$", post.local)
    (junk,) = told["junk_first"]
    assert junk.outbound is not None and junk.outbound.size > 20 << 20 and not junk.outbound.whole
    assert told["icmp"][0].protocol == "icmp" and told["raw_v6"][0].remote == "[2606:4700::1111]:4444"
    assert told["metadata"][0].decoy == "metadata" and told["multicast"][0].decoy == "multicast"
    assert life.end.complete and life.end.mechanism in ("tproxy", "redirect") and not life.end.capture_dropped
    keys = [(flow.protocol, flow.local, flow.remote) for flow in life.flows]
    checked = await check_capture(tmp_path / "pcap", keys)
    assert checked is not None and checked.unmatched == () and checked.packets == life.end.packets
    assert any("ICMP" in line for line in checked.dissected)
    missing = await check_capture(tmp_path / "pcap", [key for key in keys if key[1] != post.local])
    assert missing is not None and missing.unmatched == (f"tcp {post.local} to {post.remote}",)
    assert left == 0


class Wire:
    """Counts packets with a marker of ours on the machine's own interfaces; needs root, as the engine's set-up does."""

    def __init__(self) -> None:
        self._taps = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._taps.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
        self._taps.setblocking(False)

    def close(self) -> int:
        found = 0
        with self._taps:
            while True:
                try:
                    data, address = self._taps.recvfrom(65_536)
                except BlockingIOError:
                    return found
                found += address[0] != "lo" and b"marker-" in data


ISOLATED = """
import json, os, socket, urllib.request
def tried(what):
    try:
        return what() or "done"
    except OSError as error:
        return type(error).__name__
host = os.environ["HOST_PORT"]
def own():
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    client.sendall(b"mine")
    return listener.accept()[0].recv(9).decode()
def hijack():
    listener = socket.create_server(("1.1.1.1", 443))
    listener.settimeout(1)
    client = socket.create_connection(("1.1.1.1", 443))
    client.sendall(b"hijacked\\r\\n")
    return "hijacked" if listener.accept() else ""
print(json.dumps({
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "raw": tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)) ,
    "packet": tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)),
    "gateway port": tried(lambda: socket.create_server(("0.0.0.0", 21000))),
    "hijack": tried(hijack),
    "host": tried(lambda: urllib.request.urlopen(f"http://172.17.0.1:{host}/", timeout=5).read().decode()),
    "own": tried(own),
    "socket": os.path.exists("/var/run/docker.sock"),
    "canned": tried(lambda: urllib.request.urlopen("https://api.drop.com/tool").read().decode()),
    "uid of gateway": open("/proc/net/tcp").read().split("\\n")[1].split()[7],
}))
"""


async def test_from_inside_there_is_no_way_to_the_host_or_past_the_gateway(
    sandbox: DockerSandbox, tmp_path: Path
) -> None:
    import json

    answers = (CannedAnswer(host="api.drop.com", path="/tool", body='{"canned": 1}'),)
    with socket.create_server(("0.0.0.0", 0)) as listener:
        listener.setblocking(False)
        port = str(listener.getsockname()[1])
        fields = {"environment": {"HOST_PORT": port}, "answers": answers}
        async with living(sandbox, tmp_path / "pcap", ISOLATED, **fields) as life:
            pass
        with pytest.raises(BlockingIOError):
            listener.accept()
    seen = json.loads(life.output)
    assert seen["interfaces"] == ["lo"] and not seen["socket"] and seen["own"] == "mine"
    assert seen["raw"] == "PermissionError" and seen["packet"] == "PermissionError"
    assert seen["gateway port"] == "OSError" and seen["hijack"] == "TimeoutError"
    assert "decoy-host" in seen["host"] and seen["canned"] == '{"canned": 1}'
    assert any(flow.remote == "1.1.1.1:443" for flow in life.flows)


FLOOD = """
import os, socket, time
if os.environ["FLOOD"] == "bytes":
    with socket.create_connection(("flood.drop.com", 9)) as stream:
        block = bytes(1 << 20)
        for _ in range(int(os.environ["MEGABYTES"])):
            stream.sendall(block)
else:
    held = []
    for number in range(int(os.environ["CONNECTIONS"])):
        stream = socket.create_connection((f"1.2.3.{number % 7}", 80))
        stream.sendall(b"GET /")
        held.append(stream)
        if len(held) > 900:
            held.pop(0).close()
    slow = socket.create_connection(("1.2.3.4", 443))
    slow.sendall(b"\\x16\\x03\\x01\\x02\\x00\\x01")
    time.sleep(0.3)
print("done")
"""


@pytest.mark.parametrize("flood", ["bytes", "connections"])
async def test_floods_are_bounded_and_said(sandbox: DockerSandbox, tmp_path: Path, flood: str) -> None:
    sizes = {"MEGABYTES": str(MEGABYTES), "CONNECTIONS": str(CONNECTIONS)}
    async with living(sandbox, tmp_path / "pcap", FLOOD, environment={"FLOOD": flood, **sizes}) as life:
        pass
    assert life.output == b"done\n"
    assert not life.end.early and life.end.flows == len(life.flows)
    assert (tmp_path / "pcap").stat().st_size <= 96 << 20
    if flood == "bytes":
        (flow,) = [flow for flow in life.flows if flow.protocol == "tcp"]
        assert flow.sent == MEGABYTES << 20 and flow.outbound is not None and flow.outbound.kept <= 2 << 20
    else:
        assert life.end.flows + sum(life.end.lost.values()) == CONNECTIONS + 1
        assert life.end.complete is (CONNECTIONS < 20_000), "what is beyond the bound is said"


REFUSED = """
import socket
for what in (lambda: socket.create_connection(("45.33.32.156", 4444), 5),
             lambda: socket.create_connection(("127.0.0.1", 4445), 5),
             lambda: socket.getaddrinfo("marker.drop.com", 80)):
    try:
        what()
        print("reached")
    except OSError as error:
        print(type(error).__name__)
"""


async def test_refusing_is_recorded_too(sandbox: DockerSandbox, tmp_path: Path) -> None:
    async with living(sandbox, tmp_path / "pcap", REFUSED, network=NetworkChoice.REFUSE) as life:
        pass
    assert life.output.split() == [b"ConnectionRefusedError", b"ConnectionRefusedError", b"gaierror"]
    assert life.end.complete and life.end.mode == "refuse"
    ends = {flow.remote: flow.end for flow in life.flows}
    assert ends["45.33.32.156:4444"] == "refused" and ends["127.0.0.1:4445"] == "refused"
    assert any(part.text == "marker.drop.com A" for flow in life.flows for part in flow.parts)


DEAD = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
try:
    socket.create_connection(("1.2.3.4", 80), 5)
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""


async def test_a_dead_gateway_fails_closed_and_is_told(sandbox: DockerSandbox, tmp_path: Path) -> None:
    async with Engine() as engine, living(sandbox, tmp_path / "pcap", DEAD) as life:
        with anyio.fail_after(30):
            while b"ready" not in life.output:
                await anyio.sleep(0.01)
            network = life.process.network
            await engine.call(engine.api.kill, network.container)  # type: ignore[union-attr]
            await network.ended.wait()  # type: ignore[union-attr]
        await life.process.stdin.send(b"\n")
    assert b"reached" not in life.output
    assert life.end.early and not life.end.complete and "gateway" in life.end.reason


def test_this_runs_where_wires_can_be_watched() -> None:
    assert os.geteuid() == 0, "watching the machine's interfaces needs root"


FALLBACK = """
import socket, urllib.request
urllib.request.urlopen("https://api.drop.com/", b"marker-redirected-end", timeout=10).read()
socket.create_connection(("2606:4700::1111", 4444), 5).sendall(b"marker-six-end")
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"marker-datagram-end", ("9.9.9.9", 7777))
print("done")
"""


async def test_without_tproxy_everything_still_leads_here(
    sandbox: DockerSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_module, "gateway_config", partial(gateway_config, mechanism="redirect"))
    async with living(sandbox, tmp_path / "pcap", FALLBACK) as life:
        pass
    assert life.output == b"done\n" and life.end.mechanism == "redirect" and life.end.complete
    ends = {name: flow.remote for name in ("redirected", "six", "datagram") for flow in life.flows
            if f"marker-{name}-end".encode() in life.payload(flow)}  # fmt: skip
    assert ends["redirected"].endswith(":443") and not ends["redirected"].startswith("127.")
    assert ends["six"] == "[2606:4700::1111]:4444" and ends["datagram"] == "9.9.9.9:7777"
