"""An entry of an MCP client's configuration: `{"mcpServers": {NAME: {"command", "args", "env"}}}`.

`servers` (as some editors call it) is read too. Credentials are not passed on, paths of the user's machine stand for
the planted workspace, and variables of the user's environment are not looked up; each of these is said in the notes.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.acquisition.configured.command_line import launch_of
from harness.acquisition.configured.launch import Launch, listed, pairs, read_json, words
from harness.acquisition.configured.values import is_path, is_secret, planted, planted_path
from harness.model.base import JsonObject
from harness.model.errors import UsageError
from harness.model.target import TargetRef

_KEYS = ("mcpServers", "servers", "context_servers")
_VARIABLE = re.compile(r"\$\{(?:(input|env|config):)?([^}]{1,100})\}")


def read_config(ref: TargetRef) -> Launch:
    """How the entry `ref.name` (or the only one, without a name) of the file `ref.path` is started.

    Raises UsageError for an entry that isn't there or can't be started in a sandbox.
    """
    assert ref.path is not None
    document = read_json(ref.path)
    servers = _servers(document)
    if servers is None:
        raise UsageError(f"{ref.text[:80]!a} holds no mcpServers", remedy="give a client's configuration")
    name = ref.name if ref.name is not None else next(iter(servers), "") if len(servers) == 1 else ""
    entry = servers.get(name)
    if not isinstance(entry, dict):
        raise UsageError(
            f"{ref.text[:80]!a} names no entry", remedy=f"write FILE.json#NAME; there are: {listed(servers) or 'none'}"
        )
    if not entry.get("command"):
        remote = entry.get("url") or entry.get("serverUrl") or entry.get("httpUrl")
        what = "is a remote server, which is not supported yet" if remote else "has no command"
        raise UsageError(f"the entry {name[:60]!a} {what}", remedy="give an entry with a command")
    text = f"the entry {name}"
    command = words([entry["command"]], f"the command of {name[:60]!a}")
    notes: list[str] = []
    argv = tuple(_expanded(word) for word in (*command, *words(entry.get("args"), f"args of {name[:60]!a}")))
    environment = {k: _expanded(v) for k, v in pairs(entry.get("env"), f"env of {name[:60]!a}").items()}
    if len(argv) == 1 and " " in argv[0]:
        argv = tuple(argv[0].split())
    launch = launch_of(argv, environment, _base(ref.path, entry), text)
    arguments, moved, hidden = _harmless_arguments(launch.arguments)
    planted_names = [k for k, v in launch.environment.items() if "{canary}" not in v and is_secret(k, v)]
    kept = {k: planted(k, secret=True) if k in planted_names else v for k, v in launch.environment.items()}
    paths = [k for k, v in kept.items() if is_path(v)]
    kept |= {k: planted_path(v) for k, v in kept.items() if k in paths}
    if planted_names or hidden:
        names = listed([*planted_names, *hidden])
        notes.append(f"credentials of the configuration are not used, planted tokens stand for them: {names}")
    if moved or paths:
        notes.append(f"paths of this machine stand for the planted workspace: {listed([*moved, *paths])}")
    return launch.model_copy(
        update={
            "arguments": arguments,
            "environment": kept,
            "secrets": tuple(v for v in kept.values() if "{" not in v and len(v) >= 16),
            "notes": (*launch.notes, *notes),
        }
    )


def _servers(document: JsonObject) -> JsonObject | None:
    for holder in (document, document.get("mcp")):
        for key in _KEYS:
            if isinstance(holder, dict) and isinstance(holder.get(key), dict):
                found: JsonObject = holder[key]
                return found
    return None


def _base(path: Path, entry: JsonObject) -> Path:
    given = entry.get("cwd")
    return path.parent / Path(given).expanduser() if isinstance(given, str) else path.parent


def _expanded(text: str) -> str:
    """Variables of editors as placeholders: the workspace's folder, and tokens for inputs and the environment."""

    def value(match: re.Match[str]) -> str:
        kind, name = match[1], match[2]
        if kind is None and "workspace" in name.lower():
            return "{workspace}"
        return planted(name.partition(":-")[0]) if kind != "config" else "{canary}"

    return _VARIABLE.sub(value, text)


def _harmless_arguments(arguments: tuple[str, ...]) -> tuple[tuple[str, ...], list[str], list[str]]:
    """The arguments without credentials and paths of this machine, and which were changed: paths, and flags."""
    found: list[str] = []
    moved: list[str] = []
    hidden: list[str] = []
    flag = ""
    for word in arguments:
        name, separator, value = word.partition("=") if word.startswith("-") else ("", "", word)
        owner = name or flag
        flag = word if word.startswith("-") and not separator else ""
        if word.startswith("-") and not separator:
            found.append(word)
            continue
        head = f"{name}=" if separator and name else ""
        if "{canary}" not in value and "{workspace}" not in value:
            if is_secret(owner, value) and (owner or len(value) >= 16):
                hidden.append(owner or "an argument")
                value = "{canary}"
            elif is_path(value):
                moved.append(owner or value)
                value = planted_path(value)
        found.append(head + value)
    return tuple(found), moved, hidden
