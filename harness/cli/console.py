"""What goes to stderr: progress, warnings and one-line errors. stdout is for the report alone.

Colours and the moving line only on a terminal, and never with NO_COLOR or `--no-progress`.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status

from harness.model.errors import BlamedError
from harness.report.escape import one_line, workflow_safe


def stderr_console() -> Console:
    """A console on stderr that prints text as it is: no markup, no wrapping."""
    return Console(file=sys.stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


def print_error(error: BlamedError) -> None:
    """One line: who is to blame, what happened, what to do next. Text of a target in it is escaped."""
    stderr_console().print(workflow_safe(f"harness: {error.blame}: {one_line(str(error), 2000)}"))


class ProgressLine:
    """Progress for people: one moving line on a terminal, one plain line a phase elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = stderr_console()
        self._quiet = quiet
        self._moving = not quiet and self._console.is_terminal
        self._status: Status | None = None
        self._phase = ""
        self._since = 0.0

    def __enter__(self) -> Self:
        if self._moving:
            self._status = self._console.status("")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish_phase()
        if self._status is not None:
            self._status.stop()

    def phase(self, name: str) -> None:
        """A phase begins; the one before it is done."""
        if name == self._phase:
            return
        self._finish_phase()
        self._phase = name
        self._since = time.monotonic()
        if self._status is not None:
            self._status.update(one_line(name))
        elif not self._quiet:
            self._console.print(f"{one_line(name)} …")

    def note(self, text: str) -> None:
        """Something worth a line inside the phase."""
        if self._status is not None:
            self._status.update(workflow_safe(f"{one_line(self._phase)}: {one_line(text)}"))
        elif not self._quiet:
            self._console.print(workflow_safe(f"  {one_line(text)}"))

    def warn(self, text: str) -> None:
        """Something that has to be known: a line that stays, also where nothing else is shown."""
        self._console.print(workflow_safe(f"warning: {one_line(text, 1000)}"))

    def _finish_phase(self) -> None:
        if self._phase and self._moving:
            seconds = time.monotonic() - self._since
            self._console.print(f"{self._phase:<10} {seconds:6.1f} s")
        self._phase = ""
