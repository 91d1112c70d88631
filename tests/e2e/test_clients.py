"""The clients that servers are written with, from the registry: each attempt leads to an event with its payload.

Where a body can't be read the event says so: the certificate was refused, or the handshake was broken off.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from harness.model.flow import FlowEvent
from harness.model.recording import GatewayEndEvent
from harness.pipeline.recorded import BundleRecording

pytestmark = [pytest.mark.docker, pytest.mark.registry]

SERVERS = Path(__file__).parents[1] / "servers"
#: Folder → attempt → host and what is told of it: the application, or why its payload can't be read.
CLIENTS = {
    "clients_python": {
        "urllib_request": ("urllib", "https"),
        "urllib3": ("urllib3", "https"),
        "requests": ("requests", "https"),
        "requests_pinned": ("pinned", "refused"),
        "httpx": ("httpx", "https"),
        "httpx_async": ("httpx-async", "https"),
        "aiohttp": ("aiohttp", "https"),
        "aiohttp_socket": ("aiohttp-ws", "websocket"),
        "libcurl": ("libcurl", "https"),
        "git": ("git", "https"),
        "openssl": ("openssl", "stream"),
    },
    "clients_node": {
        "fetch": ("fetch", "https"),
        "https": ("https", "https"),
        "http": ("http", "http"),
        "axios": ("axios", "https"),
        "undici": ("undici", "https"),
        "http2": ("http2", "h2"),  # spoken although ALPN does not offer it
        "h2c": ("h2c", "h2"),
        "ws": ("ws", "websocket"),
        "net": ("net", "stream"),
        "tls": ("tls", "stream"),
        "refused": ("refused", "handshake"),  # Node closes without an alert
    },
}


def payload(recording: BundleRecording, flow: FlowEvent) -> bytes:
    refs = [flow.outbound, *(part.content for part in flow.parts)]
    found = [b"".join(recording.chunks(ref.sha256)) for ref in refs if ref is not None]
    opened = [gzip.decompress(data) for data in found if data[:2] == b"\x1f\x8b"]
    return b"\n".join((*found, *opened, *(zlib.decompress(data) for data in found if data[:2] == b"\x78\x9c")))


@pytest.mark.parametrize("folder", CLIENTS)
def test_every_client_is_told_with_what_it_sent(folder: str, tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("harness"))
    fixed = ("--active", "none", "--no-stock-client", "--no-progress", "--recorder", "none", "--format", "json")
    argv = (program, "run", str(SERVERS / folder), "--network", "answer", *fixed, "--bundle", str(tmp_path / "b"))
    done = subprocess.run(argv, capture_output=True, timeout=300, check=False)
    recording = BundleRecording(tmp_path / "b", verify=False)
    events = list(recording.events())
    said = (tmp_path / "b" / "stderr.log").read_text(errors="replace")
    ends = [event for event in events if isinstance(event, GatewayEndEvent)]
    assert done.returncode in (0, 1, 3) and ends, (done.stdout, done.stderr, said)
    assert all(end.complete for end in ends), ends
    flows = [event for event in events if isinstance(event, FlowEvent) and event.application != "dns"]
    told: dict[str, str] = {}
    for name, (host, _) in CLIENTS[folder].items():
        mine = [flow for flow in flows if f"{host}.drop.com" in (*flow.names, flow.sni)]
        whole = [flow for flow in mine if f"marker-{name}-end".encode() in payload(recording, flow)]
        assert mine, f"nothing is told of {name}: {said}"
        told[name] = whole[0].application if whole else _why(mine)
    assert told == {name: what for name, (_, what) in CLIENTS[folder].items()}, said
    result = json.loads(done.stdout)
    assert result["recording"]["network"] == "answer"


def _why(flows: list[FlowEvent]) -> str:
    if any(flow.certificate_refused for flow in flows):
        return "refused"
    reason = next((flow.opaque for flow in flows if flow.opaque), f"nothing: {flows!r}")
    return "handshake" if reason.startswith("the TLS handshake failed") else reason
