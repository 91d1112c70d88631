"""What `reproduce` ends with: 1 as soon as one is reproduced, 4 where one was not tried or there is nothing, else 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import guarded
from harness.cli.reproduce import exit_code
from harness.model.reproduction import Reproduction, Tried
from harness.model.result import ExitCode


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), ExitCode.FAILED),
        ((Tried.REPRODUCED,), ExitCode.UNSAFE),
        ((Tried.NOT_REPRODUCED,), ExitCode.SAFE),
        ((Tried.NOT_TRIED,), ExitCode.FAILED),
        ((Tried.NOT_REPRODUCED, Tried.NOT_TRIED), ExitCode.FAILED),
        ((Tried.NOT_TRIED, Tried.REPRODUCED, Tried.NOT_REPRODUCED), ExitCode.UNSAFE),
    ],
)
def test_the_exit_code(outcomes: tuple[Tried, ...], code: ExitCode) -> None:
    assert exit_code(tuple(Reproduction(finding="F", outcome=outcome) for outcome in outcomes)) == code


def test_what_is_no_bundle_is_not_tried(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert guarded(["reproduce", str(tmp_path)]) == 4
    assert "not a run bundle" in capfd.readouterr().err
    assert guarded(["reproduce", str(tmp_path / "absent")]) == 2
