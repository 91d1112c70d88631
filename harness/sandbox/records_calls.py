"""Arguments of system calls that have names: open flags, socket families, namespaces, prctl options.

The numbers are Linux's, from <fcntl.h>, <linux/socket.h>, <linux/sched.h>, <linux/prctl.h> and <linux/ptrace.h>.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from harness.sandbox.records_text import FAMILIES

_ACCESS = ("O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE")
_OPEN = {0o100: "O_CREAT", 0o200: "O_EXCL", 0o1000: "O_TRUNC", 0o2000: "O_APPEND", 0o10000000: "O_PATH"}
_OPEN_BY_ARCHITECTURE = {
    "x86_64": {0o200000: "O_DIRECTORY", 0o400000: "O_NOFOLLOW"},
    "aarch64": {0o40000: "O_DIRECTORY", 0o100000: "O_NOFOLLOW"},
}
_TMPFILE = 0o20000000
_SOCKET_TYPES = {1: "SOCK_STREAM", 2: "SOCK_DGRAM", 3: "SOCK_RAW", 5: "SOCK_SEQPACKET"}
_NAMESPACES = {
    0x00000080: "CLONE_NEWTIME", 0x00020000: "CLONE_NEWNS", 0x02000000: "CLONE_NEWCGROUP", 0x04000000: "CLONE_NEWUTS",
    0x08000000: "CLONE_NEWIPC", 0x10000000: "CLONE_NEWUSER", 0x20000000: "CLONE_NEWPID", 0x40000000: "CLONE_NEWNET",
}  # fmt: skip
#: The lowest byte of clone's flags is a signal number, so CLONE_NEWTIME can't be asked for there.
_SIGNAL_MASK = 0xFF
_PRCTL = {
    4: "PR_SET_DUMPABLE", 8: "PR_SET_KEEPCAPS", 15: "PR_SET_NAME", 22: "PR_SET_SECCOMP", 24: "PR_CAPBSET_DROP",
    28: "PR_SET_SECUREBITS", 35: "PR_SET_MM", 36: "PR_SET_CHILD_SUBREAPER", 38: "PR_SET_NO_NEW_PRIVS",
    47: "PR_CAP_AMBIENT", 59: "PR_SET_SYSCALL_USER_DISPATCH", 0x59616D61: "PR_SET_PTRACER",
}  # fmt: skip
_PTRACE = {
    0: "PTRACE_TRACEME", 1: "PTRACE_PEEKTEXT", 2: "PTRACE_PEEKDATA", 4: "PTRACE_POKETEXT", 5: "PTRACE_POKEDATA",
    16: "PTRACE_ATTACH", 17: "PTRACE_DETACH", 0x4206: "PTRACE_SEIZE",
}  # fmt: skip

Arguments = Sequence[int]


@lru_cache(maxsize=4096)
def _open_flags(value: int, architecture: str) -> tuple[str, ...]:
    names = {**_OPEN, **_OPEN_BY_ARCHITECTURE.get(architecture, {})}
    tmpfile = ("O_TMPFILE",) if value & _TMPFILE else ()
    return (_ACCESS[value & 3], *(name for bit, name in names.items() if value & bit), *tmpfile)


def _at(position: int, names: dict[int, str]) -> Callable[[Arguments, str], tuple[str, ...]]:
    def named(args: Arguments, _: str) -> tuple[str, ...]:
        value = args[position] & 0xFFFFFFFF
        return (names.get(value, str(value)),)

    return named


def _namespaces(position: int, mask: int = 0) -> Callable[[Arguments, str], tuple[str, ...]]:
    return lambda args, _: tuple(name for bit, name in _NAMESPACES.items() if args[position] & ~mask & bit)


def _socket(args: Arguments, _: str) -> tuple[str, ...]:
    family, kind = args[0] & 0xFFFFFFFF, args[1] & 0xF
    return FAMILIES.get(family, f"family {family}"), _SOCKET_TYPES.get(kind, f"type {kind}")


_NAMED: dict[str, tuple[int, Callable[[Arguments, str], tuple[str, ...]]]] = {
    "open": (2, lambda args, arch: _open_flags(args[1], arch)),
    "openat": (3, lambda args, arch: _open_flags(args[2], arch)),
    "openat2": (3, lambda args, arch: _open_flags(args[2], arch)),  # the recorder puts them for the address of theirs
    "creat": (0, lambda args, arch: ("O_WRONLY", "O_CREAT", "O_TRUNC")),
    "socket": (2, _socket),
    "socketpair": (2, _socket),
    "unshare": (1, _namespaces(0)),
    "setns": (2, _namespaces(1)),
    "clone": (1, _namespaces(0, _SIGNAL_MASK)),
    "clone3": (2, _namespaces(1)),
    "prctl": (1, _at(0, _PRCTL)),
    "ptrace": (1, _at(0, _PTRACE)),
}


def named_flags(call: str, args: Arguments, architecture: str) -> tuple[str, ...]:
    """The names in the arguments of a call; empty where it has none or where arguments are missing."""
    found = _NAMED.get(call)
    return found[1](args, architecture) if found is not None and len(args) >= found[0] else ()
