"""A policy that allows destinations makes facts of findings about them, and of nothing else."""

from __future__ import annotations

import pytest

from harness.assessment.policy import parse_policy, preset
from harness.assessment.rewriting import rewrite
from harness.model.errors import UsageError
from harness.model.finding import EvidenceLevel, Finding, Location, Severity, Threat

TEXT = """
[[egress]]
hosts = ["api.example.com", "*.sentry.io"]
[[egress]]
hosts = ["weather.net"]
target = "pypi:weather"
"""


def finding(rule: str, host: str) -> Finding:
    return Finding.make(
        rule_id=rule, title="t", severity=Severity.HIGH, evidence_level=EvidenceLevel.DYNAMIC,
        threat=Threat.EXFILTRATION, location=Location(destination=host), fact=host, analyzer="a", description="d",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "host", "target", "severity"),
    [
        ("behavior.egress.unprompted", "api.example.com", "", "INFO"),
        ("behavior.egress.unprompted", "API.example.com", "", "INFO"),
        ("behavior.egress.unprompted", "evil.example.com", "", "HIGH"),
        ("behavior.egress.telemetry", "o1.ingest.sentry.io", "", "INFO"),
        ("behavior.egress.telemetry", "sentry.io", "", "INFO"),
        ("behavior.egress.telemetry", "notsentry.io", "", "HIGH"),
        ("behavior.egress.unprompted", "weather.net", "", "HIGH"),
        ("behavior.egress.unprompted", "weather.net", "pypi:weather", "INFO"),
        ("behavior.egress.dns-tunnel", "api.example.com", "", "HIGH"),
        ("behavior.canaries.leaves", "api.example.com", "", "HIGH"),
    ],
)
def test_what_is_allowed_becomes_a_fact(rule: str, host: str, target: str, severity: str) -> None:
    policy = parse_policy(TEXT, name="p")
    (found,), warnings = rewrite([finding(rule, host)], policy, None, target)
    assert (found.severity.value, warnings) == (severity, ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("egress = 1", "'egress' is not a list of tables"),
        ("[[egress]]\ntarget = 'x'", "'egress[0].hosts' is not a list of names"),
        ("[[egress]]\nhosts = ['https://a.b/']", "holds 'https://a.b/'"),
        ("[[egress]]\nhosts = ['a.b']\nport = 1", "unknown key 'egress[0].port'"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_policy(text, name="p")
    assert said in str(caught.value)


def test_the_digest_is_that_of_the_effect() -> None:
    plain = parse_policy("", name="p")
    assert plain.sha256 == preset("balanced").sha256
    assert parse_policy(TEXT, name="p").sha256 != plain.sha256
