"""`harness run TARGET`: launch in the sandbox, record, analyze, report."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import click

from harness.cli.console import ProgressLine, stderr_console
from harness.cli.judging import judging_options
from harness.cli.output import Outputs, output_options
from harness.model.errors import UsageError
from harness.model.options import ActiveLevel, NetworkChoice, RecorderChoice, RunOptions, Transport
from harness.pipeline.entropy import Entropy
from harness.pipeline.places import bundle_of
from harness.pipeline.policy_file import load_policy
from harness.pipeline.redaction import REDACTED
from harness.pipeline.respond_file import read_answers
from harness.pipeline.run import RunRequest, run_target
from harness.pipeline.workspace import given_files
from harness.report.escape import one_line, workflow_safe


class TargetCommand(click.Command):
    """Keeps what stands behind `--` apart, as the command to start."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.ensure_object(dict)
        if "--" in args:
            cut = args.index("--")
            ctx.obj["command"] = tuple(args[cut + 1 :])
            args = args[:cut]
        return super().parse_args(ctx, args)


@click.command(
    "run",
    cls=TargetCommand,
    epilog="""\b
Examples:
  harness run pypi:mcp-server-time
  harness run pypi:mcp-server-time==2025.7.1 --constraint 'mcp<2'
  harness run npm:@modelcontextprotocol/server-memory --as-of 2025-09-01
  harness run ./my-server --entry my-server --env API_KEY={canary}
  harness run claude_desktop_config.json#NAME
  harness run server.py --arg={workspace}/notes --file ./notes:notes --format json > result.json
  harness run -- python3 -c 'print("not a server")'
""",
)
@click.argument("target", required=False)
@click.option(
    "--active",
    type=click.Choice([str(level) for level in ActiveLevel]),
    default="safe",
    show_default=True,
    help="How much is sent to the target: declarations only, malformed messages, tool calls.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    help="A tool, prompt or resource that may be called (with --active tool-calls), or a pattern: '*'.",
)
@click.option(
    "--call-budget",
    type=click.IntRange(0, 1_000_000),
    metavar="N",
    help="At most so many calls with payloads, fairly shared out (default: the whole plan).",
)
@click.option(
    "--idle",
    type=click.FloatRange(0, 3600),
    default=2.0,
    show_default=True,
    metavar="S",
    help="Seconds to watch the server after the last call.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Chooses between equals."
)
@click.option("--entry", metavar="NAME", help="Which entry point to start.")
@click.option(
    "--transport",
    type=click.Choice([str(transport) for transport in Transport]),
    default="stdio",
    show_default=True,
    help="How the server is spoken to: over its standard streams, or over HTTP on a port that it listens on.",
)
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="The port it listens on (with http).")
@click.option("--path", default="/mcp", show_default=True, metavar="P", help="The path it serves at (with http).")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="A",
    help="An argument for the server; {workspace} is the planted workspace. --arg=--flag for dashes.",
)
@click.option(
    "--env",
    "environment",
    multiple=True,
    metavar="K=V",
    help="An environment variable for the server; {canary} in it is replaced by a planted token.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="SRC:DST",
    help="A file or folder to plant in the workspace at DST, links in it as links.",
)
@click.option(
    "--constraint",
    "constraints",
    multiple=True,
    metavar="SPEC",
    help="A range for a dependency: 'mcp<2', or for npm 'zod@<4'.",
)
@click.option("--as-of", metavar="DATE", help="Resolve as of this day (2025-09-01): nothing published later.")
@click.option("--python", type=click.Choice(["3.11", "3.13"]), help="Python version (default: what has wheels).")
@click.option("--node", type=click.Choice(["20", "22", "24"]), help="Node.js version (default: what engines asks).")
@judging_options
@click.option(
    "--timeout",
    type=click.FloatRange(1, 86400),
    default=300.0,
    show_default=True,
    metavar="S",
    help="Seconds for the target's whole life.",
)
@click.option(
    "--call-timeout",
    type=click.FloatRange(0.1, 3600),
    default=20.0,
    show_default=True,
    metavar="S",
    help="Seconds for one answer.",
)
@click.option(
    "--start-timeout",
    type=click.FloatRange(0.1, 3600),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds for the first answer.",
)
@click.option("--runtime", metavar="NAME", help="Another OCI runtime of the engine (runsc, kata …).")
@click.option(
    "--recorder",
    type=click.Choice([str(choice) for choice in RecorderChoice]),
    default="auto",
    show_default=True,
    help="What records system calls: the best that works here (auto: eBPF, else strace), one of them, or nothing.",
)
@click.option(
    "--network",
    type=click.Choice([str(choice) for choice in NetworkChoice]),
    default="answer",
    show_default=True,
    help="A fake internet that answers or refuses, with every attempt recorded; or none at all.",
)
@click.option(
    "--stealth",
    is_flag=True,
    help="Give the server a network interface of its own in each of its lives: nothing shows what is behind it.",
)
@click.option(
    "--respond",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE.toml",
    help="What the fake internet answers, by host, port, method and path.",
)
@click.option("--stock-client/--no-stock-client", default=True, help="Also try the server with the mcp SDK's client.")
@click.option(
    "--bundle", type=click.Path(path_type=Path), metavar="DIR", help="Where the recording goes (a new folder)."
)
@click.option("--no-progress", is_flag=True, help="Nothing on stderr but warnings and errors.")
@output_options
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    """Launch TARGET in the sandbox, read what it declares, and report.

    TARGET is pypi:NAME[==VERSION], npm:NAME[@VERSION], a folder, a .py or .js file, a .whl, .tar.gz, .tgz or .mcpb,
    CONFIG.json#NAME, server.json, or oci:IMAGE; or give a command after --.
    """
    argv: tuple[str, ...] = ctx.obj.get("command", ())
    if (given["target"] is None) == (not argv):
        raise UsageError("give either a TARGET or -- COMMAND ARGS", remedy="see 'harness run --help'")
    outputs = Outputs(given["formats"], given["output"], given)
    secrets = environment_of(given["environment"])
    transport = transport_of(given)
    options = RunOptions(
        active=ActiveLevel(given["active"]),
        allow=given["allow"],
        entry=given["entry"],
        arguments=given["arguments"],
        environment=dict.fromkeys(secrets, REDACTED),
        transport=transport,
        port=given["port"],
        path=given["path"],
        constraints=given["constraints"],
        as_of=given["as_of"],
        files=given_files(given["files"]),
        python=given["python"],
        node=given["node"],
        timeout=given["timeout"],
        call_timeout=given["call_timeout"],
        start_timeout=given["start_timeout"],
        jobs=given["jobs"],
        runtime=given["runtime"],
        stock_client=given["stock_client"],
        recorder=RecorderChoice(given["recorder"]),
        respond=read_answers(given["respond"]) if given["respond"] is not None else (),
        network=NetworkChoice(given["network"]),
        stealth=given["stealth"],
        idle=given["idle"],
        call_budget=given["call_budget"],
        seed=given["seed"],
    )
    request = RunRequest(
        target=given["target"],
        command=argv,
        options=options,
        secrets=secrets,
        selection=given["selection"],
        policy=load_policy(given["policy"]),
        bundle=given["bundle"],
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _as_interrupt)
    with ProgressLine(quiet=given["no_progress"]) as progress:
        result = anyio.run(run_target, request, Entropy(), progress)
    for warning in result.warnings:
        stderr_console().print(workflow_safe(f"warning: {one_line(warning, 1000)}"))
    outputs.emit(result)
    if not given["no_progress"]:
        stderr_console().print(workflow_safe(f"recording: {bundle_of(result.recording.bundle, given['bundle'])}"))
    return int(result.exit_code)


def transport_of(given: dict[str, Any]) -> Transport:
    """The transport that the options ask for. Raises UsageError for what does not go together."""
    transport = Transport(given["transport"])
    if given["stealth"] and given["network"] == "none":
        raise UsageError("--stealth hides a fake internet, and there is none", remedy="leave out --network none")
    if given["stealth"] and transport is Transport.HTTP:
        raise UsageError("--stealth goes with servers on their standard streams", remedy="leave out --stealth")
    if transport is Transport.STDIO:
        if given["port"] is not None:
            raise UsageError("--port goes with --transport http", remedy="add --transport http")
        return transport
    if given["port"] is None:
        raise UsageError("--transport http needs the port", remedy="add --port N, and --path P where it is not /mcp")
    if given["network"] == "none":
        raise UsageError(
            "a server on a port is reached through the fake internet's gateway", remedy="use --network refuse"
        )
    if not given["path"].startswith("/") or not given["path"].isascii() or " " in given["path"]:
        raise UsageError("--path is no path of a URL", remedy="write it from the first slash on: /mcp")
    return transport


def environment_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse `K=V`; raises UsageError without saying the value."""
    found: dict[str, str] = {}
    for number, pair in enumerate(pairs, 1):
        name, equals, value = pair.partition("=")
        if not equals or not name or "\0" in pair:
            raise UsageError(f"--env number {number} is not of the form K=V", remedy="write --env NAME=value")
        found[name] = value
    return found


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end a run as Ctrl-C does, clean-up included."""
    os.kill(os.getpid(), signal.SIGINT)
