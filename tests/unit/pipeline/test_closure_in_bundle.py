"""The closure in a bundle: kept with its files, read back from there alone, secrets asked for again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.model.errors import BundleError
from harness.model.options import Limits, PlantedFile, RunOptions
from harness.model.target import (
    Acquired,
    Artifact,
    Closure,
    Ecosystem,
    EntryPoint,
    InputFile,
    InstallPlan,
    TargetKind,
    TargetRef,
)
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.closure import keep_closure, load_closure
from harness.pipeline.entropy import Entropy

SECRET = "a-long-secret-value"


def acquired(source: Path, **environment: str) -> Acquired:
    return Acquired(
        ref=TargetRef(text="x", kind=TargetKind.FILE),
        name="x",
        version="1",
        ecosystem=Ecosystem.PYTHON,
        closure=Closure(artifacts=(Artifact(name="x", version="1", filename="x.py", sha256="0" * 64, size=3),)),
        install=InstallPlan(
            image="python313",
            files=(InputFile(source=source, destination="x/x.py", mode=0o755),),
            steps=(("cp", "x"),),
            closure_digest="c",
        ),
        entry_points=(EntryPoint(name="x", argv=("python", "/app/x.py")),),
        environment=environment,
        secrets=(SECRET,),
    )


def kept(tmp_path: Path, options: RunOptions, **environment: str) -> Path:
    source = tmp_path / "source.py"
    source.write_bytes(b"abc")
    folder = tmp_path / "bundle"
    with BundleWriter(folder, Entropy(), Limits(), (SECRET,)) as bundle:
        assert keep_closure(bundle, acquired(source, **environment), "x", options) is None
    source.unlink()
    return folder


def test_it_is_read_back_from_the_bundle_wherever_that_lies(tmp_path: Path) -> None:
    file = PlantedFile(path="notes/a.txt", sha256=_digest(b"note"), size=4, data=b"note")
    options = RunOptions(files=(file, PlantedFile(path="l", link="notes")))
    folder = shutil.move(kept(tmp_path, options), tmp_path / "elsewhere")
    written = options.model_validate_json(options.model_dump_json())
    found = load_closure(folder, written)
    assert found is not None and found.entry == "x" and found.missing == ()
    (given,) = found.acquired.install.files
    assert (given.source.read_bytes(), given.destination, given.mode) == (b"abc", "x/x.py", 0o755)
    assert given.source.parent == folder / "blobs"
    assert [file.data for file in found.options.files] == [b"note", b""]


def test_secrets_are_not_in_it_and_are_asked_for(tmp_path: Path) -> None:
    folder = kept(tmp_path, RunOptions(), TOKEN=SECRET, PLAIN="x")
    assert SECRET not in (folder / "closure.json").read_text()
    found = load_closure(folder, RunOptions())
    assert found is not None and found.missing == ("TOKEN",)


def test_there_may_be_none(tmp_path: Path) -> None:
    assert load_closure(tmp_path, RunOptions()) is None


@pytest.mark.parametrize("change", ["../../../etc/passwd", "z" * 64, "0"])
def test_a_bundle_leads_nowhere_else(tmp_path: Path, change: str) -> None:
    folder = kept(tmp_path, RunOptions())
    text = (folder / "closure.json").read_text()
    (folder / "closure.json").write_text(text.replace(_digest(b"abc"), change))
    with pytest.raises(BundleError):
        load_closure(folder, RunOptions())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"acquired": {}, "entry": "x"}'])
def test_a_damaged_one_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "closure.json").write_text(text)
    with pytest.raises(BundleError, match=r"closure\.json"):
        load_closure(tmp_path, RunOptions())


def _digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()
