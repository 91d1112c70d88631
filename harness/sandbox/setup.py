"""Puts a Docker engine on a machine without one: `harness doctor --fix`.

As root on Debian and its kin: the distribution's packages, then the daemon, through systemd or by itself. Elsewhere
it says what is missing and how to get it. An engine that answers is never touched.
"""

from __future__ import annotations

import os
import platform
import shutil
from asyncio.subprocess import DEVNULL
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import psutil

from harness.model.errors import EngineError
from harness.sandbox.engine import DEFAULT_HOST, Engine

#: What is needed, and the program that shows that it is there. An engine from elsewhere is not replaced.
PACKAGES = {"docker.io": "dockerd", "iptables": "iptables", "mmdebstrap": "mmdebstrap"}
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends")
#: It took 0.6 s where it was measured; a first start on a slow disk takes longer.
START_SECONDS = 60.0
APT_SECONDS = 600.0
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Places:
    """Where things are on this machine; the defaults are Docker's own and the distribution's."""

    host: str = field(default_factory=lambda: os.environ.get("DOCKER_HOST", DEFAULT_HOST))
    pid_file: Path = Path("/var/run/docker.pid")
    log_file: Path = Path("/var/log/dockerd.log")
    os_release: Path = Path("/etc/os-release")
    systemd: Path = Path("/run/systemd/system")
    standard_host: str = DEFAULT_HOST


async def set_up_engine(progress: Callable[[str], None], places: Places | None = None) -> bool:
    """Make an engine answer; True when something had to be done for it.

    Raises `EngineError` that says what is missing where this can't be done from here.
    """
    where = places or Places()
    problem = await _problem(where.host)
    lacking = _lacking()
    if problem is None:
        if "mmdebstrap" not in lacking or not _may_install(where):
            return False
        await _install(("mmdebstrap",), progress)
        return True
    if where.host != where.standard_host or platform.system() != "Linux" or "permission" in problem.message:
        raise problem  # it isn't ours to start
    if lacking and _may_install(where):
        await _install(lacking, progress)
    if shutil.which("dockerd") is None:
        raise EngineError("there is no Docker engine on this machine", remedy=_how_to_install(where))
    if os.geteuid() != 0:
        raise EngineError("the Docker engine does not run", remedy="start it as root: `systemctl start docker`")
    if await _problem(where.host) is not None:  # the package may have started it
        progress("starting the Docker engine")
        await _start(where)
    await _until_it_answers(where)
    return True


async def _problem(host: str) -> EngineError | None:
    try:
        async with Engine(host):
            return None
    except EngineError as error:
        return error


def is_debian(os_release: str) -> bool:
    """Does the text of an os-release file name Debian or one of its kin (man os-release, ID and ID_LIKE)?"""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split()
    return bool({"debian", "ubuntu"} & set(names))


def _may_install(places: Places) -> bool:
    return os.geteuid() == 0 and _on_debian(places) and shutil.which("apt-get") is not None


def _on_debian(places: Places) -> bool:
    try:
        return is_debian(places.os_release.read_text())
    except OSError:
        return False


def _how_to_install(places: Places) -> str:
    if _on_debian(places):
        return f"as root: {' '.join((*INSTALL, *PACKAGES))}, then `harness doctor --fix`"
    return "install Docker Engine 20.10 or newer (https://docs.docker.com/engine/install/) and start it"


def _lacking() -> tuple[str, ...]:
    """The packages to install: all that are missing, but no iptables for an engine that came without ours."""
    missing = tuple(package for package, program in PACKAGES.items() if shutil.which(program) is None)
    return missing if "docker.io" in missing else tuple(package for package in missing if package != "iptables")


async def _install(packages: tuple[str, ...], progress: Callable[[str], None]) -> None:
    """Install packages; with a fresh package list if the one at hand is too old."""
    progress(f"installing {', '.join(packages)} from the distribution's packages")
    install = (*INSTALL, *packages)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    output = b""
    try:
        with anyio.fail_after(APT_SECONDS):
            for command in (install, ("apt-get", "update"), install):
                done = await anyio.run_process(command, check=False, env=environment)
                if command is install and done.returncode == 0:
                    return
                output = done.stderr or done.stdout
    except TimeoutError:
        output = b"it took too long"
    lines = output.decode("utf-8", "replace").strip().splitlines()
    raise EngineError(
        f"installing {', '.join(packages)} failed: {lines[-1] if lines else 'no reason given'}",
        remedy=f"try it by hand: {' '.join(install)}",
    )


async def _start(places: Places) -> None:
    if places.systemd.is_dir():
        done = await anyio.run_process(["systemctl", "start", "docker"], check=False)
        if done.returncode != 0:
            raise EngineError("systemd could not start Docker", remedy="see `journalctl -u docker`")
        return
    if await anyio.to_thread.run_sync(remove_stale_pid_file, places.pid_file):
        # setsid --fork: the daemon must outlive this process and its terminal.
        log = await anyio.to_thread.run_sync(_open_log, places.log_file)
        try:
            command = ["setsid", "--fork", "dockerd"]
            await anyio.run_process(command, stdin=DEVNULL, stdout=log, stderr=log, check=False)
        except OSError as error:
            raise EngineError(f"the Docker engine could not be started: {error}", remedy="start dockerd") from error
        finally:
            os.close(log)


def _open_log(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def remove_stale_pid_file(path: Path) -> bool:
    """Remove the pid file that an engine left when it died hard; False when its process is alive. Blocking.

    A pid is soon some other process's: only a `dockerd` counts.
    """
    try:
        pid = int(path.read_text().strip() or 0)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        pid = 0
    try:
        if pid > 0 and psutil.Process(pid).name() == "dockerd":
            return False
    except psutil.NoSuchProcess:
        pass
    except psutil.AccessDenied:
        return False
    path.unlink(missing_ok=True)
    return True


async def _until_it_answers(places: Places) -> None:
    with anyio.move_on_after(START_SECONDS):
        while await _problem(places.host) is not None:  # noqa: ASYNC110 - the engine is another process
            await anyio.sleep(POLL_SECONDS)
        return
    raise EngineError(
        f"the Docker engine was started and does not answer: {await anyio.to_thread.run_sync(_last_line, places)}",
        remedy=f"see {places.log_file}",
    )


def _last_line(places: Places) -> str:
    try:
        return places.log_file.read_text(errors="replace").strip().splitlines()[-1][:300]
    except (OSError, IndexError):
        return "it left no log"
