"""The judging half does no I/O, and gives the same bytes under any hash seed, time zone and locale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).with_name("judging_sample.py")


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(SAMPLE), *arguments],
        capture_output=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )


def test_the_judging_half_opens_nothing() -> None:
    done = _run("--pure")
    assert done.returncode == 0, done.stderr.decode()
    assert b'"verdict": "UNSAFE"' in done.stdout
    assert b"\nrenderers: harness.report.json,harness.report.summary,harness.report.table" in done.stdout


def test_the_hook_would_notice() -> None:
    """The same program with one file opened in the middle has to fail, or the test above proves nothing."""
    code = (
        "import runpy, sys; sys.argv = ['x', '--pure']; m = runpy.run_path(sys.orig_argv[-1])\n"
        "g = m['main'].__globals__; old = g['judge']\n"
        "g['judge'] = lambda: (open('/dev/null').close(), old())[1]\n"
        "m['main']()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SAMPLE)], capture_output=True, check=False, timeout=120, env=dict(os.environ)
    )
    assert done.returncode == 1
    assert b"open ('/dev/null'" in done.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "C.UTF-8"},
        {"PYTHONHASHSEED": "7", "TZ": "UTC", "LANG": "tr_TR.UTF-8", "COLUMNS": "40", "NO_COLOR": "1"},
    ],
)
def test_the_same_input_gives_the_same_bytes(environment: dict[str, str]) -> None:
    first = _run(PYTHONHASHSEED="0", TZ="UTC")
    again = _run(**environment)
    assert first.returncode == again.returncode == 0, again.stderr.decode()
    assert first.stdout == again.stdout
