"""`harness report BUNDLE|RESULT.json`: render a saved result; nothing is recomputed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.output import Outputs, output_options
from harness.pipeline.saved import load_result


@click.command(
    "report",
    epilog="""\b
Examples:
  harness report result.json --format table
  harness report ./my.bundle
""",
)
@click.argument("source", metavar="BUNDLE|RESULT.json", type=click.Path(exists=True, path_type=Path))
@output_options
def command(**given: Any) -> int:
    """Show a result that was saved before, with the exit code it had."""
    outputs = Outputs(given["formats"], given["output"], given)
    result = load_result(given["source"])
    outputs.emit(result)
    return int(result.exit_code)
