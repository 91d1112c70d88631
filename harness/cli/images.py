"""`harness images build|list`: the sandbox images."""

from __future__ import annotations

import sys

import anyio
import click
from rich.console import Console
from rich.table import Table

from harness.cli.console import ProgressLine
from harness.sandbox.engine import Engine
from harness.sandbox.image_spec import image_specs
from harness.sandbox.images import ImageState, ImageStatus, build_images, list_images, remove_outdated


@click.group("images")
def command() -> None:
    """Build and list the sandbox images.

    They are made from Debian's packages, by the mirror that this machine's apt uses, or on a debian:*-slim image
    where the engine has one (HARNESS_IMAGE_SOURCE=auto|bootstrap|pull).
    """


@command.command(
    epilog="""\b
Examples:
  harness images build
  harness images build node --force
"""
)
@click.argument("names", nargs=-1)
@click.option("--force", is_flag=True, help="Build again what is there.")
@click.option("--quiet", is_flag=True, help="Say nothing when there is nothing to do.")
def build(names: tuple[str, ...], force: bool, quiet: bool) -> None:
    """Build what is missing or outdated: all images, or those named."""
    anyio.run(_build, names, force, quiet)


async def _build(names: tuple[str, ...], force: bool, quiet: bool) -> None:
    async with Engine() as engine:
        missing = {image.name for image in await list_images(engine) if image.state is not ImageState.PRESENT}
        wanted = names or tuple(spec.name for spec in image_specs())
        if not force and not missing & set(wanted):
            if not quiet:
                sys.stderr.write("all images are there\n")
            return
        with ProgressLine() as progress:
            progress.phase("images")
            await build_images(engine, wanted, force, progress.note)
            await remove_outdated(engine, progress.note)


@command.command("list")
def list_() -> None:
    """List the images, whether each is there, and how large it is."""
    rows = anyio.run(_list)
    table = Table(box=None, header_style="bold")
    for column in ("image", "state", "size", "for"):
        table.add_column(column)
    for row in rows:
        size = f"{row.size_bytes / 1e6:.0f} MB" if row.size_bytes else ""
        table.add_row(row.name, row.state, size, row.summary)
    Console().print(table)


async def _list() -> tuple[ImageStatus, ...]:
    async with Engine() as engine:
        return await list_images(engine)
