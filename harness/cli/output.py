"""`--format`, `--output` and `--output-FORMAT`: where which report goes.

The n-th `--output` belongs to the n-th `--format`. A format without a file goes to stdout; only one can.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.cli.console import stderr_console
from harness.model.errors import UsageError
from harness.model.result import ScanResult
from harness.report.registry import FORMATS

DEFAULT_FORMAT = "summary"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def output_options(command: _Command) -> _Command:
    """Add the output options to a click command; it gets them as keyword arguments for `plan_outputs`."""
    for name in reversed(list(FORMATS)):
        command = click.option(
            f"--output-{name}",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help=f"Also write the {name} report to FILE.",
        )(command)
    command = click.option(
        "--output",
        "output",
        multiple=True,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the report to FILE instead of stdout (the n-th goes with the n-th --format).",
    )(command)
    return click.option(
        "--format",
        "formats",
        multiple=True,
        type=click.Choice(list(FORMATS)),
        help=f"Report format; repeatable. Default: {DEFAULT_FORMAT}.",
    )(command)


class Outputs:
    """Where each report goes: format names with a file, or None for stdout."""

    def __init__(self, formats: tuple[str, ...], output: tuple[Path, ...], extra: dict[str, Any]) -> None:
        """`extra` holds the `output_FORMAT` keyword arguments. Raises UsageError where two want stdout."""
        chosen = list(formats) or [DEFAULT_FORMAT]
        if len(output) > len(chosen):
            raise UsageError("more --output than --format", remedy="give each --output its --format")
        self._plan: list[tuple[str, Path | None]] = [
            (name, output[index] if index < len(output) else None) for index, name in enumerate(chosen)
        ]
        for name in FORMATS:
            path = extra.get(f"output_{name}")
            if path is not None:
                self._plan.append((name, path))
        if sum(1 for _, path in self._plan if path is None) > 1:
            raise UsageError("only one format can go to stdout", remedy="give the others a file with --output-FORMAT")
        for _, path in self._plan:
            if path is not None and not path.absolute().parent.is_dir():
                raise UsageError(f"no folder {path.absolute().parent}", remedy="make it first")

    def emit(self, result: ScanResult) -> None:
        """Render and write every report. Raises UsageError when a file can't be written."""
        for name, path in self._plan:
            if path is None:
                _to_stdout(name, result)
                continue
            text = FORMATS[name](result, color=False, width=120)
            try:
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise UsageError(f"{path} can't be written: {error.strerror}") from error
            stderr_console().print(f"{result.verdict} (exit code {int(result.exit_code)}); {name} report in {path}")


def _to_stdout(name: str, result: ScanResult) -> None:
    terminal = sys.stdout.isatty()
    color = terminal and "NO_COLOR" not in os.environ
    width = os.get_terminal_size().columns if terminal else 100
    text = FORMATS[name](result, color=color, width=max(60, min(width, 160)))
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()
