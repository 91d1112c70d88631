"""The names of volumes: which runs may share an install, and which must not."""

from __future__ import annotations

from harness.model.recording import ImageFact, RecorderEndEvent
from harness.model.target import InstallPlan
from harness.sandbox.install_record import InstallRecord
from harness.sandbox.volumes import Seal, volume_name

PLAN = InstallPlan(image="node", steps=(("true",),), closure_digest="0" * 64)
IMAGE = ImageFact(name="node", id="sha256:" + "0" * 64)


def test_an_install_is_shared_only_by_runs_with_the_same_recorder() -> None:
    named = [volume_name(PLAN, IMAGE, "owner", recorder=recorder) for recorder in (None, "strace", "ebpf")]
    assert len(set(named)) == 3
    assert volume_name(PLAN, IMAGE, "owner", recorder="ebpf") == named[2]


def test_users_of_one_engine_share_none() -> None:
    assert volume_name(PLAN, IMAGE, "owner") != volume_name(PLAN, IMAGE, "another")


def test_an_install_whose_record_has_lost_events_is_not_whole() -> None:
    def sealed(**more: object) -> Seal:
        end = RecorderEndEvent.model_validate({"phase": "install", "session": "install", **more})
        record = InstallRecord(events=(), counted=0, end=end)
        return Seal(volume="v", mark="m", image=IMAGE, steps=(), seconds=1.0, record=record)

    assert sealed().whole
    assert sealed(lost={"bulk": 0}).whole
    assert not sealed(lost={"transfers": 1}).whole
    assert not sealed(early=True).whole
    assert sealed().model_copy(update={"record": None}).whole
