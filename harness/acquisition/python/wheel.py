"""Acquiring a local wheel or sdist: what it depends on is fetched as a package's is, itself is taken as it is."""

from __future__ import annotations

import anyio.to_thread
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from harness.acquisition.archive import read_zip_member, zip_names
from harness.acquisition.python import plan
from harness.acquisition.python.fetch import WheelFacts, fetch_packages, wheel_facts
from harness.acquisition.python.metadata import CoreMetadata, fitting_pythons, needed, parse_core_metadata
from harness.acquisition.python.world import PythonWorld, applied
from harness.acquisition.store import Store
from harness.acquisition.tree import SourceTree
from harness.model.errors import TargetError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Artifact, Closure, Ecosystem, TargetRef


async def acquire_wheel(world: PythonWorld, ref: TargetRef, source: SourceTree, options: RunOptions) -> Acquired:
    """Acquire the wheel that was read into the store as the only file of `source`.

    Raises TargetError for a file that is no wheel for the sandboxes, or depends on a direct reference, and what
    resolving and fetching raise.
    """
    file = source.files[0]
    try:
        name, version, _, tags = parse_wheel_filename(file.path)
    except InvalidWheelFilename as error:
        raise TargetError(f"{file.path[:120]!a} is not named as a wheel is", remedy="keep its original name") from error
    metadata = await anyio.to_thread.run_sync(_metadata, world.store, source, name)
    candidates = [p for p in fitting_pythons(metadata.requires_python) if tags & set(world.resolver.tags(p))]
    if options.python is None and not candidates:
        raise TargetError(f"the wheel {file.path[:120]!a} is made for another platform or interpreter")
    requires = needed(metadata.requires, file.path)
    python, wheels = await world.choose(requires, options, file.path, candidates)
    others = await fetch_packages(world.store, world.settings, [w for w in wheels if w.name != name], python)
    own = Artifact(name=name, version=str(version), filename=file.path, sha256=file.sha256, size=file.size)
    artifacts = tuple(sorted((own, *others), key=lambda a: (a.name, a.version, a.filename)))
    facts = await anyio.to_thread.run_sync(wheel_facts, world.store.path(file.sha256), file.path)
    backends = await world.backends([await world.sdist(w) for w in wheels if w.sdist and w.name != name], python)
    closure = Closure(artifacts=tuple(sorted({*artifacts, *backends}, key=lambda a: (a.name, a.version, a.filename))))
    return Acquired(
        ref=ref,
        name=name,
        version=str(version),
        ecosystem=Ecosystem.PYTHON,
        closure=closure,
        install=plan.install_plan(world.store, python, artifacts, closure.digest, backends=backends),
        entry_points=plan.entry_points(name, facts),
        notes=(f"Python {python}, {len(artifacts)} packages, the target from a file", *applied(options)),
    )


def _metadata(store: Store, source: SourceTree, name: str) -> CoreMetadata:
    path = store.path(source.files[0].sha256)
    for member in zip_names(path):
        folder, _, inner = member.partition("/")
        if inner == "METADATA" and canonicalize_name(folder.removesuffix(".dist-info").split("-")[0]) == name:
            return parse_core_metadata(read_zip_member(path, member) or b"")
    raise TargetError(f"{source.name[:120]!a} holds no metadata of a wheel")


async def acquire_sdist(world: PythonWorld, ref: TargetRef, source: SourceTree, options: RunOptions) -> Acquired:
    """Acquire the local sdist that was read into the store; it is built in the sandbox. Raises as `acquire_wheel`."""
    file = source.files[0]
    facts = await world.read_sdist(file.sha256, file.path)
    python, wheels = await world.choose(facts.requires, options, file.path, fitting_pythons(facts.requires_python))
    wheels = tuple(w for w in wheels if w.name != facts.name)
    others = await fetch_packages(world.store, world.settings, wheels, python)
    read = [facts, *[await world.sdist(w) for w in wheels if w.sdist]]
    backends = await world.backends(read, python)
    name = f"{facts.name.replace('-', '_')}-{facts.version}.tar.gz"
    own = Artifact(name=facts.name, version=facts.version, filename=name, sha256=file.sha256, size=file.size)
    artifacts = tuple(sorted((own, *others), key=lambda a: (a.name, a.version, a.filename)))
    closure = Closure(artifacts=tuple(sorted({*artifacts, *backends}, key=lambda a: (a.name, a.version, a.filename))))
    return Acquired(
        ref=ref,
        name=facts.name,
        version=facts.version,
        ecosystem=Ecosystem.PYTHON,
        closure=closure,
        install=plan.install_plan(world.store, python, artifacts, closure.digest, backends=backends),
        entry_points=plan.entry_points(facts.name, WheelFacts(scripts=facts.scripts or (facts.name,))),
        notes=(f"Python {python}, {len(artifacts)} packages, the target built from a file", *applied(options)),
    )
