"""What came of trying a confirmed finding again, and the case that goes to a maintainer."""

from __future__ import annotations

from enum import StrEnum

from harness.model.base import Record
from harness.model.call import Call
from harness.model.finding import Finding
from harness.model.payload import Boundary
from harness.model.result import TargetFacts
from harness.model.target import Artifact
from harness.model.world import World


class Tried(StrEnum):
    """The three ends of a reproduction."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_TRIED = "not tried"


class Reproduction(Record):
    """One finding, tried again. `why`: what was seen, or why it was not tried; `case`: the folder that was written."""

    finding: str
    rule: str = ""
    outcome: Tried
    why: str = ""
    nonce: str = ""
    case: str = ""


class ProofCase(Record):
    """Everything about one confirmed finding, for somebody without this program.

    `argv`: how the target was started, `environment` the names that it was given; `steps`: the calls of the payload in
    order, `control` its inert twin; `world`: what was planted for them. `kept`: the closure's files with their digests.
    `place`: the URL where it is spoken to over HTTP, empty for standard streams.
    """

    format: int = 1
    finding: Finding
    target: TargetFacts
    kept: tuple[Artifact, ...] = ()
    argv: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    place: str = ""
    network: str = ""
    boundary: Boundary | None = None
    steps: tuple[Call, ...]
    control: tuple[Call, ...] = ()
    world: World
    outcome: Reproduction | None = None
