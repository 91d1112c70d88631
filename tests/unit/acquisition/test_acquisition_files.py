"""Trees, archives and the store: bounded, closed to the outside, and whole or absent."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import anyio
import pytest

from harness.acquisition import archive, limits, tree
from harness.acquisition.store import Store
from harness.acquisition.tree import read_tree
from harness.model.errors import TargetError, UsageError


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


def test_a_tree_is_read_without_what_is_not_source(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "t"
    for name in ("a.py", "p/b.py", ".git/config", "node_modules/x/i.js", ".venv/y", "p/__pycache__/z"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "a.py").chmod(0o755)
    found = read_tree(store, root)
    assert [(f.path, f.executable) for f in found.files] == [("a.py", True), ("p/b.py", False)]
    assert store.path(found.files[0].sha256).read_text() == "a.py"


def test_the_digest_tells_content_names_and_modes_apart(tmp_path: Path, store: Store) -> None:
    def digest(name: str, text: str, mode: int = 0o644) -> str:
        root = tmp_path / f"{len(os.listdir(tmp_path))}"
        root.mkdir()
        (root / name).write_text(text)
        (root / name).chmod(mode)
        return read_tree(store, root).digest

    assert digest("a", "x") == digest("a", "x")
    assert len({digest("a", "x"), digest("b", "x"), digest("a", "y"), digest("a", "x", 0o755)}) == 4


def test_what_was_read_is_what_is_kept(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "t"
    root.mkdir()
    (root / "a").write_text("before")
    found = read_tree(store, root)
    with (root / "a").open("r+") as stream:
        stream.write("AFTER!")
    assert store.path(found.files[0].sha256).read_text() == "before"


def test_links_stay_inside(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "t"
    root.mkdir()
    (root / "a").write_text("x")
    (root / "inner").symlink_to("a")
    (root / "loop").symlink_to(".")
    found = read_tree(store, root)
    assert [f.path for f in found.files] == ["a", "inner"]
    assert found.passed_over == ("loop",)
    (tmp_path / "secret").write_text("s")
    (root / "outer").symlink_to("../secret")
    with pytest.raises(TargetError, match="leads out"):
        read_tree(store, root)


def test_special_files_are_passed_over(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "t"
    root.mkdir()
    (root / "a").write_text("x")
    os.mkfifo(root / "pipe")
    assert read_tree(store, root).passed_over == ("pipe",)


def test_trees_are_bounded(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "t"
    root.mkdir()
    for name in "abc":
        (root / name).write_text("xxxx")
    monkeypatch.setattr(tree, "TREE_FILES", 2)
    with pytest.raises(TargetError, match="larger"):
        read_tree(store, root)
    monkeypatch.setattr(tree, "TREE_FILES", 10)
    monkeypatch.setattr(tree, "TREE_BYTES", 11)
    with pytest.raises(TargetError, match="larger"):
        read_tree(store, root)


def test_an_empty_folder_is_a_usage_error(tmp_path: Path, store: Store) -> None:
    (tmp_path / "t").mkdir()
    with pytest.raises(UsageError):
        read_tree(store, tmp_path / "t")


def _zip(path: Path, *members: tuple[str, bytes, int]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)
    return path


def test_zip_members_are_read_and_bounded(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.whl", ("d/METADATA", b"x" * 100, 0))
    assert archive.read_zip_member(path, "d/METADATA") == b"x" * 100
    assert archive.read_zip_member(path, "none") is None
    with pytest.raises(TargetError, match="larger"):
        archive.read_zip_member(path, "d/METADATA", limit=99)
    (tmp_path / "b.whl").write_bytes(b"PK\x03\x04nonsense")
    with pytest.raises(TargetError):
        archive.zip_names(tmp_path / "b.whl")


def test_a_zip_can_not_announce_an_endless_table_of_contents(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.whl", ("a", b"x", 0))
    data = path.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    for forged in (
        data[: end + 12] + b"\xff\xff\xff\x7f" + data[end + 16 :],
        data[:end] + b"PK\x06\x07" + b"\0" * 16 + data[end:],
        data[:end],
        b"",
    ):
        path.write_bytes(forged)
        with pytest.raises(TargetError):
            archive.zip_names(path)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\\..\\x"])
def test_zip_members_can_not_lead_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(TargetError, match="leads out"):
        archive.unpack_zip(_zip(tmp_path / "a.zip", (name, b"", 0)), tmp_path / "out")
    assert not (tmp_path / "x").exists()


def test_zip_links_and_bombs_are_refused(tmp_path: Path) -> None:
    link = _zip(tmp_path / "l.zip", ("l", b"/etc/passwd", stat.S_IFLNK | 0o777))
    with pytest.raises(TargetError, match="link or a device"):
        archive.unpack_zip(link, tmp_path / "out")
    bomb = _zip(tmp_path / "b.zip", ("b", b"\0" * (50 << 20), stat.S_IFREG | 0o644))
    with pytest.raises(TargetError, match="times its size"):
        archive.unpack_zip(bomb, tmp_path / "out")


def test_zip_unpacks_what_was_asked_for(tmp_path: Path) -> None:
    path = _zip(
        tmp_path / "a.zip",
        ("p/run", b"#!", stat.S_IFREG | 0o755),
        ("p/text", b"t", stat.S_IFREG | 0o600),
        ("q", b"", 0),
    )
    archive.unpack_zip(path, tmp_path / "out", prefix="p/")
    assert sorted(p.name for p in (tmp_path / "out").rglob("*")) == ["p", "run", "text"]
    assert (tmp_path / "out/p/run").stat().st_mode & 0o777 == 0o755


def test_what_is_added_is_found_by_content(tmp_path: Path, store: Store) -> None:
    (tmp_path / "f").write_bytes(b"hello")
    sha256, size = store.add(tmp_path / "f")
    assert store.has(sha256, size)
    assert not store.has(sha256, size + 1)
    assert not (tmp_path / "f").exists()
    store.link("sha512", "aa", sha256, size)
    assert store.linked("sha512", "aa") == (sha256, size)
    store.path(sha256).unlink()
    assert store.linked("sha512", "aa") is None
    assert not list((store.root / "work").iterdir())


def test_resolutions_are_remembered_for_a_while(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.remember("k", {"a": 1})
    found = store.recall("k")
    assert found is not None
    assert found[1] == {"a": 1}
    monkeypatch.setattr("harness.acquisition.store.RESOLUTION_SECONDS", 0)
    assert store.recall("k") is None
    (store.root / "resolutions" / "j.json").write_text("[")
    assert store.recall("j") is None


def test_what_a_dead_process_left_is_swept_and_the_living_are_spared(store: Store) -> None:
    code = "import os, sys; from pathlib import Path; from harness.acquisition.store import Store\n"
    code += "with Store(Path(sys.argv[1])).work() as w: (w / 'f').write_text('x'); os._exit(9)"
    subprocess.run([sys.executable, "-c", code, str(store.root)], check=False)
    assert len(list((store.root / "work").iterdir())) == 2
    with store.work() as living:
        store.sweep()
        assert living.is_dir()
        assert {path.stem for path in (store.root / "work").iterdir()} == {living.name}
    assert not list((store.root / "work").iterdir())


@pytest.mark.anyio
async def test_a_lock_is_held_by_one_at_a_time(store: Store) -> None:
    order: list[str] = []

    async def hold(name: str) -> None:
        async with store.lock("x"):
            order.append(f"{name} in")
            await anyio.sleep(0.05)
            order.append(f"{name} out")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold, "a")
        tasks.start_soon(hold, "b")
    assert [line.split()[1] for line in order] == ["in", "out", "in", "out"]


def test_limits_are_those_of_the_design() -> None:
    assert (limits.TREE_BYTES, limits.TREE_FILES, limits.ARCHIVE_RATIO) == (500 << 20, 50_000, 100)
