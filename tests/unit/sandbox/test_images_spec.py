"""Image folders: what is read, what is refused, what the digest covers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.model.errors import HarnessError, UsageError
from harness.sandbox import image_spec as module
from harness.sandbox.image_spec import GATE_PATH, image_spec, image_specs, sandboxes_dir


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of sandboxes/ that a test may change."""
    copy = tmp_path / "sandboxes"
    shutil.copytree(sandboxes_dir(), copy)
    monkeypatch.setattr(module, "sandboxes_dir", lambda: copy)
    return copy


def test_every_folder_with_an_image_file_is_an_image() -> None:
    names = [spec.name for spec in image_specs()]
    assert names == sorted(path.parent.name for path in sandboxes_dir().glob("*/image.toml"))
    assert {"base", "builder", "node", "python311", "python313", "warden"} <= set(names)


def test_an_image_is_one_folder(folder: Path) -> None:
    (folder / "ruby").mkdir()
    (folder / "ruby" / "image.toml").write_text(
        'summary = "Ruby"\nsuite = "trixie"\ntarget = true\npackages = ["ruby"]\n'
    )
    spec = image_spec("ruby")
    assert spec in image_specs()
    assert spec.tag == f"harness/ruby:{spec.digest[:12]}"
    assert spec.labels == {"harness.image": "ruby", "harness.digest": spec.digest}
    assert spec.programs == ("gate", "clock")


def test_the_digest_follows_what_goes_in_and_nothing_else(folder: Path) -> None:
    before = {spec.name: spec.digest for spec in image_specs()}
    assert len(set(before.values())) == len(before)
    with (folder / "gate" / "gate.c").open("a") as file:
        file.write("/* changed */\n")
    changed = {spec.name for spec in image_specs() if spec.digest != before[spec.name]}
    assert changed == {spec.name for spec in image_specs() if spec.target}
    (folder / "README.md").write_text("other words")
    (folder / "base" / ".hidden").write_text("x")
    assert image_spec("builder").digest == before["builder"]
    (folder / "builder" / "more").write_text("x")
    assert image_spec("builder").digest != before["builder"]


def test_the_digest_differs_by_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        digests.add(image_spec("base").digest)
    assert len(digests) == 2


@pytest.mark.parametrize("name", ["nosuch", "../base", "", ".", "gate", "a/b"])
def test_a_name_without_a_folder_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="known are base, builder"):
        image_spec(name)


@pytest.mark.parametrize(
    "text",
    ["suite = ", 'summary = "x"', 'summary = "x"\nsuite = "a"\nprogram = "gate"', 'summary = "x"\nprogram = "sh"'],
)
def test_a_broken_image_file_names_its_folder(folder: Path, text: str) -> None:
    (folder / "base" / "image.toml").write_text(text)
    with pytest.raises(HarnessError, match=r"base/image\.toml") as caught:
        image_spec("base")
    assert "\n" not in str(caught.value)


def test_the_gate_is_outside_of_what_a_tmpfs_covers() -> None:
    assert not GATE_PATH.startswith(("/tmp", "/home"))
