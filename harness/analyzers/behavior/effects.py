"""System calls as effects on files: what was read, written, made or taken away, under which resolved path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from harness.analyzers.behavior.attribution import Attribution
from harness.model.recording import SyscallEvent

OPENS = frozenset({"open", "openat", "openat2", "creat", "open_by_handle_at"})
_DELETES = frozenset({"unlink", "unlinkat", "rmdir"})
_RENAMES = frozenset({"rename", "renameat", "renameat2"})
#: Calls that make their second path.
_LINKS = frozenset({"link", "linkat", "symlink", "symlinkat"})
#: Calls that change what their first path names.
_CHANGES = frozenset(
    {
        "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "mkdir", "mkdirat",
        "mknod", "mknodat", "truncate", "ftruncate", "fallocate", "setxattr", "lsetxattr", "fsetxattr", "removexattr",
        "lremovexattr", "fremovexattr", "mmap", "sendfile",
    }
)  # fmt: skip
_COPIES = frozenset({"copy_file_range", "splice"})
_MAKES = frozenset({"mkdir", "mkdirat", "mknod", "mknodat"})
_EEXIST = -17
#: All calls that can have an effect on files.
FILE_CALLS = OPENS | _DELETES | _RENAMES | _LINKS | _CHANGES | _COPIES
_WRITING = frozenset({"O_WRONLY", "O_RDWR", "O_TRUNC", "O_CREAT", "O_APPEND", "O_TMPFILE"})


class What(StrEnum):
    """Kinds of effect."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"


class Effect(NamedTuple):
    """One effect. `done`: the call succeeded; `makes`: it makes something new there."""

    what: What
    path: str
    done: bool
    makes: bool = False


@lru_cache(maxsize=256)
def _opened_for(flags: tuple[str, ...]) -> What | None:
    """What an open asks for; None where it is only a name for the file."""
    if "O_PATH" in flags:
        return None
    return What.READ if _WRITING.isdisjoint(flags) else What.WRITE


def is_reading(event: SyscallEvent) -> bool:
    """True for an open that asks for no more than to read."""
    return event.call in OPENS and _opened_for(event.flags) is What.READ


def effects_of(event: SyscallEvent, attribution: Attribution) -> Iterable[Effect]:
    """The effects of one call, succeeded or tried; paths absolute as far as is known."""
    if event.call not in OPENS:
        return _effects(event, attribution)
    what = _opened_for(event.flags)
    if what is None or event.path is None:
        return ()
    done = event.result is not None and event.result >= 0
    return (Effect(what, attribution.path(event, event.path), done, what is What.WRITE and "O_CREAT" in event.flags),)


def _effects(event: SyscallEvent, attribution: Attribution) -> Iterator[Effect]:
    call, path = event.call, event.path
    done = event.result is not None and event.result >= 0
    if call in _DELETES:
        if path is not None:
            yield Effect(What.DELETE, attribution.path(event, path), done)
    elif call in _RENAMES:
        if path is not None:
            yield Effect(What.DELETE, attribution.path(event, path), done)
        if event.path2 is not None:
            yield Effect(What.WRITE, attribution.path(event, event.path2, second=True), done, True)
    elif call in _LINKS:
        if path is not None and call in ("link", "linkat"):
            yield Effect(What.READ, attribution.path(event, path), done)
        if event.path2 is not None:
            yield Effect(What.WRITE, attribution.path(event, event.path2, second=True), done, True)
    elif call in _COPIES:
        # The recorder names the file behind the first descriptor first; where data goes is the other one.
        if event.path2 is not None and event.path2.startswith("/"):
            yield Effect(What.WRITE, event.path2, done)
    elif call in _MAKES and event.result == _EEXIST:
        return  # making a folder that is there is how programs make sure of it
    elif call in _CHANGES and path is not None and (call != "sendfile" or path.startswith("/")):
        yield Effect(What.WRITE, attribution.path(event, path), done, call in _MAKES)
