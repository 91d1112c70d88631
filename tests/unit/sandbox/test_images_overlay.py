"""The archive that is put on top of a root: owners, modes, no path twice, nothing outside."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from harness.sandbox.image_overlay import append_overlay, changes, finish_script
from harness.sandbox.image_spec import CLOCK_PATH, GATE_PATH, ImageSpec, image_spec


def spec(**fields: object) -> ImageSpec:
    return ImageSpec.model_validate({"name": "x", "digest": "d" * 64, "summary": "", "suite": "bookworm", **fields})


def wheel(path: Path, members: dict[str, tuple[str, int]]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, (text, mode) in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            file.writestr(info, text)
    return path


def contents(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
    names = [member.name.removeprefix("./") for member in members]
    assert len(set(names)) == len(names)
    return dict(zip(names, members, strict=True))


def test_it_is_appended_to_a_root_without_repeating_a_path(tmp_path: Path) -> None:
    root = tmp_path / "root.tar"
    with tarfile.open(root, "w") as tar:
        for name in (".", "./usr", "./usr/local", "./usr/local/bin", "./home"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
    append_overlay(root, spec(target=True), {"gate": b"program", "clock": b"library"}, {})
    found = contents(root)
    known = {".", "usr", "usr/local", "usr/local/bin", "home"}
    assert set(found) - known == {"app", "input", "home/user", "usr/local/lib", GATE_PATH[1:], CLOCK_PATH[1:]}
    for name in ("app", "input", "home/user"):
        assert (found[name].mode, found[name].uid, found[name].gid) == (0o700, 65532, 65532)
    gate = found[GATE_PATH[1:]]
    assert (gate.mode, gate.uid, gate.gid, gate.size) == (0o755, 0, 0, 7)


def test_wheels_are_unpacked_by_rule(tmp_path: Path) -> None:
    members = {
        "p/bin/node": ("n", 0o755),
        "p/lib/a/b.js": ("b", 0o644),
        "p/lib/c": ("c", 0o700),
        "p/other": ("", 0o644),
    }
    path = wheel(tmp_path / "p.whl", members)
    rules = [{"from": "p/bin/node", "to": "/opt/bin/node"}, {"from": "p/lib/*", "to": "/opt/lib/"}]
    made = spec(wheels=[{"requirement": "p", "copy": rules, "links": {"/opt/bin/npm": "../lib/c"}}])
    append_overlay(tmp_path / "o.tar", made, {}, {"p": path})
    found = contents(tmp_path / "o.tar")
    assert {name for name, info in found.items() if not info.isdir()} == {
        "opt/bin/node", "opt/lib/a/b.js", "opt/lib/c", "opt/bin/npm",
    }  # fmt: skip
    assert [found[name].mode for name in ("opt/bin/node", "opt/lib/a/b.js", "opt/lib/c")] == [0o755, 0o644, 0o755]
    assert (found["opt/bin/npm"].issym(), found["opt/bin/npm"].linkname) == (True, "../lib/c")
    assert {"opt", "opt/bin", "opt/lib", "opt/lib/a"} <= set(found)


@pytest.mark.parametrize(
    ("member", "rule", "words"),
    [("p/a", {"from": "q/*", "to": "/opt/"}, "holds no"), ("p/../../a", {"from": "p/*", "to": "/opt/"}, "outside")],
)
def test_a_wheel_that_is_not_as_expected_is_refused(tmp_path: Path, member: str, rule: object, words: str) -> None:
    path = wheel(tmp_path / "p.whl", {member: ("x", 0o644)})
    made = spec(wheels=[{"requirement": "p", "copy": [rule]}])
    with pytest.raises(ValueError, match=words):
        append_overlay(tmp_path / "o.tar", made, {}, {"p": path})


def test_two_files_with_one_path_are_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path / "p.whl", {"a": ("x", 0o644)})
    rule = {"from": "a", "to": "/opt/a"}
    with pytest.raises(ValueError, match="there already"):
        append_overlay(tmp_path / "o.tar", spec(wheels=[{"requirement": "p", "copy": [rule, rule]}]), {}, {"p": path})


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.tar", "b.tar"):
        append_overlay(tmp_path / name, spec(target=True), {"gate": b"program", "clock": b"library"}, {})
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_the_finish_script_adds_the_user_to_target_images_only(tmp_path: Path) -> None:
    for target in (True, False):
        root = tmp_path / str(target)
        for name in ("etc/apt/sources.list.d/x.sources", "usr/share/doc/p/copyright", "var/lib/dpkg/status"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("x\n")
        for name in ("passwd", "group", "shadow"):
            (root / "etc" / name).write_text("root:x\n")
        subprocess.run(["sh", "-c", finish_script(spec(target=target)), "sh", str(root)], check=True)
        added = "user:x:65532:65532::/home/user:/bin/sh\n" if target else ""
        assert (root / "etc/passwd").read_text() == "root:x\n" + added
        assert (root / "var/lib/dpkg/status").exists()
        assert not list((root / "usr/share/doc").iterdir()) and not list((root / "etc/apt/sources.list.d").iterdir())


def test_the_finish_script_without_a_root_touches_nothing() -> None:
    script = finish_script(spec()).replace("rm -rf", "echo")
    done = subprocess.run(["sh", "-c", script, "sh", ""], capture_output=True, check=False)
    assert done.returncode != 0
    assert done.stdout == b""


def test_the_configuration_of_images() -> None:
    node = changes(image_spec("node"))
    assert "USER 65532:65532" in node and 'ENV HOME="/home/user"' in node
    assert any(line.startswith('ENV PATH="/opt/node/22/bin:') for line in node)
    assert not any(line.startswith(("USER", "WORKDIR")) for line in changes(image_spec("builder")))
    assert changes(image_spec("warden"))[1:] == ['ENTRYPOINT ["/usr/bin/monitor"]']
    assert node[0].startswith('LABEL harness.image="node" harness.digest="')
