"""What a remedy looks at, and what it proposes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.model.plan import Adjustment, Observation
from harness.probing.starting.material import Material

#: At most this much text of one attempt is searched; the driver bounds it too.
MAX_TEXT = 64 << 10
MAX_LINE = 2000

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]")
#: Frames of rich's and typer's boxes.
_BOXES = str.maketrans("│╭╮╰╯─┃┏┓┗┛━", "            ")


@dataclass(frozen=True)
class StartFacts:
    """What is known before the first attempt.

    `argv`: the entry's own; `arguments` and `environment`: what the operator gave, which always wins (names only).
    `own_command`: the operator gave the whole command. `renewable`: dependencies can be resolved as of the release.
    `gateway`: a port inside can be reached; `http`: it is spoken to over HTTP from the first. `readable`: the target's
    source can be read for names of variables. `seed`: see `Material`; `material`: the source made from it,
    where somebody wants to know what comes of it.
    """

    argv: tuple[str, ...]
    home: str
    workspace: str
    seed: str
    arguments: tuple[str, ...] = ()
    environment: frozenset[str] = frozenset()
    own_command: bool = False
    renewable: bool = False
    readable: bool = False
    gateway: bool = False
    http: bool = False
    material: Material | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Case:
    """One attempt that failed: what it was started with, and what it showed. `text`: all it printed, made plain."""

    facts: StartFacts
    adjustment: Adjustment
    seen: Observation
    material: Material
    text: str
    source_variables: tuple[str, ...] = ()
    source_headers: tuple[str, ...] = ()
    lines: tuple[str, ...] = field(default=(), compare=False)

    @property
    def over_http(self) -> bool:
        """Whether the attempt was spoken to over HTTP."""
        return self.facts.http or self.adjustment.port is not None

    def holds(self, name: str) -> bool:
        """True when a variable of this name was given, by the operator or by an attempt."""
        return name in self.facts.environment or name in self.adjustment.environment

    def has_flag(self, flag: str) -> bool:
        """True when a flag was given, as `--flag` or `--flag=value`, by the operator or by an attempt."""
        given = (*self.facts.argv, *self.facts.arguments, *self.adjustment.arguments)
        return any(part == flag or part.startswith(f"{flag}=") for part in given)

    def change(self, **changes: object) -> Adjustment:
        """The attempt's adjustment with some fields replaced."""
        return self.adjustment.model_copy(update=changes)

    def plant(self, environment: dict[str, str], files: dict[str, str]) -> Adjustment:
        """The attempt's adjustment with more variables and files."""
        return self.change(
            environment={**self.adjustment.environment, **environment}, files={**self.adjustment.files, **files}
        )


@dataclass(frozen=True)
class Proposal:
    """One more attempt. `why`: what it changes, for the report; `guess`: nothing the target said asks for it."""

    adjustment: Adjustment
    why: str
    guess: bool = False


def case_of(
    facts: StartFacts,
    adjustment: Adjustment,
    seen: Observation,
    material: Material,
    source_variables: Sequence[str] = (),
    source_headers: Sequence[str] = (),
) -> Case:
    """The case that an observation is; what the target printed is bounded and stripped of escapes and boxes."""
    raw = "\n".join([seen.stderr, *seen.output, seen.refusal])
    if len(raw) > MAX_TEXT:
        raw = f"{raw[: MAX_TEXT // 2]}\n{raw[-MAX_TEXT // 2 :]}"
    plain = _ESCAPES.sub("", raw.replace("\r", "\n")).translate(_BOXES)
    lines = tuple(line[:MAX_LINE].rstrip() for line in plain.split("\n"))
    return Case(
        facts=facts,
        adjustment=adjustment,
        seen=seen,
        material=material,
        text="\n".join(lines),
        source_variables=tuple(source_variables),
        source_headers=tuple(source_headers),
        lines=lines,
    )
