"""Acquiring Python source: a project with static metadata, a requirements file, or a single file.

The source is put at /app/src. A project with a build system is built in the sandbox, without a network, by its
own backend, which comes along as wheels; nothing of it runs on the host.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.acquisition.limits import TEXT_BYTES
from harness.acquisition.python import plan
from harness.acquisition.python.fetch import WheelFacts, fetch_wheels
from harness.acquisition.python.requirements import checked_requirement, read_requirements
from harness.acquisition.python.resolve import PYTHONS, LockedWheel
from harness.acquisition.python.world import PythonWorld
from harness.acquisition.store import Store
from harness.acquisition.tree import SourceTree
from harness.model.base import JsonObject, Record
from harness.model.errors import TargetError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Closure, Ecosystem, EntryPoint, InputFile, InstallPlan, TargetRef

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
    candidates = _candidates(told.requires_python)
    python = options.python or candidates[0]
    wheels: tuple[LockedWheel, ...] = ()
    if told.requirements or options.python:
        python, wheels = await world.choose(told.requirements, options, tree.name, candidates)
    artifacts = await fetch_wheels(world.store, world.settings, wheels, python)
    files: list[InputFile] = [*tree.input_files(world.store), *plan.wheel_files(world.store, artifacts)]
    steps: list[tuple[str, ...]] = [("cp", "-R", "/input/src", SOURCE)]
    everything = {tree.artifact(told.version), *artifacts}
    if told.build is not None:
        world.progress(f"resolving the build backend of {tree.name}")
        backend = await fetch_wheels(world.store, world.settings, await world.resolver.lock(told.build, python), python)
        files += plan.wheel_files(world.store, backend, "build-wheels", pins=None)
        everything |= set(backend)
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
        install=InstallPlan(
            image=plan.image(python),
            files=tuple(files),
            steps=plan.install_steps(wheels=bool(artifacts), after=steps),
            environment={
                **plan.ENVIRONMENT,
                # Version control is not part of the tree: backends that ask it for the version get this one.
                "SETUPTOOLS_SCM_PRETEND_VERSION": told.version or "0.0.0",
            },
            closure_digest=closure.digest,
        ),
        entry_points=tuple(entries),
        notes=(f"Python {python}, {len(artifacts)} packages", *told.notes, *skipped),
    )


def describe(store: Store, tree: SourceTree) -> Described:
    """What the tree's pyproject.toml or requirements.txt say. Raises TargetError for what can't be known statically."""
    text = tree.read(store, "pyproject.toml")
    document = _toml(text.decode("utf-8", "replace"), "pyproject.toml") if text is not None else {}
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
        build=_build_requirements(system, bool(scripts)),
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
    return _toml("\n".join(block[:end]), "the inline metadata")


def _toml(text: str, what: str) -> JsonObject:
    if len(text) > TEXT_BYTES:
        raise TargetError(f"{what} is larger than {TEXT_BYTES} bytes")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TargetError(f"{what} can't be read: {error}") from error


def _build_requirements(system: object, has_scripts: bool) -> tuple[str, ...] | None:
    """What the build backend needs; None for a project that is only run from its files."""
    if not isinstance(system, dict):
        return ("setuptools", "wheel") if has_scripts else None
    requires = system.get("requires", ["setuptools", "wheel"])
    if not isinstance(requires, list):
        raise TargetError("[build-system] of pyproject.toml has a field of a wrong type")
    checked = [checked_requirement(str(entry), "[build-system] of pyproject.toml") for entry in requires]
    return tuple([*checked, "wheel"] if any(entry.startswith("setuptools") for entry in checked) else checked)


def _candidates(requires_python: str) -> list[str]:
    try:
        wanted = SpecifierSet(requires_python[:200])
    except InvalidSpecifier as error:
        raise TargetError(f"requires-python can't be read: {requires_python[:80]!a}") from error
    # The images hold some late bug-fix release of each line.
    fitting = [python for python in PYTHONS if wanted.contains(f"{python}.2") or wanted.contains(f"{python}.99")]
    if not fitting:
        raise TargetError(f"it requires Python {requires_python}; there are sandboxes with {' and '.join(PYTHONS)}")
    return fitting
