"""The result of one analyzer and of a whole scan; its JSON form is the published schema, version 1.

`ScanResult` refuses every combination of status and verdict but the five of verdict.md.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from harness.model.base import JsonObject, JsonValue, Record
from harness.model.coverage import Coverage, Tally
from harness.model.finding import EvidenceLevel, Finding, Severity
from harness.model.options import ActiveLevel, Transport
from harness.model.recording import Grade

SCHEMA_VERSION = 1


class ScanStatus(StrEnum):
    """Whether the analysis ran."""

    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    ERROR = "ERROR"
    SKIPPED = "SKIPPED"


class Verdict(StrEnum):
    """What the analysis found."""

    SAFE = "SAFE"
    UNSAFE = "UNSAFE"
    UNKNOWN = "UNKNOWN"


class ExitCode(IntEnum):
    """The exit codes of every command (verdict.md)."""

    SAFE = 0
    UNSAFE = 1
    USAGE = 2
    UNKNOWN = 3
    FAILED = 4
    INTERRUPTED = 130


COMBINATIONS: frozenset[tuple[ScanStatus, Verdict]] = frozenset(
    {
        (ScanStatus.COMPLETED, Verdict.SAFE),
        (ScanStatus.COMPLETED, Verdict.UNSAFE),
        (ScanStatus.PARTIAL, Verdict.UNKNOWN),
        (ScanStatus.ERROR, Verdict.UNKNOWN),
        (ScanStatus.SKIPPED, Verdict.UNKNOWN),
    }
)


class AnalyzerStatus(StrEnum):
    """How one analyzer ended. TIMEOUT, CRASHED and ERROR are failures; the last two excuse themselves by default."""

    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    ERROR = "ERROR"
    CRASHED = "CRASHED"
    TIMEOUT = "TIMEOUT"
    SKIPPED = "SKIPPED"
    UNAVAILABLE = "UNAVAILABLE"

    @property
    def failed(self) -> bool:
        """True for the three ways in which an analyzer breaks."""
        return self in (AnalyzerStatus.ERROR, AnalyzerStatus.CRASHED, AnalyzerStatus.TIMEOUT)

    @property
    def ran(self) -> bool:
        """False where the analyzer did not even begin."""
        return self not in (AnalyzerStatus.SKIPPED, AnalyzerStatus.UNAVAILABLE)


class Selection(StrEnum):
    """How an analyzer came into the run: by default, named, or named with a question mark."""

    DEFAULT = "default"
    NAMED = "named"
    BEST_EFFORT = "best-effort"


class AnalyzerResult(Record):
    """What one analyzer says. `reason` is one line whenever the status is not COMPLETED."""

    name: str
    version: str
    status: AnalyzerStatus
    selection: Selection = Selection.DEFAULT
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = Coverage()
    warnings: tuple[str, ...] = ()
    duration_ms: int | None = None

    @model_validator(mode="after")
    def _no_findings_without_a_run(self) -> Self:
        if self.findings and not self.status.ran:
            raise ValueError("an analyzer that did not run has no findings")
        if self.status is not AnalyzerStatus.COMPLETED and not self.reason:
            raise ValueError("a status other than COMPLETED needs a reason")
        return self


class PolicyFacts(Record):
    """The policy in force: its name, the digest of its effective form, and what blocks."""

    name: str
    sha256: str
    blocking_severity: Severity
    blocking_evidence: EvidenceLevel


class TargetFacts(Record):
    """The target as reports name it. `digest`: SHA-256 of the closure."""

    ref: str
    kind: str
    name: str = ""
    version: str = ""
    digest: str = ""
    transport: Transport = Transport.STDIO
    protocol_version: str | None = None


class ActiveFacts(Record):
    """The active level and the tools allowed by name."""

    level: ActiveLevel
    allowed: tuple[str, ...] = ()


class AnalyzerFacts(Record):
    """One row of the report's analyzer table."""

    name: str
    version: str
    status: AnalyzerStatus
    required: bool
    reason: str = ""
    duration_ms: int | None = None
    coverage: Coverage


class SurfaceFacts(Record):
    """The declared surface as served: each entry is the item's own JSON."""

    server: JsonObject = {}
    protocol_version: str | None = None
    era: str | None = None
    instructions: str | None = None
    tools: tuple[JsonValue, ...] = ()
    prompts: tuple[JsonValue, ...] = ()
    resources: tuple[JsonValue, ...] = ()
    resource_templates: tuple[JsonValue, ...] = ()


class StockClientFacts(Record):
    """Whether a stock client works with the server; `works` is null when it was not tried."""

    works: bool | None = None
    client: str = ""
    detail: str = ""


class BehaviorFacts(Record):
    """What the target did (filled by the behaviour analyzers)."""

    egress: tuple[JsonObject, ...] = ()
    processes: tuple[JsonObject, ...] = ()
    files: JsonObject = {}
    profile: JsonObject = {}
    stock_client: StockClientFacts = StockClientFacts()


class RecordingFacts(Record):
    """Which recording the result stands on. `bundle` is its folder's name, never a path.

    `network`: the fake internet's mode (answer, refuse), none where there was none.
    """

    bundle: str | None = None
    recorder: str = "none"
    grade: Grade = Grade.NONE
    network: str = "none"
    phases: tuple[str, ...] = ()
    events: int = 0
    lost: int = 0


class ScanResult(Record):
    """The whole result, made by the pipeline around the decision of `assessment.aggregate`."""

    schema_version: Literal[1] = 1
    harness_version: str
    target: TargetFacts
    status: ScanStatus
    verdict: Verdict
    exit_code: ExitCode
    headline: str
    reasons: tuple[str, ...] = ()
    active: ActiveFacts
    policy: PolicyFacts
    findings: tuple[Finding, ...] = ()
    analyzers: tuple[AnalyzerFacts, ...] = ()
    coverage: dict[str, Tally] = {}
    surface: SurfaceFacts = SurfaceFacts()
    behavior: BehaviorFacts = BehaviorFacts()
    recording: RecordingFacts = RecordingFacts()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    timing: dict[str, int] = Field(default={}, description="milliseconds by phase; not part of comparisons")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        check_combination(self.status, self.verdict)
        return self


def check_combination(status: ScanStatus, verdict: Verdict) -> None:
    """Raise ValueError unless status and verdict are one of the five combinations of verdict.md."""
    if (status, verdict) not in COMBINATIONS:
        raise ValueError(f"{status} + {verdict} is not one of the five combinations")
