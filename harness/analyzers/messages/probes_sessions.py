"""What is known of a session while malformed messages pass: which were sent, and which ids may come back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from harness.model.base import canonical_json
from harness.model.probe import Probe, Probed

#: Ids of probes are at least this; those of ordinary requests are counted from 1. (Odd ids count while one is sent.)
FIRST_ID = 900_001


@dataclass
class Case:
    """One probe in one session, and what came of it: number of answers, bytes received while it was at hand."""

    probe: Probe
    answers: int = 0
    received: int = 0
    end: Probed | None = None


@dataclass
class ProbedSession:
    """`cases` by the JSON text of an id that may come back; `alive`: how often each sign of life came; `own`: the
    highest id of an ordinary request.
    """

    cases: dict[str, Case] = field(default_factory=dict)
    alive: dict[str, int] = field(default_factory=dict)
    current: Case | None = None
    last: Case | None = None
    own: int = 0


def probe_of(session: ProbedSession) -> Probe:
    """The probe at hand, or the last one. A session has one, or nothing of it is judged."""
    case = session.current or session.last
    assert case is not None
    return case.probe


def of_a_probe(key: str) -> bool:
    """Whether the JSON text of an id is of those that probes are numbered with."""
    number = key.strip('"')
    return number.isdigit() and len(number) < 10 and int(number) >= FIRST_ID


def normal(text: str) -> str:
    """The JSON text of an id in the form that ids are compared in."""
    return canonical_json(json.loads(text))
