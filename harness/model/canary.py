"""Canaries: secrets made for one run, planted where real ones lie, and looked for wherever they could surface.

No canary has a prefix of ours: it follows the shape that belongs to its place, so nothing tells it from a real secret.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from harness.model.base import Record
from harness.model.event import EventBase

#: The life of a target that has canaries of its own, so that two values can prove what one only shows.
SECOND_LIFE = "second-look"


class CanaryPlace(StrEnum):
    """Where a canary was planted."""

    ENVIRONMENT = "environment"
    HOME = "home"
    WORKSPACE = "workspace"
    OUTSIDE = "outside"
    ARGUMENT = "argument"
    DECOY = "decoy"
    FORM = "form"  # typed where the server asks its client for a secret


class Canary(Record):
    """One planted secret. `value` holds at least 64 random bits and occurs nowhere else in the run.

    `name` is stable over runs (`environment GITHUB_TOKEN`, `~/.aws/credentials`); `kind` the shape
    (github-token, aws-key, private-key, jwt, password, text …). `services`: host suffixes that this credential is for
    (a vendor's key that goes to its vendor is no exfiltration). `asked`: the target asked for it (a variable that it
    reads, an argument of its start). `call`: the call in whose arguments it was sent, where it was. `session`: the
    life of the target that it was planted for; `main` stands for all but those that have canaries of their own.
    """

    value: str
    name: str
    place: CanaryPlace
    kind: str
    services: tuple[str, ...] = ()
    asked: bool = False
    call: str | None = None
    session: str = "main"


class PredictionEvent(EventBase):
    """Written before a life with canaries of its own: the findings (by id, which holds no value) to be seen in it."""

    kind: Literal["prediction"] = "prediction"
    findings: tuple[str, ...]
