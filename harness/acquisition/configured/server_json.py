"""`server.json`, the format of the official MCP registry: packages with arguments, variables and a transport.

Names and meanings are those of the registry's schema (modelcontextprotocol/registry, docs/reference/server-json);
its older spelling with underscores is read too. Values that an operator would be asked for are planted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from harness.acquisition.configured.launch import Launch, listed, read_json
from harness.acquisition.configured.values import planted
from harness.acquisition.reference import npm_ref, oci_ref, pypi_ref
from harness.model.base import JsonObject, JsonValue
from harness.model.errors import UsageError
from harness.model.target import TargetKind, TargetRef

_SUPPORTED = ("npm", "pypi", "oci", "mcpb")
_VARIABLE = re.compile(r"\{([A-Za-z_][\w.-]{0,99})\}")
#: More arguments than these make no command line.
_MOST = 200


def read_server_json(ref: TargetRef, wanted: str | None) -> Launch:
    """How the first package that can be had is started, or the one that `wanted` (`--entry`) names.

    `wanted` is a registry type, an identifier, or None. Raises UsageError when there is no such package.
    """
    assert ref.path is not None
    document = read_json(ref.path)
    server = document.get("server")
    document = server if isinstance(server, dict) else document
    packages = [_spelled(entry) for entry in _objects(document.get("packages"))]
    usable = [p for p in packages if p.get("registryType") in _SUPPORTED]
    chosen = [p for p in usable if wanted is None or wanted in (p.get("registryType"), p.get("identifier"))]
    if not chosen:
        there = listed(f"{p.get('registryType')}:{p.get('identifier')}" for p in packages)
        if not packages and document.get("remotes"):
            raise UsageError(f"{ref.text[:80]!a} names remote servers only, which are not supported yet")
        raise UsageError(f"{ref.text[:80]!a} names no package that can be run", remedy=f"there are: {there or 'none'}")
    package = chosen[0]
    notes = [f"the package {package['registryType']}:{package.get('identifier')} of {len(packages)}"]
    transport = package.get("transport")
    if isinstance(transport, dict) and transport.get("type") not in (None, "stdio"):
        notes.append(f"its transport is {str(transport['type'])[:40]!a}; it is spoken to over stdio all the same")
    asked: list[str] = []
    environment, arguments = _variables(package, asked), _arguments(package.get("packageArguments"), asked)
    runtime = _arguments(package.get("runtimeArguments"), asked)
    launch = _launch(package, ref, runtime, arguments, environment)
    if asked:
        notes.append(f"planted, because the operator would be asked: {listed(dict.fromkeys(asked))}")
    return launch.model_copy(update={"alias": wanted, "notes": (*launch.notes, *notes)})


def _launch(
    package: JsonObject, ref: TargetRef, runtime: list[str], arguments: list[str], environment: dict[str, str]
) -> Launch:
    kind, identifier = str(package["registryType"]), str(package.get("identifier") or "")
    version = str(package.get("version") or "")
    notes: tuple[str, ...] = ()
    if kind == "npm":
        inner = npm_ref(f"{identifier}@{version}" if version else identifier, ref.text)
    elif kind == "pypi":
        inner = pypi_ref(f"{identifier}=={version}" if version else identifier, ref.text)
    elif kind == "oci":
        named = identifier if ":" in identifier.rpartition("/")[2] or "@" in identifier or not version else ""
        inner = oci_ref(named or f"{identifier}:{version}", ref.text)
        environment = {**_docker_variables(runtime), **environment}
        runtime = []
    else:
        inner = TargetRef(text=ref.text, kind=TargetKind.BUNDLE, path=_bundle(ref, identifier, package))
    left = [word for word in runtime if word not in ("-y", "--yes", "-q", "--quiet", identifier)]
    if left:
        notes = (f"arguments of the runtime are not used: {listed(left)}",)
    return Launch(
        ref=inner,
        arguments=tuple(arguments),
        replace_command=kind == "oci" and bool(arguments),
        environment=environment,
        notes=notes,
    )


def _bundle(ref: TargetRef, identifier: str, package: JsonObject) -> Path:
    """An MCP bundle is named by an address, which is not fetched: a copy beside the file, with its digest, is used."""
    assert ref.path is not None
    name = re.sub(r"[^\w.@+-]", "_", identifier.split("?")[0].rpartition("/")[2])
    path = ref.path.parent / name
    if not name.endswith((".mcpb", ".dxt")) or not path.is_file():
        raise UsageError(
            f"{ref.text[:80]!a} names an MCP bundle by its address ({identifier[:120]!a}), which is not fetched",
            remedy="download it into the same folder and try again",
        )
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if package.get("fileSha256") not in (None, sha256):
        raise UsageError(f"{name[:80]!a} is not the file that {ref.text[:80]!a} names: its SHA-256 differs")
    return path.absolute()


def _docker_variables(runtime: list[str]) -> dict[str, str]:
    """`-e K=V` and `--env=K=V` among the arguments of a container runtime."""
    found: dict[str, str] = {}
    rest = list(runtime)
    while rest:
        word = rest.pop(0)
        if word in ("-e", "--env") and rest:
            word = f"--env={rest.pop(0)}"
        name, _, value = word.removeprefix("--env=").partition("=")
        if word.startswith("--env=") and value:
            found[name] = value
    return found


def _variables(package: JsonObject, asked: list[str]) -> dict[str, str]:
    """The environment: given values, defaults, and planted values for what is required."""
    found: dict[str, str] = {}
    for entry in _objects(package.get("environmentVariables")):
        name = entry.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[^=\0]{1,200}", name):
            raise UsageError("an environment variable in server.json has no usable name", remedy="mend the file")
        value = _value(entry, name, asked)
        if value is not None:
            found[name] = value
    return found


def _arguments(listed_arguments: JsonValue, asked: list[str]) -> list[str]:
    """Positional and named arguments in their order; optional ones without a value are left out."""
    found: list[str] = []
    for entry in _objects(listed_arguments):
        named = entry.get("type") == "named"
        name = str(entry.get("name") or "") if named else ""
        value = _value(entry, name or str(entry.get("valueHint") or entry.get("name") or "argument"), asked)
        if named:
            flag = entry.get("format") == "boolean" and not entry.get("valueHint")
            if flag:
                found += [name] if (value if "value" in entry or "default" in entry else "").lower() == "true" else []  # type: ignore[union-attr]
            elif value is not None:
                found += [name, value]
            elif "value" not in entry and not entry.get("valueHint") and entry.get("isRequired"):
                found.append(name)
        elif value is not None:
            found.append(value)
    return found


def _value(entry: JsonObject, name: str, asked: list[str]) -> str | None:
    """The value of an argument or variable with its own variables filled in; None for an optional one without."""
    kind = str(entry.get("format") or "string")
    if "value" in entry and entry["value"] is not None:
        return _filled(_text(entry["value"]), entry, asked)
    if entry.get("default") is not None:
        return _filled(_text(entry["default"]), entry, asked)
    if not entry.get("isRequired"):
        return None
    choices = entry.get("choices")
    asked.append(name)
    if isinstance(choices, list) and choices:
        return _text(choices[0])
    return planted(name, kind, secret=bool(entry.get("isSecret")))


def _filled(text: str, entry: JsonObject, asked: list[str]) -> str:
    variables = entry.get("variables")
    if not isinstance(variables, dict):
        return text

    def value(match: re.Match[str]) -> str:
        described = variables.get(match[1])
        if not isinstance(described, dict):
            return match[0]
        inner = _value({**described, "isRequired": True, "variables": None}, match[1], asked)
        return inner if inner is not None else ""

    replace: Callable[[re.Match[str]], str] = value
    return _VARIABLE.sub(replace, text)


def _objects(value: JsonValue) -> list[JsonObject]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > _MOST or any(not isinstance(entry, dict) for entry in value):
        raise UsageError("server.json has a list that is none, too long, or not of objects", remedy="mend the file")
    return [_spelled(entry) for entry in value]


def _spelled(entry: JsonObject) -> JsonObject:
    """Keys in today's spelling: `runtime_arguments` is `runtimeArguments`."""

    def key(name: str) -> str:
        first, *rest = name.split("_")
        return first + "".join(part.capitalize() for part in rest)

    found = {key(str(name)): value for name, value in entry.items()}
    if "registryType" not in found and "registryName" in found:
        found["registryType"] = found["registryName"]
    if "identifier" not in found and "registryType" in found:
        found["identifier"] = found.get("name")
    return found


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise UsageError("server.json has a value that is no text", remedy="mend the file")
    return str(value)
