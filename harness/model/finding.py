"""A finding: one fact about the target, how bad it is, and how it is known.

Identity: `fingerprint` is the SHA-256 of rule, location and the normalised fact; no time, nonce, call id or
path of this machine goes in, so it is stable across runs and machines. `id` is its readable short form.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from harness.model.base import Record, canonical_json, sha256_hex


class Severity(StrEnum):
    """How bad it would be, ordered by `rank`."""

    INFO = "INFO"
    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"

    @property
    def rank(self) -> int:
        """0 for INFO up to 4 for CRITICAL."""
        return list(Severity).index(self)


class EvidenceLevel(StrEnum):
    """How it is known (verdict.md), ordered by `rank`; DATAFLOW and PROTOCOL are equal."""

    HEURISTIC = "HEURISTIC"
    STATIC = "STATIC"
    DATAFLOW = "DATAFLOW"
    PROTOCOL = "PROTOCOL"
    DYNAMIC = "DYNAMIC"
    CONFIRMED = "CONFIRMED"

    @property
    def rank(self) -> int:
        """0 for HEURISTIC up to 4 for CONFIRMED."""
        return {"HEURISTIC": 0, "STATIC": 1, "DATAFLOW": 2, "PROTOCOL": 2, "DYNAMIC": 3, "CONFIRMED": 4}[self.value]


class Threat(StrEnum):
    """The closed vocabulary of what a finding is about (tool-definitions.md)."""

    TOOL_POISONING = "tool_poisoning"
    PROMPT_INJECTION = "prompt_injection"
    RUG_PULL = "rug_pull"
    EXFILTRATION = "exfiltration"
    MALICIOUS_CODE = "malicious_code"
    UNCATEGORIZED = "uncategorized"
    PROTOCOL_VIOLATION = "protocol_violation"
    DENIAL_OF_SERVICE = "denial_of_service"
    COMMAND_INJECTION = "command_injection"
    PATH_TRAVERSAL = "path_traversal"
    SSRF = "ssrf"
    SANDBOX_EVASION = "sandbox_evasion"


class ThreatLevel(StrEnum):
    """dangerous: a hard signal or CONFIRMED; warning: soft signals; info: a fact to know."""

    INFO = "info"
    WARNING = "warning"
    DANGEROUS = "dangerous"


class Tier(StrEnum):
    """Hard signals can block on their own; soft ones only add up."""

    HARD = "hard"
    SOFT = "soft"


class Position(StrEnum):
    """Where a phrase stood: as an instruction, in a description of such texts, or in an example."""

    INSTRUCTION = "instruction"
    DESCRIPTIVE = "descriptive"
    EXAMPLE = "example"


class Signal(Record):
    """One check's contribution. `evidence` is render-safe and at most 200 characters."""

    check: str
    tier: Tier
    position: Position | None = None
    confidence: float = Field(ge=0, le=1)
    evidence: str


class Location(Record):
    """Where it was seen. Exactly the fields that apply are set; `field` is a JSON path inside the item, `destination`
    the site that something went to.
    """

    server: str | None = None
    tool: str | None = None
    resource: str | None = None
    resource_template: str | None = None
    prompt: str | None = None
    file: str | None = None
    field: str | None = None
    line: int | None = None
    phase: str | None = None
    call: str | None = None
    destination: str | None = None


class Evidence(Record):
    """A pointer into the recording. `seq`: number of the event; `text`: render-safe excerpt."""

    kind: str
    phase: str | None = None
    call: str | None = None
    seq: int | None = None
    text: str = ""
    sha256: str | None = None


class Confirmation(Record):
    """What makes a finding CONFIRMED (verdict.md): the payload, two nonces, and the control that stayed inert.

    `minimal`: the smallest form of the payload that still worked, where one was looked for; `network`: the mode of the
    fake network in which it holds.
    """

    payload: str
    nonces: tuple[str, ...] = Field(min_length=2)
    control: str
    minimal: str = ""
    network: str = ""


#: Rules with this beginning tell what a server can do by design: facts to know, and no faults.
CAPABILITY = "capability."


class Finding(Record):
    """One fact about the target. Make one with `Finding.make`, which derives the identity."""

    id: str
    rule_id: str
    title: str
    severity: Severity
    evidence_level: EvidenceLevel
    confidence: float = Field(ge=0, le=1)
    threat: Threat
    threat_level: ThreatLevel
    cwe: int | None = None
    analyzers: tuple[str, ...]
    signals: tuple[Signal, ...] = ()
    location: Location
    description: str
    remediation: str = ""
    evidence: tuple[Evidence, ...] = ()
    confirmation: Confirmation | None = None
    fingerprint: str
    suppressed_by: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.id != f"F-{self.fingerprint[:16]}":
            raise ValueError("finding id does not belong to its fingerprint")
        if (self.evidence_level is EvidenceLevel.CONFIRMED) != (self.confirmation is not None):
            raise ValueError("CONFIRMED needs a confirmation, and only CONFIRMED has one")
        return self

    @property
    def by_design(self) -> bool:
        """Whether it tells a capability instead of a fault."""
        return self.rule_id.startswith(CAPABILITY)

    @classmethod
    def make(
        cls,
        *,
        rule_id: str,
        title: str,
        severity: Severity,
        evidence_level: EvidenceLevel,
        threat: Threat,
        location: Location,
        fact: str,
        analyzer: str,
        description: str,
        confidence: float = 1.0,
        threat_level: ThreatLevel = ThreatLevel.WARNING,
        cwe: int | None = None,
        signals: tuple[Signal, ...] = (),
        remediation: str = "",
        evidence: tuple[Evidence, ...] = (),
        confirmation: Confirmation | None = None,
    ) -> Finding:
        """Build a finding. `fact` is the normalised fact: the same fact seen again must give the same text."""
        place = location.model_dump(exclude_none=True, exclude={"call", "line"})
        fingerprint = sha256_hex(canonical_json([rule_id, place, fact]))
        return cls(
            id=f"F-{fingerprint[:16]}",
            rule_id=rule_id,
            title=title,
            severity=severity,
            evidence_level=evidence_level,
            confidence=confidence,
            threat=threat,
            threat_level=threat_level,
            cwe=cwe,
            analyzers=(analyzer,),
            signals=signals,
            location=location,
            description=description,
            remediation=remediation,
            evidence=evidence,
            confirmation=confirmation,
            fingerprint=fingerprint,
        )
