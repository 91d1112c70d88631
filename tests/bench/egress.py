"""What the fake internet costs: ready gateways, whole runs, bodies absorbed, packets kept, many gateways at once."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from harness.model.options import NetworkChoice
from harness.sandbox.base import LaunchSpec
from harness.sandbox.containers import doomed
from harness.sandbox.docker import DockerSandbox
from harness.sandbox.gateway import GATEWAY_IMAGE, start_gateway
from harness.sandbox.hardening import gateway_config
from harness.sandbox.provider import open_sandbox

Row = tuple[str, str, bool]

READY_SECONDS = 0.6
ADDED_SECONDS = 0.45
ABSORBED_MB_S = 40
TOGETHER = 30
MEMORY_MB = 40
#: A body of 256 MB over TLS; the seconds are printed.
POST = """
import socket, ssl, time
raw = socket.create_connection(("up.vendor.com", 443))
stream = ssl.create_default_context().wrap_socket(raw, server_hostname="up.vendor.com")
block = bytes(1 << 20)
began = time.perf_counter()
stream.sendall(b"POST / HTTP/1.1\\r\\nHost: up.vendor.com\\r\\nContent-Length: %d\\r\\n\\r\\n" % (256 << 20))
for _ in range(256):
    stream.sendall(block)
stream.recv(100)
print(time.perf_counter() - began, flush=True)
"""


async def _absorbed() -> Row:
    spec = LaunchSpec(image="python313", volume=None, argv=("python3", "-c", POST), network=NetworkChoice.ANSWER)
    with tempfile.TemporaryDirectory() as folder:
        async with open_sandbox("bench", lambda text: None) as sandbox, sandbox.launch(spec) as process:
            network = process.network
            assert network is not None

            async def read() -> None:
                async for _ in network.flows():
                    pass

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                seconds = float(await process.stdout.receive())
                await process.wait()
                end = await network.stop(Path(folder) / "packets")
    rate = 256 / seconds
    what = f"{rate:.0f} MB/s over TLS, bound {ABSORBED_MB_S}; {end.capture_dropped} of {end.packets} packets dropped"
    return "gateway: body absorbed", what, rate >= ABSORBED_MB_S and not end.capture_dropped


async def _gateways() -> list[Row]:
    async with open_sandbox("bench", lambda text: None) as sandbox:
        assert isinstance(sandbox, DockerSandbox)
        shop, engine = sandbox._shop, sandbox._shop.engine
        config = gateway_config(image=(await sandbox._image(GATEWAY_IMAGE)).id, labels=shop.labels("gateway"))
        took = []
        for _ in range(7):
            async with doomed(engine) as collected, anyio.create_task_group() as tasks:
                began = time.perf_counter()
                gateway = start_gateway(engine, tasks, collected, shop.name("gateway"), config)
                await gateway.ready()
                took.append(time.perf_counter() - began)
                gateway.close()
        async with doomed(engine) as collected, anyio.create_task_group() as tasks:
            many = [start_gateway(engine, tasks, collected, shop.name("gateway"), config) for _ in range(TOGETHER)]
            for gateway in many:
                await gateway.ready()
            used = []
            for gateway in many:
                stats = await engine.ask(engine.api.stats, gateway.container, stream=False, one_shot=True)
                used.append(stats["memory_stats"]["usage"] / (1 << 20))
            for gateway in many:
                gateway.close()
    median = statistics.median(took)
    return [
        ("gateway: ready", f"{median:.2f} s, bound {READY_SECONDS} s", median <= READY_SECONDS),
        (
            f"gateway: {TOGETHER} at once",
            f"{sum(used):.0f} MB, bound {TOGETHER * MEMORY_MB} MB",
            sum(used) <= TOGETHER * MEMORY_MB,
        ),
    ]


def _whole(target: str, repetitions: int) -> Row:
    """`harness run` with and without, in turn."""
    took: dict[str, list[float]] = {"answer": [], "none": []}
    program = [sys.executable, "-m", "harness.cli.entry", "run", "--no-progress", "--no-stock-client", target]
    program[1:3] = ["-c", "from harness.cli.entry import main; main()"]
    for _ in range(repetitions + 1):
        for network, seconds in took.items():
            began = time.perf_counter()
            subprocess.run([*program, "--network", network], check=False, capture_output=True)
            seconds.append(time.perf_counter() - began)
    added = statistics.median(took["answer"][1:]) - statistics.median(took["none"][1:])
    return f"{target}: a run with egress capture", f"{added:+.2f} s, bound {ADDED_SECONDS} s", added <= ADDED_SECONDS


def rows(targets: tuple[str, ...], repetitions: int) -> list[Row]:
    """All of them."""
    return [*anyio.run(_gateways), anyio.run(_absorbed), *(_whole(target, repetitions) for target in targets)]


if __name__ == "__main__":
    for what, measured, good in rows(("pypi:mcp-server-time",), 5):
        print(f"{'ok  ' if good else 'OVER'}  {what}: {measured}")
