"""Whole runs recorded by strace: faults found, twins silent, installs watched; and the fallback, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.model.errors import EngineError
from harness.model.options import RecorderChoice, RunOptions
from harness.model.recording import ImageFact
from harness.model.result import ScanResult
from harness.pipeline.entropy import Entropy
from harness.pipeline.policy_file import load_policy
from harness.pipeline.recorded import BundleRecording
from harness.pipeline.run import RunRequest, run_target
from harness.sandbox import provider
from harness.sandbox.engine import Engine
from harness.sandbox.images import ensure_image

pytestmark = [pytest.mark.anyio, pytest.mark.docker]

SERVERS = Path(__file__).parents[1] / "servers"
SERIOUS = frozenset({"MEDIUM", "HIGH", "CRITICAL"})


class Heard:
    """A `Progress` that remembers its warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def phase(self, name: str) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def warn(self, text: str) -> None:
        self.warnings.append(text)


async def judged(bundle: Path, target: Path, recorder: RecorderChoice, *arguments: str) -> tuple[ScanResult, Heard]:
    """The result of one run, and what was said meanwhile."""
    options = RunOptions(recorder=recorder, arguments=arguments, stock_client=False)
    request = RunRequest(
        target=str(target),
        command=(),
        options=options,
        secrets={},
        selection=None,
        policy=load_policy("balanced"),
        bundle=bundle,
    )
    heard = Heard()
    return await run_target(request, Entropy(), heard), heard


async def refused(bundle: Path, target: Path, recorder: RecorderChoice) -> EngineError:
    """What a run ends with that can't be begun, out of the groups that it may come in."""
    with pytest.raises((EngineError, ExceptionGroup)) as caught:
        await judged(bundle, target, recorder)
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, EngineError) and error.exit_code == 4
    return error


def serious(result: ScanResult) -> set[str]:
    """Rules of the serious findings about behaviour, after checking that the record was whole and contained."""
    assert (result.recording.recorder, result.recording.grade, result.recording.lost) == ("strace", "contained", 0)
    states = {row.status for row in result.analyzers if row.name.startswith("behavior.")}
    assert states <= {"COMPLETED", "SKIPPED"}, [(row.name, row.reason) for row in result.analyzers]
    judging = {row.name: row.status for row in result.analyzers}
    assert {judging[f"behavior.{name}"] for name in ("exec", "files", "install", "network")} == {"COMPLETED"}
    return {f.rule_id for f in result.findings if f.rule_id.startswith("behavior.") and f.severity in SERIOUS}


@pytest.mark.parametrize(
    ("mode", "rules"),
    [
        ("fetch", {"behavior.exec.fetch-and-run"}),
        ("steal-key", {"behavior.files.secret-read"}),
        ("fetch-benign", set()),
    ],
)
async def test_faults_are_found_and_the_twin_is_silent(tmp_path: Path, mode: str, rules: set[str]) -> None:
    result, heard = await judged(tmp_path / "b", SERVERS / "behaves_badly.py", RecorderChoice.STRACE, mode)
    assert serious(result) == rules
    assert heard.warnings == [], "strace was asked for"
    if not rules:
        assert result.verdict == "SAFE"


async def test_an_install_is_watched_too(tmp_path: Path) -> None:
    copy = tmp_path / "made_today"  # a sealed install would bring the record of an earlier run along
    copy.mkdir()
    for source in (SERVERS / "behaves_at_install").rglob("*"):
        if source.is_file():
            place = copy / source.relative_to(SERVERS / "behaves_at_install")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read_bytes())
    (copy / "README.md").write_text(f"made for {tmp_path}\n")
    result, _ = await judged(tmp_path / "b", copy, RecorderChoice.STRACE)
    assert serious(result) == {"behavior.install.persistence"}
    assert result.verdict == "UNSAFE"


async def test_a_run_falls_back_in_order_and_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"recorder"}

    async def some(engine: Engine, name: str, progress: Any) -> ImageFact:
        if name in missing:
            raise EngineError(f"no way to make the image {name}")
        return await ensure_image(engine, name, progress)

    monkeypatch.setattr(provider, "ensure_image", some)
    server = SERVERS / "honest_handshake.py"
    result, heard = await judged(tmp_path / "a", server, RecorderChoice.AUTO)
    assert serious(result) == set() and result.verdict == "SAFE"
    (said,) = heard.warnings
    assert "strace" in said and "no way to make the image recorder" in said
    assert BundleRecording(tmp_path / "a").manifest.notes.count(said) == 1

    error = await refused(tmp_path / "b", server, RecorderChoice.EBPF)
    assert "can't be recorded with ebpf: no way to make the image recorder; `harness doctor`" in str(error)

    missing.add("tracer")
    result, heard = await judged(tmp_path / "c", server, RecorderChoice.AUTO)
    (said,) = heard.warnings
    assert "not recorded" in said and "recorder" in said and "tracer" in said
    assert (result.recording.recorder, result.recording.grade) == ("none", "none")
    assert result.verdict == "UNKNOWN", "nobody chose to know nothing"
    error = await refused(tmp_path / "d", server, RecorderChoice.STRACE)
    assert "with strace: no way to make the image tracer" in str(error)
