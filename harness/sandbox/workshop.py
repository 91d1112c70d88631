"""What installer and launcher share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.sandbox.engine import Engine
from harness.sandbox.lease import StateDirectory
from harness.sandbox.volumes import HeldVolumes


@dataclass(frozen=True)
class Workshop:
    """Engine, state, names and labels for what is made, profile and nonces."""

    engine: Engine
    state: StateDirectory
    volumes: HeldVolumes
    name: Callable[[str], str]
    labels: Callable[[str], dict[str, str]]
    nonce: Callable[[], str]
    seccomp: str
