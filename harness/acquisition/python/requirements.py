"""Requirements that may be resolved: a name, extras, a version range and a marker, and nothing else.

A requirement that names a URL, a repository, a file or a path would make a package manager fetch or build
what no index vouches for; it is refused here, before any tool sees it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement

from harness.acquisition.store import Store
from harness.acquisition.tree import SourceTree
from harness.model.errors import TargetError, UsageError


def checked_requirement(text: str, owner: str) -> str:
    """The normal form of one requirement that `owner` (a package or file of the target) declares.

    Raises TargetError for one that can't be parsed or is a direct reference.
    """
    if len(text) > 2000:
        raise TargetError(f"{owner} declares a dependency that is too long: {text[:80]!a}")
    try:
        requirement = Requirement(text)
    except (InvalidRequirement, RecursionError) as error:
        if _looks_direct(text):
            raise _refused(owner, text) from error
        raise TargetError(f"{owner} declares a dependency that can't be read: {text[:120]!a}") from error
    if requirement.url is not None:
        raise _refused(owner, text)
    return str(requirement)


def checked_constraints(texts: Iterable[str]) -> tuple[str, ...]:
    """The constraints given by the operator. Raises UsageError for one that isn't a name with a version range."""
    result = []
    for text in texts:
        try:
            requirement = Requirement(text[:2000])
        except (InvalidRequirement, RecursionError):
            raise UsageError(f"--constraint {text[:80]!a} can't be read", remedy="write it as 'mcp<2'") from None
        if requirement.url is not None or requirement.extras or not requirement.specifier:
            raise UsageError(
                f"--constraint {text[:80]!a} is no name with a version range", remedy="write it as 'mcp<2'"
            )
        result.append(str(requirement))
    return tuple(result)


def read_requirements(store: Store, tree: SourceTree, name: str, depth: int = 0) -> list[str]:
    """The requirements of a requirements file in a source tree, with files of the tree that it includes.

    Raises TargetError for direct references, and for options that would change where packages come from.
    """
    data = tree.read(store, name)
    if data is None or depth > 3:
        raise TargetError(f"the requirements file {name[:80]!a} is not in the tree, or included too deeply")
    found: list[str] = []
    for raw in data.decode("utf-8", "replace").replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw)
        line = re.sub(r"\s--hash[=\s]\S+", "", line).strip()
        include = re.fullmatch(r"(?:-r|--requirement)[\s=]*(\S+)", line)
        if include:
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(name), include[1]))
            found += read_requirements(store, tree, inner, depth + 1)
        elif line.startswith("-"):
            raise TargetError(f"{name} has an option that is refused: {line[:80]!a}")
        elif line:
            found.append(checked_requirement(line, name))
    return found


def _looks_direct(text: str) -> bool:
    return bool(re.search(r"://|@\s|^\s*(\.{0,2}/|git\+)|\.(whl|zip|tar\.gz|tgz)\b", text))


def _refused(owner: str, text: str) -> TargetError:
    return TargetError(
        f"{owner} depends on a direct reference, which is refused: {text[:160]!a}",
        remedy="only names and versions from the configured indexes are resolved",
    )
