"""All formats together: golden files, hostile text, the published schema, determinism, purity."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import PARTIAL, SAFE, SAMPLES, UNSAFE, analyzer
from report_strategies import HOSTILE, HOSTILE_UNICODE, is_raw, poisoned

from harness.model.coverage import Skip, SkipReason, Tally
from harness.model.result import ScanResult, SurfaceFacts
from harness.report import json as json_report
from harness.report import summary, table
from harness.report.registry import FORMATS
from harness.report.schema import PUBLISHED, result_schema, schema_text

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "report"
#: Set to 1 to write golden files and the published schema anew; then read what changed before committing it.
UPDATE = os.environ.get("HARNESS_UPDATE_GOLDEN") == "1"

PEOPLE = ("summary", "table")
STYLE = re.compile(r"\x1b\[[0-9;]*m")
VALIDATOR = jsonschema.Draft202012Validator(result_schema())
result_of = st.sampled_from(sorted(SAMPLES))


def same_as_file(path: Path, text: str) -> None:
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("format_name", sorted(FORMATS))
@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_golden(sample: str, format_name: str) -> None:
    suffix = "json" if format_name == "json" else f"{format_name}.txt"
    same_as_file(GOLDEN / f"{sample}.{suffix}", FORMATS[format_name](SAMPLES[sample], color=False, width=80))


def test_the_published_schema_is_the_generated_one() -> None:
    VALIDATOR.check_schema(VALIDATOR.schema)
    same_as_file(ROOT / PUBLISHED, schema_text())


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_json_is_what_the_model_serialises(sample: str) -> None:
    text = json_report.render(SAMPLES[sample])
    assert text.isascii()
    assert text.endswith("}\n")
    assert json.loads(text) == SAMPLES[sample].model_dump(mode="json")
    VALIDATOR.validate(json.loads(text))


@pytest.mark.parametrize(
    "change",
    [
        {"status": "PARTIAL", "verdict": "SAFE"},
        {"schema_version": 2},
        {"surprise": 1},
        {"exit_code": 7},
    ],
)
def test_the_schema_refuses_what_the_model_refuses(change: dict[str, Any]) -> None:
    altered = json.loads(json_report.render(SAFE)) | change
    assert not VALIDATOR.is_valid(altered)
    with pytest.raises(ValueError, match="validation error"):
        ScanResult.model_validate_json(json.dumps(altered))


@given(result_of, HOSTILE_UNICODE)
def test_json_parses_back_to_an_equal_result(sample: str, text: str) -> None:
    result = poisoned(SAMPLES[sample], text)
    rendered = json_report.render(result)
    assert ScanResult.model_validate_json(rendered) == result
    VALIDATOR.validate(json.loads(rendered))
    assert rendered.isascii()
    assert not any(is_raw(c) and c != "\n" for c in rendered)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | HOSTILE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3),
    max_leaves=8,
)
tools = json_values | st.fixed_dictionaries(
    {},
    optional={
        "name": json_values,
        "description": json_values,
        "annotations": json_values | st.fixed_dictionaries({"readOnlyHint": json_values}),
        "inputSchema": json_values | st.fixed_dictionaries({"properties": json_values, "required": json_values}),
    },
)


@given(st.lists(tools, max_size=3), st.booleans())
def test_any_json_served_as_a_tool_can_be_reported(served: list[Any], color: bool) -> None:
    result = SAFE.model_copy(update={"surface": SurfaceFacts(tools=tuple(served), prompts=tuple(served))})
    for render in FORMATS.values():
        text = STYLE.sub("", render(result, color=color, width=80))
        assert not any(is_raw(c) and c != "\n" for c in text)
    VALIDATOR.validate(json.loads(json_report.render(result)))
    ScanResult.model_validate_json(json_report.render(result))


@given(result_of, HOSTILE, st.booleans(), st.sampled_from([1, 40, 80, 120]))
@settings(deadline=None)
def test_no_hostile_text_gets_through_to_people(sample: str, text: str, color: bool, width: int) -> None:
    result = poisoned(SAMPLES[sample], text)
    for format_name in PEOPLE:
        output = FORMATS[format_name](result, color=color, width=width)
        assert output.endswith("\n")
        plain = STYLE.sub("", output)
        assert not any(is_raw(c) and c != "\n" for c in plain)
        assert "##[" not in plain
        assert "##vso[" not in plain
        assert not any(line.lstrip().startswith("::") for line in plain.splitlines())
        output.encode("utf-8")


@pytest.mark.parametrize("format_name", PEOPLE)
def test_markup_of_the_target_is_printed_and_not_obeyed(format_name: str) -> None:
    text = "[red]a[/red][/] :warning: [link=x]"
    result = poisoned(UNSAFE, text)
    plain = FORMATS[format_name](result, color=False, width=120)
    assert text in plain
    assert STYLE.sub("", FORMATS[format_name](result, color=True, width=120)) == plain


@pytest.mark.parametrize("format_name", PEOPLE)
@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_colour_and_width_are_the_callers(sample: str, format_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "33", "TERM": "dumb", "JUPYTER_COLUMNS": "9"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_COLOR", "1")
    render = FORMATS[format_name]
    for width in (80, 120):
        plain = render(SAMPLES[sample], color=False, width=width)
        assert "\x1b" not in plain
        assert max(map(len, plain.splitlines())) <= width
        assert "\x1b[" in render(SAMPLES[sample], color=True, width=width)


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_the_verdict_comes_first_with_its_level(sample: str) -> None:
    result = SAMPLES[sample]
    first = summary.render(result).splitlines()[0]
    assert result.verdict.value in first
    assert f"level {result.active.level}" in first


def test_suppressed_findings_are_shown_as_such() -> None:
    for text in (summary.render(UNSAFE), table.render(UNSAFE)):
        assert "1 CRITICAL, 1 LOW, 1 suppressed" in text
        assert "directive.imperative" in text.replace("\n", "").replace(" ", "") or "directive.imperati" in text
        assert "SUPPRESSED" in text
        assert "known" in text


def test_a_suppressed_finding_does_not_block_and_an_open_one_does() -> None:
    assert summary.render(UNSAFE).count("  BLOCKS") == 1
    hushed = UNSAFE.findings[-1].model_copy(update={"suppressed_by": "seen and accepted"})
    quiet = UNSAFE.model_copy(update={"findings": (hushed,)})
    assert summary.render(quiet).count("  BLOCKS") == 0
    assert summary.render(quiet, width=120).count("  SUPPRESSED by seen and accepted") == 1


def test_what_is_not_shown_is_counted() -> None:
    finding = next(f for f in PARTIAL.findings if f.rule_id == "path.escape")
    many = PARTIAL.model_copy(
        update={
            "findings": (finding,) * (table.MOST_ROWS + 3),
            "warnings": tuple(f"warning {number}" for number in range(summary.MOST_LINES + 5)),
        }
    )
    short = summary.render(many)
    assert f"{table.MOST_ROWS + 3} CRITICAL" in short
    assert f"and {table.MOST_ROWS + 3 - summary.MOST_FINDINGS} more, see" in short
    assert "and 5 more, see" in short
    assert "and 3 more, see" in table.render(many)
    assert len(json.loads(json_report.render(many))["findings"]) == table.MOST_ROWS + 3


def test_a_gap_is_said_once() -> None:
    gap = "tools: read failed: too deep"
    tally = Tally(discovered=1, analyzed=0, failed=({"item": "read", "detail": "too deep"},))
    row = analyzer("definitions", coverage={"subjects": {"tools": tally}})
    result = PARTIAL.model_copy(update={"coverage": {"tools": tally}, "analyzers": (row,), "reasons": ("unclear",)})
    assert summary.render(result).count(gap) == 1
    told = result.model_copy(update={"reasons": (f"coverage: {gap}",)})
    assert summary.render(told).count(gap) == 1
    assert "1, named under Why" in summary.render(told)


def test_what_the_operator_left_out_is_said_and_is_no_gap() -> None:
    skip = Skip(item="tools", reason=SkipReason.OPERATOR, detail="level none", count=3)
    result = SAFE.model_copy(update={"coverage": {"calls": Tally(discovered=3, analyzed=0, skipped=(skip,))}})
    text = summary.render(result)
    assert "calls: tools (3): level none" in text
    assert re.search(r"^Gaps +none$", text, re.MULTILINE)


def test_equal_results_give_equal_json_whatever_the_order_of_keys() -> None:
    turned = SAFE.model_copy(
        update={
            "coverage": dict(reversed(SAFE.coverage.items())),
            "timing": dict(reversed(SAFE.timing.items())),
            "surface": SAFE.surface.model_copy(
                update={"tools": tuple(dict(reversed(tool.items())) for tool in SAFE.surface.tools)}
            ),
        }
    )
    assert turned == SAFE
    for render in FORMATS.values():
        assert render(turned, color=False, width=100) == render(SAFE, color=False, width=100)


PROGRAM = """
import sys
from pathlib import Path
from harness.model.result import ScanResult
from harness.report.registry import FORMATS
from harness.report.schema import schema_text
results = [ScanResult.model_validate_json(Path(path).read_bytes()) for path in sys.argv[1:]]
touched = []
watching = True
def hook(event, args):
    if watching and event.split(".")[0] in ("open", "socket", "subprocess", "import", "os", "shutil", "tempfile"):
        touched.append((event, args))
sys.addaudithook(hook)
texts = [render(r, color=c, width=w) for r in results for render in FORMATS.values()
         for c in (False, True) for w in (80, 120)]
watching = False
texts.append(schema_text())
if touched:
    sys.exit(f"rendering touched {touched}")
sys.stdout.buffer.write("".join(texts).encode())
"""


def test_same_bytes_under_other_hash_seeds_time_zones_and_locales_and_no_io() -> None:
    files = [str(path) for path in sorted(GOLDEN.glob("*.json"))]
    assert len(files) == len(SAMPLES)
    outputs = set()
    for seed, zone, locale in (("0", "UTC", "C"), ("4242", "Asia/Kolkata", "C.UTF-8"), ("7", "America/Lima", "tr_TR")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale, "LANG": locale}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *files], env=environment, capture_output=True, check=False, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr.decode()
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop()) > 10_000


@pytest.mark.parametrize("network", ["none", "answer"])
def test_what_was_not_recorded_is_said_and_no_more(network: str) -> None:
    facts = SAFE.recording.model_copy(update={"network": network})
    shown = " ".join(summary.render(SAFE.model_copy(update={"recording": facts}), color=False, width=80).split())
    assert ("no system calls or egress were recorded" in shown) == (network == "none")
    assert ("no system calls were recorded" in shown) == (network == "answer")
    assert ("egress recorded behind a fake internet (network answer)" in shown) == (network == "answer")
