"""Acquiring Node source: a folder with package.json, or a single file.

The source is put at /app/src and its dependencies at /app/node_modules, where Node looks next. Where what is started
has to be built first (TypeScript), the development dependencies come along and the project's build runs in the
sandbox, without a network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from harness.acquisition.node import plan
from harness.acquisition.node.package import NodeWorld
from harness.acquisition.node.resolve import check_specs
from harness.acquisition.python.world import applied
from harness.acquisition.store import Store
from harness.acquisition.tree import SourceTree
from harness.model.base import JsonObject
from harness.model.errors import TargetError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Artifact, Closure, Ecosystem, EntryPoint, InputFile, InstallPlan, TargetRef

SOURCE = "/app/src"

_PRODUCTION = ("optionalDependencies", "dependencies")

#: Packages whose import tells that they are needed, where a file has no package.json.
_BY_IMPORT = ("@modelcontextprotocol/sdk", "zod")


async def acquire_node_source(
    world: NodeWorld,
    ref: TargetRef,
    tree: SourceTree,
    options: RunOptions,
    servers: Sequence[str],
    dependencies: dict[str, str] | None,
) -> Acquired:
    """Acquire a tree; `servers` are files that may be started; `dependencies` is None when package.json tells.

    Raises TargetError for a manifest that is damaged, holds a direct reference or starts what has to be built
    first, and what resolving and fetching raise.
    """
    manifest: JsonObject = {} if dependencies is not None else _json(world.store, tree, "package.json")
    notes: list[str] = []
    build: tuple[tuple[str, ...], ...] = ()
    if dependencies is None:
        if not _starts(manifest, tree, servers):
            build = _build_steps(manifest, tree)
        kinds = ("devDependencies", *_PRODUCTION) if build else _PRODUCTION
        dependencies = _dependencies(manifest, kinds)
    else:
        notes.append(f"no dependencies are declared; from the imports: {', '.join(dependencies) or 'none'}")
    artifacts: tuple[Artifact, ...] = ()
    files: tuple[InputFile, ...] = tree.input_files(world.store)
    copy = ("cp", "-R", "/input/src", SOURCE)
    steps: tuple[tuple[str, ...], ...] = (copy, *build)
    if dependencies:
        given = _json(world.store, tree, "package-lock.json") if tree.has("package-lock.json") else None
        if given is not None and given.get("lockfileVersion") not in (2, 3):
            given = None
            notes.append("package-lock.json is of an old version and was not used")
        install = await world.install(dependencies, options, tree.name, manifest.get("engines"), given)
        node, artifacts = install.node, install.artifacts
        files = (*files, *install.files(dependencies))
        steps = (*plan.install_steps(node), copy, *build)
    else:
        node = await world.choose_node(options, manifest.get("engines"))
    version = str(manifest.get("version") or "")[:100]
    entries = _entries(manifest, tree, node, servers, built=bool(build))
    if not entries:
        raise TargetError(
            "what package.json starts is not in the folder, and it has no build script",
            remedy="build it and give the folder again, or name what starts it after --",
        )
    if build:
        steps = tuple((f"/opt/node/{node}/bin/npm", *step[1:]) if step[0] == "npm" else step for step in steps)
        notes.append(f"built in the sandbox: {' '.join(build[-1][:3])}")
    everything = (tree.artifact(version), *artifacts)
    closure = Closure(artifacts=tuple(sorted(everything, key=lambda a: (a.name, a.version, a.filename))))
    if tree.passed_over:
        notes.append(f"left out: {', '.join(tree.passed_over[:5])}")
    return Acquired(
        ref=ref,
        name=str(manifest.get("name") or tree.name)[:214],
        version=version,
        ecosystem=Ecosystem.NODE,
        closure=closure,
        install=InstallPlan(
            image="node",
            files=files,
            steps=steps,
            environment=plan.environment(node),
            closure_digest=closure.digest,
        ),
        entry_points=entries,
        environment=plan.environment(node),
        notes=(f"Node {node}, {len(artifacts)} packages", *notes, *applied(options)),
    )


def node_file_dependencies(store: Store, tree: SourceTree, servers: Sequence[str] = ()) -> dict[str, str]:
    """What single files need, by their imports; the newest of each."""
    names = list(servers) or [tree.files[0].path]
    text = "\n".join((tree.read(store, name) or b"").decode("utf-8", "replace") for name in names)
    return {
        name: "latest"
        for name in _BY_IMPORT
        if re.search(rf"""(?:from|import|require)\s{{0,20}}\(?\s{{0,20}}["']{re.escape(name)}(?:/[^"']*)?["']""", text)
    }


def _json(store: Store, tree: SourceTree, name: str) -> JsonObject:
    try:
        value = json.loads(tree.read(store, name) or b"{}")
    except (ValueError, RecursionError) as error:
        raise TargetError(f"{name} can't be read: {error}") from error
    if not isinstance(value, dict):
        raise TargetError(f"{name} is no JSON object")
    return value


def _starts(manifest: JsonObject, tree: SourceTree, servers: Sequence[str]) -> bool:
    """Is what the manifest names as its program there?"""
    named = any(manifest.get(field) for field in ("bin", "main"))
    found = _entries(manifest, tree, plan.NODES[0], servers)
    return any(entry.source != "file" for entry in found) or (bool(found) and not named)


def _build_steps(manifest: JsonObject, tree: SourceTree) -> tuple[tuple[str, ...], ...]:
    """The project's own build, else the compiler where there is a configuration for it; empty without either."""
    scripts = manifest.get("scripts")
    for name in ("build", "prepare", "compile"):
        if isinstance(scripts, dict) and isinstance(scripts.get(name), str) and "husky" not in scripts[name]:
            quiet = ("--offline", "--no-update-notifier", "--logs-max=0", "--cache", "/tmp/npm")  # noqa: S108 - inside
            return (("npm", "run", name, "--prefix", SOURCE, *quiet),)
    if tree.has("tsconfig.json"):
        return (("/app/node_modules/.bin/tsc", "--project", SOURCE),)
    return ()


def _dependencies(manifest: JsonObject, kinds: Sequence[str]) -> dict[str, str]:
    """What is installed, the later of `kinds` winning. Raises TargetError for a direct reference in any of them."""
    found: dict[str, str] = {}
    for kind in kinds:
        listed = manifest.get(kind) or {}
        if not isinstance(listed, dict):
            raise TargetError(f"{kind} of package.json is no JSON object")
        check_specs("package.json", listed)
        found.update(listed)
    return found


def _entries(
    manifest: JsonObject, tree: SourceTree, node: str, servers: Sequence[str], *, built: bool = False
) -> tuple[EntryPoint, ...]:
    """The ways to start it: `bin`, the `start` script when it is plain node, `main`, then known files.

    Those that exist, or with `built` those that the build may make.
    """
    program = plan.node_program(node)
    named: list[tuple[str, object, str, tuple[str, ...]]] = []
    bins = manifest.get("bin")
    if isinstance(bins, str):
        bins = {str(manifest.get("name") or tree.name).split("/")[-1]: bins}
    if isinstance(bins, dict):
        named += [(str(name), path, "bin", ()) for name, path in sorted(bins.items())]
    scripts = manifest.get("scripts")
    start = scripts.get("start") if isinstance(scripts, dict) else None
    plain = re.fullmatch(r"node\s+([\w./-]+)((?:\s+[\w./=:@-]+)*)\s*", start) if isinstance(start, str) else None
    if plain:
        named.append(("start", plain[1], "scripts", tuple(plain[2].split())))
    named.append(("main", manifest.get("main"), "main", ()))
    named += [(name, name, "file", ()) for name in servers]
    entries: list[EntryPoint] = []
    for name, path, source, arguments in named:
        inner = plan.inner_path(path)
        if inner is not None and not inner.endswith((".js", ".mjs", ".cjs")):
            inner = next((found for found in (inner, f"{inner}.js", f"{inner}/index.js") if tree.has(found)), inner)
        argv = (program, f"{SOURCE}/{inner}", *arguments)
        there = inner is not None and (tree.has(inner) or (built and inner.endswith((".js", ".mjs", ".cjs"))))
        if there and all(entry.argv != argv for entry in entries):
            entries.append(EntryPoint(name=name, argv=argv, source=source))
    return tuple(entries)
