"""`harness diff BUNDLE_A BUNDLE_B`: what changed between two versions that were vetted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from harness.assessment.comparing import compare
from harness.pipeline.saved import load_result
from harness.report.difference import render_json, render_text


@click.command(
    "diff",
    epilog="""\b
Examples:
  harness diff ./old.bundle ./new.bundle
  harness diff old.json new.json --format json
""",
)
@click.argument("before", metavar="BUNDLE_A", type=click.Path(exists=True, path_type=Path))
@click.argument("after", metavar="BUNDLE_B", type=click.Path(exists=True, path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(before: Path, after: Path, form: str) -> int:
    """Compare two bundles or results: surface, findings, behaviour and the least that each needs.

    Exit code 0, whatever is different: the verdicts are those of the two runs.
    """
    comparison = compare(load_result(before), load_result(after))
    if form == "json":
        text = render_json(comparison)
    else:
        terminal = sys.stdout.isatty()
        width = os.get_terminal_size().columns if terminal else 100
        text = render_text(comparison, color=terminal and "NO_COLOR" not in os.environ, width=max(60, width))
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()
    return 0
