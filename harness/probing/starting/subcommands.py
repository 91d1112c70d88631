"""A program of several commands that printed its usage: the one that serves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.probing.starting.case import Case, Proposal

#: In the order of how often they are the right one.
_SERVING = (
    "mcp", "serve", "server", "stdio", "start", "mcp-server", "mcp-serve", "serve-mcp", "start-mcp", "run-server",
    "start-server", "run", "launch",
)  # fmt: skip
_GUESSES = (("mcp",), ("serve",), ("start",), ("stdio",), ("server", "start"))

_USAGE = re.compile(
    r"^\s*usage:|^\s*(?:[\w -]{0,20}sub)?commands:?\s*$|^\s*(?:available )?(?:sub)?commands\b.*:"
    r"|<command>|\[command\]|(?-i:\bCOMMAND \[|\[COMMAND\]|\bCOMMAND$)"
    r"|invalid choice|unknown (?:sub)?command|(?:required|missing) (?:sub)?command"
    r"|no (?:sub)?command (?:given|specified|provided)"
    r"|not enough non-option arguments|\{[a-z][\w-]*(?:,[a-z][\w-]*)+\}",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(
    r"^\s*(?:available |[\w ]{0,20}\b)?(?:sub)?commands\b[^.]*:?\s*$|^positional arguments:", re.IGNORECASE
)
_ENTRY = re.compile(r"^\s{1,12}(?:[\w./@-]+\.[cm]?js\s+|)([a-z][\w:-]{1,30})(?:[, |]|$)")
_CHOICES = re.compile(r"\{([a-z][\w-]*(?:,[a-z][\w-]*)+)\}|choose from ([\w\"', -]{3,400})")
#: A line that shows how to start it: the program and the command that serves.
_EXAMPLE = re.compile(
    r"^[\s$>]{1,10}[\w.@/-]+ ((?:mcp|serve|server|start|stdio)(?: (?:start|mcp|stdio|serve|server|run))?)\s*(?:#.*)?$"
)
_WANTED = re.compile(
    r"(?:required|missing|no) (?:sub)?command|command (?:is|was) (?:required|missing|not )", re.IGNORECASE
)
#: A program without commands.
_OPTIONS_ONLY = re.compile(r"^\s*usage:\s+\S+(?: [^\s<{\[A-Z]+){0,2}\s+\[options\]\s*$", re.IGNORECASE | re.MULTILINE)
#: Needs no command: an argument or an option is missing, which others supply.
_OTHER = re.compile(
    r"required option|missing option|arguments? (?:is|are) required|missing required argument|missing argument"
    r"|(?:is|are) required\b|no [\w -]{0,20}(?:key|token|url)",
    re.IGNORECASE,
)


def listed(case: Case) -> Iterator[Proposal]:
    """Commands that the usage lists and that serve."""
    if not _asked(case):
        return
    tried = case.adjustment.subcommand
    for line in case.lines:
        shown = _EXAMPLE.match(line)
        if shown and tuple(shown[1].split()) != tried:
            yield _with(case, tuple(shown[1].split()))
    fitting = sorted((name for name in listed_commands(case) if _rank(name) < len(_SERVING) * 2), key=_rank)
    for name in fitting:
        if tried and name != tried[-1] and name not in tried:
            yield _with(case, (*tried, name))  # a command of the command, when its own usage lists it
        if name not in tried:
            yield _with(case, (name,))


def guessed(case: Case) -> Iterator[Proposal]:
    """The usual commands, for a usage that lists none."""
    if not _asked(case):
        return
    doubtful = _OTHER.search(case.text) or _OPTIONS_ONLY.search(case.text) or listed_commands(case)
    if doubtful and not _WANTED.search(case.text):
        return
    for guess in _GUESSES:
        if guess != case.adjustment.subcommand:
            yield Proposal(case.change(subcommand=guess), f"subcommand {' '.join(guess)}", guess=True)


def _asked(case: Case) -> bool:
    """True when a usage was printed, and the operator left the arguments to us."""
    given = case.facts.own_command or case.facts.arguments
    return not given and not case.seen.silent and _USAGE.search(case.text) is not None


def listed_commands(case: Case) -> set[str]:
    """The commands that a usage text lists."""
    found: set[str] = set()
    for braces, listing in _CHOICES.findall(case.text):
        found |= set(re.findall(r"[a-z][\w-]*", braces or listing))
    inside = False
    for line in case.lines:
        if _HEADING.match(line):
            inside = True
        elif inside and not line.strip():
            continue
        elif inside and not line.startswith((" ", "\t")):
            inside = False
        elif inside and (entry := _ENTRY.match(line)):
            found.add(entry[1])
    return found


def _rank(name: str) -> int:
    if name in _SERVING:
        return _SERVING.index(name)
    words = set(re.split(r"[-_:]", name))
    close = words & {"mcp", "serve", "server", "stdio"}
    return len(_SERVING) + min(_SERVING.index(word) for word in close) if close else len(_SERVING) * 2


def _with(case: Case, command: tuple[str, ...]) -> Proposal:
    return Proposal(case.change(subcommand=command), f"subcommand {' '.join(command)}, listed in its usage")
