"""A bundle is written as the run goes, read back in order, and refused when anything in it was changed."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from bundle_samples import MANIFEST

from harness.model.base import canonical_json
from harness.model.errors import BundleError
from harness.model.options import Limits
from harness.model.plan import Action, ActionKind
from harness.model.recording import Direction, FrameEvent, LimitEvent, NoteEvent, PhaseEvent
from harness.model.surface import Era, Item, ItemKind, ListEnd, ListOutcome, Surface
from harness.pipeline.bundle import SHORT_FRAME_BYTES, BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.recorded import BundleRecording


def frame(text: str) -> FrameEvent:
    return FrameEvent(phase="discover", direction=Direction.RECEIVED, data=text, size=len(text))


def write(folder: Path, *, finish: bool = True, seal: bool = True, limits: Limits | None = None) -> None:
    limits = limits or Limits()
    with BundleWriter(folder, Entropy(), limits) as bundle:
        bundle.manifest(MANIFEST)
        bundle.record(PhaseEvent(phase="start", nonce="n1"))
        bundle.plan(Action(number=1, kind=ActionKind.START))
        for number in range(5):
            bundle.record(frame(f'{{"id":{number}}}'))
            bundle.record(NoteEvent(phase="discover", text=str(number)))
        item = Item(kind=ItemKind.TOOL, name="t", value={"name": "t", "x": "‮"}, frame=2)
        bundle.surface(Surface(items=(item,)))
        bundle.stderr("main", b"hello\xff")
        if finish:
            bundle.end_recording()
            bundle.manifest(MANIFEST.model_copy(update={"finished": True}))
        if seal:
            anyio.run(bundle.seal, "{}\n")


def test_events_come_back_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    write(tmp_path / "b")
    recording = BundleRecording(tmp_path / "b")
    assert recording.complete
    assert recording.surfaces[0].items[0].value == {"name": "t", "x": "‮"}
    events = list(recording.events())
    assert [event.seq for event in events] == list(range(1, 12))
    assert [event.kind for event in events] == ["phase", *["frame", "note"] * 5]
    assert list(recording.events()) == events, "a recording can be iterated again"


@pytest.mark.parametrize("name", ["messages.jsonl", "manifest.json", "result.json", "surface.json", "stderr.log"])
def test_a_changed_file_breaks_the_seal_and_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path / "b")
    path = tmp_path / "b" / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(BundleError, match=name):
        BundleRecording(tmp_path / "b")


def test_an_added_a_removed_and_a_linked_file_break_the_seal(tmp_path: Path) -> None:
    write(tmp_path / "b")
    (tmp_path / "b" / "blobs" / "new").write_text("x")
    with pytest.raises(BundleError, match="blobs/new is new"):
        BundleRecording(tmp_path / "b")
    (tmp_path / "b" / "blobs" / "new").unlink()
    (tmp_path / "b" / "plan.jsonl").unlink()
    with pytest.raises(BundleError, match="plan.jsonl is missing"):
        BundleRecording(tmp_path / "b")
    (tmp_path / "b" / "plan.jsonl").symlink_to("/etc/hostname")
    with pytest.raises(BundleError, match="link"):
        BundleRecording(tmp_path / "b")


def test_a_seal_that_is_not_json_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "b")
    for damage in ("", "[]", '{"sha256": 3}', "[" * 100_000):
        (tmp_path / "b" / "seal.json").write_text(damage)
        with pytest.raises(BundleError, match=r"seal\.json|seal is broken"):
            BundleRecording(tmp_path / "b")


def test_an_unsealed_bundle_is_incomplete_and_its_cut_tail_is_no_error(tmp_path: Path) -> None:
    write(tmp_path / "b", seal=False)
    assert not BundleRecording(tmp_path / "b").complete
    assert BundleRecording(tmp_path / "b", trust_unsealed=True).complete
    for name in ("messages.jsonl", "events.jsonl.zst"):
        path = tmp_path / "b" / name
        path.write_bytes(path.read_bytes()[:-7])
    recording = BundleRecording(tmp_path / "b")
    assert 0 < len(list(recording.events())) < 11


def test_events_before_a_sudden_death_are_on_disk(tmp_path: Path) -> None:
    bundle = BundleWriter(tmp_path / "b", Entropy(), Limits())
    bundle.manifest(MANIFEST)
    bundle.record(PhaseEvent(phase="start", nonce="n1"))
    recording = BundleRecording(tmp_path / "b")  # the writer is never closed: as after a kill -9
    assert [event.kind for event in recording.events()] == ["phase"]
    assert not recording.complete
    bundle.__exit__(None, None, None)


def test_frames_are_shortened_once_the_bound_is_reached_and_it_is_said(tmp_path: Path) -> None:
    limits = Limits(frame_keep_bytes=10_000, bundle_message_bytes=25_000)
    with BundleWriter(tmp_path / "b", Entropy(), limits) as bundle:
        bundle.manifest(MANIFEST)
        for _ in range(10):
            bundle.record(frame("x" * 12_000))
    events = list(BundleRecording(tmp_path / "b").events())
    frames = [event for event in events if isinstance(event, FrameEvent)]
    assert [len(event.data) for event in frames] == [10_000] * 3 + [SHORT_FRAME_BYTES] * 5 + [0] * 2
    assert all(event.truncated and event.size == 12_000 for event in frames)
    assert [event.what for event in events if isinstance(event, LimitEvent)] == ["bundle-messages"]


def test_escapes_count_against_the_bound(tmp_path: Path) -> None:
    limits = Limits(frame_keep_bytes=10_000, bundle_message_bytes=25_000)
    with BundleWriter(tmp_path / "b", Entropy(), limits) as bundle:
        bundle.manifest(MANIFEST)
        for _ in range(50):
            bundle.record(frame("\x01" * 10_000))
    assert (tmp_path / "b" / "messages.jsonl").stat().st_size < 2 * 25_000 + 60_000 + 50 * 300


def test_surfaces_are_written_as_canonical_json_and_a_new_attempt_replaces_them(tmp_path: Path) -> None:
    items = tuple(
        Item(kind=ItemKind.TOOL, name=f"t{i}", value={"name": f"t{i}", "z": "é", "a": i}, frame=i) for i in range(3)
    )
    first = Surface(era=Era.HANDSHAKE, items=items, server_info={"b": 1, "a": [None, 1.5]})
    second = Surface(
        look="stock-client", lists=(ListOutcome(kind=ItemKind.TOOL, pages=1, items=0, end=ListEnd.CLOSED),)
    )
    path = tmp_path / "b" / "surface.json"
    with BundleWriter(tmp_path / "b", Entropy(), Limits()) as bundle:
        bundle.manifest(MANIFEST)
        bundle.surface(first)
        bundle.surface(second)
        assert path.read_text() == canonical_json([s.model_dump(mode="json") for s in (first, second)]) + "\n"
        assert BundleRecording(tmp_path / "b").surfaces == (first, second)
        bundle.surface(second, again=True)
    assert BundleRecording(tmp_path / "b").surfaces == (second,)


def test_what_is_no_bundle_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not a run bundle"):
        BundleRecording(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(BundleError, match="version"):
        BundleRecording(tmp_path)
