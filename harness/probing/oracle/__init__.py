"""The oracle: what of a prediction was seen, what a seen effect needs to become a proof, and what the records prove.

Pure and replayable. `hits` and `Case` serve the planner while it goes; `Confirmation` judges a whole recording.
"""

from __future__ import annotations

from harness.probing.oracle.case import Case, Need, Stage, conclusive
from harness.probing.oracle.effects import Sighting, hits, late, sightings
from harness.probing.oracle.fold import NAME, Confirmation, call_digest
from harness.probing.oracle.rules import CAPABILITY, rule_ids

__all__ = [
    "CAPABILITY",
    "NAME",
    "Case",
    "Confirmation",
    "Need",
    "Sighting",
    "Stage",
    "call_digest",
    "conclusive",
    "hits",
    "late",
    "rule_ids",
    "sightings",
]
