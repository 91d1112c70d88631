"""The command group, and the one place where errors become exit codes.

Blamed errors print one line; anything unforeseen is our fault: exit code 4, one line, and a crash file.
"""

from __future__ import annotations

import importlib
import os
import traceback
from datetime import UTC, datetime

import click

import harness
from harness.cli.console import print_error, stderr_console
from harness.model.errors import BlamedError
from harness.model.result import ExitCode
from harness.pipeline.places import state_dir

#: Command name -> module below harness.cli that holds `command`. Imported when used, so that each starts quickly.
COMMANDS = {
    "run": "run",
    "scan": "scan",
    "replay": "replay",
    "report": "report",
    "reproduce": "reproduce",
    "diff": "diff",
    "payloads": "payloads",
    "analyzers": "analyzers",
    "doctor": "doctor",
    "images": "images",
    "clean": "clean",
}


class LazyGroup(click.Group):
    """A group whose commands are imported one by one when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"harness.cli.{COMMANDS[cmd_name]}")
        command = module.command
        assert isinstance(command, click.Command)
        return command


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 SAFE, 1 UNSAFE, 2 usage, 3 UNKNOWN, 4 harness or engine failed, 130 interrupted.",
)
@click.version_option(harness.__version__, prog_name="harness")
def cli() -> None:
    """Vet an MCP server in a sandbox before anybody connects to it.

    \b
    Examples:
      harness doctor --fix
      harness run pypi:mcp-server-time
      harness run npm:@modelcontextprotocol/server-memory --node 24
      harness run --format json --output result.json ./my-server
      harness scan saved.tools.json
      harness replay BUNDLE
    """


def guarded(arguments: list[str]) -> int:
    """Run a command line; every way out is one of the exit codes of verdict.md."""
    try:
        outcome = cli.main(args=arguments, prog_name="harness", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "harness"
        stderr_console().print(f"harness: usage: {_one_line(error.format_message())}; see '{command} --help'")
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        stderr_console().print("harness: interrupted; nothing is left running")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader of our stdout left: nobody to tell
        return ExitCode.FAILED
    except BaseException as error:
        return _explain(error)


def _explain(error: BaseException) -> int:
    leaves = list(_leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        stderr_console().print("harness: interrupted; nothing is left running")
        return ExitCode.INTERRUPTED
    blamed = [leaf for leaf in leaves if isinstance(leaf, BlamedError)]
    if blamed and len(blamed) == len(leaves):
        worst = max(blamed, key=lambda leaf: leaf.exit_code)
        print_error(worst)
        return worst.exit_code
    return _crash(error)


def _leaves(error: BaseException) -> list[BaseException]:
    """The errors inside exception groups, in order."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _crash(error: BaseException) -> int:
    text = "".join(traceback.format_exception(error))
    what = f"{type(_leaves(error)[0]).__name__}"
    try:
        folder = state_dir() / "crashes"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.getpid()}.txt"
        path.write_text(f"harness {harness.__version__}\n\n{text}", encoding="utf-8", errors="backslashreplace")
        where = f"please report {path}"
    except OSError as cause:
        where = f"and the crash file could not be written: {cause.strerror}"
    stderr_console().print(f"harness: internal error: {what}; this says nothing about the target; {where}")
    return ExitCode.FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())
