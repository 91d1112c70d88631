"""The gate's line protocol, our side: what it says when it is ready, and how files are planted through it.

Pure. The other side is the program in `sandboxes/gate`, where the protocol is described.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath
from types import MappingProxyType
from urllib.parse import quote

from harness.model.errors import EngineError, HarnessError

READY_BYTES = 64
#: Everything else is percent-encoded: a word of the protocol ends at a space.
SAFE_CHARACTERS = "/:-._~+@="


def parse_ready(line: bytes) -> int:
    """The inode of the pid namespace from a `ready` line of gate or warden. Raises `EngineError`."""
    word, _, number = line.partition(b" ")
    if word != b"ready" or not number.isdigit():
        raise EngineError("a sandbox image does not start as it should", remedy="run `harness images build`")
    return int(number)


def seed_bytes(
    seed: Mapping[str, bytes],
    *,
    executables: AbstractSet[str] = frozenset(),
    links: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Encode files (path below HOME → content) and links (path → target) for the gate.

    As on a person's machine, what lies below a dotted name (`.ssh/id_rsa`) is private (0700, 0600), the rest is
    0755 and 0644, or 0755 for `executables`. Raises `HarnessError` for a path that leaves HOME.
    """
    lines: list[bytes] = []
    made: set[PurePosixPath] = set()
    for name in sorted({*seed, *links}):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise HarnessError(f"can't plant a file at {name!r}: not below the home directory")
        for parent in reversed(path.parents[:-1]):
            if parent not in made:
                made.add(parent)
                lines.append(f"DIR {0o700 if _private(parent) else 0o755:o} {_quoted(parent)}\n".encode())
        if name in links:
            lines.append(f"LINK {quote(links[name], safe=SAFE_CHARACTERS)} {_quoted(path)}\n".encode())
            continue
        content = seed[name]
        mode = 0o600 if _private(path) else 0o644
        if name in executables:
            mode |= 0o100 if _private(path) else 0o111
        lines += [f"FILE {mode:o} {len(content)} {_quoted(path)}\n".encode(), content]
    return b"".join(lines)


def exec_line(nonce: str) -> bytes:
    """The line that opens the gate; `nonce` shows in the syscall record."""
    return f"EXEC {nonce}\n".encode("ascii")


def mark_line(phase: str, nonce: str) -> bytes:
    """The line that makes the warden mark a phase. Phase names may hold a tool's name, so they are encoded and cut."""
    return f"MARK {quote(phase, safe=':-._~')[:1024]} {nonce}\n".encode("ascii")


def _private(path: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _quoted(path: PurePosixPath) -> str:
    return quote(str(path), safe=SAFE_CHARACTERS)
