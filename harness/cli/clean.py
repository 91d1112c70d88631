"""`harness clean [--cache]`: remove what dead runs left; living runs are never touched."""

from __future__ import annotations

import sys

import anyio
import anyio.to_thread
import click

from harness.model.errors import EngineError
from harness.pipeline.places import forget_fetched
from harness.sandbox.engine import Engine
from harness.sandbox.images import remove_outdated
from harness.sandbox.reaper import ReapReport, reap


@click.command(
    "clean",
    epilog="""\b
Examples:
  harness clean
  harness clean --cache
""",
)
@click.option("--cache", is_flag=True, help="Also remove installed targets, fetched packages and outdated images.")
def command(cache: bool) -> None:
    """Remove containers, volumes and files that dead runs left on the engine and in the cache."""
    report = anyio.run(_clean, cache)
    if report.left:
        raise EngineError(f"could not be removed: {', '.join(report.left)}", remedy="look at the engine's log")


async def _clean(cache: bool) -> ReapReport:
    async with Engine() as engine:
        report = await reap(engine, cache=cache)
        counts = len(report.containers), len(report.volumes), len(report.leases)
        _say("removed: {} containers, {} volumes, {} leases".format(*counts))
        if report.living:
            _say(f"{report.living} living runs left alone")
        if cache:
            await remove_outdated(engine, _say)
            if report.living:
                _say("fetched packages stay: a living run may be using them")
            else:
                await anyio.to_thread.run_sync(forget_fetched)
                _say("fetched packages removed")
    return report


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
