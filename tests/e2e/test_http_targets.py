"""Servers that listen on a port, in the real sandbox: reached through the gateway, spoken to, probed, told apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from harness.model.call import Call, CallEvent
from harness.model.options import NetworkChoice
from harness.model.recording import FrameEvent, ImageFact
from harness.pipeline.recorded import BundleRecording
from harness.sandbox.base import LaunchSpec
from harness.sandbox.capture import check_capture
from harness.sandbox.docker import docker_sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.images import ensure_image
from harness.sandbox.lease import StateDirectory

pytestmark = pytest.mark.docker

HARNESS = Path(sys.executable).with_name("harness")
SERVERS = Path(__file__).parents[1] / "servers"
ECHO = """
import socket, threading, time
time.sleep(0.5)
def serve(family, host, port):
    with socket.create_server((host, port), family=family) as listener:
        while True:
            made, _ = listener.accept()
            with made:
                while data := made.recv(65536):
                    made.sendall(data)
threading.Thread(target=serve, args=(socket.AF_INET6, "::", 8001), daemon=True).start()
threading.Thread(target=serve, args=(socket.AF_INET, "127.0.0.1", 8002), daemon=True).start()
try:
    socket.create_connection(("127.0.0.1", 8002)).close()
except OSError:
    pass
time.sleep(600)
"""
BIG = bytes(range(256)) * 16_384


@pytest.mark.anyio
async def test_bytes_reach_what_listens_inside_and_are_no_egress(tmp_path: Path) -> None:
    async with Engine() as engine:

        async def images(name: str) -> ImageFact:
            return await ensure_image(engine, name, lambda _: None)

        spec = LaunchSpec(image="python313", volume=None, argv=("python3", "-c", ECHO), network=NetworkChoice.ANSWER)
        seen: list[Any] = []
        async with (
            docker_sandbox(engine, "relay", images, state=StateDirectory(tmp_path / "state")) as sandbox,
            sandbox.launch(spec) as process,
            anyio.create_task_group() as tasks,
        ):
            network = process.network
            assert network is not None

            async def read() -> None:
                async for flow in network.flows():
                    seen.append(flow.event)

            tasks.start_soon(read)
            with anyio.fail_after(60):
                for port in (8001, 8002):
                    while True:
                        try:
                            stream = await network.connect(port)
                            break
                        except ConnectionRefusedError:
                            await anyio.sleep(0.1)
                    assert await _echoed(stream) == BIG
                with pytest.raises(ConnectionRefusedError):
                    await network.connect(8003)
                await process.stop(0.1)
                with pytest.raises(ConnectionRefusedError):
                    await network.connect(8001)
                ended = await network.stop(tmp_path / "pcap")
            assert not ended.early and ended.packets and len(network.relayed) == 2
            check = await check_capture(tmp_path / "pcap", set(network.relayed))
            assert check is not None and check.unmatched == () and check.local <= 1  # its own connection to itself
            assert seen == []


async def _echoed(stream: anyio.abc.ByteStream) -> bytes:
    got = b""

    async def write() -> None:
        await stream.send(BIG)
        await stream.send_eof()

    async with stream, anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        async for piece in stream:
            got += piece
    return got


def run(folder: Path, server: str, mode: str, *options: str) -> dict[str, Any]:
    """A run of a sample over HTTP; its result."""
    files = [word for name in ("honest_http.py", "faulty_http.py") for word in ("--file", f"{SERVERS / name}:{name}")]
    words = [str(HARNESS), "run", "--transport", "http", "--port", "8000", *options, *files, "--no-progress"]
    words += ["--format", "json", "--bundle", str(folder / f"{server}-{mode}")]
    if server == "honest_http":
        command = [str(SERVERS / f"{server}.py"), "--arg=--port", "--arg=8000", f"--arg={mode}"]
    else:  # it has a part of its own beside it
        command = ["--", "python3", f"{{workspace}}/{server}.py", "--port", "8000", mode]
    done = subprocess.run([*words, *command], capture_output=True, text=True, check=False, timeout=280)
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout))


def rules(result: dict[str, Any], *, above: tuple[str, ...] = ("LOW", "MEDIUM", "HIGH", "CRITICAL")) -> set[str]:
    return {finding["rule_id"] for finding in result["findings"] if finding["severity"] in above}


def test_a_server_in_order_is_probed_over_http_and_nothing_is_said_of_it(tmp_path: Path) -> None:
    result = run(tmp_path, "honest_http", "sse")
    assert result["verdict"] == "SAFE" and result["target"]["transport"] == "http"
    assert [tool["name"] for tool in result["surface"]["tools"]] == ["add"]
    assert rules(result) == set()
    assert result["behavior"]["stock_client"]["works"] is True, result["behavior"]["stock_client"]
    assert not [row for row in result["behavior"]["egress"] if ":" in row["destination"] and "127.0.0.1" in str(row)]
    recording = BundleRecording(tmp_path / "honest_http-sse")
    replies = {event.probed.probe: event.probed.reply for event in recording.events() if event.kind == "probe-end"}
    statuses = {name: reply.status for name, reply in replies.items() if reply is not None}
    assert statuses["H01"] == 403 and statuses["H02"] == 421 and statuses["H05"] == 400
    assert statuses["H06"] == 404 and statuses["H13"] == 404
    frames = [event for event in recording.events() if isinstance(event, FrameEvent)]
    assert any(b"notifications/message" in frame.raw for frame in frames if frame.direction == "received")


def test_a_server_that_answers_whoever_asks_is_found(tmp_path: Path) -> None:
    result = run(tmp_path, "faulty_http", "open")
    told = {finding["rule_id"]: finding for finding in result["findings"]}
    words = json.dumps([finding["evidence"] for finding in result["findings"]])
    assert all(name in words for name in ("H01", "H02", "H06")), sorted(told)
    assert "access.rebinding" in rules(result, above=("MEDIUM",))
    assert "access.authentication" in rules(result, above=("HIGH",))  # a session that it never gave out


def headed(folder: Path, mode: str) -> dict[str, Any]:
    """A run of the sample that reads headers, with its tools called; its result."""
    words = [str(HARNESS), "run", str(SERVERS / "headers_http.py"), f"--arg={mode}", "--arg={workspace}"]
    words += ["--arg=--auth-token={canary}", "--transport", "http", "--port", "8000", "--active", "tool-calls"]
    words += ["--allow", "*", "--no-progress", "--format", "json", "--bundle", str(folder / mode)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=290)
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout))


def test_what_headers_of_requests_can_do_is_found_and_proven(tmp_path: Path) -> None:
    result = headed(tmp_path, "faulty")
    found = {(f["rule_id"], f["location"].get("field")): f["evidence_level"] for f in result["findings"]}
    assert found["ssrf.internal", "X-Acme-Site-Url"] == "CONFIRMED", found
    assert found["traversal.read", "X-Acme-File"] == "CONFIRMED", found
    assert found["access.rebinding", "Host"] == found["access.authentication", "Authorization"] == "PROTOCOL"
    assert found["access.rebinding", None] == found["access.authentication", None] == "PROTOCOL"
    assert result["behavior"]["stock_client"]["works"] is True, result["behavior"]["stock_client"]
    again = subprocess.run(
        [str(HARNESS), "reproduce", str(tmp_path / "faulty"), "--cases", str(tmp_path / "cases")],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert again.returncode == 1, again.stdout + again.stderr


def test_a_server_that_checks_its_headers_is_tried_in_the_same_way_and_is_in_order(tmp_path: Path) -> None:
    result = headed(tmp_path, "benign")
    assert (result["verdict"], rules(result)) == ("SAFE", set()), result["headline"]
    tried = {(call.argument, call.payload_class) for call in _calls(tmp_path / "benign") if call.place == "header"}
    assert {name for name, _ in tried} == {"X-Acme-Site-Url", "X-Acme-File", "Host", "Authorization"}


def _calls(bundle: Path) -> list[Call]:
    return [event.call for event in BundleRecording(bundle).events() if isinstance(event, CallEvent)]


@pytest.mark.parametrize(
    ("server", "mode", "said"),
    [("honest_http", "older", ""), ("faulty_http", "deaf", "no answer"), ("faulty_http", "flood", "limit")],
)
def test_older_and_hostile_servers_end_in_a_result(tmp_path: Path, server: str, mode: str, said: str) -> None:
    options = ("--active", "none", "--start-timeout", "6", "--recorder", "none")
    result = run(tmp_path, server, mode, *options)
    if not said:
        assert [tool["name"] for tool in result["surface"]["tools"]] == ["add"]
    else:
        assert result["verdict"] == "UNKNOWN" and result["surface"]["tools"] == []
        assert said in json.dumps(result["coverage"]) + json.dumps(result["warnings"])
