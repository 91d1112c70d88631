"""A comparison as text for people, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from harness.model.base import JsonValue, canonical_json
from harness.model.comparison import Change, Comparison, Side
from harness.report.canvas import draw
from harness.report.escape import one_line, visible, workflow_safe

#: Lines of one section shown to people.
MOST_LINES = 100
_MARK = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_VALUE = 120


def render_text(comparison: Comparison, *, color: bool = False, width: int = 100) -> str:
    """Sections one below the other, a line a difference; ends in one line end."""
    return draw(_shapes(comparison), color=color, width=width)


def render_json(comparison: Comparison) -> str:
    """The comparison as indented JSON, ASCII only; equal comparisons give equal bytes."""
    data = comparison.model_dump(mode="json")
    return workflow_safe(json.dumps(data, indent=2, ensure_ascii=True, sort_keys=True) + "\n")


def _shapes(comparison: Comparison) -> Iterable[RenderableType]:
    yield f"before: {_side(comparison.before)}"
    yield f"after:  {_side(comparison.after)}"
    yield from (Text(f"note: {one_line(caveat, 300)}", overflow="fold") for caveat in comparison.caveats)
    for title, section in (
        ("Surface", "surface"),
        ("Findings", "findings"),
        ("Behaviour", "behavior"),
        ("Least privilege", "profile"),
    ):
        changes: tuple[Change, ...] = getattr(comparison, section)
        yield ""
        yield Text(f"{title}: {len(changes) or 'no'} difference{'s' if len(changes) != 1 else ''}", "bold")
        yield from (_line(change) for change in changes[:MOST_LINES])
        more = max(0, len(changes) - MOST_LINES) + comparison.left_out.get(section, 0)
        if more:
            yield f"and {more} more, see `--format json`"


def _side(side: Side) -> str:
    target = side.target
    digest = f", closure {visible(target.digest[:16])}" if target.digest else ""
    name = f"{target.name} {target.version}".strip() or target.ref
    return f"{visible(name, 100)} ({side.status} {side.verdict}{digest})"


def _line(change: Change) -> Text:
    mark, style = _MARK[change.change]
    text = Text(overflow="fold")
    text.append(f"{mark} ", style).append(f"{visible(change.kind)} {one_line(change.name)}")
    if change.field and change.field != change.name:
        text.append(f" {one_line(change.field)}")
    if change.change == "changed" and (change.before is not None or change.after is not None):
        text.append(f": {_value(change.before)} -> {_value(change.after)}")
    elif change.kind == "finding":
        told = change.after if change.after is not None else change.before
        if isinstance(told, dict):
            words = (str(told.get(key, "")) for key in ("severity", "evidence", "title"))
            text.append(f": {one_line(' '.join(words))}")
    return text


def _value(value: JsonValue) -> str:
    if value is None:
        return "nothing"
    return f'"{one_line(value, _VALUE)}"' if isinstance(value, str) else one_line(canonical_json(value), _VALUE)
