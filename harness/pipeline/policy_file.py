"""`--policy`: a preset by name, or a TOML file that is read here and parsed by assessment."""

from __future__ import annotations

from pathlib import Path

from harness.analyzers import registry
from harness.assessment.policy import parse_policy
from harness.assessment.policy_model import PRESETS, Policy
from harness.model.errors import UsageError
from harness.pipeline.confirming import NAME, RULES

MAX_POLICY_BYTES = 1 << 20


def load_policy(text: str) -> Policy:
    """The policy named or stored at `text`. Raises UsageError that says what is wrong with it."""
    if text in PRESETS:
        return PRESETS[text]
    path = Path(text)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_POLICY_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"policy {text}: {error.strerror}", remedy=f"give a TOML file or one of {', '.join(PRESETS)}"
        ) from error
    if len(data) > MAX_POLICY_BYTES:
        raise UsageError(f"policy {text} is larger than 1 MiB", remedy="give a TOML policy")
    try:
        return parse_policy(
            data.decode("utf-8"),
            name=path.name,
            rules=[rule.id for rule in (*registry.rules(), *RULES)],
            analyzers=(*registry.names(), NAME),
        )
    except UnicodeDecodeError as error:
        raise UsageError(f"policy {text} is not UTF-8", remedy="save it as UTF-8") from error
