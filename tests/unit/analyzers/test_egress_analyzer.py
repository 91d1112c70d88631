"""`behavior.egress` on recordings: each shape by its name and severity, each benign twin below MEDIUM."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from behavior_sample import started
from flow_sample import Net, behind, rules
from recordings_sample import TOOL, manifest, surface

from harness.analyzers.behavior.hosts import hosts_in, named_after, site, steady, within, words
from harness.analyzers.behavior.tunnel import is_data, pulse
from harness.model.call import Call, CallEvent, Purpose
from harness.model.finding import EvidenceLevel
from harness.model.flow import FlowEvent, FlowPart, split_end
from harness.model.options import NetworkChoice, RunOptions
from harness.model.recording import Grade
from harness.model.result import AnalyzerStatus

SECOND = 1_000_000_000


def many_names(net: Net, domain: str, count: int) -> Net:
    for number in range(count):
        net.ask_name(f"{sha256(str(number).encode()).hexdigest()[:32]}.{domain}")
    return net


def beats(net: Net, host: str, times: list[float]) -> Net:
    for time in times:
        net.flow(host, b"ping", began=int(time * SECOND), seen=False)
    return net


def ports(net: Net, count: int) -> Net:
    for port in range(count):
        net.flow("", b"", address="127.0.0.1", port=1000 + port, decoy="loopback", application="stream")
    return net


#: What happens → the rules that it gives.
FAULTY: dict[str, tuple[Callable[[Net], Net], dict[str, str]]] = {
    "metadata": (
        lambda n: n.flow("", b"GET /", address="169.254.169.254", port=80, decoy="metadata"),
        {"behavior.egress.metadata": "MEDIUM"},
    ),
    "a bare address": (lambda n: n.flow("", b"x"), {"behavior.egress.literal-address": "MEDIUM"}),
    "a tunnel": (
        lambda n: many_names(n, "collector.test", 9),
        {"behavior.egress.dns-tunnel": "HIGH", "behavior.egress.lookup": "INFO"},
    ),
    "a pulse": (
        lambda n: beats(n, "c2.test", [1, 3, 5.1, 7, 9, 11]),
        {"behavior.egress.beacon": "MEDIUM", "behavior.egress.unprompted": "LOW"},
    ),
    "a scan": (lambda n: ports(n, 20), {"behavior.egress.scan": "HIGH", "behavior.egress.private": "LOW"}),
    "mail": (lambda n: n.flow("mx.test", b"EHLO", port=25, application="smtp"), {"behavior.egress.mail": "MEDIUM"}),
    "unreadable": (
        lambda n: n.flow("x.test", b"", certificate_refused=True, opaque="the certificate was refused"),
        {"behavior.egress.unprompted": "LOW", "behavior.egress.opaque": "LOW"},
    ),
    "its own resolver": (
        lambda n: n.flow("dns.google", b"", application="doh"),
        {"behavior.egress.own-resolver": "LOW"},
    ),
    "tried and not seen by the gateway": (
        lambda n: n.connect("93.184.215.14:443"),
        {"behavior.egress.literal-address": "MEDIUM"},
    ),
}
BENIGN: dict[str, tuple[Callable[[Net], Net], dict[str, str]]] = {
    "telemetry": (lambda n: n.post("o1.ingest.sentry.io", b"{}"), {"behavior.egress.telemetry": "LOW"}),
    "telemetry at regular times": (
        lambda n: beats(n, "us.i.posthog.com", [1, 3, 5, 7, 9]),
        {"behavior.egress.telemetry": "LOW"},
    ),
    "an update check": (lambda n: n.flow("packages.npmjs.com", b"x"), {"behavior.egress.unprompted": "LOW"}),
    "a named host": (lambda n: n.flow("api.weather.test", b"x"), {"behavior.egress.unprompted": "LOW"}),
    "a host of its name": (lambda n: n.flow("api.clock.dev", b"x"), {"behavior.egress.expected": "INFO"}),
    "a look-up": (lambda n: n.ask_name("api.weather.test"), {"behavior.egress.lookup": "INFO"}),
    "names of a cloud": (
        lambda n: n.ask_name("d1a2b3c4d5e6f7.cloudfront.net").ask_name("e5t6y7u8.cloudfront.net"),
        {"behavior.egress.lookup": "INFO"},
    ),
    "irregular talk": (
        lambda n: beats(n, "a.test", [1, 1.2, 4, 9, 9.1, 30]),
        {"behavior.egress.unprompted": "LOW"},
    ),
    "two local ports": (lambda n: ports(n, 2), {"behavior.egress.private": "LOW"}),
    "a call": (
        lambda n: n.enter("call:now:n1").flow("api.weather.test", b"x"),
        {"behavior.egress.in-call": "INFO"},
    ),
}


@pytest.mark.parametrize("name", [*FAULTY, *BENIGN])
def test_each_shape_has_its_name_and_severity(name: str) -> None:
    make, expected = {**FAULTY, **BENIGN}[name]
    result = make(behind()).closed().judge("behavior.egress")
    assert rules(result) == expected
    assert all(finding.evidence_level is EvidenceLevel.DYNAMIC for finding in result.findings)
    assert result.status is (AnalyzerStatus.PARTIAL if name == "unreadable" else AnalyzerStatus.COMPLETED)


def test_what_the_target_names_is_expected() -> None:
    for tool, argv in (
        ({**TOOL, "description": "Asks https://api.weather.test/v1 for it."}, ()),
        (TOOL, ("server", "--api", "https://weather.test")),
    ):
        net = Net().begin(*argv).flow("eu.weather.test", b"x").closed()
        assert rules(net.judge("behavior.egress", tool)) == {"behavior.egress.expected": "INFO"}


def test_a_flow_belongs_to_whoever_opened_its_socket_and_when() -> None:
    net = behind()
    net.spawn(9, "/usr/bin/curl", "curl")
    net.connect("93.184.215.14:443", pid=9, result=0, remote="93.184.215.14:443", local="10.0.0.9:40001")
    net.enter("call:now:n1")
    net.flow("api.weather.test", b"x", seen=False, began=1)
    (finding,) = net.closed().judge("behavior.egress").findings
    assert finding.rule_id == "behavior.egress.unprompted"
    assert finding.location.destination == "api.weather.test"
    assert finding.evidence[0].text.startswith("curl: https to api.weather.test")
    assert "before any call" in finding.evidence[0].text


def test_without_the_kernels_record_the_phase_is_that_of_the_beginning() -> None:
    net = behind().enter("call:now:n1")
    began = net.events[-1].t + 1
    net.enter("idle").flow("api.weather.test", b"x", seen=False, began=began)
    (finding,) = net.closed().judge("behavior.egress").findings
    assert (finding.rule_id, finding.location.tool) == ("behavior.egress.in-call", "now")


def test_identities_hold_no_data_of_the_run() -> None:
    ids = set()
    for label in ("4f3c2b1a", "99887766"):
        net = behind().flow(f"{label}.collector.test", b"x").closed()
        ids |= {finding.id for finding in net.judge("behavior.egress").findings}
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"early": True, "reason": "killed"}, "the gateway ended early: killed"),
        ({"lost": {"connections": 3}}, "lost flows of main (3)"),
        ({"unmatched": ("udp 10.0.0.9:1 > 1.1.1.1:9",)}, "captured, and no event tells of it"),
        ({"capture_dropped": 2}, "could not keep up"),
    ],
)
def test_what_the_gateway_could_not_tell_is_a_gap(more: dict[str, object], word: str) -> None:
    for analyzer in ("behavior.egress", "behavior.canaries"):
        result = behind().closed(**more).judge(analyzer)
        assert result.status is AnalyzerStatus.PARTIAL
        assert word in " ".join(result.coverage.gaps())


def test_a_life_without_its_gateway_is_a_gap() -> None:
    net = behind()
    net.end()
    assert "there was no gateway" in net.judge("behavior.egress").reason


def test_without_a_gateway_by_choice_nothing_is_said() -> None:
    chosen = manifest(options=RunOptions(network=NetworkChoice.NONE))
    result = started().end().judge("behavior.egress", manifest=chosen)
    assert result.status is AnalyzerStatus.SKIPPED
    asked = manifest(options=RunOptions(network=NetworkChoice.ANSWER))
    assert started().end().judge("behavior.egress", manifest=asked).status is AnalyzerStatus.PARTIAL


def test_the_kernels_view_of_connections_does_not_say_it_again() -> None:
    net = behind().flow("api.weather.test", b"x").closed()
    assert rules(net.judge("behavior.network")) == {}
    assert rules(started().connect("93.184.215.14:443").end().judge("behavior.network")) == {
        "behavior.network.connect": "LOW"
    }


def test_memory_does_not_grow_with_flows() -> None:
    net = behind()
    for number in range(6000):
        remote = f"93.184.{number // 250}.{number % 250}:1"
        net.told(FlowEvent(phase="start", flow=number, protocol="tcp", remote=remote, application="stream"))
    result = net.closed().judge("behavior.egress")
    assert result.coverage.subjects["flows"].discovered == 6000
    assert len(result.findings) <= 256
    assert result.warnings


def test_sites_and_names() -> None:
    assert site("a.b.example.com") == "example.com"
    assert site("a.example.co.uk.") == "example.co.uk"
    assert site("data.me.workers.dev") == "me.workers.dev"
    assert site("93.184.215.14") == "93.184.215.14"
    assert site("") == ""
    assert steady("API.eu2.example.com.") == "api.eu2.example.com"
    assert steady("4f3c2b1a.example.com") == "example.com"
    assert within("api.github.com", ("github.com",)) and not within("notgithub.com", ("github.com",))
    assert hosts_in("see https://api.a-b.dev/x, not server.py or a@b.c") == {"api.a-b.dev"}
    assert words("environment ACME_API_TOKEN") == {"acme"}
    assert named_after("api.acme.io", {"acme"}) and not named_after("acme.evil.io", {"acme"})


def test_ends_of_any_form() -> None:
    assert split_end("1.2.3.4:80") == ("1.2.3.4", 80)
    assert split_end("[2001:db8::1]:443") == ("2001:db8::1", 443)
    assert split_end("2001:db8::1") == ("2001:db8::1", 0)
    assert split_end("1.2.3.4") == ("1.2.3.4", 0)
    assert split_end("") == ("", 0)
    assert split_end("[::1]:x") == ("::1", 0)


def test_data_and_pulses() -> None:
    assert is_data("6a7f3c9e2b1d5f8a0c") and not is_data("xn--bcher-kva8445foa") and not is_data("documentation-en")
    assert pulse([n * SECOND for n in range(6)]) == pytest.approx(1.0)
    assert pulse([0, 0, 0, 0, 0, 0]) is None
    assert pulse([]) is None


def test_the_surface_may_be_empty() -> None:
    assert (
        behind().flow("a.test", b"").closed().judge("behavior.egress", surfaces=()).status is AnalyzerStatus.COMPLETED
    )
    assert surface().items == ()


def test_credentials_of_the_service_that_it_is_named_after_are_a_fact() -> None:
    read = "/home/user/.aws/credentials"
    for name, severity in (("awslabs.aws-api-mcp-server", "LOW"), ("mcp-server-weather", "MEDIUM")):
        record = started().open(read)
        known = manifest(recorder="ebpf", grade=Grade.TRUSTED, name=name)
        assert rules(record.end().judge("behavior.files", manifest=known)) == {"behavior.files.account-read": severity}


def mailed(net: Net, *recipients: str, sender: str = "me@mine.test", port: int = 25) -> Net:
    """A mail as the gateway tells it."""
    lines = [f"MAIL FROM:<{sender}>", *(f"RCPT TO:<{address}>" for address in recipients)]
    parts = [FlowPart(what="smtp-command", text=line) for line in lines]
    return net.flow("smtp.mine.test", b"x", *parts, port=port, application="smtp")


def called(net: Net, arguments: dict[str, object], number: int = 1) -> Net:
    """A call begins."""
    call = Call(id=f"c{number}", item="send", params={"name": "send", "arguments": arguments}, purpose=Purpose.BASELINE)
    net.told(CallEvent(phase=f"call:send:c{number}", call=call))
    return net.enter(f"call:send:c{number}")


HIDDEN = "behavior.egress.hidden-recipient"


@pytest.mark.parametrize(
    ("arguments", "recipients", "expected"),
    [
        ({"to": "Sam <sam@x.test>"}, ("sam@x.test", "desk@y.test"), "HIGH"),
        ({"to": "sam@x.test"}, ("desk@y.test",), "HIGH"),
        ({"to": "sam"}, ("sam", "desk@y.test"), "HIGH"),
        ({"text": "hello"}, ("desk@y.test",), "LOW"),
        ({"to": ["sam@x.test", "Kim@x.test"]}, ("sam@x.test", "kim@x.test"), None),
        ({"to": "sam@x.test"}, ("sam@x.test", "me@mine.test"), None),
    ],
)
def test_a_mail_goes_to_those_whom_the_call_named(
    arguments: dict[str, object], recipients: tuple[str, ...], expected: str | None
) -> None:
    result = mailed(called(behind(), arguments), *recipients).closed().judge("behavior.egress")
    assert rules(result).get(HIDDEN) == expected


def test_a_draft_of_one_call_is_sent_by_another() -> None:
    net = called(called(behind(), {"to": "sam@x.test"}), {"draft": "1"}, 2)
    assert HIDDEN not in rules(mailed(net, "sam@x.test").closed().judge("behavior.egress"))


def test_what_began_before_any_call_and_goes_on_between_calls_is_a_pulse_and_what_calls_set_off_is_none() -> None:
    net = behind().flow("c2.test", b"x", began=0)
    net = called(net, {"text": "hello"}).enter("idle")
    for number in range(1, 8):
        net.flow("c2.test", b"x", began=number * SECOND)
    assert "behavior.egress.beacon" in rules(net.closed().judge("behavior.egress"))
    net = behind().flow("stats.test", b"x", began=0)
    for number in range(1, 8):
        net = called(net, {"text": "hello"}, number).enter("idle").flow("stats.test", b"x", began=number * SECOND)
    assert "behavior.egress.beacon" not in rules(net.closed().judge("behavior.egress"))


@pytest.mark.parametrize("unasked", [True, False])
def test_a_pulse_after_a_call_is_one_where_another_life_talks_to_its_host_unasked(
    unasked: bool,
) -> None:
    net = called(behind(), {"text": "hello"}).enter("idle")
    for number in range(1, 8):
        net.flow("c2.test", b"x", began=number * SECOND)
    net.end()
    net.session = "second-session"
    net.begin()
    if unasked:
        net.enter("start").flow("c2.test", b"x", began=9 * SECOND)
    found = [f for f in net.closed().judge("behavior.egress").findings if f.rule_id == "behavior.egress.beacon"]
    assert [f.location.tool for f in found] == ([None] if unasked else [])


def test_credentials_that_a_library_reads_by_itself_are_a_fact() -> None:
    for program, severity in (("/usr/bin/python3.13", "LOW"), ("/usr/bin/node", "MEDIUM")):
        record = started().exec(program).open("/home/user/.netrc").end()
        assert rules(record.judge("behavior.files")) == {"behavior.files.account-read": severity}


@pytest.mark.parametrize(
    ("sent", "received", "whole"),
    [
        (205, 0, True),  # it ended, or was ended, before it got an answer
        (206, 0, False),  # data that came early
        (205, 90, False),  # it got our certificate and said nothing more
    ],
)
def test_a_client_that_ended_with_its_first_message_has_hidden_nothing(sent: int, received: int, whole: bool) -> None:
    net = behind()
    hello = FlowPart(what="client-hello", text="x.test", content=net.blobs.keep(b"h" * 200))
    more: dict[str, Any] = {"sent": sent, "received": received, "application": "tls", "opaque": "the handshake failed"}
    result = net.flow("x.test", b"h" * 205, hello, **more).closed().judge("behavior.egress")
    assert ("behavior.egress.opaque" in rules(result)) is not whole
    assert (result.status is AnalyzerStatus.COMPLETED) is whole


def attacked(net: Net, number: int, value: str) -> Net:
    """A call with a payload, under way."""
    params = {"name": "fetch", "arguments": {"url": value}}
    net.enter(f"call:fetch:c{number}")
    call = Call(id=f"c{number}", item="fetch", params=params, purpose=Purpose.PAYLOAD)
    return net.told(CallEvent(phase=net.phase, session=net.session, call=call))


def test_names_that_we_asked_for_are_no_tunnel_and_those_beside_them_are() -> None:
    named = [f"{sha256(str(number).encode()).hexdigest()[:20]}.5023c92c14.example.net" for number in range(9)]
    honest, leaking = behind(), behind()
    for net in (honest, leaking):
        for number, name in enumerate(named):
            said = name if number % 2 else f"http%3A%2F%2F{name.upper()}%2Fpage" if number else f"http://x@{name}:80/"
            attacked(net, number, said).ask_name(name)
    many_names(leaking, "5023c92c14.example.net", 9)
    assert "behavior.egress.dns-tunnel" not in rules(honest.closed().judge("behavior.egress"))
    assert rules(leaking.closed().judge("behavior.egress"))["behavior.egress.dns-tunnel"] == "HIGH"


def test_addresses_that_we_asked_for_are_the_oracles_to_judge() -> None:
    def visits(net: Net) -> Net:
        for port in range(20):
            net.flow("", b"GET /", address="127.0.0.1", port=1000 + port, decoy="loopback", application="stream")
        return net.flow("", b"GET /", address="169.254.169.254", port=80, decoy="metadata")

    asked = visits(attacked(behind(), 1, "http://169.254.169.254/")).closed().judge("behavior.egress")
    assert rules(asked) == {"behavior.egress.in-call": "INFO"}
    unasked = visits(behind().enter("call:fetch:c2")).closed().judge("behavior.egress")
    assert {"behavior.egress.metadata", "behavior.egress.scan"} <= set(rules(unasked))
