"""`harness replay BUNDLE`: recompute findings and verdict from a recording, offline, without Docker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import click

from harness.cli.judging import judging_options
from harness.cli.output import Outputs, output_options
from harness.pipeline.entropy import Entropy
from harness.pipeline.policy_file import load_policy
from harness.pipeline.replay import replay


@click.command(
    "replay",
    epilog="""\b
Examples:
  harness replay ./my.bundle
  harness replay ./my.bundle --policy strict --format json
  harness replay ./my.bundle --analyzers protocol,definitions?
""",
)
@click.argument("bundle", type=click.Path(exists=True, file_okay=False, path_type=Path))
@judging_options
@output_options
def command(**given: Any) -> int:
    """Judge the recording in BUNDLE again. The same bundle and options give the same bytes on every machine."""
    outputs = Outputs(given["formats"], given["output"], given)
    policy = load_policy(given["policy"])
    result = anyio.run(replay, given["bundle"], given["selection"], policy, given["jobs"], Entropy())
    outputs.emit(result)
    return int(result.exit_code)
