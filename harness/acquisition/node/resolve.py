"""Resolving npm dependencies to one registry file each, from metadata only.

npm writes a lock (`--package-lock-only --ignore-scripts`) while every kind of dependency but the registry's is
forbidden to it; then the lock is checked once more here, entry by entry, before any file is fetched. What npm
passes over in silence (an optional dependency that is a direct reference) is refused all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

import anyio.to_thread

from harness.acquisition.limits import CLOSURE_FILES
from harness.acquisition.node.settings import RegistrySettings
from harness.acquisition.node.tool import NodeTool
from harness.acquisition.store import Store
from harness.acquisition.tools import ToolResult, run_tool, summary
from harness.model.base import JsonObject, Record
from harness.model.errors import BlamedError, RegistryError, TargetError, UsageError

#: A range of versions, a version or a tag; `npm:` renames a registry package.
_REGISTRY_SPEC = re.compile(
    r"(?![.])(?!.*\.(?:tgz|tar|tar\.gz)$)(?:npm:(?:@[\w.~-]+/)?[\w.~-]+@?)?[\w\s.+*^~<>=|,-]*", re.ASCII | re.IGNORECASE
)
#: No leading dash: names become arguments of npm.
NAME = re.compile(r"(?:@[\w.~-]+/)?[\w.~][\w.~-]*", re.ASCII)
_DEPENDENCIES = ("dependencies", "optionalDependencies", "peerDependencies")

_FORBIDDEN = ("--allow-git=none", "--allow-remote=none", "--allow-file=none", "--allow-directory=none")
#: Where locks for the sandbox say that packages lie: nowhere (RFC 2606). Only a key: npm finds each by its digest.
NOWHERE = "https://registry.invalid/"

#: npm's names for the architectures.
CPUS = {"x86_64": "x64", "aarch64": "arm64"}


class LockedPackage(Record):
    """One package of a lock: where it goes, what it is, and the registry's digest of its file."""

    location: str
    name: str
    version: str
    algorithm: str
    digest: str


class NpmLock(Record):
    """A checked lock: its text as npm will get it, the packages for the sandbox's platform, and `engines` by name."""

    text: str
    packages: tuple[LockedPackage, ...]
    root_entries: dict[str, JsonObject]


class UnknownNpmPackage(UsageError):
    """A package that was asked for is not in the registry."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no package {name!r} in the configured registry", remedy="check the spelling")
        self.name = name


class UnknownNpmVersion(UsageError):
    """The package is known and has no such version or tag."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(f"the package {name!r} has no version {version}", remedy="leave the version out")
        self.name, self.version = name, version


class Npm:
    """npm on the host, with the machine's registry settings and nothing else of its configuration."""

    def __init__(self, tool: NodeTool, store: Store, settings: RegistrySettings, architecture: str) -> None:
        self._command = tool.npm
        self._registries = settings.registries(tool.default_registry)
        self._store = store
        self._settings = settings
        self._cpu = CPUS[architecture]

    async def run(self, work: Path, *arguments: str, seconds: float = 180.0) -> ToolResult:
        """Run npm with `arguments` in `work`, a temporary folder."""
        home = work / "home"
        home.mkdir(exist_ok=True)
        config = home / "npmrc"
        config.touch(mode=0o600)
        config.write_text(self._settings.text())
        common = [f"--userconfig={config}", f"--globalconfig={home / 'none'}", f"--cache={self._store.folder('npm')}"]
        common += ["--ignore-scripts", *_FORBIDDEN, "--no-audit", "--no-fund", "--no-update-notifier", "--logs-max=0"]
        common += ["--os=linux", f"--cpu={self._cpu}", "--libc=glibc", "--loglevel=silly", "--no-progress"]
        common += ["--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=3000"]
        project = work / "project"
        project.mkdir(exist_ok=True)
        return await run_tool(
            [*self._command, *arguments, *common],
            environment=self._settings.environment(home),
            cwd=project,
            seconds=seconds,
        )

    async def lock(
        self,
        dependencies: Mapping[str, str],
        owner: str,
        given: JsonObject | None = None,
        *,
        overrides: Mapping[str, str] = MappingProxyType({}),
        before: datetime | None = None,
    ) -> NpmLock:
        """The closure of `dependencies` (name to registry spec), which `owner` declares.

        With `overrides`, the packages named there have that range wherever they are needed; with `before`, nothing
        published later is considered. `given` is a lock that the target brings along, already stripped to registry
        entries by `checked_lock`. Raises UnknownNpmPackage, UnknownNpmVersion, TargetError and RegistryError.
        """
        check_specs(owner, dependencies)
        manifest = root_manifest(dependencies, overrides)
        dated = [f"--before={before.isoformat()}"] if before else []
        with self._store.work() as work:
            project = work / "project"
            project.mkdir()
            (project / "package.json").write_text(json.dumps(manifest))
            if given is not None:
                (project / "package-lock.json").write_text(json.dumps(given))
            result = await self.run(work, "install", "--package-lock-only", "--omit=dev", "--prefer-online", *dated)
            if result.code != 0:
                raise explain(result, dependencies)
            try:
                text = (project / "package-lock.json").read_text()
                lock = json.loads(text)
            except (OSError, ValueError) as error:
                raise RegistryError(f"npm wrote no usable lock: {error}") from error
        return self.checked(lock)

    def checked(self, lock: JsonObject) -> NpmLock:
        """`checked_lock` with the registries of this machine's settings."""
        return checked_lock(lock, self._registries, self._cpu)

    async def fetch(self, packages: Sequence[LockedPackage]) -> dict[str, tuple[str, int]]:
        """Bring the packages' files into the store; SHA-256 and size by location.

        Raises RegistryError when a file can't be had with the digest of the lock.
        """
        missing = [p for p in packages if self._store.linked(p.algorithm, p.digest) is None]
        names = sorted({f"{p.name}@{p.version}" for p in missing})
        for start in range(0, len(names), 200):  # an argument vector has bounds too
            # What npm remembers of a package may be older than the lock, and not know the version: it asks anew then.
            for how in ("--prefer-offline", "--prefer-online"):
                with self._store.work() as work:
                    result = await self.run(work, "cache", "add", how, *names[start : start + 200])
                if result.code == 0:
                    break
            else:
                raise RegistryError(
                    f"a package file could not be fetched: {summary(_complaint(result.error))}",
                    remedy="check the network and the registry settings of npm",
                )
        await anyio.to_thread.run_sync(self._take, missing)
        found = {package.location: self._store.linked(package.algorithm, package.digest) for package in packages}
        return {location: entry for location, entry in found.items() if entry is not None}

    def _take(self, packages: Sequence[LockedPackage]) -> None:
        content = self._store.folder("npm") / "_cacache" / "content-v2"
        for package in packages:
            path = content / content_path(package)
            if not path.is_file():
                raise RegistryError(f"the registry delivered another file of {package.name} than it announced")
            sha256, size = self._store.add(path, "link")
            self._store.link(package.algorithm, package.digest, sha256, size)

    async def versions(self, name: str) -> list[str]:
        """The versions of a package in the registry, newest first; empty when there are none to be had."""
        with self._store.work() as work:
            try:
                result = await self.run(work, "view", name, "versions", "--json", seconds=30)
                listed = json.loads(result.output) if result.code == 0 else []
            except (BlamedError, ValueError):
                return []
        versions = [listed] if isinstance(listed, str) else listed
        return [v for v in reversed(versions) if isinstance(v, str)] if isinstance(versions, list) else []


def root_manifest(dependencies: Mapping[str, str], overrides: Mapping[str, str]) -> JsonObject:
    """The package.json that stands for the run, with the target among its dependencies."""
    manifest = {"name": "target", "version": "0.0.0", "private": True, "dependencies": dict(dependencies)}
    return {**manifest, "overrides": dict(overrides)} if overrides else manifest


def npm_overrides(constraints: Iterable[str], direct: Iterable[str] = ()) -> dict[str, str]:
    """The operator's constraints as npm's overrides: `name@range`, or as pip writes it (`name<2`, `name==1.2.3`).

    Those on the packages in `direct` are refused: a target's version is part of its name. Raises UsageError.
    """
    found: dict[str, str] = {}
    for text in constraints:
        match = re.fullmatch(rf"({NAME.pattern}?)\s*(?:@|(?=[<>=~^]))\s*(\S.*)", text[:300], re.ASCII | re.DOTALL)
        spec = re.sub(r"^=+\s*|^~=", lambda m: "~" if m[0] == "~=" else "", match[2].replace(",", " ")) if match else ""
        if match is None or not _REGISTRY_SPEC.fullmatch(spec):
            raise UsageError(
                f"--constraint {text[:80]!a} can't be read", remedy="write it as 'name@<2' or 'name@1.2.3'"
            )
        if match[1] in direct:
            raise UsageError(f"--constraint {text[:80]!a} is on the target itself", remedy="write npm:NAME@VERSION")
        found[match[1]] = spec
    return found


def content_path(package: LockedPackage) -> str:
    """Where npm's cache keeps a file, relative to its `content-v2` folder."""
    digest = package.digest
    return f"{package.algorithm}/{digest[:2]}/{digest[2:4]}/{digest[4:]}"


def check_specs(owner: str, dependencies: object) -> None:
    """Raise TargetError when one of the dependencies that `owner` declares is not the registry's."""
    if not isinstance(dependencies, dict):
        return
    for name, spec in dependencies.items():
        if not isinstance(spec, str) or len(spec) > 1000 or not _REGISTRY_SPEC.fullmatch(spec):
            raise _refused(owner, str(name), str(spec))


def checked_lock(lock: JsonObject, registries: Sequence[str], cpu: str) -> NpmLock:
    """Check a lock entry by entry and make the one that the sandbox gets.

    Raises TargetError for a link, a file from elsewhere than the registries, an entry without a digest, or a
    dependency that is a direct reference. In the result every address is `NOWHERE`.
    """
    from harness.acquisition.node.integrity import strongest

    entries = lock.get("packages")
    if not isinstance(entries, dict) or len(entries) > CLOSURE_FILES:
        raise TargetError(f"the closure has no lock of version 3, or more than {CLOSURE_FILES} packages")
    found: list[LockedPackage] = []
    clean: JsonObject = {}
    for location, entry in entries.items():
        if not isinstance(entry, dict):
            raise TargetError("the lock holds an entry that is no object")
        name = str(entry.get("name") or location.rpartition("node_modules/")[2] or "the project")
        for kind in _DEPENDENCIES:
            check_specs(name, entry.get(kind))
        clean[location] = {key: value for key, value in entry.items() if key not in ("resolved", "devDependencies")}
        if location and not entry.get("inBundle"):
            # One and the same address for every mirror: only a key in the sandbox, which has no network.
            clean[location]["resolved"] = f"{NOWHERE}{name}/-/{name.split('/')[-1]}-{entry.get('version')}.tgz"
        if not location or entry.get("inBundle"):
            continue
        resolved, version = entry.get("resolved"), entry.get("version")
        if not NAME.fullmatch(name):
            raise TargetError(f"the lock holds a package with an impossible name: {name[:80]!a}")
        if entry.get("link") or not isinstance(version, str) or not re.fullmatch(r"[\w.+-]+", version, re.ASCII):
            raise _refused("the lock", name, str(resolved))
        if resolved is not None and not str(resolved).startswith(tuple(registries)):
            raise _refused("the lock", name, str(resolved))
        digest = strongest(entry.get("integrity"))
        if digest is None:
            raise TargetError(f"the lock has no digest for {name} {version}")
        if not entry.get("dev") and _fits(entry, cpu):
            found.append(
                LockedPackage(location=location, name=name, version=version, algorithm=digest[0], digest=digest[1])
            )
    text = json.dumps({**{k: v for k, v in lock.items() if k != "packages"}, "packages": clean}, indent=1)
    roots = {
        p.location.removeprefix("node_modules/"): entries[p.location]
        for p in found
        if p.location.count("node_modules/") == 1
    }
    return NpmLock(text=text, packages=tuple(sorted(found, key=lambda p: p.location)), root_entries=roots)


def _fits(entry: JsonObject, cpu: str) -> bool:
    """Does npm install this entry on the sandbox's platform? Lists may negate with `!`."""

    def allowed(values: object, ours: str) -> bool:
        listed = [values] if isinstance(values, str) else values if isinstance(values, list) else []
        if not listed or "any" in listed:
            return True
        if f"!{ours}" in listed:
            return False
        return ours in listed or all(str(value).startswith("!") for value in listed)

    return allowed(entry.get("os"), "linux") and allowed(entry.get("cpu"), cpu) and allowed(entry.get("libc"), "glibc")


def explain(result: ToolResult, dependencies: Mapping[str, str]) -> BlamedError:
    """The error that tells who is to blame for a failed resolution, from what npm printed."""
    text = result.error
    code = (re.search(r"npm error code (\w+)", text) or [None, ""])[1] or ""
    if code.startswith("EALLOW") or code == "EUNSUPPORTEDPROTOCOL" or "aliases only work for registry deps" in text:
        for owner, want in reversed(re.findall(r"placeDep .*? OK for: (\S+) want: (.*)", text)):
            if not _REGISTRY_SPEC.fullmatch(want.strip()):
                dependency = re.findall(rf"placeDep \S+ (\S+) OK for: {re.escape(owner)} want: {re.escape(want)}", text)
                return _refused(owner, dependency[-1].rstrip("@") if dependency else "a package", want.strip())
        cracked = re.findall(r"unfinished npm timer idealTree:(\S+)", text)
        if code == "EALLOWREMOTE" and cracked:
            name = cracked[-1].rpartition("node_modules/")[2]
            return TargetError(f"the package {name} brings its own locked or bundled packages, which comes later")
        named = re.search(r'Refusing to fetch "([^"]+)"|Unsupported URL Type "[^"]*": (\S+)', text)
        spec = f" ({ascii((named[1] or named[2])[:160])[1:-1]})" if named else ""
        return TargetError(
            f"a dependency is a direct reference{spec}, which is refused",
            remedy="only names and versions from the configured registry are resolved",
        )
    if code == "E404":
        named = re.search(r"requested resource '((?:@[^/']+/)?[^@']+)@", text) or re.search(
            r"'((?:@[^/']+/)?[^@']+)@[^']*' is not in", text
        )
        missing = named[1] if named else ""
        if missing in dependencies:
            return UnknownNpmPackage(missing)
        return TargetError(
            f"a dependency does not exist in the configured registry: {missing or summary(_complaint(text))}"
        )
    if code in ("ETARGET", "ENOVERSIONS"):
        wanted = re.search(r"No matching version found for ((?:@[^/\s]+/)?[^@\s]+)@(.*?)\.?\s*$", text, re.MULTILINE)
        if wanted and dependencies.get(wanted[1]) == wanted[2]:
            return UnknownNpmVersion(wanted[1], wanted[2])
        return TargetError(f"a dependency has no matching version: {wanted[1] + '@' + wanted[2] if wanted else ''}")
    if code == "ERESOLVE":
        return TargetError(f"the dependencies contradict each other: {summary(_complaint(text))}")
    return RegistryError(
        f"the package registry could not be asked: {summary(_complaint(text)) or f'npm ended with {result.code}'}",
        remedy="check the network, and registry, proxy and cafile in npm's configuration",
    )


def _complaint(text: str) -> str:
    """The lines that npm prints as errors."""
    lines = [line.removeprefix("npm error ") for line in text.splitlines() if line.startswith("npm error ")]
    return "\n".join(line for line in lines if "Log files were not" not in line and not re.match(r"\s*at ", line))


def _refused(owner: str, name: str, spec: str) -> TargetError:
    return TargetError(
        f"{owner} depends on {name} by a direct reference ({spec[:160]!a}), which is refused",
        remedy="only names and versions from the configured registry are resolved",
    )
