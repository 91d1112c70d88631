"""Fetching locked wheels as plain files, and reading the little of them that acquisition needs."""

from __future__ import annotations

import configparser
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread
from packaging.utils import canonicalize_name, parse_wheel_filename

from harness.acquisition.archive import read_zip_member, zip_names
from harness.acquisition.limits import FILE_BYTES, TEXT_BYTES
from harness.acquisition.python.download import Download, Order
from harness.acquisition.python.resolve import LockedWheel
from harness.acquisition.python.settings import IndexSettings
from harness.acquisition.store import Store
from harness.acquisition.tools import run_tool, summary
from harness.model.base import Record
from harness.model.errors import RegistryError
from harness.model.target import Artifact


class WheelFacts(Record):
    """What a wheel says about starting it: console scripts by name, and the modules that run with `-m`."""

    scripts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


async def fetch_wheels(
    store: Store, settings: IndexSettings, wheels: Sequence[LockedWheel], python: str
) -> tuple[Artifact, ...]:
    """Bring the wheels into the store and describe them. What is stored already is not fetched again.

    pip fetches them by address and SHA-256 with `--no-deps`: it reads no dependency and builds nothing.
    Raises RegistryError when a file can't be fetched, or is not the one that was locked.
    """
    missing = [wheel for wheel in wheels if store.linked("sha256", wheel.sha256) is None]
    if missing:
        with store.work() as work:
            lines = [f"{wheel.name} @ {wheel.url.split('#')[0]} --hash=sha256:{wheel.sha256}" for wheel in missing]
            (work / "requirements.txt").write_text("\n".join(lines) + "\n")
            arguments = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-index"]
            arguments += ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--dest", str(work / "wheels")]
            arguments += ["--requirement", str(work / "requirements.txt"), *_platform_arguments(missing, python)]
            result = await run_tool(arguments, environment=settings.pip_environment(), cwd=work)
            if result.code != 0:
                raise RegistryError(
                    f"a package file could not be fetched: {summary(result.error)}",
                    remedy="check the network, and proxy and certificates in pip's configuration",
                )
            await anyio.to_thread.run_sync(_take, store, missing, work / "wheels")
    return tuple(_artifact(store, wheel) for wheel in wheels)


async def fetch_packages(
    store: Store, settings: IndexSettings, files: Sequence[LockedWheel], python: str
) -> tuple[Artifact, ...]:
    """The same for a closure that holds sdists too, which are fetched as plain files."""
    await fetch_sdists(store, settings, [file for file in files if file.sdist])
    await fetch_wheels(store, settings, [file for file in files if not file.sdist], python)
    return tuple(_artifact(store, file) for file in files)


async def fetch_sdists(store: Store, settings: IndexSettings, sdists: Sequence[LockedWheel]) -> None:
    """Bring sdists into the store, unopened. Raises RegistryError."""
    missing = [sdist for sdist in sdists if store.linked("sha256", sdist.sha256) is None]
    if not missing:
        return
    with store.work() as work:
        (work / "sdists").mkdir()
        order = Order(
            files=tuple(
                Download(url=sdist.url, sha256=sdist.sha256, path=str(work / "sdists" / sdist.filename))
                for sdist in missing
            ),
            index_urls=tuple(url for url in (settings.index, *settings.extra) if url),
            trusted_hosts=settings.trusted_hosts,
            certificates=settings.certificates,
            client_certificate=settings.client_certificate,
            limit=FILE_BYTES,
            timeout=settings.timeout or 30,
        )
        result = await run_tool(
            [sys.executable, "-I", "-m", "harness.acquisition.python.download"],
            environment=settings.pip_environment(),
            cwd=work,
            stdin=order.model_dump_json().encode(),
        )
        if result.code != 0:
            raise RegistryError(
                f"a package file could not be fetched: {summary(result.error)}",
                remedy="check the network, and proxy and certificates in pip's configuration",
            )
        await anyio.to_thread.run_sync(_take, store, missing, work / "sdists")


def _take(store: Store, wheels: Sequence[LockedWheel], folder: Path) -> None:
    for wheel in wheels:
        path = folder / wheel.filename
        if not path.is_file():
            raise RegistryError(f"the index did not deliver {wheel.filename}")
        sha256, size = store.add(path)
        if sha256 != wheel.sha256:
            raise RegistryError(f"the index delivered another {wheel.filename} than it announced")
        store.link("sha256", sha256, sha256, size)


def wheel_facts(path: Path, filename: str) -> WheelFacts:
    """Read the console scripts and runnable packages of a stored wheel. Raises TargetError for a damaged one."""
    names = zip_names(path)
    package = parse_wheel_filename(filename)[0]
    scripts: list[str] = []
    for name in names:
        folder, _, member = name.partition("/")
        if member == "entry_points.txt" and _belongs(folder, package):
            scripts = console_scripts(read_zip_member(path, name, TEXT_BYTES) or b"")
    modules = [name.removesuffix("/__main__.py").replace("/", ".") for name in names if name.endswith("/__main__.py")]
    return WheelFacts(scripts=tuple(scripts), modules=tuple(sorted(modules, key=lambda m: (m.count("."), m))))


def _artifact(store: Store, wheel: LockedWheel) -> Artifact:
    found = store.linked("sha256", wheel.sha256)
    assert found is not None
    return Artifact(name=wheel.name, version=wheel.version, filename=wheel.filename, sha256=wheel.sha256, size=found[1])


def _platform_arguments(wheels: Sequence[LockedWheel], python: str) -> list[str]:
    """Tell pip to take the very wheels that were locked, whatever this machine is."""
    abis, platforms = {"none", "abi3"}, set()
    for wheel in wheels:
        for tag in parse_wheel_filename(wheel.filename)[3]:
            abis.add(tag.abi)
            platforms.add(tag.platform)
    arguments = ["--implementation", "cp", "--python-version", python]
    arguments += [word for abi in sorted(abis) for word in ("--abi", abi)]
    return arguments + [word for platform in sorted(platforms) for word in ("--platform", platform)]


def _belongs(folder: str, package: str) -> bool:
    stem = folder.removesuffix(".dist-info")
    return stem != folder and canonicalize_name(stem.split("-")[0]) == package


def console_scripts(data: bytes) -> list[str]:
    """The names in the section `console_scripts` of an entry_points.txt that can be file names."""
    parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(data.decode("utf-8", "replace"))
        names = parser.options("console_scripts")
    except configparser.Error:
        return []
    return [name for name in names if name.isprintable() and "/" not in name and name not in ("", ".", "..")]
