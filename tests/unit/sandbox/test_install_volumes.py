"""The names of volumes: which runs may share an install, and which must not."""

from __future__ import annotations

from harness.model.recording import ImageFact
from harness.model.target import InstallPlan
from harness.sandbox.volumes import volume_name

PLAN = InstallPlan(image="node", steps=(("true",),), closure_digest="0" * 64)
IMAGE = ImageFact(name="node", id="sha256:" + "0" * 64)


def test_an_install_is_shared_only_by_runs_with_the_same_recorder() -> None:
    named = [volume_name(PLAN, IMAGE, "owner", recorder=recorder) for recorder in (None, "strace", "ebpf")]
    assert len(set(named)) == 3
    assert volume_name(PLAN, IMAGE, "owner", recorder="ebpf") == named[2]


def test_users_of_one_engine_share_none() -> None:
    assert volume_name(PLAN, IMAGE, "owner") != volume_name(PLAN, IMAGE, "another")
