"""`harness scan FILE.tools.json`: judge saved declarations; nothing is started, no Docker."""

from __future__ import annotations

from typing import Any

import anyio
import click

from harness.cli.console import stderr_console
from harness.cli.judging import judging_options
from harness.cli.output import Outputs, output_options
from harness.pipeline.entropy import Entropy
from harness.pipeline.policy_file import load_policy
from harness.pipeline.scan import ScanRequest, scan_target
from harness.report.escape import one_line, workflow_safe


@click.command(
    "scan",
    epilog="""\b
Examples:
  harness scan my-server.tools.json
  harness scan all.tools.json --policy strict --format json
\b
The file holds the result of tools/list, {"tools": [...]}, with "prompts", "resources" and
"instructions" beside it if there are any; or several servers: {"servers": {"NAME": {"tools": [...]}}}.
""",
)
@click.argument("target", metavar="FILE.tools.json")
@judging_options
@output_options
def command(**given: Any) -> int:
    """Judge a saved tool list with the analyzers that need no recording."""
    outputs = Outputs(given["formats"], given["output"], given)
    request = ScanRequest(
        target=given["target"],
        selection=given["selection"],
        policy=load_policy(given["policy"]),
        jobs=given["jobs"],
    )
    result = anyio.run(scan_target, request, Entropy())
    for warning in result.warnings:
        stderr_console().print(workflow_safe(f"warning: {one_line(warning, 1000)}"))
    outputs.emit(result)
    return int(result.exit_code)
