"""Reading pyproject.toml: its text, bounded, and what its build backend needs."""

from __future__ import annotations

import tomllib

from harness.acquisition.limits import TEXT_BYTES
from harness.acquisition.python.requirements import checked_requirement
from harness.model.base import JsonObject
from harness.model.errors import TargetError


def read_toml(text: str, what: str) -> JsonObject:
    """Parse TOML. Raises TargetError, naming it as `what`, when it is damaged or too large."""
    if len(text) > TEXT_BYTES:
        raise TargetError(f"{what} is larger than {TEXT_BYTES} bytes")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TargetError(f"{what} can't be read: {error}") from error


def build_requirements(system: object, has_scripts: bool) -> tuple[str, ...] | None:
    """What the build backend needs; None for a project that is only run from its files."""
    if not isinstance(system, dict):
        return ("setuptools", "wheel") if has_scripts else None
    requires = system.get("requires", ["setuptools", "wheel"])
    if not isinstance(requires, list):
        raise TargetError("[build-system] of pyproject.toml has a field of a wrong type")
    checked = [checked_requirement(str(entry), "[build-system] of pyproject.toml") for entry in requires]
    if any(entry.startswith("setuptools") for entry in checked):
        checked.append("wheel")
    return tuple(dict.fromkeys(checked))
