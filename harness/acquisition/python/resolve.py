"""Resolving Python requirements to one wheel each, from metadata only.

uv does it with `--no-build`: sdists are no candidates, and a URL in the metadata of an index package ends the
resolution without a request for it (tests/e2e/test_acquisition_hostile.py holds it to that). What comes out is
a lock (PEP 751) with the address, size and SHA-256 of each wheel for the sandbox's platform.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from harness.acquisition.limits import CLOSURE_BYTES, CLOSURE_FILES
from harness.acquisition.python.settings import IndexSettings
from harness.acquisition.store import Store
from harness.acquisition.tools import ToolResult, run_tool, summary
from harness.model.base import Record
from harness.model.errors import RegistryError, TargetError, UsageError

#: The interpreters of the images, in the order in which they are tried, and the C library's minor version there
#: (Debian 12: 2.36; Debian 13: 2.41, of which uv knows up to 2.40).
PYTHONS = {"3.13": 40, "3.11": 36}


class LockedWheel(Record):
    """One wheel of a closure, as the index describes it. `uploaded`: when, where the index tells."""

    name: str
    version: str
    filename: str
    url: str
    sha256: str
    uploaded: datetime | None = None


class NoSolution(TargetError):
    """No set of wheels fits this interpreter; another one may do."""


class UnknownPackage(UsageError):
    """A package that was asked for is in none of the indexes. `name`: which."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no package {name!r} in the configured indexes", remedy="check the spelling")
        self.name = name


class UnknownVersion(UsageError):
    """The package is known and has no such version. `name`, `version`: what was asked for."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(f"the package {name!r} has no version {version}", remedy="leave the version out")
        self.name, self.version = name, version


class Resolver:
    """Resolves against one set of index settings, for one architecture (`x86_64` or `aarch64`)."""

    def __init__(self, store: Store, settings: IndexSettings, architecture: str) -> None:
        self._store = store
        self._settings = settings
        self._architecture = architecture

    async def lock(
        self,
        requirements: Sequence[str],
        python: str,
        *,
        constraints: Sequence[str] = (),
        deps: bool = True,
        as_of: datetime | None = None,
    ) -> tuple[LockedWheel, ...]:
        """The closure of checked `requirements` for one interpreter, sorted by name.

        `requirements` and `constraints` went through `harness.acquisition.python.requirements`. With `as_of`,
        nothing that was uploaded later is considered. Raises
        UnknownPackage and UnknownVersion for what was asked for, NoSolution where another interpreter may do,
        TargetError for a refused dependency, and RegistryError.
        """
        with self._store.work() as work:
            limits = work / "constraints.txt"
            limits.write_text("\n".join(constraints) + "\n")
            arguments = [uv_program(), "pip", "compile", "-", "--format", "pylock.toml", "--no-build", "--no-sources"]
            arguments += ["--no-header", "--no-annotate", "--quiet", "--constraints", str(limits)]
            arguments += ["--python", sys.executable, "--python-version", python]
            arguments += ["--python-platform", f"{self._architecture}-manylinux_2_{PYTHONS[python]}"]
            arguments += [] if deps else ["--no-deps"]
            arguments += [f"--exclude-newer={as_of.strftime('%Y-%m-%dT%H:%M:%SZ')}"] if as_of else []
            result = await run_tool(
                arguments,
                environment=self._settings.uv_environment(self._store.folder("uv")),
                cwd=work,
                stdin="\n".join(requirements).encode(),
            )
            if result.code != 0:
                raise explain(result, requirements, python)
            return self._wheels(result.output, work, python)

    def _wheels(self, text: bytes, work: Path, python: str) -> tuple[LockedWheel, ...]:
        try:
            packages = tomllib.loads(text.decode()).get("packages", [])
            rank = {tag: place for place, tag in enumerate(self._tags(python))}
            found = [_locked(package, rank, work) for package in packages]
            size = sum(int(wheel.get("size", 0)) for package in packages for wheel in package["wheels"][:1])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RegistryError(f"the index's answers gave an unusable lock: {error}") from error
        if len(found) > CLOSURE_FILES or size > CLOSURE_BYTES:
            raise TargetError(f"the closure is too large: {len(found)} packages, {size} bytes")
        return tuple(sorted(found, key=lambda wheel: (wheel.name, wheel.version)))

    def _tags(self, python: str) -> list[Tag]:
        """The wheel tags of the sandbox's interpreter, best first (PEP 425, PEP 600)."""
        major, minor = (int(part) for part in python.split("."))
        legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
        platforms = []
        for glibc in range(PYTHONS[python], 4, -1):
            platforms.append(f"manylinux_2_{glibc}_{self._architecture}")
            if glibc in legacy:
                platforms.append(f"{legacy[glibc]}_{self._architecture}")
        platforms.append(f"linux_{self._architecture}")
        version = (major, minor)
        return [
            *cpython_tags(version, [f"cp{major}{minor}"], platforms),
            *compatible_tags(version, f"cp{major}{minor}", platforms),
        ]


def uv_program() -> str:
    """The path of the uv that belongs to this installation."""
    from uv import find_uv_bin

    return find_uv_bin()


def _locked(package: dict[str, object], rank: dict[Tag, int], work: Path) -> LockedWheel:
    """The best wheel of one package of the lock. Raises ValueError when the lock offers none that fits."""
    best: tuple[int, LockedWheel] | None = None
    wheels = package["wheels"]
    assert isinstance(wheels, list)
    for wheel in wheels:
        url = wheel.get("url") or (work / wheel["path"]).resolve().as_uri()
        filename = wheel.get("name") or url.split("#")[0].split("?")[0].rsplit("/", 1)[-1].replace("%2B", "+")
        try:
            name, version, _, tags = parse_wheel_filename(filename)
        except InvalidWheelFilename as error:
            raise ValueError(str(error)) from error
        if name != canonicalize_name(str(package["name"])) or not re.match(r"(https?|file)://", url):
            raise ValueError(f"{filename} is no wheel of {package['name']}")
        place = min((rank[tag] for tag in tags if tag in rank), default=len(rank))
        if best is None or place < best[0]:
            sha256 = str(wheel["hashes"]["sha256"])
            uploaded = wheel.get("upload-time")
            best = (
                place,
                LockedWheel(
                    name=name,
                    version=str(version),
                    filename=filename,
                    url=url,
                    sha256=sha256,
                    uploaded=uploaded if isinstance(uploaded, datetime) and uploaded.tzinfo else None,
                ),
            )
    if best is None or best[0] == len(rank):
        raise ValueError(f"no wheel of {package['name']} fits")
    return best[1]


_UNREACHABLE = re.compile(
    r"error sending request|failed to fetch|could not connect|dns error|operation timed out|tcp connect error"
    r"|connection (?:refused|reset)|invalid peer certificate|valid authentication credentials"
    r"|HTTP status (?:client|server) error|network is unreachable",
    re.IGNORECASE,
)


def explain(result: ToolResult, requirements: Sequence[str], python: str) -> Exception:
    """The error that tells who is to blame for a failed resolution, from what uv printed."""
    text = re.sub(r"\s+", " ", result.error[:65536])
    direct = re.search(r"for package `([^`=]+)(?:==[^`]*)?`.*?Package `([^`]+)` was included as a URL dependency", text)
    if direct:
        source = re.search(r"adding `[^`@]+ @ ([^`]+)`", text)
        return TargetError(
            f"the package {direct[1]} depends on {direct[2]} by a direct reference"
            f"{' (' + source[1][:160] + ')' if source else ''}, which is refused",
            remedy="only names and versions from the configured indexes are resolved",
        )
    asked = {canonicalize_name(re.split(r"[\s\[=<>!~;]", r, maxsplit=1)[0]): r for r in requirements}
    missing = re.search(
        r"[Bb]ecause ([\w.-]+) was not found in the (?:package registry|provided package locations)", text
    )
    if _UNREACHABLE.search(text):
        return RegistryError(
            f"the package index could not be asked: {summary(result.error)}",
            remedy="check the network, and index-url, proxy and certificates in pip's configuration",
        )
    if missing and canonicalize_name(missing[1]) in asked:
        return UnknownPackage(missing[1])
    if missing:
        return TargetError(f"a dependency does not exist in the configured indexes: {missing[1]}")
    version = re.search(r"there is no version of ([\w.-]+)==([^\s,]+)", text)
    if version and f"{canonicalize_name(version[1])}=={version[2]}" in {r.lower() for r in requirements}:
        return UnknownVersion(version[1], version[2])
    wheels = re.search(r"Wheels are required for `([^`]+)`|([\w.-]+)==\S+ has no (?:usable )?wheels", text)
    if wheels:
        return NoSolution(
            f"the package {wheels[1] or wheels[2]} has no wheel for Python {python}, and building one comes later",
            remedy="try another version of the target, or --python",
        )
    return NoSolution(f"no set of packages fits Python {python}: {summary(result.error)}")
