"""Runs the check of a packet capture against the flows that were told, in a process of its own."""

from __future__ import annotations

import subprocess  # noqa: TID251 - constants only
import sys
from collections.abc import Iterable
from pathlib import Path

import anyio
from pydantic import ValidationError

from harness.sandbox.capture_check import FLOWS, CaptureCheck, Key
from harness.sandbox.hardening import OWN_ADDRESS, OWN_ADDRESS_6

CHECK_SECONDS = 90.0
_OWN = (OWN_ADDRESS, OWN_ADDRESS_6, "127.0.0.1", "::1")


async def check_capture(capture: Path, told: Iterable[Key]) -> CaptureCheck | None:
    """Compare a capture with the flows that were told (protocol, local, remote); None when it could not be read."""
    command = [sys.executable, "-m", "harness.sandbox.capture_check", str(capture), *_OWN]
    try:
        with anyio.fail_after(CHECK_SECONDS):
            done = await anyio.run_process(
                command, input=FLOWS.dump_json(list(told)), check=False, stderr=subprocess.DEVNULL
            )
        return CaptureCheck.model_validate_json(done.stdout) if done.returncode == 0 else None
    except (TimeoutError, ValidationError, OSError):
        return None
