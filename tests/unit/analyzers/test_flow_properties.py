"""Any flows, messages and payloads: the analyzers of flows never raise, say the same twice, and never hide a gap."""

from __future__ import annotations

from typing import Any

from flow_sample import PLANTING, SECOND, Blobs, secret
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings_sample import TOOL, manifest, surface

from harness.analyzers import registry
from harness.analyzers.base import AnalysisFacts, RecordingInput
from harness.analyzers.engine import run_analyzer
from harness.assessment.destinations import Destinations
from harness.model.flow import BlobRef
from harness.model.recording import EVENT_ADAPTER, Event, FlowEvent, Grade
from harness.model.result import AnalyzerStatus

BLOBS = Blobs()
WHOLE = [BLOBS.keep(data) for data in (b"", b"\x1f\x8b\x08", b"plain", secret("environment GITHUB_TOKEN").encode())]
ANALYZERS = tuple(a for a in registry.ANALYZERS if a.name in ("behavior.egress", "behavior.canaries"))
FACTS = AnalysisFacts(
    manifest=manifest(
        recorder="ebpf", grade=Grade.TRUSTED, network="answer", canaries=(*PLANTING.canaries, *SECOND.canaries)
    ),
    surfaces=(surface(TOOL),),
    contents=BLOBS,
)

text = st.sampled_from(
    [
        "",
        ".",
        "..",
        "a.test",
        "x.collector.test A",
        "\x1b[2J",
        "\u202e",
        "a" * 300,
        " ",
        "1-aa.b.c.d",
        secret("environment GITHUB_TOKEN"),
        "{",
        '{"id": 1}',
    ]
) | st.text(max_size=12)
ends = st.sampled_from(["", ":", "1.2.3.4:5", "[::1]:443", "2001:db8::1", "127.0.0.1:80", "x:y", "[", "]:1"]) | text
refs = st.none() | st.sampled_from(
    [*WHOLE, BlobRef(sha256="0" * 64, kept=5, size=9), BlobRef(sha256="/etc", kept=1, size=1)]
)
parts = st.builds(
    dict,
    what=st.sampled_from(["dns-question", "http-request", "http-body", "datagram", "stream", "client-hello", ""]),
    text=text,
    content=refs,
    encoding=text,
)
sessions = st.sampled_from(["main", "second-look", "install", "stock-client", ""])
phases = st.sampled_from(["start", "discover", "install", "call:now:n1", "call::", "call:", ""])
number = st.integers(-5, 2**63 - 1)
flows = st.builds(
    dict,
    kind=st.just("flow"),
    phase=phases,
    session=sessions,
    flow=number,
    protocol=text,
    application=text | st.sampled_from(["dns", "doh", "https", "smtp"]),
    local=ends,
    remote=ends,
    names=st.lists(text, max_size=2),
    decoy=text,
    sni=text,
    sent=number,
    outbound=refs,
    parts=st.lists(parts, max_size=3),
    parts_cut=st.integers(0, 2),
    opaque=text,
    began=number,
)
frames = st.builds(
    dict,
    kind=st.just("frame"),
    phase=phases,
    session=sessions,
    direction=st.sampled_from(["sent", "received"]),
    data=text
    | st.sampled_from(
        [
            '{"id": 7, "result": {"tools": [{"name": 3}, 4, {"name": "x"}]}}',
            '{"id": [], "method": 3}',
            '{"id": 7, "method": "tools/call", "params": 4}',
            "[" * 2000,
        ]
    ),
    size=st.just(1),
)
others = st.sampled_from(
    [
        {"kind": "gateway-end", "phase": "stop", "early": True},
        {"kind": "gateway-end", "phase": "stop", "lost": {"x": -3, "y": 2}, "unmatched": ["\x1b"]},
        {"kind": "attempt", "phase": "start", "number": 1, "argv": ["https://a.test"]},
        {"kind": "prediction", "phase": "start", "session": "second-look", "findings": ["F-1", ""]},
        {
            "kind": "stderr",
            "phase": "stop",
            "size": 1,
            "kept": 1,
            "sha256": "",
            "tail": secret("environment GITHUB_TOKEN"),
        },
        {"kind": "process", "phase": "start", "pid": 7, "tid": 7, "parent": 3, "what": "exec", "argv": ["a", "\x00"]},
        {
            "kind": "syscall",
            "phase": "start",
            "pid": 7,
            "tid": 7,
            "parent": 3,
            "call": "connect",
            "remote": "1.2.3.4:5",
        },
        {"kind": "syscall", "phase": "start", "pid": 7, "tid": 7, "call": "sendto", "local": "x:1", "addresses": ["y"]},
    ]
)


def _events(raw: list[dict[str, Any]]) -> list[Event]:
    return [EVENT_ADAPTER.validate_python({**one, "seq": n, "t": n}) for n, one in enumerate(raw, 1)]


@settings(deadline=None, max_examples=150)
@given(st.lists(flows | frames | others, max_size=12))
def test_any_events_give_a_result_and_the_same_again(raw: list[dict[str, Any]]) -> None:
    events = _events(raw)
    for analyzer in ANALYZERS:
        result = run_analyzer(analyzer, RecordingInput(FACTS, iter(events)))
        assert result.status in (AnalyzerStatus.COMPLETED, AnalyzerStatus.PARTIAL), result.reason
        assert result == run_analyzer(analyzer, RecordingInput(FACTS, iter(events)))
        assert (result.status is AnalyzerStatus.PARTIAL) == bool(result.coverage.gaps())
        shown = result.model_dump_json()
        assert "\\u001b" not in shown and "\u202e" not in shown
        if any(isinstance(event, FlowEvent) and event.unread for event in events):
            assert result.status is AnalyzerStatus.PARTIAL
    destinations = Destinations()
    for event in events:
        if isinstance(event, FlowEvent):
            destinations.flow(event, event.phase)
    assert len(destinations.rows()) <= 201
