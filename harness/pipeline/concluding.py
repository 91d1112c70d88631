"""What a plan concludes goes into the recording as it is: notes, books, boundaries, and what stood in the way."""

from __future__ import annotations

from harness.model.call import BoundariesEvent, CallBooksEvent
from harness.model.plan import Action
from harness.model.recording import NoteEvent, ObstacleEvent, Phase, ProbeBooksEvent
from harness.pipeline.bundle import BundleWriter


def conclude(bundle: BundleWriter, action: Action) -> None:
    """Record the conclusions of a CONCLUDE."""
    for note in action.notes:
        bundle.record(NoteEvent(phase=Phase.STOP, text=note))
    if action.boundaries:
        bundle.record(BoundariesEvent(phase=Phase.IDLE, boundaries=action.boundaries))
    if action.call_books is not None:
        bundle.record(CallBooksEvent(phase=Phase.IDLE, books=action.call_books))
    if action.obstacle is not None:
        bundle.record(ObstacleEvent(phase=Phase.STOP, obstacle=action.obstacle, what=action.what))
    if action.books is not None:
        bundle.record(ProbeBooksEvent(phase=Phase.PROBE, books=action.books))
