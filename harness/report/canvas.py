"""Drawing rich's shapes into a string: the same bytes on every machine, colour only when asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, RenderableType

from harness.model.finding import Severity
from harness.model.result import Verdict
from harness.report.escape import workflow_safe

#: Narrower than this nothing is readable; rich would drop columns.
MINIMUM_WIDTH = 40

VERDICT_STYLE = {Verdict.SAFE: "bold green", Verdict.UNSAFE: "bold red", Verdict.UNKNOWN: "bold yellow"}
SEVERITY_STYLE = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_LINE_END = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)

# rich reads its table of character widths from a module file at first use; drawing itself must not open files.
cell_len("漢")


def draw(shapes: Iterable[RenderableType], *, color: bool, width: int) -> str:
    """Draw `shapes` below each other, `width` cells wide, and return the text, ending in one line end.

    Strings among the shapes are printed as they are (no markup, no emoji codes); target-made text in them must have
    gone through `escape.visible`. The environment (NO_COLOR, COLUMNS, TERM …) plays no part.
    """
    sheet = StringIO()
    console = Console(
        file=sheet,
        width=max(width, MINIMUM_WIDTH),
        height=100,
        color_system="standard" if color else None,
        force_terminal=color,
        force_interactive=False,
        force_jupyter=False,
        no_color=not color,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )
    for shape in shapes:
        console.print(shape)
    without_padding = _LINE_END.sub(lambda end: "".join(_STYLE.findall(end[0])), sheet.getvalue())
    return workflow_safe(without_padding.strip("\n") + "\n")
