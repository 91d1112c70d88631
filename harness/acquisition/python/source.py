"""Acquiring Python source: a project with static metadata, a requirements file, or a single file.

The source is put at /app/src. A project with a build system is built in the sandbox, without a network, by its
own backend, which comes along as wheels; nothing of it runs on the host.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.acquisition.python import plan
from harness.acquisition.python.fetch import WheelFacts, fetch_packages, fetch_wheels
from harness.acquisition.python.metadata import fitting_pythons
from harness.acquisition.python.pyproject import build_requirements, read_toml
from harness.acquisition.python.requirements import checked_requirement, read_requirements
from harness.acquisition.python.resolve import LockedWheel
from harness.acquisition.python.world import PythonWorld, applied
from harness.acquisition.store import Store
from harness.acquisition.tree import SourceTree
from harness.model.base import JsonObject, Record
from harness.model.errors import TargetError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Closure, Ecosystem, EntryPoint, TargetRef

SOURCE = "/app/src"

#: Packages whose import tells that they are needed, where a file has no inline metadata (import name = package name).
_BY_IMPORT = ("mcp", "fastmcp", "httpx", "requests", "pydantic", "anyio")


class Described(Record):
    """What a source says about itself. `build`: requirements of its build backend, None when nothing is built."""

    name: str = ""
    version: str = ""
    requirements: tuple[str, ...] = ()
    requires_python: str = ""
    scripts: tuple[str, ...] = ()
    build: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


async def acquire_python_source(
    world: PythonWorld,
    ref: TargetRef,
    tree: SourceTree,
    options: RunOptions,
    servers: Sequence[str],
    described: Described | None,
) -> Acquired:
    """Acquire a tree; `servers` are its files that may be started, `described` is None when its metadata tells.

    Raises TargetError for metadata that is dynamic, damaged or holds a direct reference, and what resolving and
    fetching raise.
    """
    told = described or describe(world.store, tree)
    candidates = fitting_pythons(told.requires_python)
    python = options.python or candidates[0]
    wheels: tuple[LockedWheel, ...] = ()
    if told.requirements or options.python:
        python, wheels = await world.choose(told.requirements, options, tree.name, candidates)
    artifacts = await fetch_packages(world.store, world.settings, wheels, python)
    backends = await world.backends([await world.sdist(file) for file in wheels if file.sdist], python)
    steps: list[tuple[str, ...]] = [("cp", "-R", "/input/src", SOURCE)]
    everything = {tree.artifact(told.version), *artifacts, *backends}
    if told.build is not None:
        world.progress(f"resolving the build backend of {tree.name}")
        own = await fetch_wheels(world.store, world.settings, await world.resolver.lock(told.build, python), python)
        backends = tuple({*backends, *own})
        everything |= set(own)
        install = (plan.UV, "pip", "install", "--quiet", "--python", "/app/bin/python", "--no-deps", "--no-sources")
        steps.append((*install, "--compile-bytecode", "--find-links", "/input/build-wheels", SOURCE))
    entries = list(plan.entry_points(told.name or tree.name, WheelFacts(scripts=told.scripts)))
    if not entries:
        entries = [
            EntryPoint(name=name, argv=("/app/bin/python", f"{SOURCE}/{name}"), source="file") for name in servers
        ]
    closure = Closure(artifacts=tuple(sorted(everything, key=lambda a: (a.name, a.version, a.filename))))
    skipped = (f"left out: {', '.join(tree.passed_over[:5])}",) if tree.passed_over else ()
    return Acquired(
        ref=ref,
        name=told.name or tree.name,
        version=told.version,
        ecosystem=Ecosystem.PYTHON,
        closure=closure,
        install=plan.install_plan(
            world.store,
            python,
            artifacts,
            closure.digest,
            backends=backends,
            files=tree.input_files(world.store),
            after=steps,
            # Version control is not part of the tree: backends that ask it for the version get this one.
            environment={"SETUPTOOLS_SCM_PRETEND_VERSION": told.version or "0.0.0"},
        ),
        entry_points=tuple(entries),
        notes=(f"Python {python}, {len(artifacts)} packages", *told.notes, *skipped, *applied(options)),
    )


def describe(store: Store, tree: SourceTree) -> Described:
    """What the tree's pyproject.toml or requirements.txt say. Raises TargetError for what can't be known statically."""
    text = tree.read(store, "pyproject.toml")
    document = read_toml(text.decode("utf-8", "replace"), "pyproject.toml") if text is not None else {}
    project = document.get("project")
    system = document.get("build-system")
    required = read_requirements(store, tree, "requirements.txt") if tree.has("requirements.txt") else None
    if not isinstance(project, dict):
        if required is None:
            raise TargetError(
                "the project declares its dependencies neither in [project] of pyproject.toml nor in requirements.txt",
                remedy="give the command after --, or a package that is published",
            )
        return Described(requirements=tuple(required))
    dynamic = project.get("dynamic")
    declared = project.get("dependencies", [])
    notes: tuple[str, ...] = ()
    if isinstance(dynamic, list) and "dependencies" in dynamic:
        if required is None:
            raise TargetError("pyproject.toml declares its dependencies as dynamic, which needs running its code")
        declared, notes = required, ("dependencies are dynamic: those of requirements.txt were taken",)
    scripts = project.get("scripts", {})
    requires_python = project.get("requires-python", "")
    if not isinstance(declared, list) or not isinstance(scripts, dict) or not isinstance(requires_python, str):
        raise TargetError("[project] of pyproject.toml has a field of a wrong type")
    return Described(
        name=str(project.get("name") or tree.name)[:200],
        version=str(project.get("version") or "")[:100],
        requirements=tuple(checked_requirement(str(entry), "pyproject.toml") for entry in declared),
        requires_python=requires_python,
        scripts=tuple(str(name) for name in scripts if re.fullmatch(r"[\w.-]+", str(name))),
        build=build_requirements(system, bool(scripts)),
        notes=notes,
    )


def python_file_requirements(store: Store, tree: SourceTree, servers: Sequence[str] = ()) -> Described:
    """What a single file needs: its inline metadata (PEP 723), else what its imports tell.

    `servers` names the files of a bare folder; the first is read for metadata, all for imports.
    """
    names = list(servers) or [tree.files[0].path]
    texts = [(tree.read(store, name) or b"").decode("utf-8", "replace") for name in names]
    inline = _inline_metadata(texts[0])
    if inline is not None:
        declared, requires_python = inline.get("dependencies", []), inline.get("requires-python", "")
        if not isinstance(declared, list) or not isinstance(requires_python, str):
            raise TargetError("the inline metadata has a field of a wrong type")
        return Described(
            requirements=tuple(checked_requirement(str(entry), names[0]) for entry in declared),
            requires_python=requires_python,
        )
    scanned = "\n".join(texts)
    needed = [
        name
        for name in _BY_IMPORT
        if not tree.has(f"{name}.py") and re.search(rf"(?m)^[ \t]*(?:import|from)[ \t]+{name}\b", scanned)
    ]
    note = f"no dependencies are declared; from the imports: {', '.join(needed) or 'none'}"
    return Described(requirements=tuple(needed), notes=(note,))


def _inline_metadata(text: str) -> JsonObject | None:
    """The `script` block of inline metadata (PEP 723), found in one pass; None without one."""
    block: list[str] | None = None
    end = 0
    for line in text.splitlines():
        if block is None:
            block = [] if line == "# /// script" else None
        elif line != "#" and not line.startswith("# "):
            break
        else:
            if line == "# ///":
                end = len(block)
            block.append(line[2:])
    if not block or not end:
        return None
    return read_toml("\n".join(block[:end]), "the inline metadata")
