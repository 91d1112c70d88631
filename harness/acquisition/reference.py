"""Parsing of TARGET: from what the user typed to a `TargetRef`, or one clear `UsageError`.

The only thing asked of the file system is whether a path exists. Nothing is resolved or fetched here.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.model.errors import UsageError
from harness.model.target import TargetKind, TargetRef

FORMS = (
    "pypi:NAME[==VERSION], npm:NAME[@VERSION], DIR, FILE.py, FILE.js, FILE.whl, FILE.tgz, FILE.tar.gz, FILE.mcpb, "
    "CONFIG.json#NAME, server.json, oci:IMAGE, or -- COMMAND ARGS"
)

PYTHON_SUFFIXES = (".py",)
NODE_SUFFIXES = (".js", ".mjs", ".cjs")

#: Files by the end of their names; the first that fits counts.
_FILES = (
    (re.compile(r"\.whl$", re.IGNORECASE), TargetKind.WHEEL),
    (re.compile(r"\.(tgz|tar\.gz)$", re.IGNORECASE), TargetKind.ARCHIVE),
    (re.compile(r"\.(mcpb|dxt)$", re.IGNORECASE), TargetKind.BUNDLE),
    (re.compile(r"\.tools\.json$", re.IGNORECASE), TargetKind.TOOLS),
    (re.compile(r"(^|[/.-])server\.json$", re.IGNORECASE), TargetKind.SERVER_JSON),
    (re.compile(r"\.json$", re.IGNORECASE), TargetKind.CONFIG),
)

_UVX_FLAGS = frozenset(
    {"-q", "--quiet", "--isolated", "--refresh", "-U", "--upgrade", "--no-cache", "-n", "--no-progress"}
)

# PEP 508 names. Extras are not part of the form.
_PYPI_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
# The rules of the npm registry: URL-safe characters, no leading dot or underscore, at most 214 characters.
_NPM_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*", re.ASCII)
# An exact version or a distribution tag: both are names without range operators.
# A reference of the engine: name (with a registry's host, port and path), tag, digest; or a bare image id.
_OCI = re.compile(
    r"(?=.{1,400}\Z)[a-zA-Z0-9][\w.-]*(?::\d{1,5})?(?:/[a-z0-9][\w.-]*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
    r"|sha256:[0-9a-f]{64}",
    re.ASCII,
)
_NPM_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,127}", re.ASCII)


def parse_target(text: str | None, command: tuple[str, ...]) -> TargetRef:
    """Make a `TargetRef` of TARGET (`text`) or of the words after `--` (`command`), exactly one of which is given.

    Raises UsageError, and nothing else, for anything that is not one of the forms.
    """
    if command:
        if text:
            raise UsageError("both a TARGET and a COMMAND were given", remedy="give one of them")
        return parse_command(command)
    if not text:
        raise UsageError("no TARGET was given", remedy=f"give one of {FORMS}")
    if text.startswith("pypi:"):
        return pypi_ref(text.removeprefix("pypi:"), text)
    if text.startswith("npm:"):
        return npm_ref(text.removeprefix("npm:"), text)
    if text.startswith("oci:"):
        return oci_ref(text.removeprefix("oci:"), text)
    if re.match(r"https?://", text, re.IGNORECASE):
        raise UsageError("a live remote server (https://…) is not supported yet", remedy=f"give one of {FORMS}")
    return _path_ref(text)


def pypi_ref(spec: str, text: str) -> TargetRef:
    """A reference to a PyPI package from `NAME[==VERSION]`."""
    name, separator, version = spec.partition("==")
    if not _PYPI_NAME.fullmatch(name):
        raise UsageError(f"{_shown(text)} does not name a PyPI package", remedy="write pypi:NAME or pypi:NAME==VERSION")
    if not separator:
        return TargetRef(text=text, kind=TargetKind.PYPI, name=name)
    try:
        parsed = Version(version)
    except InvalidVersion:
        raise UsageError(
            f"{_shown(version)} is not a version of a PyPI package", remedy="write pypi:NAME==VERSION, as in ==1.2.3"
        ) from None
    return TargetRef(text=text, kind=TargetKind.PYPI, name=name, version=str(parsed))


def npm_ref(spec: str, text: str) -> TargetRef:
    """A reference to an npm package from `NAME[@VERSION]`, where NAME may have a scope."""
    scoped = spec.startswith("@")
    name, separator, version = spec[1:].partition("@") if scoped else spec.partition("@")
    name = f"@{name}" if scoped else name
    if len(name) > 214 or not _NPM_NAME.fullmatch(name):
        raise UsageError(f"{_shown(text)} does not name an npm package", remedy="write npm:NAME or npm:NAME@VERSION")
    if not separator:
        return TargetRef(text=text, kind=TargetKind.NPM, name=name)
    if not _NPM_VERSION.fullmatch(version):
        raise UsageError(
            f"{_shown(version)} is not one version of an npm package",
            remedy="write npm:NAME@VERSION with an exact version or a tag",
        )
    return TargetRef(text=text, kind=TargetKind.NPM, name=name, version=version)


def oci_ref(image: str, text: str) -> TargetRef:
    """A reference to an image on the engine, from its name or id."""
    if not _OCI.fullmatch(image):
        raise UsageError(f"{_shown(text)} does not name an image", remedy="write oci:NAME or oci:NAME:TAG")
    return TargetRef(text=text, kind=TargetKind.OCI, name=image)


def parse_command(command: tuple[str, ...]) -> TargetRef:
    """A reference for `-- COMMAND ARGS`. Package runners (npx, uvx) become the package that they would run."""
    if any("\x00" in word for word in command) or not command[0]:
        raise UsageError("the COMMAND after -- can't be run", remedy="give a program name and its arguments")
    launch = package_launch(command)
    text = "-- " + " ".join(command)
    if launch is None:
        return TargetRef(text=text, kind=TargetKind.COMMAND, command=command)
    kind, spec, _, _ = launch
    parsed = pypi_ref(spec, text) if kind is TargetKind.PYPI else npm_ref(spec, text)
    return parsed.model_copy(update={"command": command})


def package_launch(command: tuple[str, ...]) -> tuple[TargetKind, str, str | None, tuple[str, ...]] | None:
    """What a package runner's command line means: kind, package spec, program name if given, and its arguments.

    None when `command` is not a package runner. Raises UsageError for one whose options are not understood.
    """
    program, rest = Path(command[0]).name, list(command[1:])
    if program == "npx":
        package, words = _runner_words(rest, flags={"-y", "--yes", "-q", "--quiet"}, options={"-p", "--package"})
        kind = TargetKind.NPM
    elif program == "uvx" or (program == "uv" and rest[:2] == ["tool", "run"]):
        words = rest if program == "uvx" else rest[2:]
        package, words = _runner_words(words, flags=_UVX_FLAGS, options={"--from"}, ignored={"--python", "-p"})
        kind = TargetKind.PYPI
    elif program == "pipx" and rest[:1] == ["run"]:
        package, words = _runner_words(rest[1:], flags={"--quiet", "-q"}, options={"--spec"})
        kind = TargetKind.PYPI
    else:
        return None
    if not words:
        raise UsageError(f"{program} is given no package to run", remedy="write it as you would run it")
    spec = package or words[0]
    if kind is TargetKind.PYPI and "==" not in spec:
        spec = spec.replace("@latest", "").replace("@", "==")
    return kind, spec, words[0] if package else None, tuple(words[1:])


def _runner_words(
    words: list[str], flags: AbstractSet[str], options: AbstractSet[str], ignored: AbstractSet[str] = frozenset()
) -> tuple[str | None, list[str]]:
    """Split a runner's own options from what it runs: the package given by option, and the remaining words."""
    package: str | None = None
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, separator, value = word.partition("=")
        if word == "--":
            break
        if word in flags:
            continue
        if name in ignored and (separator or rest):
            rest = rest if separator else rest[1:]
            continue
        if name in options and (separator or rest):
            package = value if separator else rest.pop(0)
            continue
        raise UsageError(
            f"the option {_shown(word)} of the package runner is not understood",
            remedy="name the package as pypi:NAME or npm:NAME and give its arguments with --arg",
        )
    return package, rest


def _path_ref(text: str) -> TargetRef:
    path = Path(text)
    try:
        is_directory, is_file = path.is_dir(), path.is_file()
        absolute = path.absolute()
    except (OSError, ValueError):
        is_directory = is_file = False
        absolute = path
    if is_directory:
        return TargetRef(text=text, kind=TargetKind.DIRECTORY, path=absolute)
    if is_file:
        kind = next((kind for pattern, kind in _FILES if pattern.search(text)), None)
        if kind is not None:
            return TargetRef(text=text, kind=kind, path=absolute)
    elif re.search(r"\.json#", text, re.IGNORECASE):
        return _config_ref(text)
    if is_file and path.suffix in (*PYTHON_SUFFIXES, *NODE_SUFFIXES):
        return TargetRef(text=text, kind=TargetKind.FILE, path=absolute)
    if is_file:
        raise UsageError(f"{_shown(text)} is not a kind of file that can be started", remedy=f"give one of {FORMS}")
    hint = ""
    if re.fullmatch(r"@[^/]+/[^/]+", text):
        hint = f"npm:{text}, "
    elif _PYPI_NAME.fullmatch(text) and not path.suffix:
        hint = f"pypi:{text}, npm:{text}, "
    raise UsageError(
        f"{_shown(text)} is no file or folder here, nor a form of TARGET", remedy=f"write {hint}or one of {FORMS}"
    )


def _config_ref(text: str) -> TargetRef:
    """`CONFIG.json#NAME`; NAME may hold anything, `#` too."""
    file, _, name = text.partition(".json#")
    path = Path(f"{file}.json")
    try:
        if path.is_file() and name:
            return TargetRef(text=text, kind=TargetKind.CONFIG, path=path.absolute(), name=name)
    except (OSError, ValueError):
        pass
    raise UsageError(
        f"{_shown(text)} names no entry of a configuration that is here", remedy="write it as CONFIG.json#NAME"
    )


def _shown(text: str) -> str:
    """`text` for a one-line message: quoted, shortened, control characters as escapes."""
    return ascii(text[:80])
