"""Acquiring a local npm package file: it joins the lock of its dependencies and is installed as one of them."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import anyio.to_thread

from harness.acquisition.node import plan
from harness.acquisition.node.package import NodeWorld
from harness.acquisition.node.resolve import NAME, NOWHERE, LockedPackage, NpmLock, check_specs
from harness.acquisition.python.world import applied
from harness.acquisition.store import Store
from harness.acquisition.tarball import read_tarball
from harness.acquisition.tree import SourceTree
from harness.model.base import JsonObject
from harness.model.errors import TargetError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Closure, Ecosystem, InstallPlan, TargetRef

#: Fields of a manifest that npm keeps in a lock.
_KEPT = ("dependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta", "bin", "engines")
_INSTALL_SCRIPTS = ("preinstall", "install", "postinstall")


def tarball_manifest(store: Store, source: SourceTree) -> JsonObject | None:
    """The package.json of the stored archive, or None when there is none where npm would look. Raises TargetError."""
    with store.work() as work:
        found = read_tarball(
            store.path(source.files[0].sha256),
            work,
            lambda name: name.count("/") == 1 and name.endswith("/package.json"),
        )
    if not found:
        return None
    name, data = next(iter(found.items()))
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TargetError(f"{name[:80]!a} in the archive can't be read") from error
    if not isinstance(manifest, dict):
        raise TargetError(f"{name[:80]!a} in the archive is no JSON object")
    return manifest


async def acquire_tarball(
    world: NodeWorld, ref: TargetRef, source: SourceTree, manifest: JsonObject, options: RunOptions
) -> Acquired:
    """Acquire the package whose archive is the only file of `source`.

    Raises TargetError for a manifest that is damaged or holds a direct reference, and what resolving raises.
    """
    file = source.files[0]
    name, version = manifest.get("name"), manifest.get("version")
    if not isinstance(name, str) or not isinstance(version, str) or not NAME.fullmatch(name) or len(version) > 100:
        raise TargetError(f"the package.json in {file.path[:120]!a} names no package and version")
    dependencies = _dependencies(manifest, file.path)
    install = await world.install(dependencies, options, name, manifest.get("engines"), None)
    location = f"node_modules/{name}"
    if any(package.location == location for package in install.lock.packages):
        raise TargetError(f"the dependencies of {name} hold another {name}")
    digest = await anyio.to_thread.run_sync(_sha512, world.store.path(file.sha256))
    own = LockedPackage(location=location, name=name, version=version, algorithm="sha512", digest=digest.hex())
    install.lock = _with_own(install.lock, own, manifest, digest)
    install.fetched[location] = (file.sha256, file.size)
    closure = Closure(artifacts=install.artifacts)
    return Acquired(
        ref=ref,
        name=name,
        version=version,
        ecosystem=Ecosystem.NODE,
        closure=closure,
        install=InstallPlan(
            image="node",
            files=install.files({name: version}),
            steps=plan.install_steps(install.node),
            environment=plan.environment(install.node),
            closure_digest=closure.digest,
        ),
        entry_points=plan.entry_points(name, manifest, install.node),
        environment=plan.environment(install.node),
        notes=(
            f"Node {install.node}, {len(install.artifacts)} packages, the target from a file",
            *applied(options),
        ),
    )


def _dependencies(manifest: JsonObject, owner: str) -> dict[str, str]:
    """What has to be there beside the package: its dependencies and peers, without what it bundles."""
    optional_peers = manifest.get("peerDependenciesMeta")
    bundled = manifest.get("bundleDependencies") or manifest.get("bundledDependencies") or []
    found: dict[str, str] = {}
    for kind in ("peerDependencies", "optionalDependencies", "dependencies"):
        listed = manifest.get(kind) or {}
        if not isinstance(listed, dict):
            raise TargetError(f"{kind} of {owner} is no JSON object")
        for name, spec in listed.items():
            meta = optional_peers.get(name) if isinstance(optional_peers, dict) else None
            if kind == "peerDependencies" and isinstance(meta, dict) and meta.get("optional"):
                continue
            if bundled is not True and not (isinstance(bundled, list) and name in bundled):
                found[name] = spec
    check_specs(owner, found)
    return found


def _with_own(lock: NpmLock, own: LockedPackage, manifest: JsonObject, digest: bytes) -> NpmLock:
    document = json.loads(lock.text)
    scripts = manifest.get("scripts")
    entry: JsonObject = {key: manifest[key] for key in _KEPT if manifest.get(key)}
    entry["version"] = own.version
    entry["resolved"] = f"{NOWHERE}{own.name}/-/{own.name.split('/')[-1]}-{own.version}.tgz"
    entry["integrity"] = "sha512-" + base64.b64encode(digest).decode()
    if isinstance(scripts, dict) and any(script in scripts for script in _INSTALL_SCRIPTS):
        entry["hasInstallScript"] = True
    packages = document["packages"]
    root = {**packages.get("", {}), "dependencies": {own.name: own.version}}
    document["packages"] = {"": root, own.location: entry, **{k: v for k, v in packages.items() if k}}
    return NpmLock(
        text=json.dumps(document, indent=1),
        packages=tuple(sorted((*lock.packages, own), key=lambda p: p.location)),
        root_entries={**lock.root_entries, own.name: entry},
    )


def _sha512(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha512").digest()
