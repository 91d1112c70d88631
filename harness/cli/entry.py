"""The program's first lines: a Ctrl-C while modules are still being loaded ends it silently, as in any program.

Before anything was started there is nothing to clean up, so the default action is right; a shell shows 130 for it.
"""

import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)

from harness.pipeline import early  # noqa: E402 - the line above has to come first

early.begin(sys.argv[1:])

from harness.cli.main import guarded  # noqa: E402 - children load their modules beside ours


def main() -> None:
    """Run a command and leave with its exit code, which a late signal no longer changes."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = guarded(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)
