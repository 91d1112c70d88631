"""Source distributions: what their files say about them, read without running any of it.

The metadata that the author's own tools wrote into the archive is believed where it lists the requirements; an
installer would build the package to ask, which only the sandbox does.
"""

from __future__ import annotations

import configparser
import re
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from harness.acquisition.archive import read_zip_member, safe_member, zip_names
from harness.acquisition.limits import TEXT_BYTES
from harness.acquisition.python.fetch import console_scripts
from harness.acquisition.python.metadata import CoreMetadata, needed, parse_core_metadata
from harness.acquisition.python.pyproject import build_requirements, read_toml
from harness.acquisition.tarball import read_tarball
from harness.model.base import JsonObject, Record
from harness.model.errors import TargetError

_READ = ("PKG-INFO", "pyproject.toml", "setup.cfg")
_EGG_INFO = ("requires.txt", "entry_points.txt")


class SdistFacts(Record):
    """What an sdist says about itself. `build`: requirements of its build backend; `scripts`: its console scripts."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    requires_python: str = ""
    build: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


def sdist_facts(path: Path, filename: str, work: Path) -> SdistFacts:
    """Read the stored sdist at `path`; `work` is a temporary folder.

    Raises TargetError when it is damaged, beyond the bounds, names a direct reference, or doesn't tell what it needs.
    """
    files = _zip_files(path) if filename.endswith(".zip") else read_tarball(path, work, _wanted)
    texts = {name.partition("/")[2]: data for name, data in files.items()}
    if "PKG-INFO" not in texts:
        raise TargetError(f"{filename[:120]!a} is no source distribution: it holds no PKG-INFO")
    metadata = parse_core_metadata(texts["PKG-INFO"])
    document = read_toml(texts.get("pyproject.toml", b"").decode("utf-8", "replace"), f"pyproject.toml of {filename}")
    project = document.get("project")
    project = project if isinstance(project, dict) else {}
    if not metadata.name or not metadata.version:
        raise TargetError(f"{filename[:120]!a} is no source distribution: it names no package and version")
    return SdistFacts(
        name=canonicalize_name(metadata.name),
        version=metadata.version,
        requires=_requires(metadata, project, texts, filename),
        requires_python=metadata.requires_python or str(project.get("requires-python") or ""),
        build=build_requirements(document.get("build-system", {}), True) or (),
        scripts=_scripts(document, project, texts),
    )


def _wanted(name: str) -> bool:
    parts = PurePosixPath(name).parts
    if len(parts) == 2:
        return parts[1] in _READ
    return len(parts) in (3, 4) and parts[-2].endswith(".egg-info") and parts[-1] in _EGG_INFO


def _zip_files(path: Path) -> dict[str, bytes]:
    names = zip_names(path)
    for name in names:
        safe_member(name)
    return {name: read_zip_member(path, name) or b"" for name in names if _wanted(name)}


def _requires(metadata: CoreMetadata, project: JsonObject, texts: dict[str, bytes], filename: str) -> tuple[str, ...]:
    """The requirements: of the metadata, else of pyproject.toml, else those that setuptools wrote beside."""
    if metadata.static or metadata.requires:
        return needed(metadata.requires, filename)
    dynamic = project.get("dynamic")
    declared = project.get("dependencies")
    if isinstance(declared, list) and not (isinstance(dynamic, list) and "dependencies" in dynamic):
        return needed((str(entry) for entry in declared), filename)
    written = next((data for name, data in texts.items() if name.endswith("requires.txt")), None)
    return needed(_egg_requirements(written or b""), filename)


def _egg_requirements(data: bytes) -> list[str]:
    """The lines of a requires.txt: those before the first section, and of sections that are a marker only."""
    found: list[str] = []
    extra, marker = "", ""
    for raw in data[:TEXT_BYTES].decode("utf-8", "replace").splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
        elif line and not extra:
            found.append(f"{line} ; {marker}" if marker else line)
    return found


def _scripts(document: JsonObject, project: JsonObject, texts: dict[str, bytes]) -> tuple[str, ...]:
    written = next((data for name, data in texts.items() if name.endswith("entry_points.txt")), None)
    if written is not None:
        return tuple(console_scripts(written))
    tool = document.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    for table in (project, poetry if isinstance(poetry, dict) else {}):
        scripts = table.get("scripts")
        if isinstance(scripts, dict):
            return tuple(str(name) for name in scripts if re.fullmatch(r"[\w.-]+", str(name)))
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(texts.get("setup.cfg", b"")[:TEXT_BYTES].decode("utf-8", "replace"))
        lines = parser.get("options.entry_points", "console_scripts", fallback="").splitlines()
    except configparser.Error:
        return ()
    names = (line.partition("=")[0].strip() for line in lines if "=" in line)
    return tuple(name for name in names if re.fullmatch(r"[\w.-]+", name))
