"""The oracle: what of a prediction was seen, what a seen effect needs to become a proof, and what the records prove.

Pure and replayable. `hits` and `Case` serve the planner while it goes; `Confirmation` judges a whole recording.
"""

from __future__ import annotations

from harness.probing.oracle.case import Case, Need, Stage, conclusive
from harness.probing.oracle.effects import Sighting, hits, late, sightings

__all__ = ["Case", "Need", "Sighting", "Stage", "conclusive", "hits", "late", "sightings"]
