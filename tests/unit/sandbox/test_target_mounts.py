"""What a target can write to: nothing of this machine is ever mounted, so no cache can be changed from inside."""

from __future__ import annotations

import pytest

from harness.model.options import Limits
from harness.model.target import ImageConfig
from harness.sandbox.foreign import foreign_config
from harness.sandbox.gate import seed_bytes
from harness.sandbox.hardening import VolumeMount, gated_config

IMAGE = ImageConfig(
    reference="x:1", id="sha256:0", argv=("s",), user="app", run_as="1234:5", volumes=("/data", "/home/user")
)


@pytest.fixture
def config() -> dict[str, object]:
    return gated_config(
        image="i",
        argv=("a",),
        workdir="/w",
        environment={},
        path="/bin",
        limits=Limits(),
        mounts=(VolumeMount(volume="v", path="/app", read_only=True),),
        warden="w",
        labels={},
        seccomp="{}",
    )


def test_only_volumes_and_memory_are_mounted(config: dict[str, object]) -> None:
    for made in (config, foreign_config(config, IMAGE, 1 << 20)):
        host = made["HostConfig"]
        assert isinstance(host, dict)
        assert "Binds" not in host
        assert "VolumesFrom" not in host
        assert {mount["Type"] for mount in host["Mounts"]} == {"volume"}
        assert all(mount["ReadOnly"] for mount in host["Mounts"])
        assert all("size=" in options for options in host["Tmpfs"].values())


def test_an_image_of_its_own_changes_user_entry_and_places_and_nothing_else(config: dict[str, object]) -> None:
    made = foreign_config(config, IMAGE, 1 << 20)
    assert made["User"] == "1234:5"
    assert made["Entrypoint"] == ["/.entry/entry"]
    ours, theirs = config["HostConfig"], made["HostConfig"]
    assert isinstance(ours, dict)
    assert isinstance(theirs, dict)
    assert {k: v for k, v in ours.items() if k != "Tmpfs"} == {k: v for k, v in theirs.items() if k != "Tmpfs"}
    assert set(theirs["Tmpfs"]) == {*ours["Tmpfs"], "/data"}
    assert "uid=1234,gid=5" in theirs["Tmpfs"]["/data"]
    assert "uid=1234,gid=5" in theirs["Tmpfs"]["/home/user"]
    assert "uid=65532" not in str(theirs["Tmpfs"])


def test_links_and_programs_are_planted() -> None:
    data = seed_bytes({"w/run": b"x", "w/.p": b"y"}, executables={"w/run"}, links={"w/link": "../a b"})
    assert data == (b"DIR 755 w\nFILE 600 1 w/.p\ny" + b"LINK ../a%20b w/link\n" + b"FILE 755 1 w/run\nx")
