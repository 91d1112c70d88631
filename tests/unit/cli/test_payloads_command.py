"""`harness payloads`: what it prints and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import guarded
from harness.model.result import ExitCode


def test_show_prints_the_file_and_names_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["payloads", "show", "command-injection/separator"]) == 0
    assert 'boundary = "data-not-code"' in capsys.readouterr().out
    assert guarded(["payloads", "show", "separator"]) == ExitCode.USAGE
    assert "command-injection/separator" in capsys.readouterr().err


def test_list_of_one_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["payloads", "list", "archive-slip"]) == 0
    out = capsys.readouterr().out
    assert "archive-slip/zip" in out and "ssrf/" not in out


def test_check_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["payloads", "check"]) == 0
    assert "payloads in 19 classes" in capsys.readouterr().out
    folder = tmp_path / "payloads" / "sql"
    folder.mkdir(parents=True)
    (folder / "broken.toml").write_text('title = "x"\ncwe = \n')
    assert guarded(["payloads", "check", str(folder.parent)]) == ExitCode.USAGE
    assert capsys.readouterr().out.startswith("payloads/sql/broken.toml:2: not TOML")


def test_placeholders_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["payloads", "placeholders"]) == 0
    assert "{outside_secret}" in capsys.readouterr().out
