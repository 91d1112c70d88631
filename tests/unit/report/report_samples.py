"""Five results, one for each combination of status and verdict, made through the model."""

from __future__ import annotations

from harness.model.coverage import Coverage, Failure, Floor, Skip, SkipReason, Tally
from harness.model.finding import (
    Confirmation,
    Evidence,
    EvidenceLevel,
    Finding,
    Location,
    Severity,
    Signal,
    Threat,
    ThreatLevel,
    Tier,
)
from harness.model.options import ActiveLevel
from harness.model.recording import Grade
from harness.model.result import (
    ActiveFacts,
    AnalyzerFacts,
    AnalyzerStatus,
    BehaviorFacts,
    ExitCode,
    PolicyFacts,
    RecordingFacts,
    ScanResult,
    ScanStatus,
    StockClientFacts,
    SurfaceFacts,
    TargetFacts,
    Verdict,
)

POLICY = PolicyFacts(
    name="balanced",
    sha256="b4" * 32,
    blocking_severity=Severity.HIGH,
    blocking_evidence=EvidenceLevel.STATIC,
)
NONE = ActiveFacts(level=ActiveLevel.NONE)


def analyzer(name: str, status: AnalyzerStatus = AnalyzerStatus.COMPLETED, **fields: object) -> AnalyzerFacts:
    defaults = {"version": "1", "required": True, "coverage": Coverage()}
    return AnalyzerFacts.model_validate({"name": name, "status": status, **defaults, **fields})


TIME_TOOLS = (
    {
        "name": "get_current_time",
        "description": "Get current time in a specific timezone",
        "inputSchema": {"type": "object", "properties": {"timezone": {"type": "string"}}, "required": ["timezone"]},
        "annotations": {"readOnlyHint": True, "destructiveHint": False},
    },
    {
        "name": "convert_time",
        "description": "Convert time between timezones.\n\nArgs:\n    source_timezone: where from",
        "inputSchema": {
            "type": "object",
            "properties": {"source_timezone": {}, "time": {}, "target_timezone": {}},
            "required": ["source_timezone", "time", "target_timezone"],
        },
    },
)

SAFE = ScanResult(
    harness_version="0.1.0",
    target=TargetFacts(
        ref="pypi:clock-server",
        kind="pypi",
        name="clock-server",
        version="2.1.0",
        digest="5a" * 32,
        protocol_version="2025-11-25",
    ),
    status=ScanStatus.COMPLETED,
    verdict=Verdict.SAFE,
    exit_code=ExitCode.SAFE,
    headline="SAFE at level none: 2 tools declared, none called",
    reasons=("all required analysis ran, and nothing blocks",),
    active=NONE,
    policy=POLICY,
    findings=(
        Finding.make(
            rule_id="protocol.stdout.not-json",
            title="Text that is no JSON on standard output",
            severity=Severity.INFO,
            evidence_level=EvidenceLevel.PROTOCOL,
            threat=Threat.PROTOCOL_VIOLATION,
            threat_level=ThreatLevel.INFO,
            location=Location(phase="start"),
            fact="not-json on stdout",
            analyzer="protocol",
            description="The server printed 1 line before its first message that is no JSON.",
            remediation="log to standard error",
            evidence=(Evidence(kind="frame", phase="start", seq=4, text="clock-server starting"),),
        ),
    ),
    analyzers=(
        analyzer("protocol", duration_ms=12, coverage=Coverage(subjects={"frames": Tally(discovered=8, analyzed=8)})),
        analyzer(
            "definitions",
            duration_ms=31,
            coverage=Coverage(
                subjects={"tools": Tally(discovered=2, analyzed=2)},
                floors=(Floor(what="declared items", subjects=("tools",)),),
            ),
        ),
        analyzer(
            "yara", AnalyzerStatus.UNAVAILABLE, required=False, reason="the YARA library is missing; install yara-x"
        ),
    ),
    coverage={
        "calls": Tally(
            discovered=2,
            analyzed=0,
            skipped=(Skip(item="tools", reason=SkipReason.OPERATOR, detail="level none calls no tool", count=2),),
        ),
        "tools": Tally(discovered=2, analyzed=2),
        "frames": Tally(discovered=8, analyzed=8),
    },
    surface=SurfaceFacts(
        server={"name": "clock-server", "version": "2.1.0"},
        protocol_version="2025-11-25",
        era="handshake",
        tools=TIME_TOOLS,
    ),
    behavior=BehaviorFacts(stock_client=StockClientFacts(works=True, client="mcp 2.3.0", detail="it listed 2 tools")),
    recording=RecordingFacts(bundle="clock-server-1.bundle", phases=("fetch", "start", "discover", "stop"), events=31),
    notes=("started with its console script clock-server",),
    timing={"install": 640, "start": 412, "discover": 9, "total": 1730},
)

HIDDEN = "Adds two numbers.\u200b\u202e\U000e0041 [bold]ok[/bold]"

UNSAFE = SAFE.model_copy(
    update={
        "target": TargetFacts(ref="./adder.py", kind="file", name="adder.py", digest="6b" * 32),
        "verdict": Verdict.UNSAFE,
        "exit_code": ExitCode.UNSAFE,
        "headline": "UNSAFE at level none: 1 blocking finding, CRITICAL at worst",
        "reasons": ("CRITICAL unicode.hidden in tool add blocks under policy balanced",),
        "findings": (
            Finding.make(
                rule_id="directive.imperative",
                title="Orders to the model in a description",
                severity=Severity.LOW,
                evidence_level=EvidenceLevel.HEURISTIC,
                threat=Threat.PROMPT_INJECTION,
                location=Location(tool="add", field="description"),
                fact="<IMPORTANT>",
                analyzer="definitions",
                description="The description of the tool holds 1 phrase that gives orders to the model.",
                confidence=0.6,
                signals=(Signal(check="directive.imperative", tier=Tier.SOFT, confidence=0.6, evidence="<IMPORTANT>"),),
            ).model_copy(update={"suppressed_by": "known wording, until 2027-01-01"}),
            Finding.make(
                rule_id="protocol.error.exit",
                title="The server ended with an error when its input closed",
                severity=Severity.LOW,
                evidence_level=EvidenceLevel.PROTOCOL,
                threat=Threat.PROTOCOL_VIOLATION,
                location=Location(phase="stop"),
                fact="exit 1 at stop",
                analyzer="protocol",
                description="After standard input was closed, the process ended with code 1.",
            ),
            Finding.make(
                rule_id="unicode.hidden",
                title="Hidden characters in a description",
                severity=Severity.CRITICAL,
                evidence_level=EvidenceLevel.PROTOCOL,
                threat=Threat.TOOL_POISONING,
                threat_level=ThreatLevel.DANGEROUS,
                location=Location(tool="add", field="description"),
                fact="zero-width, bidi, tag",
                analyzer="definitions",
                description="A person does not see these characters; a model reads them.",
                remediation="remove them",
                evidence=(
                    Evidence(kind="frame", phase="discover", seq=9, text=HIDDEN, sha256="7c" * 32),
                    Evidence(kind="frame", phase="discover", seq=9, text="::error::not a command ##[group]"),
                ),
            ),
        ),
        "surface": SurfaceFacts(
            server={"name": "adder\x1b[31m", "version": "0"},
            protocol_version="2025-06-18",
            instructions="Use add.\nAlways.",
            tools=({"name": "add", "description": HIDDEN, "inputSchema": {"properties": {"a": {}, "b": {}}}},),
        ),
        "behavior": BehaviorFacts(
            stock_client=StockClientFacts(works=False, client="mcp 2.3.0", detail="it closed the connection")
        ),
        "coverage": {
            "frames": Tally(discovered=8, analyzed=8),
            "tools": Tally(discovered=1, analyzed=1),
        },
    }
)

PARTIAL = SAFE.model_copy(
    update={
        "target": TargetFacts(ref="npm:slow-server@1.0.0", kind="npm", name="slow-server", version="1.0.0"),
        "status": ScanStatus.PARTIAL,
        "verdict": Verdict.UNKNOWN,
        "exit_code": ExitCode.UNSAFE,
        "headline": "incomplete, and already confirmed unsafe: UNKNOWN at level tool-calls",
        "active": ActiveFacts(level=ActiveLevel.TOOL_CALLS, allowed=("read", "list")),
        "reasons": ("coverage: resources: page 3 not analyzed, reason target: the answer never came",),
        "findings": (
            Finding.make(
                rule_id="path.escape",
                title="A file outside the workspace was read",
                severity=Severity.CRITICAL,
                evidence_level=EvidenceLevel.CONFIRMED,
                threat=Threat.PATH_TRAVERSAL,
                threat_level=ThreatLevel.DANGEROUS,
                location=Location(tool="read", call="read:3"),
                fact="read outside the root",
                analyzer="confirmation",
                description="The result held the content of a planted file outside the root given by argument.",
                cwe=22,
                evidence=(Evidence(kind="frame", phase="probe", call="read:3", seq=77, text="nonce state"),),
                confirmation=Confirmation(payload="path/dotdot", nonces=("n1", "n2"), control="the same path inside"),
            ),
            Finding.make(
                rule_id="secret.embedded",
                title="A key in a file",
                severity=Severity.MEDIUM,
                evidence_level=EvidenceLevel.STATIC,
                threat=Threat.UNCATEGORIZED,
                location=Location(
                    server="slow",
                    resource="file:///a",
                    resource_template="file:///{path}",
                    prompt="ask",
                    file="src/index.js",
                    line=12,
                    phase="discover",
                ),
                fact="AKIA",
                analyzer="definitions",
                description="A string with the shape of a live key.",
            ),
        ),
        "analyzers": (
            analyzer("protocol", AnalyzerStatus.PARTIAL, reason="a list could not be read to its end"),
            analyzer("definitions"),
        ),
        "coverage": {
            "resources": Tally(
                discovered=14,
                analyzed=11,
                skipped=(
                    Skip(item="page 3", reason=SkipReason.TARGET, detail="the answer never came", count=2),
                    Skip(item="file:///huge", reason=SkipReason.LIMIT, detail="item larger than 4 MiB"),
                ),
            ),
            "tools": Tally(discovered=3, analyzed=2, failed=(Failure(item="read", detail="schema too deep"),)),
        },
        "surface": SurfaceFacts(
            server={"name": "slow-server", "version": "1.0.0"},
            tools=({"name": "read"}, {"name": 7, "inputSchema": [1]}, "no object"),
            resources=tuple({"uri": f"file:///{n}", "name": f"n{n}"} for n in range(40)),
        ),
        "behavior": BehaviorFacts(
            egress=(
                {
                    "destination": "93.184.215.14:443",
                    "call": "connect",
                    "phase": "call:read",
                    "program": "/opt/node/22/bin/node",
                    "count": 2,
                    "succeeded": 0,
                },
                {"more": 7},
            ),
            processes=(
                {
                    "program": "/opt/node/22/bin/node",
                    "argv": ["node", "index.js"],
                    "started_by": "",
                    "phase": "start",
                    "count": 1,
                },
                {
                    "program": "/usr/bin/dash",
                    "argv": ["/bin/sh", "-c", "id\x1b[2J"],
                    "started_by": "/opt/node/22/bin/node",
                    "phase": "call:read",
                    "count": 3,
                },
            ),
            files={"read": ["/app/", "/etc/"], "written": ["/tmp/"], "deleted": ["/home/user/workspace/a\nb"]},
            profile={"executables": ["/opt/node/22/bin/node", "/usr/bin/dash"], "seccomp": {"syscalls": []}},
        ),
        "recording": RecordingFacts(
            bundle="slow-server-7.bundle", recorder="ebpf", grade=Grade.CONTAINED, network="answer", events=1200, lost=3
        ),
        "warnings": ("3 events were lost",),
    }
)

ERROR = SAFE.model_copy(
    update={
        "status": ScanStatus.ERROR,
        "verdict": Verdict.UNKNOWN,
        "exit_code": ExitCode.UNKNOWN,
        "headline": "UNKNOWN at level none: a required analyzer failed",
        "reasons": ("definitions CRASHED: ended by signal 9 after 60 s",),
        "findings": (),
        "analyzers": (
            analyzer("protocol"),
            analyzer("definitions", AnalyzerStatus.CRASHED, reason="ended by signal 9 after 60 s"),
        ),
    }
)

SKIPPED = ScanResult(
    harness_version="0.1.0",
    target=TargetFacts(ref="-- false", kind="command"),
    status=ScanStatus.SKIPPED,
    verdict=Verdict.UNKNOWN,
    exit_code=ExitCode.UNKNOWN,
    headline="UNKNOWN at level none: nothing was analyzed",
    reasons=("no analyzer ran",),
    active=NONE,
    policy=POLICY,
    analyzers=(
        analyzer("protocol", AnalyzerStatus.SKIPPED, required=False, reason="the target never started"),
        analyzer("definitions", AnalyzerStatus.SKIPPED, required=False, reason="there is no surface"),
    ),
)

SAMPLES = {"safe": SAFE, "unsafe": UNSAFE, "partial": PARTIAL, "error": ERROR, "skipped": SKIPPED}
