"""From a command as clients have it in their configurations to a target: package runners, docker, interpreters.

The command is read, never run. What the options of a container runner ask for beyond variables (mounts, networks,
published ports) is not given: the sandbox has its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.acquisition.configured.launch import Launch
from harness.acquisition.configured.values import is_path
from harness.acquisition.reference import (
    NODE_SUFFIXES,
    PYTHON_SUFFIXES,
    npm_ref,
    oci_ref,
    package_launch,
    parse_command,
    pypi_ref,
)
from harness.model.errors import UsageError
from harness.model.target import TargetKind, TargetRef

_INTERPRETERS = re.compile(r"(?:python[\d.]*|node|nodejs|bun|deno|tsx)(?:\.exe)?")
#: What the sandbox images have beside interpreters.
_SYSTEM = frozenset({"sh", "bash", "env", "git"})
#: Options of `docker run` that take a value as their next word.
_DOCKER_VALUES = re.compile(
    r"-[evpuwlhm]|--(?:env|env-file|volume|mount|publish|user|workdir|label|hostname|memory|name|network|net|entrypoint|"
    r"platform|add-host|dns|cpus|pull|restart|tmpfs|gpus|ulimit|cap-add|cap-drop|security-opt|device|shm-size|ipc|pid)"
)


def launch_of(argv: tuple[str, ...], environment: dict[str, str], base: Path, text: str) -> Launch:
    """What this command line starts. `base`: the folder that relative paths are looked for in.

    Raises UsageError for a program of the user's machine that can't be had in a sandbox.
    """
    program = Path(argv[0].replace("\\", "/")).name.removesuffix(".cmd").removesuffix(".exe")
    if program in ("cmd", "cmd.exe") and argv[1:2] == ("/c",) and argv[2:]:
        return launch_of(argv[2:], environment, base, text)
    if program == "bunx" or (program in ("pnpm", "yarn") and argv[1:2] == ("dlx",)):
        rest = argv[1:] if program == "bunx" else argv[2:]
        return launch_of(("npx", *rest), environment, base, text)
    package = package_launch((program, *argv[1:]))
    if package is not None:
        kind, spec, entry, arguments = package
        ref = pypi_ref(spec, text) if kind is TargetKind.PYPI else npm_ref(spec, text)
        return Launch(ref=ref, entry=entry, arguments=arguments, environment=environment)
    if program in ("docker", "podman", "nerdctl") and argv[1:2] == ("run",):
        return _docker(argv[2:], environment, text)
    if program == "uv" and "run" in argv[1:]:
        return _uv_run(argv[1:], environment, base, text)
    if _INTERPRETERS.fullmatch(program):
        found = _script(argv[1:], environment, base, text)
        if found is not None:
            return found
    if is_path(argv[0]) or "/" in argv[0] or not (_INTERPRETERS.fullmatch(program) or program in _SYSTEM):
        raise UsageError(
            f"{text[:80]!a} starts a program of this machine, {program[:60]!a}, which is in no sandbox",
            remedy="give the package that it comes from, its source folder, or an image",
        )
    return Launch(ref=parse_command(argv).model_copy(update={"text": text}), environment=environment)


def _script(argv: tuple[str, ...], environment: dict[str, str], base: Path, text: str) -> Launch | None:
    """A script of the user's machine that an interpreter is given: its project where there is one, else the file."""
    for place, word in enumerate(argv):
        if word.startswith("-"):
            if word in ("-m", "-c", "-e", "-p", "--eval"):
                return None
            continue
        path = base / Path(word).expanduser()
        if path.suffix not in (*PYTHON_SUFFIXES, *NODE_SUFFIXES):
            return None
        if not path.is_file():
            raise UsageError(f"{text[:80]!a} starts {word[:120]!a}, which is not here", remedy="mend its path")
        return _project(path, argv[place + 1 :], environment, text)
    return None


def _project(path: Path, arguments: tuple[str, ...], environment: dict[str, str], text: str) -> Launch:
    path = path.resolve()
    marks = ("pyproject.toml", "requirements.txt") if path.suffix in PYTHON_SUFFIXES else ("package.json",)
    for folder in [*path.parents][:6]:
        if any((folder / mark).is_file() for mark in marks) and folder != Path.home():
            entry = path.relative_to(folder).as_posix()
            ref = TargetRef(text=text, kind=TargetKind.DIRECTORY, path=folder)
            return Launch(ref=ref, script=entry, arguments=arguments, environment=environment)
    ref = TargetRef(text=text, kind=TargetKind.FILE, path=path)
    return Launch(ref=ref, arguments=arguments, environment=environment)


def _uv_run(argv: tuple[str, ...], environment: dict[str, str], base: Path, text: str) -> Launch:
    """`uv [--directory DIR] run [options] PROGRAM ARGS`: the project, and which of its programs."""
    folder, words = base, list(argv)
    rest: list[str] = []
    while words:
        word = words.pop(0)
        name, separator, value = word.partition("=")
        if name in ("--directory", "--project", "-C") and (separator or words):
            folder = base / Path(value if separator else words.pop(0)).expanduser()
        elif name in ("--with", "--python", "-p", "--extra", "--group", "--env-file", "--index-url"):
            if not separator and words:
                words.pop(0)
        elif (word == "run" and not rest) or word.startswith("-"):
            continue
        else:
            rest = [word, *words]
            break
    if not rest:
        raise UsageError(f"{text[:80]!a} names nothing for uv to run", remedy="mend the entry")
    if rest[0] in ("python", "python3") and rest[1:2] and not rest[1].startswith("-"):
        rest = rest[1:]
    if rest[:2] == ["mcp", "run"] and rest[2:3]:
        rest = [rest[2].split(":")[0]]
    path = folder / rest[0]
    if path.suffix in PYTHON_SUFFIXES and path.is_file():
        return _project(path, tuple(rest[1:]), environment, text)
    if not folder.is_dir() or folder == base:
        raise UsageError(f"{text[:80]!a} starts what is not here: {rest[0][:80]!a}", remedy="mend the entry")
    ref = TargetRef(text=text, kind=TargetKind.DIRECTORY, path=folder.absolute())
    return Launch(ref=ref, entry=rest[0], arguments=tuple(rest[1:]), environment=environment)


def _docker(argv: tuple[str, ...], environment: dict[str, str], text: str) -> Launch:
    """`docker run` with its options; variables named without a value are passed on from the entry's own."""
    words = list(argv)
    given: dict[str, str] = {}
    passed: list[str] = []
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, separator, value = word.partition("=")
        if not separator and _DOCKER_VALUES.fullmatch(name):
            if not words:
                break
            value = words.pop(0)
        if name in ("-e", "--env"):
            variable, equals, content = value.partition("=")
            if equals:
                given[variable] = content
            elif variable in environment:
                given[variable] = environment[variable]
        elif name not in ("-i", "--interactive", "--rm", "-t", "--tty", "--init", "-d", "--name", "-it", "--pull"):
            passed.append(name)
    if not words:
        raise UsageError(f"{text[:80]!a} names no image", remedy="mend the entry")
    notes = (f"not given to the container: {', '.join(dict.fromkeys(passed))}",) if passed else ()
    return Launch(
        ref=oci_ref(words[0], text),
        arguments=tuple(words[1:]),
        replace_command=len(words) > 1,
        environment=given,
        notes=notes,
    )
