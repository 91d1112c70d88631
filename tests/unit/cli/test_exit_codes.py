"""Every way out of the program is one of the exit codes, in one line on stderr, with no traceback."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from harness.cli import main as program
from harness.model.errors import EngineError, TargetError, UsageError


def leave(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(program.cli, "main", fail)
    return program.guarded(["x"])


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("no such tool", remedy="there are: a"), 2, "usage: no such tool; there are: a"),
        (TargetError("refused"), 3, "target: refused"),
        (EngineError("gone", remedy="start it"), 4, "engine: gone; start it"),
        (ExceptionGroup("g", [EngineError("gone"), ExceptionGroup("h", [EngineError("gone")])]), 4, "engine: gone"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BaseExceptionGroup("g", [KeyboardInterrupt(), EngineError("x")]), 130, "interrupted"),
        (click.UsageError("bad\noption"), 2, "usage: bad option"),
        (UsageError("\x1b[31mred\nline\u202e"), 2, "\\u001b[31mred line\\u202e"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert leave(monkeypatch, error) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize("error", [RuntimeError("boom"), ExceptionGroup("g", [EngineError("x"), KeyError("k")])])
def test_an_unforeseen_error_is_exit_4_with_a_crash_file(
    error: Exception, own_state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert leave(monkeypatch, error) == 4
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "internal error" in err and "Traceback" not in err
    (crash,) = (own_state / "crashes").iterdir()
    assert "Traceback" in crash.read_text() or type(error).__name__ in crash.read_text()
    assert str(crash) in err


def test_a_crash_file_that_cannot_be_written_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HARNESS_STATE", "/proc/nowhere")
    assert leave(monkeypatch, RuntimeError("boom")) == 4
    assert "could not be written" in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["run", "pypi:x", "--", "y"],
        ["run", "--active", "tool-calls", "pypi:x"],
        ["run", "--active", "safe", "--allow", "x", "pypi:x"],
        ["run", "pypi:x", "--env", "secret"],
        ["run", "pypi:x", "--format", "json", "--format", "table"],
        ["run", "pypi:x", "--output", "a", "--output", "b"],
        ["run", "pypi:x", "--output", "/nowhere/at/all/x"],
        ["run", "pypi:x", "--analyzers", "nothing-like-it"],
        ["run", "pypi:x", "--policy", "/nowhere"],
        ["run", "pypi:x", "--timeout", "-1"],
        ["run", "http://x"],
        ["frobnicate"],
        ["replay", "/nowhere"],
        ["report", "/etc/hostname"],
        ["images", "frobnicate"],
    ],
)
def test_bad_command_lines_are_exit_2(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    if arguments == []:
        assert program.guarded(arguments) in (0, 2)
        return
    assert program.guarded(arguments) == 2
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("harness: usage: ") and err.count("\n") == 1
    assert "secret" not in err


@pytest.mark.parametrize("command", [[], *[[name] for name in program.COMMANDS]])
def test_help_has_examples(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert program.guarded([*command, "--help"]) == 0
    out = capfd.readouterr().out
    assert "harness" in out
    if command not in (["analyzers"], ["images"]):
        assert "Examples:" in out


def test_analyzers_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert program.guarded(["analyzers", "--format", "json"]) == 0
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)}
    assert rows["protocol"]["unavailable"] is None and rows["yara"]["unavailable"]
