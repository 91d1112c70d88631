"""The planted workspace behind `{workspace}`, and placeholders in arguments and environment.

Minimal for now: a few plain files that a file server can list and read. It is unpacked by the gate into the
target's own memory-backed home, so nothing of it ever lies on this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from harness.model.base import sha256_hex
from harness.model.errors import UsageError
from harness.model.options import PlantedFile

#: Below the target's home; `{workspace}` in arguments and environment stands for it.
WORKSPACE = "/home/user/workspace"
#: The same, relative to the home directory.
PLACE = "workspace"
#: What stands for a planted token.
CANARY = "{canary}"

_FILES: dict[str, str] = {
    "workspace/README.md": "# Notes\n\nA small project. See `src/greeting.py` and the figures in `data/sales.csv`.\n",
    "workspace/todo.txt": "- reply to Sam\n- check the figures for March\n- book the room\n",
    "workspace/data/sales.csv": "month,units,revenue\n2026-01,120,2400.00\n2026-02,98,1960.00\n2026-03,143,2860.00\n",
    "workspace/data/settings.json": '{"currency": "EUR", "round": 2, "regions": ["north", "south"]}\n',
    "workspace/src/greeting.py": 'def greet(name: str) -> str:\n    """Say hello."""\n    return f"Hello, {name}!"\n',
}


def planted_files() -> dict[str, bytes]:
    """Paths below the home directory, and what is in them."""
    return {path: text.encode() for path, text in _FILES.items()}


def fill(text: str, token: Callable[[], str]) -> str:
    """Replace `{workspace}` and `{canary}` in an argument or a value; each `{canary}` gets a fresh `token()`."""
    text = text.replace("{workspace}", WORKSPACE)
    while CANARY in text:
        text = text.replace(CANARY, token(), 1)
    return text


#: Bounds on what `--file` plants: the gate takes 64 MiB a file and 256 MiB in all.
MOST_BYTES = 64 << 20
MOST_FILES = 5_000


def given_files(pairs: Sequence[str]) -> tuple[PlantedFile, ...]:
    """Read the files and folders of `--file SRC:DST`, links in folders as links. Blocking. Raises UsageError."""
    found: dict[str, PlantedFile] = {}
    total = 0
    for pair in pairs:
        source, colon, place = pair.rpartition(":")
        inner = PurePosixPath(place)
        if not colon or not source or inner.is_absolute() or ".." in inner.parts or not inner.parts:
            raise UsageError(f"--file {pair[:120]!a} is not of the form SRC:DST", remedy="DST is below the workspace")
        for file in _read_given(Path(source), str(inner)):
            total += file.size
            found[file.path] = file
            if total > MOST_BYTES or len(found) > MOST_FILES:
                raise UsageError(f"--file plants more than {MOST_BYTES >> 20} MiB or {MOST_FILES} files")
    return tuple(found.values())


def _read_given(source: Path, place: str) -> Iterator[PlantedFile]:
    try:
        if source.is_symlink():
            yield PlantedFile(path=place, link=str(source.readlink()))
        elif source.is_dir():
            for inner in sorted(source.iterdir()):
                yield from _read_given(inner, f"{place}/{inner.name}")
        elif source.stat().st_size > MOST_BYTES or not source.is_file():
            raise UsageError(f"--file {str(source)[:120]!a} is too large or no file", remedy="give a smaller one")
        else:
            data = source.read_bytes()
            executable = bool(source.stat().st_mode & 0o100)
            yield PlantedFile(path=place, sha256=sha256_hex(data), size=len(data), executable=executable, data=data)
    except OSError as error:
        raise UsageError(f"--file {str(source)[:120]!a} can't be read: {error.strerror}") from error
