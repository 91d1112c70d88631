"""`harness reproduce BUNDLE`: try confirmed findings again, and write a case for the maintainers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import click

from harness.cli.console import ProgressLine
from harness.cli.run import environment_of
from harness.model.reproduction import Reproduction, Tried
from harness.model.result import ExitCode
from harness.pipeline.entropy import Entropy
from harness.pipeline.reproduce import ReproduceRequest, reproduce
from harness.report.escape import one_line, workflow_safe


@click.command(
    "reproduce",
    epilog="""\b
Examples:
  harness reproduce ./my.bundle
  harness reproduce ./my.bundle --finding F-0123456789abcdef --cases ./cases
Exit codes: 1 reproduced, 0 not reproduced, 4 not tried.
""",
)
@click.argument("bundle", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--finding", metavar="ID", help="Only this finding; all confirmed ones without it.")
@click.option("--env", "environment", multiple=True, metavar="K=V", help="A secret that the run was given, once more.")
@click.option(
    "--cases",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Where a folder for each finding is made (default: here).",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--no-progress", is_flag=True, help="Nothing on stderr but warnings and errors.")
def command(
    bundle: Path, finding: str | None, environment: tuple[str, ...], cases: Path, form: str, no_progress: bool
) -> int:
    """Run the confirmed findings of BUNDLE again: from the bundle alone, in a fresh sandbox, with fresh nonces."""
    request = ReproduceRequest(bundle=bundle, finding=finding, secrets=environment_of(environment), cases=cases)
    with ProgressLine(quiet=no_progress) as progress:
        tried = anyio.run(reproduce, request, Entropy(), progress)
    sys.stdout.write(_json(tried) if form == "json" else _text(tried))
    return int(exit_code(tried))


def exit_code(tried: tuple[Reproduction, ...]) -> ExitCode:
    """1 where one was reproduced, else 4 where one was not tried or there was nothing to try, else 0."""
    outcomes = {reproduction.outcome for reproduction in tried}
    if Tried.REPRODUCED in outcomes:
        return ExitCode.UNSAFE
    return ExitCode.FAILED if Tried.NOT_TRIED in outcomes or not outcomes else ExitCode.SAFE


def _json(tried: tuple[Reproduction, ...]) -> str:
    return workflow_safe(json.dumps([r.model_dump(mode="json") for r in tried], indent=2, ensure_ascii=True) + "\n")


def _text(tried: tuple[Reproduction, ...]) -> str:
    if not tried:
        return "not tried: the bundle has no confirmed finding\n"
    lines = []
    for one in tried:
        case = f"; case in {one_line(one.case)}" if one.case else ""
        lines.append(f"{one.finding} {one.rule}: {one.outcome}, {one_line(one.why, 400)}{case}\n")
    return workflow_safe("".join(lines))
