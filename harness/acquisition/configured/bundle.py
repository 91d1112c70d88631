"""MCP bundles (`.mcpb`): a zip file with a manifest.json and everything that the server needs.

Format: modelcontextprotocol/mcpb, MANIFEST.md. The bundle is put at /app/src as it is; what a user would be asked for
(`user_config`) is planted where it has no default.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath

import anyio.to_thread

from harness.acquisition.archive import unpack_zip
from harness.acquisition.configured.launch import listed, pairs, words
from harness.acquisition.configured.values import planted
from harness.acquisition.node import plan as node_plan
from harness.acquisition.node.package import NodeWorld
from harness.acquisition.python import plan as python_plan
from harness.acquisition.python.metadata import fitting_pythons
from harness.acquisition.python.source import acquire_python_source
from harness.acquisition.python.world import PythonWorld, python_option
from harness.acquisition.store import Store
from harness.acquisition.tree import SourceTree, read_tree
from harness.model.base import JsonObject, JsonValue
from harness.model.errors import TargetError, UsageError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Artifact, Closure, Ecosystem, EntryPoint, InstallPlan, TargetRef

SOURCE = "/app/src"
_HOME = "/home/user"

_VARIABLE = re.compile(r"\$\{([\w./-]{1,100})\}")
_FOLDERS = {
    "__dirname": SOURCE,
    "HOME": _HOME,
    "DESKTOP": "{workspace}",
    "DOCUMENTS": "{workspace}",
    "DOWNLOADS": "{workspace}",
    "pathSeparator": "/",
    "/": "/",
}


async def acquire_bundle(
    python: PythonWorld, node: NodeWorld, ref: TargetRef, source: SourceTree, options: RunOptions
) -> Acquired:
    """Acquire the bundle that is the only file of `source`.

    Raises TargetError for an archive or manifest that can't be used, UsageError for options that don't fit, and for a
    bundle that leaves its dependencies to uv what resolving raises.
    """
    file = source.files[0]
    tree = await anyio.to_thread.run_sync(_unpacked, python.store, source)
    manifest = _manifest(python.store, tree)
    server = manifest["server"]
    name, version = str(manifest.get("name") or source.name)[:214], str(manifest.get("version") or "")[:100]
    asked: list[str] = []
    values = _user_config(manifest.get("user_config"), asked)
    argv, environment = _command(server, values)
    kind = server.get("type")
    own = Artifact(name=name, version=version, filename=file.path, sha256=file.sha256, size=file.size)
    notes = [f"MCP bundle of type {str(kind)[:20]}"]
    if asked:
        notes.append(f"planted, because the user would be asked: {listed(asked)}")
    if kind == "uv":
        inner = await acquire_python_source(python, ref, tree, options, (_entry_path(server, tree),), None)
        entries = tuple(e.model_copy(update={"argv": (*e.argv, *argv)}) for e in inner.entry_points)
        return inner.model_copy(
            update={
                "name": name,
                "version": version,
                "entry_points": tuple(e.model_copy(update={"planted": True}) for e in entries),
                "environment": {**inner.environment, **environment},
                "notes": (*inner.notes, *notes),
            }
        )
    if kind == "node":
        line = await node.choose_node(options, {"node": _runtime(manifest, "node")})
        image, base = "node", node_plan.environment(line)
        program, ecosystem = node_plan.node_program(line), Ecosystem.NODE
    elif kind == "python":
        chosen = _python(manifest, tree, options)
        image, base = python_plan.image(chosen), {}
        program, ecosystem = "/usr/bin/python3", Ecosystem.PYTHON
    elif kind == "binary":
        image, base, program, ecosystem = "base", {}, "", Ecosystem.NONE
    else:
        raise TargetError(f"the bundle's server is of an unknown type: {str(kind)[:40]!a}")
    entry = _entry_path(server, tree)
    command = argv or ((program, f"{SOURCE}/{entry}") if program else (f"{SOURCE}/{entry}",))
    if program and re.fullmatch(r"node|python[\d.]*", PurePosixPath(command[0]).name):
        command = (program, *command[1:])
    steps: tuple[tuple[str, ...], ...] = (("cp", "-R", "/input/src", SOURCE),)
    if kind == "binary":
        steps = (*steps, ("chmod", "755", f"{SOURCE}/{entry}"))
    closure = Closure(artifacts=(own,))
    return Acquired(
        ref=ref,
        name=name,
        version=version,
        ecosystem=ecosystem,
        closure=closure,
        install=InstallPlan(
            image=image,
            files=tree.input_files(python.store),
            steps=steps,
            environment=base,
            closure_digest=closure.digest,
        ),
        entry_points=(EntryPoint(name=name, argv=command, source="manifest.json", planted=True),),
        environment={**base, **environment},
        notes=tuple(notes),
    )


def _unpacked(store: Store, source: SourceTree) -> SourceTree:
    with store.work() as work:
        root = work / "bundle"
        root.mkdir()
        unpack_zip(store.path(source.files[0].sha256), root)
        tree = read_tree(store, root, everything=True) if any(root.iterdir()) else None
    if tree is None:
        raise TargetError("the bundle is empty")
    return tree


def _manifest(store: Store, tree: SourceTree) -> JsonObject:
    data = tree.read(store, "manifest.json")
    if data is None:
        raise TargetError("the bundle holds no manifest.json")
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TargetError("manifest.json of the bundle can't be read") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("server"), dict):
        raise TargetError("manifest.json of the bundle names no server")
    return manifest


def _user_config(described: JsonValue, asked: list[str]) -> dict[str, list[str]]:
    """A value for each setting: its default, a planted one where it is required, else none."""
    found: dict[str, list[str]] = {}
    for name, entry in (described if isinstance(described, dict) else {}).items():
        if not isinstance(entry, dict):
            continue
        default = entry.get("default")
        if default is not None:
            given = default if isinstance(default, list) else [default]
            found[name] = [_folders(str(v).lower() if isinstance(v, bool) else str(v)) for v in given]
        elif entry.get("required"):
            asked.append(str(name))
            found[name] = [planted(str(name), str(entry.get("type")), secret=bool(entry.get("sensitive")))]
        else:
            found[name] = []
    return found


def _command(server: JsonObject, values: dict[str, list[str]]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Argument vector and environment of `mcp_config`, Linux's overrides included, with variables filled in."""
    config = server.get("mcp_config")
    config = config if isinstance(config, dict) else {}
    overrides = config.get("platform_overrides")
    ours = overrides.get("linux") if isinstance(overrides, dict) else None
    if isinstance(ours, dict):
        config = {**config, **ours}
    try:
        parts = words([config["command"]] if config.get("command") else [], "command")
        parts += words(config.get("args"), "args")
        environment = pairs(config.get("env"), "env")
    except UsageError as error:
        raise TargetError(f"mcp_config of the bundle can't be used: {error.message}") from error
    if server.get("type") == "uv":
        # The program is found as in any source tree; what stands behind it are arguments.
        known = {str(server.get("entry_point")), f"${{__dirname}}/{server.get('entry_point')}"}
        place = next((i for i, word in enumerate(parts) if word in known), len(parts) - 1)
        parts = parts[place + 1 :]
    argv: list[str] = []
    for part in parts:
        alone = _VARIABLE.fullmatch(part)
        if alone and alone[1].startswith("user_config."):
            argv += values.get(alone[1].removeprefix("user_config."), [])
        else:
            argv.append(_filled(part, values))
    filled = {name: _filled(value, values) for name, value in environment.items()}
    return tuple(argv), {name: value for name, value in filled.items() if value or not environment[name]}


def _filled(text: str, values: dict[str, list[str]]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1].startswith("user_config."):
            return ",".join(values.get(match[1].removeprefix("user_config."), []))
        return _FOLDERS.get(match[1], match[0])

    return _VARIABLE.sub(value, text)


def _folders(text: str) -> str:
    return _VARIABLE.sub(lambda match: _FOLDERS.get(match[1], match[0]), text)


def _entry_path(server: JsonObject, tree: SourceTree) -> str:
    path = node_plan.inner_path(server.get("entry_point"))
    if path is None or not tree.has(path):
        raise TargetError(f"the bundle's entry point is not in it: {str(server.get('entry_point'))[:120]!a}")
    return path


def _runtime(manifest: JsonObject, name: str) -> str:
    compatibility = manifest.get("compatibility")
    runtimes = compatibility.get("runtimes") if isinstance(compatibility, dict) else None
    wanted = runtimes.get(name) if isinstance(runtimes, dict) else None
    return wanted if isinstance(wanted, str) else ""


def _python(manifest: JsonObject, tree: SourceTree, options: RunOptions) -> str:
    """The operator's interpreter, else the one that its bundled native modules are made for, else what it asks for."""
    if options.python:
        return python_option(options.python)
    made = {m[1] for f in tree.files if (m := re.search(r"\.cpython-(\d{3})-[\w-]*linux", f.path))}
    fitting = fitting_pythons(_runtime(manifest, "python"))
    return next((python for python in fitting if python.replace(".", "") in made), fitting[0])
