"""What acquiring from a Python index needs, and the choice of the interpreter."""

from __future__ import annotations

import itertools
import platform
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import anyio.to_thread
from packaging.version import Version

from harness.acquisition.python.fetch import fetch_sdists, fetch_wheels
from harness.acquisition.python.requirements import checked_constraints
from harness.acquisition.python.resolve import PYTHONS, KnownSdist, LockedWheel, NoSolution, Resolver
from harness.acquisition.python.sdist import SdistFacts, sdist_facts
from harness.acquisition.python.settings import IndexSettings
from harness.acquisition.store import Store
from harness.acquisition.tools import run_tool
from harness.model.errors import BlamedError, TargetError, UsageError
from harness.model.options import RunOptions
from harness.model.target import Artifact

#: Sdists of one closure; each costs a resolution of its own.
MOST_SDISTS = 12


class PythonWorld:
    """What acquiring from PyPI needs: the store, the index settings, the architecture, and where to report."""

    def __init__(
        self, store: Store, settings: IndexSettings, architecture: str, progress: Callable[[str], None]
    ) -> None:
        machine = platform.machine().lower()
        self.store = store
        self.settings = settings
        self.progress = progress
        #: What the operator should know of the resolutions made here.
        self.warnings: list[str] = []
        self.resolver = Resolver(store, settings, architecture)
        #: Resolves tools of ours, which run on this machine.
        self.host = Resolver(store, settings, {"arm64": "aarch64", "amd64": "x86_64"}.get(machine, machine))

    async def choose(
        self,
        requirements: Sequence[str],
        options: RunOptions,
        what: str,
        candidates: Sequence[str] = (),
        as_of: datetime | None = None,
    ) -> tuple[str, tuple[LockedWheel, ...]]:
        """The first interpreter that has wheels for the whole closure, and that closure.

        The operator's choice is the only candidate when there is one. Where none has wheels for all of it, sdists are
        taken for what has no wheel. Raises what the first candidate raised.
        """
        constraints = checked_constraints(options.constraints)
        as_of = as_of or as_of_date(options.as_of)
        pythons = [python_option(options.python)] if options.python else list(candidates or PYTHONS)
        first: NoSolution | None = None
        wheelless = False
        for sdists, python in itertools.product((False, True), pythons):
            if sdists and not wheelless:
                break
            self.progress(f"resolving {what} for Python {python}" + (f" as of {as_of.date()}" if as_of else ""))
            try:
                if sdists:
                    return python, await self._lock_with_sdists(requirements, python, constraints, as_of)
                found = await self.resolver.lock(requirements, python, constraints=constraints, as_of=as_of)
            except NoSolution as error:
                first = first or error
                wheelless = wheelless or error.wheelless is not None
                continue
            await self._compare_indexes(requirements, python, constraints, as_of, found)
            return python, found
        assert first is not None
        if len(pythons) > 1:
            raise TargetError(f"{first.message} (nor for {' or '.join(pythons[1:])})", remedy=first.remedy) from first
        raise first

    async def _compare_indexes(
        self,
        requirements: Sequence[str],
        python: str,
        constraints: Sequence[str],
        as_of: datetime | None,
        found: tuple[LockedWheel, ...],
    ) -> None:
        """Warn where a name is on several indexes and another one would win if their order counted.

        A package of one's own that somebody publishes elsewhere with a higher version is the classic confusion.
        """
        if not self.settings.extra:
            return
        try:
            ordered = await self.resolver.lock(
                requirements, python, constraints=constraints, as_of=as_of, in_order=True
            )
        except BlamedError:
            return  # the order does not give a closure at all: it was not the order that was meant
        by_name = {file.name: file for file in ordered}
        for file in found:
            other = by_name.get(file.name)
            if other is not None and other.sha256 != file.sha256:
                self.warnings.append(
                    f"warning: {file.name} is on several indexes: {file.version} from {place(file.url)} was taken, "
                    f"{other.version} from {place(other.url)} was not"
                )

    async def _lock_with_sdists(
        self, requirements: Sequence[str], python: str, constraints: Sequence[str], as_of: datetime | None
    ) -> tuple[LockedWheel, ...]:
        """A closure in which packages without a wheel are sdists, each read as soon as it is known which."""
        known: dict[str, KnownSdist] = {}
        while True:
            try:
                files = await self.resolver.lock(
                    requirements, python, constraints=constraints, as_of=as_of, sdists=known
                )
            except NoSolution as error:
                if error.wheelless is None or error.wheelless in known or len(known) >= MOST_SDISTS:
                    raise
                known[error.wheelless] = KnownSdist()
                continue
            unread = [file for file in files if file.sdist and known[file.name].version is None]
            if not unread:
                return files
            for file in unread:
                facts = await self.sdist(file)
                known[file.name] = KnownSdist(
                    version=file.version, requires=facts.requires, requires_python=facts.requires_python
                )

    async def sdist(self, file: LockedWheel) -> SdistFacts:
        """Fetch an sdist and read what it says. Raises TargetError when that is not what the index says."""
        self.progress(f"reading the source of {file.name} {file.version}")
        await fetch_sdists(self.store, self.settings, [file])
        facts = await self.read_sdist(file.sha256, file.filename)
        if facts.name != file.name or Version(facts.version) != Version(file.version):
            raise TargetError(f"the source {file.filename} is of another package: {facts.name[:80]!a}")
        return facts

    async def read_sdist(self, sha256: str, filename: str) -> SdistFacts:
        """What a stored sdist says."""
        with self.store.work() as work:
            return await anyio.to_thread.run_sync(sdist_facts, self.store.path(sha256), filename, work)

    async def backends(self, facts: Sequence[SdistFacts], python: str) -> tuple[Artifact, ...]:
        """The wheels that building these sdists takes, each resolved by itself: they may contradict each other."""
        found: set[Artifact] = set()
        for build in dict.fromkeys(fact.build for fact in facts):
            self.progress(f"resolving the build backend {build[0] if build else ''}".rstrip())
            found |= set(await fetch_wheels(self.store, self.settings, await self.resolver.lock(build, python), python))
        return tuple(sorted(found, key=lambda a: (a.name, a.version, a.filename)))

    async def versions(self, name: str) -> list[str]:
        """The versions of a package that the indexes list, newest first, sdists included; empty when that fails."""
        arguments = [sys.executable, "-I", "-m", "pip", "index", "versions", name]
        arguments += ["--python-version", next(iter(PYTHONS))]  # releases for a newer Python than this one's count
        try:
            result = await run_tool(
                arguments, environment=self.settings.pip_environment(), cwd=self.store.folder("work"), seconds=30
            )
        except BlamedError:
            return []
        for line in result.output.decode("utf-8", "replace").splitlines():
            label, _, listed = line.partition(":")
            if label.strip() == "Available versions":
                return [version.strip() for version in listed.split(",") if version.strip()]
        return []


def as_of_date(text: str | None) -> datetime | None:
    """The moment at the end of the day `YYYY-MM-DD`, or of a full timestamp; None without one. Raises UsageError."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--as-of {text[:40]!a} is no date", remedy="write it as 2025-09-01") from None
    if len(text) <= len("2025-09-01"):
        moment += timedelta(days=1)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def applied(options: RunOptions) -> tuple[str, ...]:
    """What of the operator's wishes changed the resolution, for the notes."""
    notes = [f"constraints: {', '.join(options.constraints)}"] if options.constraints else []
    return (*notes, f"dependencies as of {options.as_of}") if options.as_of else tuple(notes)


def place(url: str) -> str:
    """Where a file comes from, for people: the host, or the folder of a local index."""
    parts = urlsplit(url)
    return (parts.hostname or "") + (f":{parts.port}" if parts.port else "") or parts.path.rpartition("/")[0]


def python_option(value: str) -> str:
    """The interpreter asked for with --python. Raises UsageError when there is no image with it."""
    if value not in PYTHONS:
        raise UsageError(f"there is no sandbox with Python {value[:20]!a}", remedy="use 3.11 or 3.13")
    return value
