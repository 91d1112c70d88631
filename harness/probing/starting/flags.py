"""Required flags and positional arguments, filled by what their names mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.probing.starting.case import Case, Proposal
from harness.probing.starting.complaints import SETTING, complaints
from harness.probing.starting.shapes import value_for

_FLAG = r"--[a-zA-Z][\w-]*"
#: What the usual parsers say: argparse, click and typer, commander, yargs and clipanion.
_REQUIRED = (
    re.compile(r"the following arguments are required: ([^\n]+)"),
    re.compile(r"[Mm]issing (?:option|parameter)s? ['\"]?([^\n]+)"),
    re.compile(r"required option ['\"]([^'\"\n]+)['\"] not specified"),
    re.compile(r"[Mm]issing required (?:argument|option|flag|parameter)s?:? ['\"]?([^\n]+)"),
    re.compile(r"[Mm]issing argument ['\"]?([^\n]+)"),
    re.compile(r"required (?:argument|option|parameter|flag)s? (?:is|are) missing:?\s*\n\s*[-*]?\s*([^\n:]+)"),
    re.compile(r"one of the arguments ([^\n]+?) is required"),
)
_ONE_OF = re.compile(r"one of the arguments|one of:|\bor\b|either", re.IGNORECASE)
_MANY = 6
_WORD = re.compile(rf"({_FLAG})(?:[= ]?[<\[{{$]\w[^>\]}}\s]*[>\]}}]?)?|\b([A-Za-z][A-Za-z0-9_-]{{1,40}})\b")
_STOP = {
    "or",
    "and",
    "argument",
    "arguments",
    "option",
    "options",
    "the",
    "env",
    "var",
    "required",
    "choose",
    "from",
    "is",
}
#: Prose that asks for an argument without a name; the second part names its meaning.
_PROSE = re.compile(
    r"(?:provide|specify|pass|expect(?:s|ed)?|requires?|need(?:s|ed)?|give|missing)\b[^\n.]{0,60}?"
    r"\b((?:database|connection|base|api|server|repo(?:sitory)?|project|vault|workspace|config(?:uration)?|allowed|root)?"
    r"[ -]?"
    r"(?:url|uri|string|path|director(?:y|ies)|folder|file|key|token|vault|repository))\b"
    r"[^\n.]{0,40}\b(?:argument|command[- ]line|parameter)",
    re.IGNORECASE,
)
_USAGE = re.compile(r"^\s*usage:\s+(.*(?:\n {8,}\S.*){0,8})", re.IGNORECASE | re.MULTILINE)
_UNKNOWN = re.compile(
    r"(?:unknown|unrecognized|unexpected|no such|invalid) (?:option|argument|flag)s?:? ['\"]?(--[\w-]+)", re.I
)


def demanded(case: Case) -> Iterator[Proposal]:
    """Flags and arguments that a complaint says are required, by name or in prose."""
    for pattern in _REQUIRED:
        for found in pattern.finditer(case.text):
            wanted = _wanted(found[1])
            yield from _give(case, wanted[:1] if _ONE_OF.search(found[0]) else wanted)
    mentioned = [
        flag
        for line in complaints(case.lines, strong=True)
        if not _OPTION_LINE.match(line)
        for flag in re.findall(rf"(?<![\w-]){_FLAG}", line)
    ]
    refused = set(_UNKNOWN.findall(case.text))
    for flag in dict.fromkeys(_NEEDED_SWITCH.findall(case.text)):
        if flag not in refused and not case.has_flag(flag) and not _VALUED.search(flag):
            yield Proposal(case.change(arguments=(*case.adjustment.arguments, flag)), f"flag that it asks for: {flag}")
    for flag in dict.fromkeys(mentioned):
        if flag not in refused and not _SWITCH.search(flag):
            yield from _give(case, [flag])
    for name in dict.fromkeys(SETTING.findall(case.text)):
        for proposal in _give(case, [f"--{name.replace('_', '-')}"]):
            yield Proposal(proposal.adjustment, proposal.why, guess=True)
    if case.facts.arguments or case.facts.own_command:
        return
    for found in _PROSE.finditer(case.text):
        yield from _give(case, [re.sub(r"[ -]", "_", found[1].strip())])


def shown(case: Case) -> Iterator[Proposal]:
    """What a usage line shows as required, outside of its brackets."""
    if case.facts.arguments or case.facts.own_command:
        return
    for found in _USAGE.finditer(case.text):
        yield from _give(case, usage_required(found[1]))


_NEEDED_SWITCH = re.compile(
    r"(?:requires?|need|add|pass|use|with) (?:the )?[\"'`]?(--[a-z][\w-]+)[\"'`]?(?: flag| to )"
)
_VALUED = re.compile(r"key|token|secret|url|uri|path|file|dir|host|port|user|pass|name|id$|spec|config", re.IGNORECASE)
_OPTION_LINE = re.compile(r"^\s*(?:-\w, )?--[\w-]+")
_SWITCH = re.compile(
    r"^--(?:help|version|verbose|debug|no-|stdin|.*-from-stdin|.*stdin|read-?only|insecure)|^--(?:stdio|http|sse)$"
)


def usage_required(usage: str) -> list[str]:
    """What stands outside of brackets in a usage line: `--flag VALUE`, `<argument>`, `ARGUMENT`."""
    text = usage[:4000]
    for _ in range(6):  # brackets nest
        text = re.sub(r"\[[^\[\]]*\]", " ", text)
    required = re.findall(rf"({_FLAG})[= ](?:<[^>]+>|[A-Z][A-Z0-9_]*\b)", text)
    rest = re.sub(rf"{_FLAG}[= ](?:<[^>]+>|[A-Z][A-Z0-9_]*\b)", " ", text)
    positional = re.findall(r"<([\w-]+)>(?:\.\.\.)?", rest)
    positional += re.findall(r"(?<![\w<-])([A-Z][A-Z0-9_]{2,})\b(?![>=])", rest)
    names = [name for name in positional if name.lower() not in ("command", "options", "args", "subcommand", "flags")]
    return required + list(dict.fromkeys(names))


def _wanted(text: str) -> list[str]:
    """The names in a parser's complaint: flags where there are some, else plain words."""
    text = re.sub(r"\(.*?\)|\[env[^\]]*\]|\. .*", " ", text)
    flags, words = [], []
    for piece in re.split(r",\s+", text)[:_MANY]:
        long = re.findall(_FLAG, piece)
        if long:
            flags += long[:1]
        elif (word := re.search(r"[<'\"]?([A-Za-z][A-Za-z0-9_-]{1,40})", piece)) and word[1].lower() not in _STOP:
            words.append(word[1])
    return flags + words


def _give(case: Case, names: list[str]) -> Iterator[Proposal]:
    added: list[str] = []
    files: dict[str, str] = {}
    said: list[str] = []
    positional_given = bool(case.facts.arguments) or case.facts.own_command
    for name in names:
        if name.startswith("--"):
            if case.has_flag(name):
                continue
        elif positional_given:
            continue
        value = value_for(
            name.lstrip("-"),
            f"{case.text[:4000]} {case.facts.argv}",
            case.facts.home,
            case.facts.workspace,
            case.material,
        )
        files.update(value.files)
        if not name.startswith("--"):
            yields_flag = re.search(rf"(?<![\w-])--{re.escape(name)}\b", case.text)
            if yields_flag and case.has_flag(f"--{name}"):
                continue
            added += [f"--{name}", value.text] if yields_flag else [value.text]
            said.append(f"--{name}" if yields_flag else name)
        else:
            added += [f"{name}={value.text}"] if f"{name}=" in case.text else [name, value.text]
            said.append(name)
    given = case.adjustment.arguments
    fresh = tuple(added)
    if fresh and not any(given[i : i + len(fresh)] == fresh for i in range(len(given))):
        yield Proposal(
            case.change(arguments=(*given, *fresh), files={**case.adjustment.files, **files}),
            f"arguments that it asks for: {', '.join(said)}",
        )
