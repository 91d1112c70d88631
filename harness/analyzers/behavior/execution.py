"""`behavior.exec`: programs that a server starts, and by whom; shells, network tools, programs it made itself."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from harness.analyzers.behavior.attribution import CALL, Where
from harness.analyzers.behavior.baseline import usual_program
from harness.analyzers.behavior.effects import FILE_CALLS, What, effects_of, is_reading
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.ledger import Kind
from harness.analyzers.behavior.made import PathMemory
from harness.analyzers.behavior.programs import NETWORK_TOOLS, SHELLS, Started, started
from harness.model.finding import Severity, Threat
from harness.model.purpose import runs_code
from harness.model.recording import Direction, Event, FrameEvent, ProcessEvent, SyscallEvent
from harness.model.surface import ItemKind

#: Words of the arguments of the latest call that are looked for in shells; shorter ones say nothing.
MAX_ARGUMENTS = 64
MIN_ARGUMENT = 4
#: Failed starts held until it is known whether the search went on.
MAX_TRIED = 1024
#: What needs no quotes in a shell (as `shlex.quote` of Python has it).
_PLAIN_WORD = re.compile(r"[\w@%+=:,./-]*", re.ASCII)

SELF_MADE = Kind(
    "behavior.exec.self-made",
    "Ran a program that it had written itself",
    Severity.HIGH,
    "The server wrote a file and then ran it as a program; what ran is not what was published.",
    cwe=494,
)
CODE_RUN = replace(
    SELF_MADE,
    severity=Severity.LOW,
    description="A tool that is there to run code wrote a file and ran it as a program, as it says; that the file "
    "holds what it was given was not seen.",
)
NAMELESS = Kind(
    "behavior.exec.nameless",
    "Ran a program that has no file",
    Severity.HIGH,
    "The server ran a program from memory or from a file already deleted, which hides what ran.",
    cwe=506,
)
FETCHED = Kind(
    "behavior.exec.fetch-and-run",
    "Fed fetched or decoded text to a shell",
    Severity.HIGH,
    "The server had a shell run what it would fetch or decode.",
    cwe=494,
)
FETCHER = Kind(
    "behavior.exec.network-tool",
    "Started a network tool unasked",
    Severity.MEDIUM,
    "The server started a program that moves data to or from elsewhere, before it was asked for anything.",
    threat=Threat.EXFILTRATION,
)
SHELL = Kind(
    "behavior.exec.shell",
    "Started a shell unasked",
    Severity.MEDIUM,
    "The server had a shell run a command before it was asked for anything.",
)
CODE = Kind(
    "behavior.exec.inline-code",
    "Started an interpreter with code on its command line",
    Severity.MEDIUM,
    "The server had another interpreter run code given on the command line, before it was asked for anything.",
)
OTHER = Kind(
    "behavior.exec.program",
    "Started another program unasked",
    Severity.LOW,
    "The server started another program before it was asked for anything.",
    threat=Threat.UNCATEGORIZED,
    remediation="See whether what the server is for explains it.",
)
IN_CALL = Kind(
    "behavior.exec.in-call",
    "A tool starts programs",
    Severity.INFO,
    "Calls of this tool start another program.",
    threat=Threat.UNCATEGORIZED,
    remediation="A fact to know.",
)
ARGUMENT = Kind(
    "behavior.exec.argument-in-shell",
    "An argument reached a shell's command text",
    Severity.MEDIUM,
    "Text given as an argument of this tool stood in the command that a shell ran; special characters may work there.",
    threat=Threat.COMMAND_INJECTION,
    cwe=78,
    remediation="Start programs with argument lists and without a shell.",
)
WORD = replace(
    ARGUMENT,
    severity=Severity.LOW,
    description="A plain word given as an argument of this tool stood in the command that a shell ran; whether special "
    "characters are quoted there was not seen.",
)
COMMAND = replace(
    ARGUMENT,
    severity=Severity.LOW,
    description="The tool is there to run commands, and a shell ran what it was given, as it says.",
)


class ExecFold(BehaviorFold):
    """Programs and files written, the latter bounded by `PathMemory`."""

    calls = FILE_CALLS | {"execve", "execveat"}

    def __init__(self, analyzer: BehaviorAnalyzer, facts: Any) -> None:
        super().__init__(analyzer, facts)
        self._written = PathMemory()
        self._arguments: tuple[str, ...] = ()
        self._tried: dict[tuple[str, int, str], tuple[SyscallEvent, Where]] = {}
        self._runners = _runners(facts)

    def other(self, event: Event) -> None:
        """Remember the words of the latest call's arguments."""
        if isinstance(event, FrameEvent) and event.direction is Direction.SENT and event.phase.startswith("call:"):
            self._arguments = _arguments_of(event)

    def syscall(self, event: SyscallEvent) -> None:
        """Remember what was written; an attempt to start what is not there counts where the name says enough."""
        if event.call in ("execve", "execveat"):
            # A search along the path fails several times before it succeeds: judged when it is known not to.
            name = (event.path or "").rpartition("/")[2]
            if (name in SHELLS or name in NETWORK_TOOLS) and len(self._tried) < MAX_TRIED:
                key = (event.session, event.pid, name)
                self._tried.setdefault(key, (event, self.attribution.where(event)))
            return
        if event.result is None or event.result < 0 or is_reading(event):
            return
        for effect in effects_of(event, self.attribution):
            if effect.what is What.WRITE:
                self._written.add(effect.path)

    def process(self, event: ProcessEvent) -> None:
        """Judge every program but the one that the target was started as."""
        if event.what != "exec":
            return
        where = self.attribution.where(event, *event.argv)
        path = event.path or event.requested
        program = started(event)
        for name in (program.name, path.rpartition("/")[2], event.requested.rpartition("/")[2]):
            self._tried.pop((event.session, event.pid, name), None)
        shown = " ".join(event.argv) or path
        by = self._by(where)
        script = self.attribution.path(event, program.script) if program.script else ""
        if path in self._written or script in self._written:
            kind = CODE_RUN if where.phase == CALL and where.tool in self._runners else SELF_MADE
            self.ledger.note(kind, "self-made", event, where, f"wrote and ran {script or path}: {shown}", extra=by)
        elif "detached" in event.notes or "deleted" in event.notes or path.startswith(("/memfd:", "memfd:")):
            self.ledger.note(NAMELESS, "nameless", event, where, f"ran {path}: {shown}", extra=by)
        if where.process.entry or usual_program(program.name, event.argv):
            return
        if where.process.parent_name == "env" or (program.name in SHELLS and where.process.parent_name in SHELLS):
            return  # told with what is above it
        if where.phase == CALL:
            self._in_call(event, where, program, shown)
        else:
            self._unasked(event, where, program, shown, by)

    def _unasked(self, event: ProcessEvent, where: Where, program: Started, shown: str, by: str) -> None:
        if program.fetches and program.into_shell:
            self.ledger.note(FETCHED, f"fetched:{program.name}", event, where, shown, extra=by)
        elif program.into_shell and program.shell:
            self.ledger.note(FETCHED, f"decoded:{program.name}", event, where, shown, extra=by)
        elif program.fetches:
            self.ledger.note(FETCHER, f"fetches:{program.name}", event, where, shown, extra=by)
        elif program.plain:
            name = program.shell.removeprefix("exec ").split(" ", 1)[0].rpartition("/")[2]
            self.ledger.note(OTHER, f"program:{name}", event, where, shown, extra=by)
        elif program.name in SHELLS:
            self.ledger.note(SHELL, f"shell:{program.name}", event, where, shown, extra=by)
        elif program.code:
            self.ledger.note(CODE, f"code:{program.name}", event, where, shown, extra=by)
        else:
            self.ledger.note(OTHER, f"program:{program.name}", event, where, shown, extra=by)

    def close(self) -> None:
        """Judge what could not be started."""
        for (_, _, name), (event, where) in self._tried.items():
            if where.phase != CALL:
                kind = SHELL if name in SHELLS else FETCHER
                self.ledger.note(kind, f"tried:{name}", event, where, f"tried to start {event.path}")

    def _in_call(self, event: ProcessEvent, where: Where, program: Started, shown: str) -> None:
        text = program.shell
        bare = _bare(text)
        found = [word for word in self._arguments if word in (text if "'" in word else bare)]
        if any(not _PLAIN_WORD.fullmatch(word) for word in found):
            kind = COMMAND if where.tool in self._runners else ARGUMENT
            self.ledger.note(kind, f"argument:{program.name}", event, where, shown)
        elif found:
            self.ledger.note(WORD, f"word:{program.name}", event, where, shown)
        self.ledger.note(IN_CALL, f"program:{program.name}", event, where, shown)

    def _by(self, where: Where) -> str:
        names = [name.rpartition("/")[2] for name in where.process.ancestors]
        return f"It was started by {' under '.join(names)}, in phase {where.phase}." if names else ""


def _runners(facts: Any) -> frozenset[str]:
    """The tools that are there to run code or commands, by what they and their arguments are called."""
    found: set[str] = set()
    for surface in facts.surfaces:
        for item in surface.of(ItemKind.TOOL):
            value = item.value if isinstance(item.value, dict) else {}
            schema = value.get("inputSchema")
            properties = schema.get("properties") if isinstance(schema, dict) else None
            named = properties.items() if isinstance(properties, dict) else ()
            words = ((n, str(p.get("description", "")) if isinstance(p, dict) else "") for n, p in named)
            if runs_code(f"{item.name}\n{value.get('description', '')}", words):
                found.add(item.name)
    return frozenset(found)


def _bare(text: str) -> str:
    """A shell's text without what stands between single quotes, where nothing is special (POSIX, XCU 2.2)."""
    kept: list[str] = []
    state, escaped = "", False
    for sign in text:
        if state == "'":
            state = "" if sign == "'" else state
            continue
        kept.append("\0" if sign == "'" and not state and not escaped else sign)
        if escaped:
            escaped = False
        elif sign == "\\":
            escaped = True
        elif sign == state:
            state = ""
        elif not state and sign in ("'", '"'):
            state = sign
    return "".join(kept)


def _arguments_of(event: FrameEvent) -> tuple[str, ...]:
    """The texts among a call's arguments that are long enough to mean something."""
    try:
        message = json.loads(event.raw)
    except (ValueError, RecursionError):
        return ()
    params = message.get("params") if isinstance(message, dict) else None
    found: list[str] = []
    waiting: list[Any] = [params.get("arguments")] if isinstance(params, dict) else []
    while waiting and len(found) < MAX_ARGUMENTS:
        value = waiting.pop()
        if isinstance(value, str) and len(value) >= MIN_ARGUMENT:
            found.append(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return tuple(found)


class ExecAnalyzer(BehaviorAnalyzer):
    """Judges the programs that were started."""

    name = "behavior.exec"
    description = "programs that the server starts: shells, network tools, files it wrote itself"
    fold = ExecFold
    kinds = (SELF_MADE, NAMELESS, FETCHED, FETCHER, SHELL, CODE, OTHER, IN_CALL, ARGUMENT, WORD, COMMAND, CODE_RUN)
