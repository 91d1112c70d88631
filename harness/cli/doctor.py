"""`harness doctor [--fix]`: is this machine ready; what is missing and how to get it."""

from __future__ import annotations

import os
import sys

import anyio
import click
from rich.console import Console
from rich.table import Table

from harness.cli.console import ProgressLine, stderr_console
from harness.model.errors import EngineError, HarnessError
from harness.model.options import RecorderChoice, RunOptions
from harness.model.recording import ImageFact
from harness.model.result import ExitCode
from harness.pipeline.fallback import choose_recorder
from harness.sandbox.docker import docker_sandbox
from harness.sandbox.engine import Engine
from harness.sandbox.images import ImageState, find_image, list_images
from harness.sandbox.readiness import Check, checks
from harness.sandbox.setup import set_up_engine

#: Set to `no` to have `--fix` install and start nothing.
ENGINE_SETUP = "HARNESS_ENGINE_SETUP"


@click.command(
    "doctor",
    epilog=f"""\b
Examples:
  harness doctor
  harness doctor --fix
  {ENGINE_SETUP}=no harness doctor --fix    # install and start nothing
""",
)
@click.option(
    "--fix", is_flag=True, help="As root on Debian or Ubuntu: install and start a Docker engine if none answers."
)
@click.option("--quiet", is_flag=True, help="Say nothing when all is well.")
def command(fix: bool, quiet: bool) -> int:
    """Check engine, kernel, limits, disk space, tools and images."""
    if fix:
        anyio.run(_fix)
    rows = anyio.run(_rows)
    ready = all(row.ok for row in rows if row.required)
    if not (quiet and ready):
        _show(rows)
    if quiet and ready:
        return 0
    sys.stderr.write(
        "this machine is ready\n" if ready else "this machine is not ready: see the lines marked with no\n"
    )
    return 0 if ready else ExitCode.FAILED


async def _fix() -> None:
    if os.environ.get(ENGINE_SETUP, "yes").lower() in ("no", "0", "false"):
        async with Engine():  # says what to do when none answers
            return
    try:
        async with Engine():
            pass
    except EngineError:
        stderr_console().print(
            "harness: no Docker engine answers: setting one up from the distribution's packages "
            f"(refuse with {ENGINE_SETUP}=no, or `make ENGINE=no`)"
        )
    with ProgressLine() as progress:
        await set_up_engine(progress.note)


async def _rows() -> tuple[Check, ...]:
    rows = await checks()
    try:
        async with Engine() as engine:
            images = await list_images(engine)
            recorder = await _recorder(engine)
    except HarnessError:
        return rows
    missing = [image.name for image in images if image.state is not ImageState.PRESENT]
    return (
        *rows,
        recorder,
        Check(
            name="images",
            ok=not missing,
            detail=f"{len(images) - len(missing)} of {len(images)} are there",
            remedy=f"harness images build ({', '.join(missing)}); a run makes what it needs" if missing else "",
            required=False,
        ),
    )


async def _recorder(engine: Engine) -> Check:
    """Which recorder a run would get, and why not a better one; nothing is made for it that is not there."""

    async def there(name: str) -> ImageFact:
        found = await find_image(engine, name)
        if found is None:
            raise HarnessError(f"the image {name} is not made yet")
        return found

    async with docker_sandbox(engine, "doctor", there) as sandbox:
        found = await choose_recorder(sandbox, RunOptions(recorder=RecorderChoice.AUTO))
    detail = f"{found.recorder}, grade {found.grade}"
    remedy = "harness images build" if "is not made yet" in found.said else ""
    if found.said and not remedy:
        remedy = "see docs/recording.md for what each recorder needs"
    return Check(
        name="recorder",
        ok=found.recorder is not RecorderChoice.NONE,
        detail=f"{detail}; {found.said}" if found.said else detail,
        remedy=remedy,
        required=False,
    )


def _show(rows: tuple[Check, ...]) -> None:
    table = Table(box=None, header_style="bold")
    for column in ("check", "ok", "found", "what to do"):
        table.add_column(column, overflow="fold")
    for row in rows:
        word = "yes" if row.ok else "no" if row.required else "-"
        table.add_row(row.name, word, row.detail, row.remedy)
    Console().print(table)
