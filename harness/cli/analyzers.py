"""`harness analyzers`: what there is, what can run here, and why not."""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console
from rich.table import Table

from harness.analyzers.engine import list_analyzers


@click.command("analyzers")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(form: str) -> None:
    """List the analyzers in the order in which they run by default."""
    rows = list_analyzers()
    if form == "json":
        sys.stdout.write(json.dumps([row.model_dump() for row in rows], indent=2) + "\n")
        return
    table = Table(box=None, header_style="bold")
    for column in ("analyzer", "version", "available", "looks at", "rules"):
        table.add_column(column)
    for row in rows:
        available = "yes" if row.unavailable is None else f"no: {row.unavailable}"
        table.add_row(row.name, row.version, available, row.description, str(len(row.rules)))
    Console().print(table)
