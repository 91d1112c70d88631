"""Only names and versions are resolvable; everything that points elsewhere is refused before a tool sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.acquisition.node.resolve import check_specs, checked_lock
from harness.acquisition.python.requirements import checked_constraints, checked_requirement, read_requirements
from harness.acquisition.store import Store
from harness.acquisition.tree import read_tree
from harness.model.errors import TargetError, UsageError


@pytest.mark.parametrize(
    "text", ["mcp", "mcp>=1,<2", "uvicorn[standard]~=0.30", "tzdata; sys_platform == 'win32'", "x (>=1)"]
)
def test_named_requirements_pass(text: str) -> None:
    assert checked_requirement(text, "x")


@pytest.mark.parametrize(
    "text",
    [
        "x @ file:///tmp/x-1.0.tar.gz",
        "x@https://example.org/x.whl",
        "x @ git+https://example.org/x.git ; python_version > '3'",
        "git+https://example.org/x.git",
        "./x",
        "../x.whl",
        "https://example.org/x.zip",
        "-e .",
        "",
        "x\nsetup",
    ],
)
def test_direct_references_are_refused(text: str) -> None:
    with pytest.raises(TargetError, match="x"):
        checked_requirement(text, "x")


def test_constraints() -> None:
    assert checked_constraints(["mcp<2"]) == ("mcp<2",)
    for bad in ("mcp", "mcp @ file:///x", "mcp[x]<2", "<2", "-r x"):
        with pytest.raises(UsageError):
            checked_constraints([bad])


def _tree(tmp_path: Path, files: dict[str, str]):  # type: ignore[no-untyped-def]
    root = tmp_path / "tree"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    store = Store(tmp_path / "cache")
    return store, read_tree(store, root)


def test_requirements_files_are_read_with_their_includes(tmp_path: Path) -> None:
    files = {
        "requirements.txt": "# c\nmcp>=1 \\\n  --hash=sha256:00\n-r more/base.txt # x\n",
        "more/base.txt": "httpx\n",
    }
    assert read_requirements(*_tree(tmp_path, files), "requirements.txt") == ["mcp>=1", "httpx"]


@pytest.mark.parametrize(
    "line", ["-e .", "--index-url http://x", "-r ../out.txt", "-r requirements.txt", "-c x", "x @ file:///y", "./z"]
)
def test_requirements_files_can_not_lead_elsewhere(tmp_path: Path, line: str) -> None:
    (tmp_path / "out.txt").write_text("x")
    with pytest.raises(TargetError):
        read_requirements(*_tree(tmp_path, {"requirements.txt": line}), "requirements.txt")


@pytest.mark.parametrize(
    "spec", ["^1.0.0", "*", "", "latest", ">=1 <2 || 3.x", "1.2.3-beta.1+x", "npm:y@^1", "npm:@a/y@1.x", "~1", "1 - 2"]
)
def test_registry_specs_pass(spec: str) -> None:
    check_specs("p", {"x": spec})


@pytest.mark.parametrize(
    "spec",
    [
        *("git+https://x/y.git", "u/r", "github:u/r", "http://x/y.tgz", "file:y", "link:y", "workspace:*", "./y"),
        *("..", "y.tgz", "npm:x@file:y", "git@x:y.git", "~/x", "c:\\x", "y.tar.gz", "patch:x", "1\x00"),
    ],
)
def test_other_specs_are_refused(spec: str) -> None:
    with pytest.raises(TargetError, match="direct reference"):
        check_specs("p", {"x": spec})


REGISTRY = ("https://registry.example/",)
INTEGRITY = "sha512-" + "A" * 86 + "=="


def _lock(**entry: object) -> dict[str, object]:
    return {"lockfileVersion": 3, "packages": {"": {}, "node_modules/x": {"version": "1.0.0", **entry}}}


def test_a_lock_of_registry_files_is_kept_and_its_addresses_are_made_the_same_everywhere() -> None:
    lock = checked_lock(_lock(integrity=INTEGRITY, resolved=REGISTRY[0] + "x/-/x-1.0.0.tgz"), REGISTRY, "x64")
    assert [(p.name, p.version, p.algorithm) for p in lock.packages] == [("x", "1.0.0", "sha512")]
    assert "registry.example" not in lock.text


@pytest.mark.parametrize(
    "entry",
    [
        {"integrity": INTEGRITY, "resolved": "https://elsewhere.example/x.tgz"},
        {"integrity": INTEGRITY, "resolved": "https://registry.example.evil/x.tgz"},
        {"integrity": INTEGRITY, "resolved": "git+https://registry.example/x.git"},
        {"integrity": INTEGRITY, "resolved": "file:x.tgz"},
        {"integrity": INTEGRITY, "link": True},
        {"integrity": INTEGRITY, "version": "file:../x"},
        {"integrity": INTEGRITY, "name": "--registry=http://x"},
        {"integrity": INTEGRITY, "optionalDependencies": {"y": "u/r"}},
        {"integrity": "sha512-AAAA"},
        {},
    ],
)
def test_a_lock_that_leads_elsewhere_is_refused(entry: dict[str, object]) -> None:
    with pytest.raises(TargetError):
        checked_lock(_lock(**entry), REGISTRY, "x64")


def test_other_platforms_are_locked_and_not_fetched() -> None:
    for entry in ({"os": ["darwin"]}, {"cpu": ["arm64"]}, {"libc": ["musl"]}, {"os": ["!linux"]}, {"dev": True}):
        assert not checked_lock(_lock(integrity=INTEGRITY, **entry), REGISTRY, "x64").packages
    assert checked_lock(_lock(integrity=INTEGRITY, os=["!win32"], cpu=["x64", "arm64"]), REGISTRY, "x64").packages
