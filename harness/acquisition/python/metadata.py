"""Core metadata of wheels and sdists (packaging.python.org, "Core metadata specifications"), read and checked.

Only the headers are parsed; the description that follows may be long and says nothing that is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.markers import UndefinedEnvironmentName
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.acquisition.limits import TEXT_BYTES
from harness.acquisition.python.requirements import checked_requirement
from harness.acquisition.python.resolve import PYTHONS
from harness.model.base import Record
from harness.model.errors import TargetError


class CoreMetadata(Record):
    """What a package says about itself. `requires` as written; `static`: no build can add to them (2.2 and later)."""

    name: str = ""
    version: str = ""
    requires: tuple[str, ...] = ()
    requires_python: str = ""
    static: bool = False


def parse_core_metadata(data: bytes) -> CoreMetadata:
    """Read METADATA or PKG-INFO. Raises TargetError when it is too large or no metadata."""
    head = data.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    if len(head) > TEXT_BYTES:
        raise TargetError(f"the package's metadata is larger than {TEXT_BYTES} bytes")
    try:
        raw, _ = parse_email(head)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise TargetError(f"the package's metadata can't be read: {type(error).__name__}") from error
    version = raw.get("metadata_version", "")
    dynamic = {entry.lower() for entry in raw.get("dynamic", [])}
    return CoreMetadata(
        name=str(raw.get("name", ""))[:200],
        version=str(raw.get("version", ""))[:100],
        requires=tuple(raw.get("requires_dist", [])),
        requires_python=str(raw.get("requires_python", "") or "")[:200],
        static=version not in ("", "1.0", "1.1", "1.2", "2.0", "2.1") and "requires-dist" not in dynamic,
    )


def needed(requires: Iterable[str], owner: str) -> tuple[str, ...]:
    """The checked requirements that an install without extras takes. Raises TargetError for a direct reference."""
    found = []
    for text in requires:
        try:
            requirement = Requirement(text[:2000])
        except (InvalidRequirement, RecursionError):
            found.append(checked_requirement(text, owner))  # says what is wrong with it
            continue
        if requirement.marker is not None and not _ever(requirement):
            continue
        found.append(checked_requirement(text, owner))
    return tuple(found)


def _ever(requirement: Requirement) -> bool:
    """False for a requirement of an extra, or one for another kind of system than the sandbox."""
    assert requirement.marker is not None
    ours = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": ""}
    for python in PYTHONS:
        versions = {"python_version": python, "python_full_version": f"{python}.2"}
        try:
            if requirement.marker.evaluate({**ours, **versions}):
                return True
        except (UndefinedEnvironmentName, ValueError):
            return True
    return False


def fitting_pythons(requires_python: str) -> list[str]:
    """The sandboxes' interpreters that satisfy `requires_python`. Raises TargetError when there is none."""
    try:
        wanted = SpecifierSet(requires_python[:200])
    except InvalidSpecifier as error:
        raise TargetError(f"requires-python can't be read: {requires_python[:80]!a}") from error
    # The images hold some late bug-fix release of each line.
    fitting = [python for python in PYTHONS if wanted.contains(f"{python}.2") or wanted.contains(f"{python}.99")]
    if not fitting:
        raise TargetError(f"it requires Python {requires_python}; there are sandboxes with {listed(list(PYTHONS))}")
    return fitting


def listed(names: Sequence[str]) -> str:
    """Names for a sentence."""
    return " and ".join(names)
