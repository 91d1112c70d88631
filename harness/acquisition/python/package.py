"""Acquiring a `pypi:` target: choose the interpreter, resolve, fetch, and say how to install and start it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import anyio.to_thread
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.acquisition.nearest import existing, package_variants
from harness.acquisition.python import plan
from harness.acquisition.python.fetch import WheelFacts, fetch_packages, wheel_facts
from harness.acquisition.python.resolve import LockedWheel, NoSolution, UnknownPackage, UnknownVersion
from harness.acquisition.python.world import PythonWorld, applied
from harness.acquisition.reference import package_launch
from harness.model.errors import BlamedError, TargetError, UsageError
from harness.model.options import RunOptions
from harness.model.target import Acquired, Closure, Ecosystem, TargetRef

#: A release older than this gets the dependencies of its time: its date and a day, or where that gives no closure
#: (what belongs to it was published later) two weeks.
_OLD = timedelta(days=183)
_SETTLED = (timedelta(days=1), timedelta(days=14))


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
    python, wheels, notes = await _newest_release(world, target, listed, python, wheels, options)
    target = next(wheel for wheel in wheels if wheel.name == target.name)
    python, wheels, dated = await _as_of_release(world, target, python, wheels, options)
    world.progress(f"fetching {len(wheels)} packages")
    artifacts = await fetch_packages(world.store, world.settings, wheels, python)
    sdists = {file.name: await world.sdist(file) for file in wheels if file.sdist}
    backends = await world.backends(list(sdists.values()), python)
    own = next(artifact for artifact in artifacts if artifact.name == target.name)
    if own.name in sdists:
        facts = WheelFacts(scripts=sdists[own.name].scripts or (own.name,))
    else:
        facts = await anyio.to_thread.run_sync(wheel_facts, world.store.path(own.sha256), own.filename)
    entries = plan.entry_points(target.name, facts, _arguments(ref))
    chosen = _program(ref)
    closure = Closure(artifacts=tuple(sorted({*artifacts, *backends}, key=lambda a: (a.name, a.version, a.filename))))
    built = (f"built in the sandbox: {', '.join(sorted(sdists))}",) if sdists else ()
    return Acquired(
        ref=ref,
        name=target.name,
        version=target.version,
        ecosystem=Ecosystem.PYTHON,
        closure=closure,
        install=plan.install_plan(world.store, python, artifacts, closure.digest, backends=backends),
        entry_points=tuple(sorted(entries, key=lambda entry: chosen is not None and entry.name != chosen)),
        notes=(f"Python {python}, {len(artifacts)} packages", *built, *notes, *dated, *applied(options)),
    )


async def _newest_release(
    world: PythonWorld,
    target: LockedWheel,
    listed: list[str],
    python: str,
    wheels: tuple[LockedWheel, ...],
    options: RunOptions,
) -> tuple[str, tuple[LockedWheel, ...], list[str]]:
    """Take the newest release, also where only an older one has a wheel; note any other reason for an older one."""
    newest = _newest(listed)
    if newest is None or options.as_of or Version(target.version) >= newest:
        return python, wheels, []
    try:
        await world.resolver.lock([f"{target.name}=={newest}"], python, deps=False)
    except NoSolution:
        try:
            python, wheels = await world.choose([f"{target.name}=={newest}"], options, target.name)
        except TargetError as error:
            raise TargetError(
                f"the newest release {newest} of {target.name} has no wheel for Python {python}, and its source can't "
                f"be used: {error.message}; {target.version} is the newest that has one",
                remedy=f"ask for it as pypi:{target.name}=={target.version}",
            ) from error
        return python, wheels, []
    except BlamedError:
        pass
    return (
        python,
        wheels,
        [f"{target.name} {newest} exists; its requirements do not fit, so {target.version} was taken"],
    )


async def _as_of_release(
    world: PythonWorld,
    target: LockedWheel,
    python: str,
    wheels: tuple[LockedWheel, ...],
    options: RunOptions,
) -> tuple[str, tuple[LockedWheel, ...], list[str]]:
    """Resolve an old release with the dependencies of its own time, unless the operator constrains them.

    Its author could not know what came later: of 100 popular servers four failed for that reason alone, and
    dependencies as of the release date plus two weeks mended all of them. A day is enough where it gives a closure, and
    keeps out what broke within the two weeks.
    """
    uploaded = target.uploaded
    if options.constraints or options.as_of or uploaded is None or datetime.now(UTC) - uploaded < _OLD:
        return python, wheels, []
    for settled in _SETTLED:
        as_of = uploaded + settled
        try:
            python, wheels = await world.choose([f"{target.name}=={target.version}"], options, target.name, as_of=as_of)
            break
        except TargetError:
            continue
    else:
        return python, wheels, ["an old release, with the newest dependencies: those of its own time can't be had"]
    note = f"released on {uploaded.date()}, so its dependencies are those of {as_of.date()}"
    return python, wheels, [f"{note} (--as-of or --constraint changes that)"]


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
