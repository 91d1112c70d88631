"""The options that say how something is judged: `--analyzers`, `--jobs` and `--policy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def judging_options(command: _Command) -> _Command:
    """Add the options; the command gets them as `selection`, `jobs` and `policy` (a name or a path)."""
    for option in (
        click.option(
            "--policy",
            default="balanced",
            show_default=True,
            metavar="PRESET|FILE",
            help="strict, balanced, permissive, or a TOML file.",
        ),
        click.option("--jobs", type=click.IntRange(1, 64), default=4, show_default=True, help="Analyzers at once."),
        click.option(
            "--analyzers",
            "selection",
            metavar="A,B?",
            help="Analyzers to run; named ones are required unless 'name?'.",
        ),
    ):
        command = option(command)
    return command
