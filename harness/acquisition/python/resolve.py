"""Resolving Python requirements to one wheel each, from metadata only.

uv does it with `--no-build`: sdists are no candidates, and a URL in the metadata of an index package ends the
resolution without a request for it (tests/e2e/test_acquisition_hostile.py holds it to that). What comes out is
a lock (PEP 751) with the address, size and SHA-256 of each wheel for the sandbox's platform.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

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
    """One file of a closure, as the index describes it. `uploaded`: when, where the index tells.

    A wheel, or where there is none and its metadata was read, an `sdist`.
    """

    name: str
    version: str
    filename: str
    url: str
    sha256: str
    uploaded: datetime | None = None
    sdist: bool = False


class KnownSdist(Record):
    """What an sdist needs, told to the resolver so that nothing has to be built to ask; `version` pins it."""

    version: str | None = None
    requires: tuple[str, ...] = ()
    requires_python: str = ""


class NoSolution(TargetError):
    """No set of wheels fits this interpreter; another one may do, or the sdist of the package `wheelless`."""

    def __init__(self, message: str, *, remedy: str = "", wheelless: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.wheelless = wheelless


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
        sdists: Mapping[str, KnownSdist] = MappingProxyType({}),
        in_order: bool = False,
    ) -> tuple[LockedWheel, ...]:
        """The closure of checked `requirements` for one interpreter, sorted by name.

        `requirements` and `constraints` went through `harness.acquisition.python.requirements`. With `as_of`,
        nothing that was uploaded later is considered. The packages in `sdists` (by canonical name) may be sdists, with
        the requirements given there: uv then neither fetches nor builds them. `in_order`: the first index that has a
        name is the only one asked for it, else the best version of all counts, as with pip. Raises
        UnknownPackage and UnknownVersion for what was asked for, NoSolution where another interpreter may do,
        TargetError for a refused dependency, and RegistryError.
        """
        with self._store.work() as work:
            limits = work / "constraints.txt"
            pins = [f"{name}=={known.version}" for name, known in sorted(sdists.items()) if known.version]
            limits.write_text("\n".join([*constraints, *pins]) + "\n")
            arguments = [uv_program(), "pip", "compile", "-", "--format", "pylock.toml", "--no-sources"]
            arguments += _sdist_arguments(sdists, work) if sdists else ["--no-build"]
            arguments += ["--no-header", "--no-annotate", "--quiet", "--constraints", str(limits)]
            arguments += ["--python", sys.executable, "--python-version", python]
            arguments += ["--python-platform", f"{self._architecture}-manylinux_2_{PYTHONS[python]}"]
            arguments += [] if deps else ["--no-deps"]
            arguments += ["--index-strategy", "first-index"] if in_order else []
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
            rank = {tag: place for place, tag in enumerate(self.tags(python))}
            found = [_locked(package, rank, work) for package in packages]
            size = sum(
                int(file.get("size", 0))
                for package in packages
                for file in (package.get("wheels") or [package["sdist"]])[:1]
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RegistryError(f"the index's answers gave an unusable lock: {error}") from error
        if len(found) > CLOSURE_FILES or size > CLOSURE_BYTES:
            raise TargetError(f"the closure is too large: {len(found)} packages, {size} bytes")
        return tuple(sorted(found, key=lambda wheel: (wheel.name, wheel.version)))

    def tags(self, python: str) -> list[Tag]:
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
    wheels = package.get("wheels")
    if not isinstance(wheels, list):
        return _locked_sdist(package, work)
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


def _locked_sdist(package: dict[str, object], work: Path) -> LockedWheel:
    sdist = package["sdist"]
    if not isinstance(sdist, dict):
        raise ValueError(f"{package['name']} is neither a wheel nor an sdist")
    url = sdist.get("url") or (work / sdist["path"]).resolve().as_uri()
    filename = sdist.get("name") or unquote(url.split("#")[0].split("?")[0].rsplit("/", 1)[-1])
    name, version = canonicalize_name(str(package["name"])), str(package["version"])
    if not _SDIST.fullmatch(filename) or not re.match(r"(https?|file)://", url):
        raise ValueError(f"{filename} is no sdist of {name}")
    uploaded = sdist.get("upload-time")
    return LockedWheel(
        name=name,
        version=version,
        filename=filename,
        url=url,
        sha256=str(sdist["hashes"]["sha256"]),
        uploaded=uploaded if isinstance(uploaded, datetime) and uploaded.tzinfo else None,
        sdist=True,
    )


def _sdist_arguments(sdists: Mapping[str, KnownSdist], work: Path) -> list[str]:
    """Let uv take these packages as sdists, with metadata from us: it has no reason to look into them."""
    lines = []
    for name, known in sorted(sdists.items()):
        lines += ["[[dependency-metadata]]", f"name = {json.dumps(name)}"]
        lines.append(f"requires-dist = {json.dumps(list(known.requires))}")
        lines += [f"requires-python = {json.dumps(known.requires_python)}"] if known.requires_python else []
    config = work / "uv.toml"
    config.write_text("\n".join(lines) + "\n")
    words = ["--config-file", str(config), "--only-binary", ":all:"]
    return words + [word for name in sorted(sdists) for word in ("--no-binary", name)]


#: Names of sdists become names of files; the two forms that indexes hold.
_SDIST = re.compile(r"[A-Za-z0-9][\w.+!-]*\.(?:tar\.gz|zip)", re.ASCII)

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
            f"the package {wheels[1] or wheels[2]} has no wheel for Python {python}, and no source that can be used",
            remedy="try another version of the target, or --python",
            wheelless=canonicalize_name(wheels[1] or wheels[2]),
        )
    return NoSolution(f"no set of packages fits Python {python}: {summary(result.error)}")
