"""The result around a decision: counted events, the surface of the first look, nothing of this machine."""

from __future__ import annotations

from assessment_sample import finding, result

from harness.assessment.aggregate import aggregate
from harness.assessment.assemble import MAX_NOTES, assemble, scope_of, summarize
from harness.assessment.policy import PRESETS
from harness.model.call import Call, Purpose
from harness.model.options import ActiveLevel, RunOptions, Transport
from harness.model.recording import CallEvent, Manifest, NoteEvent, PhaseEvent, StockClientEvent
from harness.model.result import ScanResult, Verdict
from harness.model.surface import Era, Item, ItemKind, Surface
from harness.model.target import TargetKind, TargetRef

MANIFEST = Manifest(
    harness_version="0.1.0",
    run_id="r",
    target=TargetRef(text="pypi:clock", kind=TargetKind.PYPI),
    name="clock",
    version="1.0",
    closure_digest="ab" * 32,
    options=RunOptions(active=ActiveLevel.TOOL_CALLS, allow=("now",)),
    timing={"discover": 3},
    problems=("it stopped early",),
)
SURFACE = Surface(
    era=Era.HANDSHAKE,
    protocol_version="2025-11-25",
    server_info={"name": "clock"},
    instructions="Use it.",
    items=(
        Item(kind=ItemKind.TOOL, name="now", value={"name": "now", "x": [1]}, frame=1),
        Item(kind=ItemKind.PROMPT, name="p", value={"name": "p"}, frame=2),
    ),
)


def called(item: str, method: str = "tools/call") -> CallEvent:
    call = Call(id="c1", item=item, method=method, params={}, purpose=Purpose.BASELINE)
    return CallEvent(phase=f"call:{item}:c1", call=call)


def test_events_are_counted_by_phase_and_calls_by_tool() -> None:
    made = [called("now"), called("now"), called("a:b"), called("p", "prompts/get")]
    events = [
        PhaseEvent(phase=phase, nonce="n")
        for phase in ("start", "discover", "call:now:n1", "call:now:n2", "call:a:b:n3", "stop")
    ]
    noted = [NoteEvent(phase="start", text=f"note {n % 150}") for n in range(300)]
    summary = summarize([*made, *events, *noted, StockClientEvent(phase="stop", works=True, tools=2, client="mcp 2.3")])
    assert summary.phases == ("start", "discover", "call", "stop")
    assert (summary.called, summary.others, summary.events) == (2, 1, 311)
    assert len(summary.notes) == MAX_NOTES + 1
    assert summary.stock_client.detail == "it listed 2 tools"


def test_a_result_holds_what_was_decided_and_served() -> None:
    summary = summarize([PhaseEvent(phase="call:now:n", nonce="n")])
    scope = scope_of(MANIFEST, [SURFACE], summary)
    policy = PRESETS["balanced"]
    decision = aggregate([result(finding())], policy, scope=scope)
    made = assemble(MANIFEST, [SURFACE], summary, decision, policy, bundle="b")
    assert (made.verdict, made.findings, made.exit_code) == (Verdict.UNSAFE, decision.findings, decision.exit_code)
    assert made.surface.tools == ({"name": "now", "x": [1]},)
    assert (made.surface.era, made.target.protocol_version, made.recording.bundle) == ("handshake", "2025-11-25", "b")
    assert made.target.transport == "stdio"
    found = MANIFEST.model_copy(update={"transport": Transport.HTTP})
    assert assemble(found, [SURFACE], summary, decision, policy).target.transport == "http"
    assert "it stopped early" in made.warnings
    assert made.policy.sha256 == policy.sha256
    assert ScanResult.model_validate_json(made.model_dump_json()) == made


def test_a_safe_says_tools_and_calls() -> None:
    for made, said in (
        ([called("now")], "1 called"),
        ([called("now"), called("p", "prompts/get")], "1 called, and 1 prompt or resource"),
        ([called("p", "prompts/get"), called("r://a", "resources/read")], "none called, and 2 prompts or resources"),
    ):
        decision = aggregate([result()], PRESETS["balanced"], scope=scope_of(MANIFEST, [SURFACE], summarize(made)))
        assert decision.headline == f"SAFE at level tool-calls: 1 tool declared, {said}"


def test_a_run_without_a_surface_still_gives_a_result() -> None:
    decision = aggregate([], PRESETS["balanced"])
    made = assemble(MANIFEST, [], summarize([]), decision, PRESETS["balanced"])
    assert (made.verdict, made.surface.tools) == (Verdict.UNKNOWN, ())
