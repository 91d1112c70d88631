"""Is this machine ready: what `harness doctor` lists about engine, kernel, limits, space and tools.

Images are listed by `harness.sandbox.images`; here is what they and the runs stand on.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import anyio.to_thread

from harness.model.base import Record
from harness.model.errors import EngineError
from harness.sandbox.engine import SET_UP, Engine

BTF = Path("/sys/kernel/btf/vmlinux")
#: All images take about 2.5 GB, and installed targets come on top.
DISK_BYTES = 5 << 30
LIMITS = {"MemoryLimit": "memory", "SwapLimit": "swap", "PidsLimit": "processes", "CpuCfsQuota": "processors"}
#: With `--pid container:` shared and known to work.
SHARED_PID_RUNTIMES = frozenset({"runc", "crun", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux"})


class Check(Record):
    """One row. `required` ones must be `ok` before anything can run; `remedy` says what to do when it is not."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True


async def checks(host: str | None = None) -> tuple[Check, ...]:
    """Look at this machine and at the engine at `host` (default: where runs would look). Raises nothing of its own."""
    try:
        async with Engine(host) as engine:
            facts = await engine.facts()
    except EngineError as error:
        rows = [Check(name="engine", ok=False, detail=error.message, remedy=error.remedy or SET_UP)]
        return (*rows, await anyio.to_thread.run_sync(_disk, "/"), _btf(), await anyio.to_thread.run_sync(_bootstrap))
    return (
        Check(name="engine", ok=True, detail=f"Docker {facts['version']}, API {facts['api']}, {facts['os']}"),
        _kernel(facts),
        _isolation(facts),
        _limits(facts),
        _runtimes(facts),
        await anyio.to_thread.run_sync(_disk, facts["root"]),
        _btf(),
        await anyio.to_thread.run_sync(_bootstrap),
    )


def _kernel(facts: dict[str, str]) -> Check:
    detail = f"{facts['kernel']}, {facts['arch']}"
    known = facts["arch"] in ("x86_64", "amd64", "aarch64", "arm64")
    return Check(name="kernel", ok=known, detail=detail, remedy="" if known else "use an x86-64 or arm64 machine")


def _isolation(facts: dict[str, str]) -> Check:
    ok = "name=seccomp" in facts["security"]
    return Check(
        name="seccomp",
        ok=ok,
        detail=facts["security"] or "no security options",
        remedy="" if ok else "use a kernel and an engine with seccomp: without it system calls can't be narrowed",
    )


def _limits(facts: dict[str, str]) -> Check:
    have = set(facts["limits"].split(","))
    missing = [text for name, text in LIMITS.items() if name not in have]
    detail = f"cgroup v{facts['cgroup_version']}, {facts['cgroup_driver']}"
    if missing:
        detail += f"; can't bound {', '.join(missing)}"
    remedy = "boot with `cgroup_enable=memory swapaccount=1`, or delegate cgroup controllers to a rootless engine"
    # Without swap accounting there is still the memory bound, so that alone stops nothing.
    return Check(
        name="limits", ok=not missing, detail=detail, remedy=remedy if missing else "", required=missing != ["swap"]
    )


def _runtimes(facts: dict[str, str]) -> Check:
    names = [name for name in facts["runtimes"].split(",") if name]
    default = facts["default_runtime"]
    ok = default in SHARED_PID_RUNTIMES
    return Check(
        name="runtimes",
        ok=ok,
        detail=f"{', '.join(names)}; default {default}",
        remedy="" if ok else "choose one that shares pid namespaces, with `--runtime runc`",
        required=False,
    )


def _disk(root: str) -> Check:
    """Free space where the engine keeps its data; elsewhere when that place can't be looked at (a remote engine)."""
    place = Path(root or "/")
    free = None
    for candidate in (place, *place.parents):
        try:
            free = shutil.disk_usage(candidate).free
            break
        except OSError:
            continue
    if free is None:
        return Check(name="disk", ok=True, detail="can't be looked at from here", required=False)
    ok = free >= DISK_BYTES
    return Check(
        name="disk",
        ok=ok,
        detail=f"{free / 1e9:.1f} GB free at {place}",
        remedy="" if ok else "free some space, or run `harness clean --cache`",
    )


def _btf() -> Check:
    if platform.system() != "Linux":
        return Check(name="btf", ok=False, detail="not on this system; the engine's own may have it", required=False)
    ok = BTF.exists()
    return Check(
        name="btf",
        ok=ok,
        detail="type information of the kernel is there" if ok else f"{BTF} is missing",
        remedy="" if ok else "use a kernel with CONFIG_DEBUG_INFO_BTF, for recording system calls with eBPF",
        required=False,
    )


def _bootstrap() -> Check:
    found = shutil.which("mmdebstrap")
    return Check(
        name="mmdebstrap",
        ok=found is not None,
        detail=found or "not installed",
        remedy="" if found else "apt-get install mmdebstrap, or let images be made from debian:*-slim",
        required=False,
    )
