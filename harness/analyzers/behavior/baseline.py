"""What runtimes and package managers do at every start: measured, and kept as data with its source.

How: installation, start and discovery recorded by the kernel recorder in this project's own images (Python 3.13 of
Debian 13, Node 22) in November 2026: the reference servers time, git, fetch, everything, filesystem, memory and
sequential-thinking, a browser server, and eleven popular ones (documentation, search, databases, clouds, notes, a
desktop commander). `tests/e2e/test_behavior.py` records the first group again. A row is here because a runtime, a
package manager or a library used by many does it unasked; what one server does stays a finding, however harmless.
Rows for `getconf`, `ldd`, `ldconfig`, `uname`, `lsb_release` and Python's helpers come from reading detect-libc,
ctypes, platform, distro and multiprocessing: the servers measured did not get that far.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class UsualProgram:
    """A program that is started unasked: its file name, a pattern for the whole of its argument vector, and by what."""

    name: str
    arguments: str
    reason: str


@dataclass(frozen=True)
class UsualPath:
    """A path touched unasked, as a pattern, by programs whose names match; `writes`: also when it is written."""

    path: str
    program: str
    reason: str
    writes: bool = False


#: Outside of the installation. Arguments are joined with one space.
PROGRAMS: tuple[UsualProgram, ...] = (
    UsualProgram(
        "python3*",
        r"\S*python[\d.]*( -\S+)* -c from multiprocessing\.(resource_tracker|forkserver|spawn) import .*",
        "Python's multiprocessing starts its helpers",
    ),
    UsualProgram("git", r"\S*git (version|--version)", "GitPython asks for Git's version when it is imported"),
    UsualProgram("ldconfig*", r"\S*ldconfig(\.real)? -p", "ctypes.util.find_library"),
    UsualProgram("uname", r"\S*uname( -\w+)?", "platform.uname of Python"),
    UsualProgram("getconf", r"\S*getconf GNU_LIBC_VERSION", "detect-libc of Node packages with native parts"),
    UsualProgram("ldd", r"(\S*sh )?\S*ldd --version", "detect-libc of Node packages with native parts"),
    UsualProgram(
        "*sh",
        r"\S*sh -c getconf GNU_LIBC_VERSION 2>&1 \|\| true; ldd --version 2>&1 \|\| true",
        "detect-libc of Node packages with native parts",
    ),
    UsualProgram("*sh", r"\S*sh -c (exec )?\S*ldconfig -p( 2>/dev/null)?", "ctypes.util.find_library"),
    UsualProgram("lsb_release", r"\S*lsb_release( -\w+)*", "distro of Python"),
)

#: Outside of the installation, reads and failed writes.
PATHS: tuple[UsualPath, ...] = (
    UsualPath(r"/(app|usr|opt)/.*/__pycache__(/.*)?", r".*", "Python keeps compiled modules", True),
    UsualPath(r"/home/user/\.gitconfig|/home/user/\.config/git/config", r"git.*", "Git reads its settings"),
    UsualPath(r".*/\.git/config", r"git.*", "Git reads a repository's settings"),
    UsualPath(r".*/\.git/index(\.lock)?", r"git", "git status refreshes the index that it reads", True),
    UsualPath(r".*/\.npmrc", r"node|npm.*|npx.*", "npm reads its settings"),
    UsualPath(r"/home/user/\.local/share/ca-certificates/.*", r".*", "certificates that every TLS library reads"),
)

#: Credentials that a widely used library reads by itself, whoever uses it: told, as what is no news of a server.
LIBRARY_PATHS: tuple[UsualPath, ...] = (
    UsualPath(r"/home/user/[._]netrc", r"python.*", "requests looks for passwords of hosts with every request"),
)

#: During the installation.
INSTALL_PATHS: tuple[UsualPath, ...] = (
    UsualPath(r"/(app|usr|opt)/.*/__pycache__(/.*)?", r".*", "Python keeps compiled modules", True),
    UsualPath(r"/home/user(/\.npmrc|/\.config/npm/.*)", r"node|npm.*", "npm reads its settings"),
    UsualPath(r"/home/user/\.config/uv(/.*)?", r"uv", "uv reads its settings"),
    UsualPath(r"/home/user/\.gitconfig|/home/user/\.config/git/config", r"git.*", "Git reads its settings"),
)

#: System calls that a runtime tries and does without: call, pattern of the program, reason.
CALLS: tuple[tuple[str, str, str], ...] = (
    ("io_uring_setup", r"node.*", "libuv tries it and falls back (UV_USE_IO_URING)"),
    ("io_uring_enter", r"node.*", "libuv tries it and falls back (UV_USE_IO_URING)"),
)

_PROGRAMS = tuple((re.compile(p.name.replace("*", ".*")), re.compile(p.arguments, re.DOTALL)) for p in PROGRAMS)
_PATHS = tuple((re.compile(p.path, re.DOTALL), re.compile(p.program), p.writes) for p in PATHS)
_LIBRARY_PATHS = tuple((re.compile(p.path, re.DOTALL), re.compile(p.program), p.reason) for p in LIBRARY_PATHS)
_INSTALL_PATHS = tuple((re.compile(p.path, re.DOTALL), re.compile(p.program), p.writes) for p in INSTALL_PATHS)
_CALLS = tuple((call, re.compile(program)) for call, program, _ in CALLS)


def usual_program(name: str, argv: tuple[str, ...]) -> bool:
    """True for a program that a runtime or a widely used library starts by itself."""
    words = " ".join(argv)[:2000]
    return any(program.fullmatch(name) and arguments.fullmatch(words) for program, arguments in _PROGRAMS)


def usual_path(path: str, program: str, *, writing: bool) -> bool:
    """True for a path that this program touches at every start."""
    return any(p.fullmatch(path) and by.fullmatch(program) and (w or not writing) for p, by, w in _PATHS)


def read_by_library(path: str, program: str) -> str | None:
    """Why a library in this program reads these credentials by itself; None where none is known to."""
    return next((reason for p, by, reason in _LIBRARY_PATHS if p.fullmatch(path) and by.fullmatch(program)), None)


def usual_install_path(path: str, program: str, *, writing: bool) -> bool:
    """The same during the installation."""
    return any(p.fullmatch(path) and by.fullmatch(program) and (w or not writing) for p, by, w in _INSTALL_PATHS)


def usual_call(call: str, program: str) -> bool:
    """True for a call that this program tries at every start, whether or not it gets it."""
    return any(call == name and by.fullmatch(program) for name, by in _CALLS)
