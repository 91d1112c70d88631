"""Payloads in headers: which headers there are, what is tried there with which tool; and a server's own credentials."""

from __future__ import annotations

import pytest

from harness.model.call import Call, Outcome, Purpose
from harness.model.options import ActiveLevel, NetworkChoice, RunOptions
from harness.model.payload import BoundaryKind, Effect, EffectKind, PayloadClass
from harness.model.plan import ActionKind, Adjustment, Observation
from harness.model.surface import Item, ItemKind, Surface
from harness.model.world import World
from harness.pipeline.entropy import Entropy
from harness.pipeline.payloads import read_payloads
from harness.pipeline.workspace import planted_files
from harness.pipeline.world import plant
from harness.probing.access import own_credentials, ways_to_show
from harness.probing.boundaries import find_boundaries, session_boundaries
from harness.probing.calls.arsenal import Arsenal
from harness.probing.calls.header_kit import HeaderKit
from harness.probing.calls.planner import CallPlanner
from harness.probing.calls.subjects import subjects_of
from harness.probing.oracle import Case, hits
from harness.probing.payloads.headers import header_names
from harness.probing.starting.case import StartFacts, case_of
from harness.probing.starting.headers import asked, read
from harness.probing.starting.material import Material
from harness.sandbox.base import LaunchSpec

SPEC = LaunchSpec(image="base", volume=None, argv=("s", "/home/user/workspace"), seed=planted_files())
PAYLOADS = read_payloads()
SOURCE = """
url = request.headers.get("X-Acme-Site-Url"); token = request.headers["X-Acme-Token"]
kind = headers.get("Content-Type"); own = req.headers['acme-folder']; real = headers.get("X-Forwarded-Host")
"""


def surface(*names: str, instructions: str = "") -> Surface:
    schema = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
    tools = [Item(kind=ItemKind.TOOL, name=n, value={"name": n, "inputSchema": schema}, frame=1) for n in names]
    return Surface(items=tuple(tools), instructions=instructions)


def world() -> World:
    return plant(Entropy(), SPEC).world


def kit(seen: Surface, *texts: str) -> HeaderKit:
    return HeaderKit(PAYLOADS, header_names(texts), seen)


def test_names_are_those_of_the_server_and_not_those_of_http() -> None:
    assert header_names([SOURCE]) == ("X-Acme-Site-Url", "X-Acme-Token", "acme-folder")
    ways = """c.req.header("a-one"); req.getHeader('A-Two'); get_header("a-three"); scope["headers"].get(b"a-four")"""
    assert header_names([f"X-Sent: 1; {ways}"]) == ("a-one", "A-Two", "a-three", "a-four", "X-Sent")
    seen = surface("a", instructions="Send X-Api-Base-Url with each request.")
    assert kit(seen, "X-API-BASE-URL and X-Other-Key").names == ("X-API-BASE-URL", "X-Other-Key")


def test_a_header_is_tried_with_the_tools_that_share_a_word_with_it_and_with_its_credentials() -> None:
    seen, here = surface("list_pages", "get_acme_issue", "search"), world()
    subjects = subjects_of(seen)
    boundaries = find_boundaries(seen, here, SPEC.argv) + session_boundaries()
    given = kit(seen, SOURCE)
    found = list(given.attacks(subjects, here, boundaries, network=NetworkChoice.ANSWER))
    own = [(s.name, a) for s, a in found if a.argument.lower() != "host"]
    assert {name for name, _ in own} == {"get_acme_issue"}
    others = kit(seen, "X-Other-Url").attacks(subjects, here, boundaries, network=NetworkChoice.ANSWER)
    assert {s.name for s, a in others if a.argument == "X-Other-Url"} == {"list_pages", "get_acme_issue", "search"}
    assert {a.argument for _, a in own} == {"X-Acme-Site-Url", "acme-folder"}
    addresses = {a.payload.payload_class for _, a in own if a.argument == "X-Acme-Site-Url"}
    folders = {a.payload.payload_class for _, a in own if a.argument == "acme-folder"}
    assert PayloadClass.SSRF in addresses and PayloadClass.TRAVERSAL_READ in folders
    assert PayloadClass.SSRF not in folders
    attack = next(a for _, a in own if a.payload.id == "ssrf/header-base")
    filled = given.fill(attack, {"key": "v"}, here, "0123456789abcdef0123", control=False)
    assert filled is not None and filled.steps == ({"key": "v"},)
    assert filled.headers["X-Acme-Site-Url"].startswith("http://127.0.0.1")
    assert len(filled.headers["X-Acme-Token"]) == 40
    control = given.fill(attack, {"key": "v"}, here, "0123456789abcdef0123", control=True)
    assert control is not None and control.headers["X-Acme-Site-Url"] == f"http://www.{here.domain}"
    assert all(value.isascii() and "\n" not in value for value in filled.headers.values())


def test_what_is_wrong_with_a_request_itself_is_tried_once_and_needs_its_boundary() -> None:
    seen, here = surface("a", "b"), world()
    given = kit(seen)

    def tried(credential: str) -> list[tuple[str, str, str]]:
        made = given.attacks(subjects_of(seen), here, session_boundaries(credential), network=NetworkChoice.ANSWER)
        return [(s.name, a.argument, a.payload.id) for s, a in made]

    assert tried("") == [("a", "Host", "dns-rebinding/rebound-page")]
    assert [row for row in tried("X-API-Key") if row[1] != "Host"] == [
        ("a", "X-API-Key", "missing-authentication/no-credential")
    ]
    assert len(tried("Authorization")) == 3
    assert list(given.attacks(subjects_of(seen), here, (), network=NetworkChoice.ANSWER)) == []
    (attack,) = [
        a for _, a in given.attacks(subjects_of(seen), here, session_boundaries(), network=NetworkChoice.ANSWER)
    ]
    filled = given.fill(attack, {}, here, "0123456789abcdef0123", control=False)
    assert filled is not None and filled.headers["origin"] == f"http://{filled.headers['Host']}"
    assert attack.boundary.kind is BoundaryKind.SESSION


def call(**more: object) -> Call:
    made = {
        "id": "c1",
        "item": "a",
        "params": {},
        "purpose": Purpose.PAYLOAD,
        "headers": {"Host": "x.example"},
        "payload": "dns-rebinding/rebound-page",
        "payload_class": PayloadClass.DNS_REBINDING,
        "argument": "Host",
        "place": "header",
        "effects": (Effect(kind=EffectKind.ACCEPTED),),
        "boundary": session_boundaries()[0],
    }
    return Call.model_validate(made | more)


@pytest.mark.parametrize(
    ("state", "text", "served"),
    [
        ("answered", "three", True),
        ("tool-error", "Chromium is not installed", True),
        ("tool-error", "Unauthorized: no token", False),
        ("answered", "403 Forbidden", False),
        ("error", "HTTP status 403", False),
        ("closed", "", False),
    ],
)
def test_a_tool_that_fails_at_its_own_work_was_served(state: str, text: str, served: bool) -> None:
    outcome = Outcome.model_validate({"call": "c1", "state": state, "text": text})
    assert bool(hits(call(), outcome, world())) is served
    case = Case.open(call(), outcome, world())
    assert (case is not None and case.over) is served  # no control: a call in order is served too


def test_the_plan_asks_in_headers_what_a_refusal_asked_for_and_then_tries_them() -> None:
    seen, here = surface("issue"), world()
    given = kit(seen, "X-Acme-Url")
    options = RunOptions(active=ActiveLevel.TOOL_CALLS, allow=("*",))
    boundaries = find_boundaries(seen, here) + session_boundaries()
    planner = CallPlanner(options, seen, here, Arsenal(()), boundaries=boundaries, headers=given)
    made: list[Call] = []
    observation: Observation | None = None
    for _ in range(200):
        action = planner.next(observation)
        if action is None:
            break
        observation = Observation(number=0, usable=True, world=here, left=1000.0)
        if action.kind is ActionKind.CALL:
            assert action.call is not None
            made.append(action.call)
            text, state = "fine", "answered"
            if "X-Acme-Key" not in action.call.headers:
                text, state = "HTTP status 400: missing header X-Acme-Key", "error"
            outcome = Outcome.model_validate({"call": action.call.id, "state": state, "text": text})
            observation = observation.model_copy(update={"outcome": outcome})
    first, second, *others = made
    assert (first.purpose, first.headers) == (Purpose.BASELINE, {})
    assert second.purpose is Purpose.BASELINE and list(second.headers) == ["X-Acme-Key"]
    assert second.params == first.params
    assert {c.argument for c in others} == {"Host", "X-Acme-Url"} and {c.place for c in others} == {"header"}
    assert all(c.params["arguments"].keys() == {"key"} and "X-Acme-Key" in c.headers for c in others)


def test_only_credentials_that_a_server_asks_others_for_are_its_own() -> None:
    environment = {"GITLAB_TOKEN": "a", "API_KEY": "b", "MCP_AUTH_TOKEN": "c", "HTTP_BEARER_TOKEN": " ", "PATH": "/bin"}
    assert own_credentials(["s", "--auth-token", "d", "--token=e", "--bearer-token", "--port"], environment) == (
        "c",
        "d",
    )
    assert ways_to_show(("c",)) == (("Authorization", "Bearer c"), ("X-API-Key", "c"))


@pytest.mark.parametrize(
    ("refusal", "sent"),
    [
        ("error 401: HTTP status 401: missing header X-Acme-Api-Key", ["X-Acme-Api-Key"]),
        ("error 401: HTTP status 401: who are you? (Bearer token wanted)", ["Authorization"]),
        ("error 500: HTTP status 500: X-Acme-Api-Key", []),
        ("error -32600: Invalid Request", []),
    ],
)
def test_a_start_sends_the_headers_that_its_refusal_asked_for(refusal: str, sent: list[str]) -> None:
    facts = StartFacts(argv=("s",), home="/home/user", workspace="/home/user/workspace", seed="00", http=True)
    case = case_of(facts, Adjustment(), Observation(number=1, usable=False, refusal=refusal), Material("00"))
    proposals = list(asked(case))
    assert [sorted(p.adjustment.headers) for p in proposals] == ([sent] if sent else [])
    assert all(len(value) > 20 for p in proposals for value in p.adjustment.headers.values())
    if sent:
        case = case_of(facts, proposals[0].adjustment, case.seen, Material("00"))
        assert list(asked(case)) == []


def test_one_that_lists_no_tools_over_http_is_sent_what_its_source_reads() -> None:
    seen = Observation(number=1, usable=True, tools=0)

    def sent(*, http: bool) -> list[list[str]]:
        facts = StartFacts(argv=("s",), home="/h", workspace="/w", seed="00", http=http)
        case = case_of(facts, Adjustment(), seen, Material("00"), (), header_names([SOURCE]))
        return [sorted(p.adjustment.headers) for p in read(case)]

    assert sent(http=True) == [["X-Acme-Site-Url", "X-Acme-Token"]]
    assert sent(http=False) == []
