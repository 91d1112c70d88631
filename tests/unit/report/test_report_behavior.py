"""The sections about behaviour: total on any JSON, bounded, and silent where nothing was recorded."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import PARTIAL, SAFE

from harness.model.result import BehaviorFacts
from harness.report import behavior
from harness.report.registry import FORMATS

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(["program", "argv", "started_by", "phase", "count", "more", "destination", "call", "sent", "x"])
rows = st.dictionaries(keys, values, max_size=6)
file_keys = st.sampled_from(["read", "written", "deleted", "y"])


@settings(deadline=None)
@given(st.lists(rows, max_size=4), st.lists(rows, max_size=4), st.dictionaries(file_keys, values, max_size=4))
def test_any_json_gives_a_report(egress: list[Any], processes: list[Any], files: dict[str, Any]) -> None:
    facts = BehaviorFacts(egress=tuple(egress), processes=tuple(processes), files=files)
    result = SAFE.model_copy(update={"behavior": facts})
    for name in ("summary", "table"):
        text = FORMATS[name](result, color=False, width=80)
        assert text.endswith("\n")
        assert not any(char in text for char in "\x1b\x07\u202e")


def test_nothing_recorded_is_nothing_said() -> None:
    assert list(behavior.lines(BehaviorFacts())) == []
    assert "Behaviour" not in FORMATS["summary"](SAFE, color=False, width=80)


def test_long_lists_are_counted() -> None:
    many = tuple({"destination": f"203.0.113.{n}:443"} for n in range(50))
    said = list(behavior.lines(BehaviorFacts(egress=many)))
    assert said[0].startswith("50 destinations tried: ") and said[0].endswith("44 more")


def test_analyzers_that_share_a_reason_share_a_line() -> None:
    kept = PARTIAL.analyzers[0]
    alike = tuple(kept.model_copy(update={"name": f"behavior.{n}", "reason": "not asked"}) for n in ("a", "b"))
    text = FORMATS["summary"](PARTIAL.model_copy(update={"analyzers": (*PARTIAL.analyzers, *alike)}), color=False)
    assert "behavior.a, behavior.b PARTIAL (required): not asked" in " ".join(text.split())
