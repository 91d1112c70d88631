"""What is noticed, while it is recorded, of lives with a later clock; whole lives are run by the end-to-end tests."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from bundle_samples import MANIFEST

from harness.model.options import RunOptions
from harness.model.plan import Adjustment
from harness.model.recording import AttemptEvent, NoteEvent, ProcessEvent
from harness.model.target import ImageConfig
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.further_life import FurtherLives
from harness.pipeline.later_life import LaterLife
from harness.pipeline.looks import later
from harness.pipeline.progress import Progress
from harness.pipeline.supply import Supply
from harness.sandbox.base import LaunchSpec, Sandbox

pytestmark = pytest.mark.anyio
SPEC = LaunchSpec(image="python313", volume=None, argv=("server",))
NOTHING = cast("Sandbox", None), cast("Supply", None)


def lived(bundle: BundleWriter, session: str, program: str, days: int) -> int:
    bundle.record(AttemptEvent(phase="start", session=session, number=1, argv=("server",), days=days))
    return bundle.record(ProcessEvent(phase="start", session=session, what="exec", path=program, pid=7, tid=7))


async def test_what_only_lives_with_a_later_clock_show_is_noticed(tmp_path: Path) -> None:
    with BundleWriter(tmp_path / "b", Entropy(), RunOptions().limits) as bundle:
        bundle.manifest(MANIFEST)
        life = LaterLife(FurtherLives(*NOTHING, bundle, Entropy(), RunOptions(), cast("Progress", None)))
        first = lived(bundle, "main", "/usr/bin/git", 0)
        second = lived(bundle, "second-session", "/usr/bin/git", 400)
        assert life.alone([second]) and not life.alone([first, second]) and not life.alone([])
        assert not await life.take(Adjustment(), 9, 100.0, None), "nothing new"
        third = lived(bundle, "again-1", "/usr/bin/id", 400)
        assert life.alone([second, third])
        notes: list[str] = []
        bundle.listen(lambda event: notes.append(event.text) if isinstance(event, NoteEvent) else None)
        assert not await life.take(Adjustment(), 9, 1.0, None), "no time"
        assert len(notes) == 1 and "program /usr/bin/id" in notes[0] and "no time was left" in notes[0]


def test_the_clock_is_set_in_our_images_only() -> None:
    assert later(SPEC, 400).days_ahead == 400 and later(later(SPEC, 400), 0).days_ahead == 0
    image = ImageConfig(reference="theirs:1", id="sha256:1", run_as="65532:65532")
    assert later(SPEC.model_copy(update={"foreign": image}), 400).days_ahead == 0
