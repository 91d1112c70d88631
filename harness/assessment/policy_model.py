"""The policy: what blocks, what is required, and how findings are rewritten before the verdict.

Three presets, and a TOML text over one of them (read by `policy`); the clock is an argument.

    preset = "balanced"
    required = ["protocol"]
    disabled = ["protocol.schema"]
    [blocking]
    severity = "MEDIUM"
    evidence = "STATIC"
    [severity]
    "protocol.crash" = "LOW"
    [[egress]]
    hosts = ["api.example.com", "*.sentry.io"]
    target = "pypi:some-server"
    [[suppress]]
    rule = "phrase.injection"
    fingerprint = "…64 hex digits…"
    location = {tool = "search"}
    reason = "quoted in its documentation, read on review"
    expires = 2027-06-30
"""

from __future__ import annotations

import datetime

from pydantic import Field

from harness.model.base import Record, canonical_json, sha256_hex
from harness.model.finding import EvidenceLevel, Finding, Location, Severity
from harness.model.result import PolicyFacts


class Suppression(Record):
    """One finding that is known and accepted until the end of the day `expires` (UTC).

    It covers a finding of exactly this rule, fingerprint and place; CONFIRMED ones only where `confirmed` says so,
    because proof found later was not known to who accepted it.
    """

    rule: str
    fingerprint: str = Field(pattern="^[0-9a-f]{64}$")
    location: Location
    reason: str = Field(min_length=1)
    expires: datetime.date
    confirmed: bool = False

    def covers(self, finding: Finding) -> bool:
        """True when rule, fingerprint and every given field of the location are those of the finding."""
        if (self.rule, self.fingerprint) != (finding.rule_id, finding.fingerprint):
            return False
        return all(getattr(finding.location, k) == v for k, v in self.location.model_dump(exclude_none=True).items())

    @property
    def label(self) -> str:
        """How reports name it."""
        return f"{self.rule} {self.fingerprint[:16]}: {self.reason}"


class AllowedEgress(Record):
    """Hosts that are fine to talk to: a name, or `*.` and a name for all below it. `target`: only for that one.

    It makes facts of findings about destinations; it allows nobody to carry secrets or tunnels there.
    """

    hosts: tuple[str, ...] = Field(min_length=1)
    target: str | None = None

    def covers(self, host: str, target: str) -> bool:
        """True when this host is among them, for this target (as the operator named it)."""
        if self.target is not None and self.target != target:
            return False
        name = host.rstrip(".").lower()
        for pattern in self.hosts:
            below = pattern.lower().removeprefix("*.")
            if name == below or (pattern.startswith("*.") and name.endswith(f".{below}")):
                return True
        return False


class Policy(Record):
    """An effective policy. `required`: analyzers that must complete, however they were selected."""

    name: str
    blocking_severity: Severity
    blocking_evidence: EvidenceLevel
    required: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    severities: dict[str, Severity] = {}
    suppressions: tuple[Suppression, ...] = ()
    egress: tuple[AllowedEgress, ...] = ()

    @property
    def sha256(self) -> str:
        """The digest of everything that has an effect; 64 hex digits. The name has none."""
        without = {"name"} if self.egress else {"name", "egress"}
        return sha256_hex(canonical_json(self.model_dump(mode="json", exclude=without)))

    @property
    def facts(self) -> PolicyFacts:
        """The policy as the report shows it."""
        return PolicyFacts(
            name=self.name,
            sha256=self.sha256,
            blocking_severity=self.blocking_severity,
            blocking_evidence=self.blocking_evidence,
        )

    def blocks(self, finding: Finding) -> bool:
        """True when the finding is not suppressed and reaches both thresholds."""
        return (
            finding.suppressed_by is None
            and finding.severity.rank >= self.blocking_severity.rank
            and finding.evidence_level.rank >= self.blocking_evidence.rank
        )


PRESETS: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy(name="strict", blocking_severity=Severity.MEDIUM, blocking_evidence=EvidenceLevel.HEURISTIC),
        Policy(name="balanced", blocking_severity=Severity.HIGH, blocking_evidence=EvidenceLevel.STATIC),
        Policy(name="permissive", blocking_severity=Severity.CRITICAL, blocking_evidence=EvidenceLevel.DYNAMIC),
    )
}
DEFAULT_PRESET = "balanced"
