"""What acquiring from a Python index needs, and the choice of the interpreter."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

from harness.acquisition.python.requirements import checked_constraints
from harness.acquisition.python.resolve import PYTHONS, LockedWheel, NoSolution, Resolver
from harness.acquisition.python.settings import IndexSettings
from harness.acquisition.store import Store
from harness.acquisition.tools import run_tool
from harness.model.errors import BlamedError, TargetError, UsageError
from harness.model.options import RunOptions


class PythonWorld:
    """What acquiring from PyPI needs: the store, the index settings, the architecture, and where to report."""

    def __init__(
        self, store: Store, settings: IndexSettings, architecture: str, progress: Callable[[str], None]
    ) -> None:
        machine = platform.machine().lower()
        self.store = store
        self.settings = settings
        self.progress = progress
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

        The operator's choice is the only candidate when there is one. Raises what the first candidate raised.
        """
        constraints = checked_constraints(options.constraints)
        pythons = [python_option(options.python)] if options.python else list(candidates or PYTHONS)
        first: NoSolution | None = None
        for python in pythons:
            self.progress(f"resolving {what} for Python {python}" + (f" as of {as_of.date()}" if as_of else ""))
            try:
                return python, await self.resolver.lock(requirements, python, constraints=constraints, as_of=as_of)
            except NoSolution as error:
                first = first or error
        assert first is not None
        if len(pythons) > 1:
            raise TargetError(f"{first.message} (nor for {' or '.join(pythons[1:])})", remedy=first.remedy) from first
        raise first

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


def python_option(value: str) -> str:
    """The interpreter asked for with --python. Raises UsageError when there is no image with it."""
    if value not in PYTHONS:
        raise UsageError(f"there is no sandbox with Python {value[:20]!a}", remedy="use 3.11 or 3.13")
    return value
