"""A Debian root file system from a mirror, without a container registry: mmdebstrap does the work.

Runs as root, or as another user where that user may use subordinate ids.
"""

from __future__ import annotations

import os
import shutil
import signal
from asyncio.subprocess import DEVNULL
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream

from harness.model.errors import HarnessError
from harness.sandbox.apt_sources import acquire_settings, find_mirror
from harness.sandbox.image_overlay import EPOCH, finish_script
from harness.sandbox.image_spec import ImageSpec

Progress = Callable[[str], None]

#: The Debian packages that bootstrapping needs on this machine (uidmap only for a user who is not root).
REQUIRED_PACKAGES = ("mmdebstrap", "debian-archive-keyring", "uidmap")

TIMEOUT_SECONDS = 900.0
STOP_SECONDS = 20.0
_TAIL_LINES = 40


def missing_programs() -> tuple[str, ...]:
    """The programs that bootstrapping needs and that are not on this machine's PATH."""
    needed = ["mmdebstrap", "apt-get", "apt-config"] + ([] if os.geteuid() == 0 else ["newuidmap"])
    return tuple(name for name in needed if shutil.which(name) is None)


async def bootstrap(spec: ImageSpec, scratch: Path, progress: Progress) -> Path:
    """Make the root of `spec` as a tar archive in `scratch` and return its path.

    Raises HarnessError when a program is missing, no mirror is known, or mmdebstrap fails (its last words are in it).
    """
    missing = missing_programs()
    if missing:
        raise HarnessError(
            f"sandbox images can't be made: {', '.join(missing)} not found",
            remedy=f"run `harness doctor --fix`, or apt-get install {' '.join(REQUIRED_PACKAGES)}, "
            "or pull with HARNESS_IMAGE_SOURCE=pull",
        )
    sources = scratch / f"{spec.name}.sources"
    finish = scratch / f"{spec.name}.sh"
    output = scratch / f"{spec.name}.tar"
    await anyio.Path(sources).write_text(find_mirror().sources(spec.suite))
    await anyio.Path(finish).write_text(finish_script(spec))
    settings = acquire_settings((await anyio.run_process(["apt-config", "dump"])).stdout.decode(errors="replace"))
    argv = [
        "mmdebstrap",
        f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
        "--variant=minbase",
        "--format=tar",
        f"--include={','.join(spec.packages)}",
        *(f"--aptopt={setting.rstrip(';')}" for setting in settings),
        f'--customize-hook=sh "{finish}" "$1"',
        spec.suite,
        str(output),
        str(sources),
    ]
    await _run(argv, spec.name, progress)
    return output


async def _run(argv: Sequence[str], name: str, progress: Progress) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), "LC_ALL": "C"}
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    # A session of its own: an interrupt at the keyboard reaches us first, and we end it in order.
    process = await anyio.open_process(argv, stdin=DEVNULL, stdout=DEVNULL, env=environment, start_new_session=True)
    try:
        with anyio.fail_after(TIMEOUT_SECONDS):
            assert process.stderr is not None
            rest = ""
            async for chunk in TextReceiveStream(process.stderr, errors="replace"):
                *lines, rest = (rest + chunk).split("\n")
                for line in lines:
                    tail.append(line.strip())
                    if line.startswith("I: ") and line.endswith("..."):
                        progress(f"{name}: {line[3:-3]}")
            await process.wait()
    except TimeoutError as error:
        message = f"mmdebstrap for {name} took longer than {TIMEOUT_SECONDS:.0f} s"
        raise HarnessError(message, remedy="check the mirror") from error
    finally:
        await _stop(process)
    if process.returncode != 0:
        complaints = [line for line in tail if line.startswith(("E:", "W:"))] or list(tail)[-3:]
        raise HarnessError(f"mmdebstrap for {name} failed: {' | '.join(complaints[-5:])}", remedy="check the mirror")


async def _stop(process: anyio.abc.Process) -> None:
    """End mmdebstrap and its children if they still run, giving it the time to unmount and remove its directory."""
    with anyio.CancelScope(shield=True):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.returncode is not None:
                break
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with anyio.move_on_after(STOP_SECONDS):
                await process.wait()
        await process.aclose()
