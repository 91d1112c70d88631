"""Wheels that sandbox images are made of (uv, Node), fetched with the pip of this installation and its configuration.

Only wheels are accepted and no dependency is followed, so nothing of what is fetched runs here. Their authors are those
of the tools that every image holds: trusted as the distribution's packages are.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import anyio

from harness.model.base import sha256_hex
from harness.model.errors import RegistryError

#: Newest first; 2.28 is older than the C library of any image.
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")

TIMEOUT_SECONDS = 300.0


async def fetch_wheel(requirement: str, folder: Path) -> Path:
    """Fetch the newest wheel that satisfies `requirement` for Linux on this machine's architecture into `folder`.

    The index's answer is resolved to one version and SHA-256 first, the download must match it.
    Raises RegistryError when the index can't be reached, has no such wheel, or sends something else.
    """
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    common = ["--only-binary=:all:", "--no-deps", "--implementation=cp", "--python-version=3.11", "--quiet"]
    common += [f"--platform={name}_{machine}" for name in _PLATFORMS]
    dry = ["--dry-run", "--ignore-installed", f"--target={folder / 'none'}", "--report=-"]
    report = await _pip(requirement, "install", *dry, *common, requirement)
    try:
        (item,) = json.loads(report)["install"]
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise RegistryError(
            f"pip's report on {requirement} can't be used", remedy="upgrade harness' own pip"
        ) from error
    pinned = folder / f"{name}-{version}.txt"
    await anyio.Path(pinned).write_text(f"{name}=={version} --hash=sha256:{digest}\n")
    into = folder / f"{name}-{version}"
    await _pip(requirement, "download", "--require-hashes", f"--dest={into}", *common, f"--requirement={pinned}")
    wheels = [path async for path in anyio.Path(into).glob("*.whl")]
    if len(wheels) != 1 or sha256_hex(await wheels[0].read_bytes()) != digest:
        message = f"what was downloaded for {requirement} is not what the index announced"
        raise RegistryError(message, remedy="try again")
    return Path(wheels[0])


async def _pip(requirement: str, command: str, *arguments: str) -> bytes:
    argv = [sys.executable, "-m", "pip", command, "--disable-pip-version-check", "--no-input", *arguments]
    try:
        with anyio.fail_after(TIMEOUT_SECONDS):
            done = await anyio.run_process(argv, check=False)
    except TimeoutError as error:
        message = f"{requirement} did not arrive in {TIMEOUT_SECONDS:.0f} s"
        raise RegistryError(message, remedy="check the package index") from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["pip gave no reason"]
        raise RegistryError(f"{requirement} can't be fetched: {lines[-1]}", remedy="check the package index")
    return done.stdout
