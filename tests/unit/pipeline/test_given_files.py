"""`--file SRC:DST`: files, folders and links as they are, and nothing outside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import UsageError
from harness.model.options import RunOptions
from harness.pipeline import workspace
from harness.pipeline.workspace import given_files


def test_files_folders_and_links(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "run.sh").write_text("x")
    (folder / "inner" / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("../outside")
    (tmp_path / "f:x").write_text("y")
    files = given_files([f"{folder}:a/b", f"{tmp_path}/f:x:c"])
    assert [(f.path, f.data, f.executable, f.link) for f in files] == [
        ("a/b/inner/run.sh", b"x", True, None),
        ("a/b/link", b"", False, "../outside"),
        ("c", b"y", False, None),
    ]
    written = RunOptions(files=files).model_dump_json()
    assert '"data"' not in written
    assert files[0].sha256 in written


@pytest.mark.parametrize("pair", ["x", ":a", "SRC:", "SRC:/etc/x", "SRC:../x", "SRC:a/../../x", "none:a"])
def test_what_is_refused(tmp_path: Path, pair: str) -> None:
    (tmp_path / "s").write_text("")
    with pytest.raises(UsageError):
        given_files([pair.replace("SRC", str(tmp_path / "s"))])


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    (tmp_path / "b").write_bytes(b"x" * 10)
    monkeypatch.setattr(workspace, "MOST_BYTES", 15)
    given_files([f"{tmp_path}/a:a"])
    with pytest.raises(UsageError, match="more than"):
        given_files([f"{tmp_path}:all"])
