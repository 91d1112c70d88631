"""A run that gets to a given point, says so, and hangs there until it is killed: `dying_run.py STATE POINT`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
from sandbox_providers import docker_provider, python

from harness.model.options import Limits
from harness.model.target import InstallPlan
from harness.sandbox import gated, warden
from harness.sandbox.base import LaunchSpec

#: Ignores the end of its stdin and whatever can be ignored, and has a child that left its session.
STUBBORN = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(1)
    os._exit(0)
os.write(1, b"up\\n")
while True:
    time.sleep(1)
"""


async def reached(*_: Any, **__: Any) -> None:
    sys.stdout.write("reached\n")
    sys.stdout.flush()
    await anyio.sleep_forever()


async def main(state: Path, point: str) -> None:
    if point == "created":  # both containers exist, neither was started
        warden.Warden.run = lambda _: anyio.sleep_forever()  # type: ignore[assignment,method-assign]
        warden.Warden.started = reached  # type: ignore[method-assign]
    if point == "watched":  # the warden runs, the target was not started
        warden.Warden.started = reached  # type: ignore[method-assign]
    if point == "gate":
        gated.Gated.open_gate = reached  # type: ignore[method-assign]
    async with docker_provider(state) as sandbox:
        spec = python(STUBBORN)
        if point in ("install", "launch"):
            steps = (("python3", "-c", STUBBORN),) if point == "install" else (("true",),)
            plan = InstallPlan(image=spec.image, steps=steps, closure_digest=point)
            async with anyio.create_task_group() as tasks:
                if point == "install":
                    tasks.start_soon(_say_when_running, state)
                made = await sandbox.install(plan, timeout=120, limits=Limits())
            spec = LaunchSpec(**{**dict(spec), "volume": getattr(made, "volume", None)})
        async with sandbox.launch(spec) as process:
            await process.stdout.receive()
            await reached()


async def _say_when_running(state: Path) -> None:
    from sandbox_providers import running

    while not [name for name in await running(state) if name.endswith("-install")]:
        await anyio.sleep(0.1)
    await anyio.sleep(0.5)
    await reached()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
