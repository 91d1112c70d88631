"""Placeholders in arguments, and the planted workspace."""

from __future__ import annotations

from itertools import count

from harness.pipeline.workspace import WORKSPACE, fill, planted_files


def test_placeholders_are_filled_each_canary_afresh() -> None:
    numbers = count()
    token = lambda: f"t{next(numbers)}"  # noqa: E731
    assert fill("{workspace}/a:{canary}:{canary}", token) == f"{WORKSPACE}/a:t0:t1"
    assert fill("{other} {}", token) == "{other} {}"


def test_planted_files_lie_below_the_workspace() -> None:
    assert all(path.startswith("workspace/") for path in planted_files())
