"""Files that a server misses: a minimal one of their kind is planted where it looks, if that lies in its home."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from harness.probing.starting.case import Case, Proposal
from harness.probing.starting.complaints import complaints
from harness.probing.starting.obstacles import is_sealed
from harness.probing.starting.skeletons import looks_like_a_file, skeleton

MOST = 6

_MISSING = (
    re.compile(r"ENOENT: no such file or directory, \w+ ['\"]([^'\"\n]{1,400})['\"]"),
    re.compile(r"No such file or directory: ['\"]([^'\"\n]{1,400})['\"]"),
    re.compile(r"open ([^\s:'\"]{1,400}): no such file or directory"),
)
_PATH = re.compile(r"(?<![\w:/.])((?:~|/home/user|\$HOME|\.{1,2})?/[\w.@+/-]{2,200}[\w/])")
_NAME = re.compile(r"(?<![\w/.-])([\w.-]{1,60}\.(?:json|ya?ml|toml|ini|env|db|sqlite3?|csv|pem|key|txt))\b(?!/)")
#: Configuration that is a program; of several suffixes offered, the first that needs no transpiler.
_PROGRAM = re.compile(r"(?<![\w/.-])([\w-]{1,40}\.config)\.(?:([cm]?[jt]s)\b|\{([cm]?[jt]s(?:,[cm]?[jt]s){1,5})\})")
_OURS = re.compile(r"^(?:package|tsconfig|package-lock)\.json$|^node:|(?<!\.config)\.[cm]?js$|\.py$")


#: What pydantic-settings says of a name in `.env` that is none of its fields.
_FOREIGN = re.compile(r"Extra inputs are not permitted|type=extra_forbidden")
_SETTINGS = "workspace/.env"


def cleared(case: Case) -> Iterator[Proposal]:
    """A server that refuses to start for settings of others in the workspace's `.env`: an empty one."""
    if _FOREIGN.search(case.text) and _SETTINGS not in case.adjustment.files:
        yield Proposal(case.plant({}, {_SETTINGS: ""}), f"an empty ~/{_SETTINGS}: it refuses what others have there")


def unsealed(case: Case) -> Iterator[Proposal]:
    """A server that writes beside its own code: a copy of its installation, to which it can write."""
    if is_sealed(case.text) and not case.adjustment.unsealed:
        yield Proposal(case.change(unsealed=True), "a copy of its installation that it can write to")


def propose(case: Case) -> Iterator[Proposal]:
    """Paths of errors first, then paths and names of files that complaints hold."""
    certain = [found for pattern in _MISSING for found in pattern.findall(case.text)]
    said = complaints(case.lines, strong=True)
    likely = [found for line in said for found in (*_PATH.findall(line), *_NAME.findall(line))]
    likely += [_program(match) for line in case.lines if "find" in line for match in _PROGRAM.finditer(line)]
    for paths in (certain, [path for path in likely if looks_like_a_file(path) or path.startswith("/home/user/")]):
        files = _files(case, paths)
        if files:
            shown = ", ".join(sorted(f"~/{path}" for path in files))
            yield Proposal(case.plant({}, files), f"files that it looks for: {shown}")


def _program(match: re.Match[str]) -> str:
    suffixes = match[3].split(",") if match[3] else [match[2]]
    return f"{match[1]}.{next((suffix for suffix in ('mjs', 'js', 'cjs') if suffix in suffixes), suffixes[0])}"


def _files(case: Case, paths: list[str]) -> dict[str, str]:
    home = case.facts.home
    found: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        full = re.sub(r"^(?:~|\$HOME)(?=/)", home, path)
        full = posixpath.normpath(posixpath.join(case.facts.workspace, full))
        if (
            not full.startswith(f"{home}/")
            or full == case.facts.workspace
            or _OURS.search(posixpath.basename(full))
            or "\0" in full
        ):
            continue
        relative = posixpath.relpath(full, home)
        if not looks_like_a_file(full):
            relative = f"{relative}/.keep"
        if relative not in case.adjustment.files and len(found) < MOST and "\\" not in relative:
            found[relative] = skeleton(full, case.text[:4000], case.material) if not relative.endswith("/.keep") else ""
    # A file can't be where another one needs a folder.
    return {path: text for path, text in found.items() if not any(other.startswith(f"{path}/") for other in found)}
