"""Two results compared: what is added, removed and changed, in every section, the same way round each time."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.assessment.comparing import compare
from harness.model.finding import EvidenceLevel, Finding
from harness.model.options import ActiveLevel
from harness.model.recording import Grade
from harness.model.result import (
    ActiveFacts,
    BehaviorFacts,
    ExitCode,
    PolicyFacts,
    RecordingFacts,
    ScanResult,
    ScanStatus,
    SurfaceFacts,
    TargetFacts,
    Verdict,
)
from harness.report.difference import render_json, render_text
from tests.unit.probing.oracle.scripts import Script


def result(**fields: object) -> ScanResult:
    base: dict[str, object] = {
        "harness_version": "1",
        "target": TargetFacts(ref="npm:x@1", kind="npm", name="x", version="1", digest="d" * 64),
        "status": ScanStatus.COMPLETED,
        "verdict": Verdict.SAFE,
        "exit_code": ExitCode.SAFE,
        "headline": "SAFE",
        "active": ActiveFacts(level=ActiveLevel.TOOL_CALLS),
        "policy": PolicyFacts(name="balanced", sha256="p", blocking_severity="HIGH", blocking_evidence="STATIC"),
        "recording": RecordingFacts(grade=Grade.TRUSTED),
    }
    return ScanResult.model_validate(base | fields)


def profile(*calls: str, executables: tuple[str, ...] = ()) -> dict[str, object]:
    rules = [{"names": list(calls), "action": "SCMP_ACT_ALLOW"}, {"names": ["clone3"], "action": "SCMP_ACT_ERRNO"}]
    return {"executables": list(executables), "paths": {"read": ["/a/"]}, "seccomp": {"syscalls": rules}}


def told(changes: object) -> set[tuple[str, str, str, str]]:
    return {(c.change, c.kind, c.name, c.field) for c in changes}  # type: ignore[attr-defined]


def test_a_result_does_not_differ_from_itself() -> None:
    findings = Script().tape().judge().findings
    one = result(findings=findings, surface=SurfaceFacts(tools=({"name": "a"},)))
    comparison = compare(one, one)
    assert not any((comparison.surface, comparison.behavior, comparison.findings, comparison.profile))
    assert comparison.caveats == ()
    assert "Surface: no differences" in render_text(comparison)


def test_surface_is_compared_by_name_and_field() -> None:
    before = SurfaceFacts(
        tools=({"name": "a", "description": "reads"}, {"name": "gone"}), instructions="x", prompts=("no object",)
    )
    after = SurfaceFacts(
        tools=({"name": "new"}, {"name": "a", "description": "reads all", "inputSchema": {"type": "object"}}),
        prompts=("no object",),
    )
    assert told(compare(result(surface=before), result(surface=after)).surface) == {
        ("changed", "server", "instructions", "instructions"),
        ("changed", "tool", "a", "/description"),
        ("changed", "tool", "a", "/inputSchema"),
        ("added", "tool", "new", ""),
        ("removed", "tool", "gone", ""),
    }


def test_behaviour_and_profile_are_compared_as_sets() -> None:
    before = BehaviorFacts(
        processes=({"program": "/bin/a"}, {"more": 3}), files={"written": ["/w/"]}, profile=profile("read", "open")
    )
    after = BehaviorFacts(
        processes=({"program": "/bin/b"},),
        egress=({"destination": "203.0.113.1:443"},),
        profile=profile("read", "ptrace", executables=("/bin/b",)),
    )
    comparison = compare(result(behavior=before), result(behavior=after))
    assert told(comparison.behavior) == {
        ("added", "program", "/bin/b", ""),
        ("removed", "program", "/bin/a", ""),
        ("added", "destination", "203.0.113.1:443", ""),
        ("removed", "folder written", "/w/", ""),
    }
    assert told(comparison.profile) == {
        ("added", "executable", "/bin/b", ""),
        ("added", "system call", "ptrace", ""),
        ("removed", "system call", "open", ""),
    }


def finding_of(script: Script) -> Finding:
    return script.tape().judge().findings[0]


def test_a_finding_that_was_confirmed_meanwhile_is_the_same_finding() -> None:
    seen, confirmed = finding_of(Script().without(2)), finding_of(Script())
    (change,) = compare(result(findings=(seen,)), result(findings=(confirmed,))).findings
    assert (change.field, change.before, change.after) == (
        "evidence_level",
        EvidenceLevel.DYNAMIC,
        EvidenceLevel.CONFIRMED,
    )
    (gone,) = compare(result(findings=(confirmed,)), result()).findings
    assert gone.change == "removed" and gone.name.startswith("injection.command F-")
    text = render_text(compare(result(findings=(confirmed,)), result()))
    assert "- finding injection.command F-" in text and "CONFIRMED" in text


def test_how_they_were_run_is_said() -> None:
    other = result(
        status=ScanStatus.PARTIAL,
        verdict=Verdict.UNKNOWN,
        exit_code=ExitCode.UNKNOWN,
        active=ActiveFacts(level=ActiveLevel.SAFE),
        recording=RecordingFacts(grade=Grade.NONE),
    )
    assert len(compare(result(), other).caveats) == 3


def test_many_differences_are_counted() -> None:
    many = SurfaceFacts(tools=tuple({"name": f"t{n:04}"} for n in range(700)))
    comparison = compare(result(), result(surface=many))
    assert len(comparison.surface) == 500 and comparison.left_out == {"surface": 200}
    assert "and 600 more" in render_text(comparison)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(values, values)
def test_whatever_is_declared_is_compared_and_rendered(one: object, two: object) -> None:
    before, after = (result(surface=SurfaceFacts(tools=(item,))) for item in (one, two))
    comparison = compare(before, after)
    back = compare(after, before)
    assert len(comparison.surface) == len(back.surface)
    assert bool(comparison.surface) == (json.dumps(one, sort_keys=True) != json.dumps(two, sort_keys=True))
    assert render_json(comparison).isascii()
    assert render_text(comparison).endswith("\n")


def test_the_same_two_give_the_same_bytes() -> None:
    one, two = result(findings=Script().tape().judge().findings), result()
    assert render_json(compare(one, two)) == render_json(compare(one, two))
    assert replace(Script()) == Script()
