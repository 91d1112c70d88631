"""Names of environment variables in a package's own text: wheels, npm tarballs, plain files; nothing is unpacked."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from harness.acquisition.node.plan import install_steps, without_scripts
from harness.acquisition.variables import source_variables
from harness.model.base import sha256_hex
from harness.model.target import Acquired, Artifact, Closure, Ecosystem, InputFile, InstallPlan, TargetKind, TargetRef

PYTHON = """
import os
key = os.environ["ACME_KEY"]; url = os.getenv('ACME_URL', ''); os.environ.get("ACME_KEY")
class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="ACME_DB_")
    token: str = Field(validation_alias="ACME_ALIAS")
"""
SCRIPT = (
    'const a = process.env.ACME_TOKEN; const b = process.env["ACME_HOST"];'
    "const { ACME_ONE, ACME_TWO: two } = process.env;"
)


def acquired(path: Path, destination: str, *, own: bool = True) -> Acquired:
    digest = sha256_hex(path.read_bytes())
    stored = path.rename(path.with_name(digest))
    artifact = Artifact(name="acme" if own else "other", version="1", filename="f", sha256=digest, size=1)
    closure = Closure(artifacts=(artifact,))
    plan = InstallPlan(
        image="node", files=(InputFile(source=stored, destination=destination),), closure_digest=closure.digest
    )
    ref = TargetRef(text="npm:acme", kind=TargetKind.NPM, name="acme")
    return Acquired(ref=ref, name="acme", version="1", ecosystem=Ecosystem.NODE, closure=closure, install=plan)


def wheel(folder: Path) -> Path:
    path = folder / "acme.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("acme/main.py", PYTHON)
        archive.writestr("acme/data.bin", "os.environ['NOT_SOURCE']")
    return path


def tarball(folder: Path) -> Path:
    path = folder / "acme.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (("package/dist/index.js", SCRIPT), ("package/readme.md", "process.env.NOT_SOURCE")):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def test_a_wheel_tells_what_it_reads(tmp_path: Path) -> None:
    names = source_variables(acquired(wheel(tmp_path), "wheels/acme.whl"))
    assert names[0] == "ACME_KEY" and set(names) == {"ACME_KEY", "ACME_URL", "ACME_DB_", "ACME_ALIAS"}


def test_a_tarball_tells_what_it_reads(tmp_path: Path) -> None:
    names = source_variables(acquired(tarball(tmp_path), "npm-cache/x"))
    assert set(names) == {"ACME_TOKEN", "ACME_HOST", "ACME_ONE", "ACME_TWO"}


def test_a_source_file_tells_what_it_reads(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(PYTHON)
    assert "ACME_KEY" in source_variables(acquired(tmp_path / "server.py", "src/server.py", own=False))


def test_dependencies_are_not_read(tmp_path: Path) -> None:
    assert source_variables(acquired(wheel(tmp_path), "wheels/other.whl", own=False)) == ()


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 broken", b"\x1f\x8b broken", b"\x1f\x8b\x08" + b"\0" * 50])
def test_a_damaged_archive_tells_nothing(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    assert source_variables(acquired(tmp_path / "x", "wheels/x.whl")) == ()


@pytest.mark.parametrize("node", ["20", "24"])
def test_an_install_by_npm_can_be_made_without_scripts(node: str) -> None:
    plan = InstallPlan(image="node", steps=install_steps(node), closure_digest="0")
    bare = without_scripts(plan)
    assert bare is not None and bare.steps[-1][-1] == "--ignore-scripts" and bare.cache_key != plan.cache_key
    assert "--dangerously-allow-all-scripts" not in bare.steps[-1]
    assert without_scripts(bare) is None
    assert without_scripts(plan.model_copy(update={"steps": (("cp", "a", "b"),)})) is None
