"""Programs by what starting one means: shells, interpreters with code on their command line, network tools."""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.model.recording import ProcessEvent

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
#: A command without any syntax of the shell's but throwing output away: no more than the program it names.
_PLAIN = re.compile(r"(?:exec )?[\w./=:@%+, -]+(?:\s*(?:[12&]?>\s*/dev/null|2>&1))*\s*")


class Started(NamedTuple):
    """A started program: `shell` text or interpreter `code` given on its command line, empty where there is none.

    `script`: the file that a shell or an interpreter was told to run, as it was written.
    """

    name: str
    shell: str = ""
    code: str = ""
    script: str = ""

    @property
    def fetches(self) -> bool:
        """True where it is a network tool, or its text calls one."""
        return self.name in NETWORK_TOOLS or _FETCH.search(self.text) is not None

    @property
    def into_shell(self) -> bool:
        """True where its text feeds data to an interpreter."""
        return _INTO_SHELL.search(self.text) is not None

    @property
    def plain(self) -> bool:
        """True where a shell runs one program with plain arguments, as libraries do that start everything this way."""
        return bool(self.shell) and _PLAIN.fullmatch(self.text) is not None

    @property
    def text(self) -> str:
        """The text given on the command line, bounded."""
        return (self.shell or self.code)[:8192]


def started(event: ProcessEvent) -> Started:
    """What an exec started. A script is known by its own name, not by that of what runs it."""
    argv = event.argv
    if event.interpreter and event.requested:
        return Started(event.requested.rpartition("/")[2], script=event.requested)
    name = (event.path or event.requested).rpartition("/")[2]
    # Debian's sh is dash, busybox is many: what it was called as tells more where it is a shell at all.
    called = argv[0].rpartition("/")[2].lstrip("-") if argv else ""
    shell = name if name in SHELLS else called if called in SHELLS and name in ("busybox", "toybox") else ""
    if shell:
        text = _after_flag(argv, "c")
        return Started(shell, shell=text, script="" if text else _first_word(argv))
    match = _INTERPRETER.fullmatch(name)
    if match is not None:
        flags = _CODE_FLAGS.get(name.rstrip("0123456789."), "")
        code = _after_flag(argv, flags)
        return Started(name, code=code, script="" if code else _first_word(argv))
    return Started(name)


def _first_word(argv: tuple[str, ...]) -> str:
    """The first argument that is no option; empty where there is none."""
    return next((word for word in argv[1:] if not word.startswith("-")), "")


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
