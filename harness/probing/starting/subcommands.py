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
    r"|invalid choice|unknown (?:sub)?command|missing (?:sub)?command|no (?:sub)?command (?:given|specified|provided)"
    r"|not enough non-option arguments|\{[a-z][\w-]*(?:,[a-z][\w-]*)+\}",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(
    r"^\s*(?:available |[\w ]{0,20}\b)?(?:sub)?commands\b[^.]*:?\s*$|^positional arguments:", re.IGNORECASE
)
_ENTRY = re.compile(r"^\s{1,12}(?:[\w./@-]+\.[cm]?js\s+|)([a-z][\w:-]{1,30})(?:[, |]|$)")
_CHOICES = re.compile(r"\{([a-z][\w-]*(?:,[a-z][\w-]*)+)\}|choose from ([\w\"', -]{3,400})")
#: Needs no command: an argument or an option is missing, which others supply.
_OTHER = re.compile(
    r"required option|missing option|arguments? (?:is|are) required|missing required argument|missing argument"
    r"|(?:is|are) required\b|no [\w -]{0,20}(?:key|token|url)",
    re.IGNORECASE,
)


def propose(case: Case) -> Iterator[Proposal]:
    """Commands that the usage lists and that serve; without a list, the usual ones."""
    facts = case.facts
    if facts.own_command or facts.arguments or case.seen.silent or not _USAGE.search(case.text):
        return
    tried = case.adjustment.subcommand
    listed = listed_commands(case)
    fitting = sorted((name for name in listed if _rank(name) < len(_SERVING) * 2), key=_rank)
    if tried and not listed & set(_SERVING):
        fitting = []
    for name in fitting:
        if tried and name != tried[-1] and name not in tried:
            yield _with(case, (*tried, name))  # a command of the command, when its own usage lists it
        if name not in tried:
            yield _with(case, (name,))
    if not listed and not _OTHER.search(case.text):
        for guess in _GUESSES:
            if guess != tried:
                yield Proposal(_with(case, guess).adjustment, f"subcommand {' '.join(guess)}", guess=True)


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
