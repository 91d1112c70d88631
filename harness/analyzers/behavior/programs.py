"""Programs by what starting one means: shells, interpreters with code on their command line, network tools."""

from __future__ import annotations

import re
from typing import NamedTuple

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh", "mksh", "fish", "busybox", "csh", "tcsh"})
_INTERPRETER = re.compile(r"(?:python|pypy|perl|ruby|php|lua|node|nodejs|deno|bun|tclsh|osascript)[\d.]*")
#: Programs that move data to or from elsewhere.
NETWORK_TOOLS = frozenset(
    {
        "curl", "wget", "nc", "ncat", "netcat", "nc.openbsd", "nc.traditional", "socat", "ssh", "scp", "sftp",
        "rsync", "telnet", "ftp", "tftp", "aria2c", "dig", "nslookup",
    }
)  # fmt: skip
_CODE_FLAGS = {"python": "c", "pypy": "c", "perl": "eE", "ruby": "e", "php": "r", "lua": "e", "node": "ep", "tclsh": ""}
_CODE_WORDS = frozenset({"--eval", "--print", "eval"})
#: Shell text that fetches something, or turns data into a command.
_TOOL_WORDS = "|".join(sorted(map(re.escape, NETWORK_TOOLS), key=len, reverse=True))
_FETCH = re.compile(rf"(?:^|[\s;&|(`/])(?:{_TOOL_WORDS})(?=\s)|/dev/tcp/")
_INTO_SHELL = re.compile(
    r"\|\s*(?:\S*/)?(?:env\s+)?(?:ba|da|z|k)?sh\b|\|\s*(?:\S*/)?python[\d.]*\b|base64\s+(?:-d|--decode|-D)\b"
)


class Started(NamedTuple):
    """A started program: `shell` text or interpreter `code` given on its command line, empty where there is none."""

    name: str
    shell: str = ""
    code: str = ""

    @property
    def fetches(self) -> bool:
        """True where it is a network tool, or its text calls one."""
        return self.name in NETWORK_TOOLS or _FETCH.search(self.text) is not None

    @property
    def into_shell(self) -> bool:
        """True where its text feeds data to an interpreter."""
        return _INTO_SHELL.search(self.text) is not None

    @property
    def text(self) -> str:
        """The text given on the command line, bounded."""
        return (self.shell or self.code)[:8192]


def started(path: str, argv: tuple[str, ...]) -> Started:
    """What is started by this program file with these arguments."""
    name = path.rpartition("/")[2]
    # Debian's sh is dash, busybox is many: what it was called as tells more where it is a shell at all.
    called = argv[0].rpartition("/")[2].lstrip("-") if argv else ""
    shell = name if name in SHELLS else called if called in SHELLS and name in ("busybox", "toybox") else ""
    if shell:
        return Started(shell, shell=_after_flag(argv, "c"))
    match = _INTERPRETER.fullmatch(name)
    if match is not None:
        flags = _CODE_FLAGS.get(name.rstrip("0123456789."), "")
        return Started(name, code=_after_flag(argv, flags))
    return Started(name)


def _after_flag(argv: tuple[str, ...], flags: str) -> str:
    """The word after the first option group that holds one of `flags`; empty where options end before."""
    words = argv[1:]
    for position, word in enumerate(words):
        if word in _CODE_WORDS and flags and flags != "c":
            return words[position + 1] if position + 1 < len(words) else ""
        if not word.startswith("-") or word in ("-", "--"):
            return ""
        if not word.startswith("--") and any(flag in word[1:] for flag in flags):
            return words[position + 1] if position + 1 < len(words) else ""
    return ""
