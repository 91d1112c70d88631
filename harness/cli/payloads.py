"""`harness payloads list|show|check|placeholders`: the catalog of payloads."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.model.errors import UsageError
from harness.model.payload import PayloadClass
from harness.model.result import ExitCode
from harness.pipeline.payloads import check_payloads, payloads_dir, read_payloads
from harness.probing.payloads.placeholders import ENCODINGS, PLACEHOLDERS


@click.group(
    "payloads",
    epilog="""\b
Examples:
  harness payloads list ssrf
  harness payloads show command-injection/separator
  harness payloads check
""",
)
def command() -> None:
    """The payloads that allowlisted tools are called with, what each predicts, and its control."""


@command.command("list")
@click.argument("classes", nargs=-1, type=click.Choice([kind.value for kind in PayloadClass]))
def list_(classes: tuple[str, ...]) -> None:
    """List the payloads, of all classes or those named, in the order in which they are tried."""
    table = Table(box=None, header_style="bold")
    for column in ("payload", "CWE", "boundary", "predicts", "title"):
        table.add_column(column, no_wrap=column == "payload")
    for payload in read_payloads():
        if not classes or payload.payload_class in classes:
            effects = ", ".join(dict.fromkeys(effect.kind.value for effect in payload.effects))
            table.add_row(payload.id, str(payload.cwe), payload.boundary, effects, escape(payload.title))
    Console().print(table)


@command.command("show")
@click.argument("name", metavar="ID")
def show(name: str) -> None:
    """Print a payload's file, for instance `command-injection/separator`."""
    known = {payload.id for payload in read_payloads()}
    if name not in known:
        near = sorted(known_id for known_id in known if name and name in known_id)[:5]
        raise UsageError(f"there is no payload {name[:80]!a}", remedy=", ".join(near) or "see `harness payloads list`")
    sys.stdout.write((payloads_dir() / f"{name}.toml").read_text(encoding="utf-8"))


@command.command("check")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.pass_context
def check(ctx: click.Context, folder: Path | None) -> None:
    """Check all payloads: their files, and what they become once they are filled in. Names file and line."""
    good, mistakes = check_payloads(folder)
    for mistake in mistakes:
        sys.stdout.write(f"{mistake}\n")
    if mistakes:
        ctx.exit(ExitCode.USAGE)
    sys.stdout.write(f"{len(good)} payloads in {len({payload.payload_class for payload in good})} classes\n")


@command.command("placeholders")
def placeholders() -> None:
    """List the placeholders and encodings of payloads."""
    table = Table(box=None, header_style="bold")
    for column in ("placeholder", "stands for"):
        table.add_column(column)
    for name, (meaning, _) in PLACEHOLDERS.items():
        table.add_row(escape(f"{{{name}}}"), escape(meaning))
    for name in ENCODINGS:
        table.add_row(escape(f"{{…|{name}}}"), "the value in this encoding")
    Console().print(table)
