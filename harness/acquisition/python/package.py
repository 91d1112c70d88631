"""Acquiring a `pypi:` target: choose the interpreter, resolve, fetch, and say how to install and start it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import anyio.to_thread
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.acquisition.nearest import existing, package_variants
from harness.acquisition.python import plan
from harness.acquisition.python.fetch import fetch_wheels, wheel_facts
from harness.acquisition.python.resolve import LockedWheel, NoSolution, UnknownPackage, UnknownVersion
from harness.acquisition.python.world import PythonWorld
from harness.acquisition.reference import package_launch
from harness.model.errors import BlamedError, TargetError, UsageError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Closure, Ecosystem, InstallPlan, TargetRef

#: A release older than this gets the dependencies of its time, which is its date and some days to settle.
_OLD = timedelta(days=183)
_SETTLED = timedelta(days=14)


async def acquire_pypi(world: PythonWorld, ref: TargetRef, options: RunOptions) -> Acquired:
    """Acquire a `pypi:` target, or a `uvx` command that names one.

    Raises UsageError for an unknown package or version, TargetError for a closure that can't be had as wheels or
    holds a direct reference, RegistryError for an index that does not answer.
    """
    assert ref.name is not None
    listed: list[str] = []
    locked: tuple[str, tuple[LockedWheel, ...]] | BlamedError | None = None

    async def resolve() -> None:
        nonlocal locked
        requirement = f"{ref.name}=={ref.version}" if ref.version else str(ref.name)
        try:
            locked = await world.choose([requirement], options, str(ref.name))
        except BlamedError as error:
            locked = error
            tasks.cancel_scope.cancel()

    async def list_versions() -> None:
        listed.extend(await world.versions(str(ref.name)))

    async with anyio.create_task_group() as tasks:  # errors are carried over: a group would wrap them
        tasks.start_soon(resolve)
        if ref.version is None:
            tasks.start_soon(list_versions)
    if isinstance(locked, BlamedError):
        raise await _with_suggestions(world, locked)
    assert locked is not None
    python, wheels = locked
    target = next(wheel for wheel in wheels if wheel.name == canonicalize_name(ref.name))
    notes = await _check_newest(world, target, listed, python)
    python, wheels, dated = await _as_of_release(world, target, python, wheels, options)
    world.progress(f"fetching {len(wheels)} packages")
    artifacts = await fetch_wheels(world.store, world.settings, wheels, python)
    own = next(artifact for artifact in artifacts if artifact.name == target.name)
    facts = await anyio.to_thread.run_sync(wheel_facts, world.store.path(own.sha256), own.filename)
    entries = plan.entry_points(target.name, facts, _arguments(ref))
    chosen = _program(ref)
    closure = Closure(artifacts=artifacts)
    return Acquired(
        ref=ref,
        name=target.name,
        version=target.version,
        ecosystem=Ecosystem.PYTHON,
        closure=closure,
        install=InstallPlan(
            image=plan.image(python),
            files=plan.wheel_files(world.store, artifacts),
            steps=plan.install_steps(),
            environment=plan.ENVIRONMENT,
            closure_digest=closure.digest,
        ),
        entry_points=tuple(sorted(entries, key=lambda entry: chosen is not None and entry.name != chosen)),
        notes=(f"Python {python}, {len(artifacts)} packages", *notes, *dated),
    )


async def _check_newest(world: PythonWorld, target: LockedWheel, listed: list[str], python: str) -> list[str]:
    """Refuse to take an old release only because newer ones have no wheel; note any other reason for an older one."""
    newest = _newest(listed)
    if newest is None or Version(target.version) >= newest:
        return []
    try:
        await world.resolver.lock([f"{target.name}=={newest}"], python, deps=False)
    except NoSolution as error:
        raise TargetError(
            f"the newest release {newest} of {target.name} has no wheel for Python {python}; "
            f"{target.version} is the newest that has one",
            remedy=f"ask for it as pypi:{target.name}=={target.version}",
        ) from error
    except BlamedError:
        pass
    return [f"{target.name} {newest} exists; its requirements do not fit, so {target.version} was taken"]


async def _as_of_release(
    world: PythonWorld,
    target: LockedWheel,
    python: str,
    wheels: tuple[LockedWheel, ...],
    options: RunOptions,
) -> tuple[str, tuple[LockedWheel, ...], list[str]]:
    """Resolve an old release with the dependencies of its own time, unless the operator constrains them.

    Its author could not know what came later: of 100 popular servers four failed for that reason alone, and
    dependencies as of the release date plus two weeks mended all of them (design notes on starting).
    """
    uploaded = target.uploaded
    if options.constraints or uploaded is None or datetime.now(UTC) - uploaded < _OLD:
        return python, wheels, []
    as_of = uploaded + _SETTLED
    try:
        python, wheels = await world.choose([f"{target.name}=={target.version}"], options, target.name, as_of=as_of)
    except TargetError:
        return python, wheels, ["an old release, with the newest dependencies: those of its own time can't be had"]
    note = f"released on {uploaded.date()}, so its dependencies are those of {as_of.date()} (--constraint changes that)"
    return python, wheels, [note]


async def _with_suggestions(world: PythonWorld, error: BlamedError) -> BlamedError:
    """Add the nearest names to an unknown package, or the newest versions to an unknown version."""
    if isinstance(error, UnknownVersion):
        versions = await world.versions(error.name)
        if versions:
            return UsageError(error.message, remedy=f"the newest versions are {', '.join(versions[:5])}")
    if isinstance(error, UnknownPackage):
        found = await existing(package_variants(error.name), world.versions)
        if found:
            return UsageError(error.message, remedy=f"did you mean {' or '.join(f'pypi:{name}' for name in found)}?")
    return error


def _newest(listed: list[str]) -> Version | None:
    versions = []
    for text in listed:
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            versions.append(version)
    return max(versions, default=None)


def _arguments(ref: TargetRef) -> tuple[str, ...]:
    launch = package_launch(ref.command) if ref.command else None
    return launch[3] if launch else ()


def _program(ref: TargetRef) -> str | None:
    launch = package_launch(ref.command) if ref.command else None
    return launch[2] if launch else None
