"""A target with an interface of its own: it finds a home network and nothing of ours, and all that it sends is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_egress import living, sandbox  # noqa: F401 - a fixture

from harness.analyzers.behavior.apart import LIFE
from harness.sandbox.capture import check_capture
from harness.sandbox.docker import DockerSandbox

pytestmark = [pytest.mark.anyio, pytest.mark.docker]

LOOKS = """
import json, os, socket, ssl, urllib.request
def tried(what):
    try:
        return what() or "done"
    except OSError as error:
        return type(error).__name__
def table(name):
    return [line.split() for line in open("/proc/net/" + name).read().splitlines()[1:]]
def udp(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"marker-udp%d-end" % family, address)
def own():
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    client.sendall(b"mine")
    return listener.accept()[0].recv(9).decode()
def hijack():
    socket.create_server(("1.1.1.1", 443))
before = {name: table(name) for name in ("tcp", "tcp6", "udp", "udp6", "packet", "raw", "unix", "route", "dev")}
listeners = sum(len(before[name]) for name in ("tcp", "tcp6", "udp", "udp6", "packet", "raw", "unix"))
print(json.dumps({
    "sockets": listeners,
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "own address": socket.gethostbyname(socket.gethostname()),
    "default": [row[2] for row in before["route"] if row[1] == "00000000"],
    "resolver": open("/etc/resolv.conf").read().split(),
    "https": tried(lambda: len(urllib.request.urlopen("https://api.drop.com/v1", b"marker-https-end").read())),
    "six": tried(lambda: socket.create_connection(("2606:4700::1111", 4444), 5).sendall(b"marker-six-end")),
    "udp": [tried(lambda: udp(socket.AF_INET, ("9.9.9.9", 7777))),
            tried(lambda: udp(socket.AF_INET6, ("2001:4860::1", 7777))),
            tried(lambda: udp(socket.AF_INET, ("239.1.2.3", 1900)))],
    "metadata": tried(lambda: urllib.request.urlopen("http://169.254.169.254/latest/", timeout=5)),
    "private": tried(lambda: urllib.request.urlopen("http://192.168.1.77:8080/", timeout=5).read().decode()),
    "closed": tried(lambda: socket.create_connection(("127.0.0.1", 9999), 5)),
    "own": tried(own),
    "hijack": tried(hijack),
    "raw": tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    "router": tried(lambda: socket.create_connection(("192.168.1.1", 21000), 5).sendall(b"marker-router-end")),
}))
"""


async def test_it_finds_a_home_network_and_nothing_of_ours(sandbox: DockerSandbox, tmp_path: Path) -> None:  # noqa: F811
    async with living(sandbox, tmp_path / "pcap", LOOKS, stealth=True) as life:
        pass
    seen = json.loads(life.output)
    print(seen, life.end)
    assert seen["sockets"] == 0 and seen["interfaces"] == ["eth0", "lo"] and seen["own address"] == "192.168.1.24"
    assert seen["default"] == ["0101A8C0"] and "192.168.1.1" in seen["resolver"]
    assert seen["udp"] == ["done"] * 3 and seen["six"] == "done" and seen["own"] == "mine"
    assert seen["closed"] == "ConnectionRefusedError" and seen["hijack"] == "OSError"
    assert seen["raw"] == "PermissionError" and "decoy-private" in seen["private"]
    told = {name: [flow for flow in life.flows if f"marker-{name}-end".encode() in life.payload(flow)]
            for name in ("https", "six", "udp2", "udp10", "router")}  # fmt: skip
    assert all(told.values()), told
    assert told["https"][0].names == ("api.drop.com",) and told["https"][0].local.startswith("192.168.1.24:")
    assert {flow.remote for flow in told["udp2"]} == {"9.9.9.9:7777", "239.1.2.3:1900"}
    assert any(flow.decoy == "metadata" for flow in life.flows)
    assert life.end.complete and not life.end.capture_dropped
    checked = await check_capture(tmp_path / "pcap", [(flow.protocol, flow.local, flow.remote) for flow in life.flows])
    assert checked is not None and checked.unmatched == () and checked.packets == life.end.packets


@pytest.mark.parametrize("mode", ["shy", "shy-benign"])
def test_who_looked_around_lives_once_more_and_is_told_by_what_it_does_there(mode: str, tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("harness"))
    server = Path(__file__).parents[1] / "servers" / "shy.py"
    fixed = ("--active", "none", "--no-stock-client", "--no-progress", "--format", "json", "--recorder", "ebpf")
    argv = (
        program,
        "run",
        str(server),
        f"--arg={mode}",
        "--network",
        "answer",
        *fixed,
        "--bundle",
        str(tmp_path / "b"),
    )
    done = subprocess.run(argv, capture_output=True, timeout=300, check=False)
    result = json.loads(done.stdout)
    found = [f for f in result["findings"] if f["rule_id"] == "behavior.evasion.otherwise-unwatched"]
    texts = " ".join(part["text"] for finding in found for part in finding["evidence"])
    assert len(found) == (2 if mode == "shy" else 0), (texts, done.stderr)
    if mode == "shy":
        assert "drop.collector-service.net" in texts and "/id" in texts
    assert [a["status"] for a in result["analyzers"] if a["name"] == "behavior.evasion"] == ["COMPLETED"]
    sessions = [json.loads(line).get("session") for line in (tmp_path / "b" / "plan.jsonl").read_text().splitlines()]
    assert LIFE in sessions
