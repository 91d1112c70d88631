"""What a configuration comes down to: a target that the other forms know, with arguments and environment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.model.base import JsonObject, Record
from harness.model.errors import UsageError
from harness.model.target import Acquired, Ecosystem, EntryPoint, TargetRef

#: Client configurations hold histories too and grow to some megabytes.
CONFIG_BYTES = 32 << 20


class Launch(Record):
    """A target and how it is started.

    `arguments` come after the entry point's own, or with `replace_command` after those that an image can't be started
    without; `entry` names the preferred one, which is called `alias` then; `script` is a file of a source tree to start
    instead of any. Placeholders (`{workspace}`, `{canary}`) in
    arguments and environment are ours. `secrets`: values in them that must not be recorded.
    """

    ref: TargetRef
    entry: str | None = None
    alias: str | None = None
    script: str | None = None
    arguments: tuple[str, ...] = ()
    replace_command: bool = False
    environment: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def launched(inner: Acquired, launch: Launch, ref: TargetRef) -> Acquired:
    """`inner`, started as `launch` says and named as the user did."""
    points = list(inner.entry_points)
    if launch.script is not None:
        program = "/app/bin/python" if inner.ecosystem is Ecosystem.PYTHON else "node"
        points.insert(0, EntryPoint(name=launch.script, argv=(program, f"/app/src/{launch.script}"), source="file"))
    entries = [_entry(point, launch, inner) for point in points]
    entries.sort(key=lambda entry: launch.entry is not None and entry.name != launch.entry)
    if launch.alias is not None and entries:
        entries[0] = entries[0].model_copy(update={"name": launch.alias})
    return inner.model_copy(
        update={
            "ref": ref,
            "entry_points": tuple(entries),
            "environment": {**inner.environment, **launch.environment},
            "secrets": (*inner.secrets, *launch.secrets),
            "notes": (*inner.notes, *launch.notes),
        }
    )


def _entry(point: EntryPoint, launch: Launch, inner: Acquired) -> EntryPoint:
    argv = point.argv
    if launch.replace_command and inner.image is not None:
        argv = inner.image.entrypoint
    return point.model_copy(update={"argv": (*argv, *launch.arguments), "planted": True})


def read_json(path: Path) -> JsonObject:
    """A JSON file of the user that holds an object. Raises UsageError."""
    try:
        if path.stat().st_size > CONFIG_BYTES:
            raise UsageError(f"{path.name[:80]!a} is too large for a configuration", remedy="give the right file")
        value = json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path.name[:80]!a} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path.name[:80]!a} is no JSON: {type(error).__name__}", remedy="mend the file") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path.name[:80]!a} holds no JSON object", remedy="mend the file")
    return value


def words(value: object, what: str) -> tuple[str, ...]:
    """A list of texts; numbers and booleans count as written. Raises UsageError."""
    if value is None:
        return ()
    if not isinstance(value, list) or any(not isinstance(word, str | int | float | bool) for word in value):
        raise UsageError(f"{what} is no list of texts", remedy="mend the file")
    return tuple(_text(word) for word in value)


def pairs(value: object, what: str) -> dict[str, str]:
    """An object of texts. Raises UsageError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"{what} is no JSON object", remedy="mend the file")
    found = {name: _text(entry) for name, entry in value.items() if isinstance(entry, str | int | float | bool)}
    bad = [name for name in found if not name or "=" in name or "\0" in name or "\0" in found[name]]
    if bad or len(found) < len(value):
        raise UsageError(f"{what} has a variable that can't be set", remedy="mend the file")
    return found


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names for a sentence, the first ones of many."""
    given: Sequence[str] = list(names)
    more = f" and {len(given) - most} more" if len(given) > most else ""
    return ", ".join(name[:60] for name in given[:most]) + more


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
