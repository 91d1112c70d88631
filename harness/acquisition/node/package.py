"""Acquiring an `npm:` target: resolve, fetch, choose the Node line, and say how to install and start it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from harness.acquisition.nearest import existing, npm_variants
from harness.acquisition.node import plan
from harness.acquisition.node.resolve import (
    Npm,
    NpmLock,
    UnknownNpmPackage,
    UnknownNpmVersion,
    npm_overrides,
    root_manifest,
)
from harness.acquisition.node.settings import RegistrySettings
from harness.acquisition.node.tool import NodeTool, node_tool
from harness.acquisition.python.world import PythonWorld, applied, as_of_date
from harness.acquisition.reference import package_launch
from harness.acquisition.store import Store
from harness.acquisition.tools import clean_environment, run_tool
from harness.model.base import JsonObject
from harness.model.errors import BlamedError, TargetError, UsageError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Artifact, Closure, Ecosystem, InputFile, InstallPlan, TargetRef

#: Which release of each Node line answers to `engines`: older than what the images hold, so never promising too much.
_RELEASES = {"20": "20.18.0", "22": "22.20.0", "24": "24.11.1"}


class NodeInstall:
    """A fetched npm closure: its artifacts, the input files, and the steps for one Node line."""

    def __init__(
        self, node: str, lock: NpmLock, fetched: dict[str, tuple[str, int]], overrides: Mapping[str, str], store: Store
    ) -> None:
        self.node, self.lock, self.fetched, self.overrides = node, lock, fetched, overrides
        self._store = store

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The packages of the lock."""
        return plan.artifacts(self.lock.packages, self.fetched)

    def files(self, dependencies: Mapping[str, str]) -> tuple[InputFile, ...]:
        """The input files of an install of `dependencies`, which the lock holds."""
        manifest = json.dumps(root_manifest(dependencies, self.overrides), indent=1)
        return plan.input_files(self._store, self.lock, manifest, self.fetched)


class NodeWorld:
    """What acquiring from npm needs. The Python world brings npm itself, on first use."""

    def __init__(
        self,
        store: Store,
        settings: RegistrySettings,
        python: PythonWorld,
        architecture: str,
        progress: Callable[[str], None],
    ) -> None:
        self.store = store
        self.progress = progress
        self._settings = settings
        self._python = python
        self._architecture = architecture

    async def tool(self) -> NodeTool:
        """Node and npm for the host."""
        return await node_tool(self._python)

    async def npm(self) -> Npm:
        """npm with the machine's registry settings."""
        return Npm(await self.tool(), self.store, self._settings, self._architecture)

    async def install(
        self, dependencies: Mapping[str, str], options: RunOptions, what: str, engines: object, given: JsonObject | None
    ) -> NodeInstall:
        """Resolve and fetch `dependencies` of `what`; `engines` (from its manifest) may be told by the lock instead."""
        npm = await self.npm()
        overrides = npm_overrides(options.constraints, (what,))
        before = as_of_date(options.as_of)
        self.progress(f"resolving {what}" + (f" as of {before.date()}" if before else ""))
        if given is not None:
            given = json.loads(npm.checked(given).text)
            for entry in given["packages"].values():
                entry.pop("resolved", None)  # npm asks its registry, by name, version and digest
            given["packages"][""] = root_manifest(dependencies, {})
        lock = await npm.lock(dependencies, what, given, overrides=overrides, before=before)
        own = lock.root_entries.get(what, {})
        node = await self.choose_node(options, engines or own.get("engines"))
        self.progress(f"fetching {len(lock.packages)} packages")
        fetched = await npm.fetch(lock.packages)
        return NodeInstall(node, lock, fetched, overrides, self.store)

    async def choose_node(self, options: RunOptions, engines: object) -> str:
        """The Node line for a package: the operator's, else the first in order of preference that `engines` admits.

        Raises UsageError for a line there is no image for; where none satisfies, the newest is taken.
        """
        if options.node:
            if options.node not in plan.NODES:
                raise UsageError(f"there is no sandbox with Node {options.node[:20]!a}", remedy="use 20, 22 or 24")
            return options.node
        wanted = engines.get("node") if isinstance(engines, dict) else None
        if not isinstance(wanted, str) or not wanted or len(wanted) > 200:
            return plan.NODES[0]
        tool = await self.tool()
        question = (
            "const [lib, range, ...versions] = process.argv.slice(1); const s = require(lib);"
            "console.log(JSON.stringify(versions.map(v => s.satisfies(v, range))))"
        )
        versions = [_RELEASES[node] for node in plan.NODES]
        result = await run_tool(
            [tool.node, "-e", question, "--", tool.semver, wanted, *versions],
            environment=clean_environment({}),
            cwd=self.store.folder("work"),
            seconds=30,
        )
        try:
            answers = json.loads(result.output)
        except ValueError:
            return plan.NODES[0]
        return next((node for node, fits in zip(plan.NODES, answers, strict=False) if fits), "24")


async def acquire_npm(world: NodeWorld, ref: TargetRef, options: RunOptions) -> Acquired:
    """Acquire an `npm:` target, or an `npx` command that names one.

    Raises UsageError for an unknown package or version, TargetError for a refused or missing dependency,
    RegistryError for a registry that does not answer.
    """
    assert ref.name is not None
    try:
        install = await world.install({ref.name: ref.version or "latest"}, options, ref.name, None, None)
    except BlamedError as error:
        raise await _with_suggestions(world, error) from error
    own = next((p for p in install.lock.packages if p.location == f"node_modules/{ref.name}"), None)
    if own is None:
        raise TargetError(f"the package {ref.name} is not made for Linux on this architecture")
    launch = package_launch(ref.command) if ref.command else None
    entries = plan.entry_points(
        ref.name, install.lock.root_entries[ref.name], install.node, launch[3] if launch else ()
    )
    closure = Closure(artifacts=install.artifacts)
    return Acquired(
        ref=ref,
        name=ref.name,
        version=own.version,
        ecosystem=Ecosystem.NODE,
        closure=closure,
        install=InstallPlan(
            image="node",
            files=install.files({ref.name: ref.version or "latest"}),
            steps=plan.install_steps(install.node),
            environment=plan.environment(install.node),
            closure_digest=closure.digest,
        ),
        entry_points=tuple(sorted(entries, key=lambda e: bool(launch and launch[2] and e.name != launch[2]))),
        environment=plan.environment(install.node),
        notes=(f"Node {install.node}, {len(install.artifacts)} packages", *applied(options)),
    )


async def _with_suggestions(world: NodeWorld, error: BlamedError) -> BlamedError:
    """Add the nearest names to an unknown package, or the newest versions to an unknown version."""
    if isinstance(error, UnknownNpmVersion):
        versions = await (await world.npm()).versions(error.name)
        if versions:
            return UsageError(error.message, remedy=f"the newest versions are {', '.join(versions[:5])}")
    if isinstance(error, UnknownNpmPackage):
        found = await existing(npm_variants(error.name), (await world.npm()).versions)
        if found:
            return UsageError(error.message, remedy=f"did you mean {' or '.join(f'npm:{name}' for name in found)}?")
    return error
