"""The malformed messages as conversations: what is sent in, and what follows when a server dies of it out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.model.errors import HarnessError
from harness.model.options import Transport
from harness.model.plan import Action, ActionKind, Observation
from harness.model.probe import Family, Must, Probe, ProbeBooks
from harness.model.surface import Era, Item, ItemKind, ListEnd, ListOutcome, Surface
from harness.probing.chain import Ground
from harness.probing.drift import DriftPlanner
from harness.probing.malformed import FILE_NAME, Catalog, ProbePlanner, parse_catalog, wire_bytes
from harness.probing.malformed import catalog as catalog_module
from harness.probing.malformed.arguments import Fault, faulty_arguments
from harness.probing.malformed.planner import SHORT_WAIT, alive_request
from harness.probing.malformed.templates import Ids
from harness.probing.planner import Planner

CATALOG = parse_catalog(Path(catalog_module.__file__).with_name(FILE_NAME).read_text())


def tool(name: str = "add", **schema: object) -> Item:
    whole = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]} | schema
    return Item(kind=ItemKind.TOOL, name=name, value={"name": name, "inputSchema": whole}, frame=1)


SURFACE = Surface(
    era=Era.HANDSHAKE,
    protocol_version="2025-11-25",
    capabilities={"tools": {}},
    items=(tool(), tool("free", required=[])),
    lists=(ListOutcome(kind=ItemKind.TOOL, pages=1, items=2, end=ListEnd.COMPLETE),),
)
GROUND = Ground(open=True, usable=True, surface=SURFACE, first=SURFACE)

#: A server: what becomes of it when it is sent this probe for the n-th time (alive, silent, closed, unsent).
Server = Callable[[Probe], str]


def lives(probe: Probe) -> str:
    return "alive"


@dataclass
class Talk:
    actions: list[Action] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """`R03`, `R03 again`, `restart` …"""
        return [
            action.kind.value if action.probe is None else action.probe.id + " again" * (action.probe.attempt - 1)
            for action in self.actions
        ]

    @property
    def books(self) -> ProbeBooks:
        assert self.actions[-1].books is not None
        return self.actions[-1].books


def talk(server: Server, *, restarts: bool = True, seconds: float = 1.0, planner: Planner | None = None) -> Talk:
    """Hold the conversation to its end; each action takes `seconds` of 300."""
    planner = planner or ProbePlanner(CATALOG, GROUND)
    held, seen, left = Talk(), None, 300.0
    while (action := planner.next(seen)) is not None:
        held.actions.append(action)
        assert len(held.actions) < 500
        left -= seconds
        extra: dict[str, object] = {"usable": restarts}
        if action.probe is not None:
            state = server(action.probe) if left > 0 else "unsent"
            extra = {"usable": state == "alive", "probed": {"probe": action.probe.id, "state": state}}
        seen = Observation.model_validate({"number": 0, "left": max(0.0, left), **extra})
    return held


def at(name: str, state: str, times: int = 99) -> Server:
    """A server that lives on, but for this probe."""
    counts = {name: times}

    def server(probe: Probe) -> str:
        if probe.id != name or not counts[name]:
            return "alive"
        counts[name] -= 1
        return state

    return server


# Conversations


def test_each_message_is_sent_once_and_the_books_are_last() -> None:
    held = talk(lives, seconds=0)
    assert held.words[:3] == ["A01", "J01", "J02"]
    assert held.actions[-1].kind is ActionKind.CONCLUDE
    assert held.books.planned == len(held.actions) - 2 and held.books.unsent == ()
    assert len(set(held.words)) == len(held.words)


def test_a_sign_of_life_is_asked_for_right_behind_each() -> None:
    for action in talk(lives, seconds=0).actions[:-1]:
        assert action.probe is not None
        asked = json.loads(action.probe.alive)
        assert asked["method"] == action.probe.method == "ping" and asked["id"] == action.probe.alive_id
        assert action.probe.alive_id not in {json.loads(text) for text in action.probe.ids if text[0].isdigit()}
        assert action.prediction == f"must {action.probe.must}"


def test_a_server_that_knows_no_ping_is_asked_for_a_list() -> None:
    held = talk(at("A01", "silent"), seconds=0)
    assert held.words[:3] == ["A01", "A02", "J01"]
    assert all(action.probe.method == "tools/list" for action in held.actions[1:-1] if action.probe)


def test_after_a_death_the_same_message_is_sent_alone_in_a_fresh_session() -> None:
    held = talk(at("R03", "closed"), seconds=0)
    where = held.words.index("R03")
    assert held.words[where : where + 5] == ["R03", "restart", "R03 again", "restart", "R04"]
    assert held.books.unsent == ()


def test_a_death_that_does_not_come_again_costs_one_session() -> None:
    held = talk(at("R03", "closed", times=1), seconds=0)
    where = held.words.index("R03")
    assert held.words[where : where + 4] == ["R03", "restart", "R03 again", "R04"]


def test_what_a_family_did_twice_is_not_asked_again() -> None:
    held = talk(lambda probe: "closed" if probe.family is Family.FRAMING else "alive", seconds=0)
    assert held.words[:8] == ["A01", "J01", "restart", "J01 again", "restart", "J02", "restart", "J03"]
    assert held.books.unsent == ()


def test_a_family_that_stands_still_is_waited_for_more_briefly() -> None:
    held = talk(lambda probe: "silent" if probe.family is Family.FRAMING else "alive", seconds=0)
    waits = [action.probe.wait for action in held.actions if action.probe and action.probe.family is Family.FRAMING]
    assert waits[:2] == [0.0, 0.0] and set(waits[2:]) == {SHORT_WAIT}


def test_a_server_that_dies_of_everything_is_left_alone_in_the_end() -> None:
    held = talk(lambda probe: "alive" if probe.family is Family.ALIVE else "closed", seconds=3)
    assert held.books.unsent and {unsent.reason for unsent in held.books.unsent} == {"target"}


def test_what_there_is_no_time_for_is_our_bound() -> None:
    held = talk(lives, seconds=10)
    assert held.books.unsent and {unsent.reason for unsent in held.books.unsent} == {"limit"}
    sent = {word for word in held.words if word[0] in "JRLTUXZ"} - {unsent.probe for unsent in held.books.unsent}
    assert len(sent) + len(held.books.unsent) == held.books.planned


def test_a_server_that_can_not_be_started_again_is_told() -> None:
    held = talk(at("J01", "closed"), restarts=False, seconds=0)
    assert held.words == ["A01", "J01", "restart", "conclude"]
    assert {unsent.reason for unsent in held.books.unsent} == {"target"}


def test_a_server_that_reading_its_lists_was_too_much_for_gets_a_fresh_session() -> None:
    tired = iter(("silent", "silent"))
    held = talk(lambda probe: next(tired, "alive") if probe.family is Family.ALIVE else "alive", seconds=0)
    assert held.words[:5] == ["A01", "A02", "restart", "A01 again", "J01"]


# Looking again


def looks(answers: dict[str, Surface | None], alive: str = "ping", ground: Ground = GROUND) -> list[Action]:
    planner, seen, said = DriftPlanner(CATALOG, ground, alive=alive), None, []
    while (action := planner.next(seen)) is not None:
        assert action.look is not None
        said.append(action)
        surface = answers.get(action.look.name, SURFACE)
        seen = Observation(number=0, usable=surface is not None, surface=surface)
    return said


def names(actions: list[Action]) -> list[str]:
    return [action.look.name for action in actions if action.look]


def test_it_looks_twice_in_the_session_and_once_as_another_client() -> None:
    said = looks({})
    assert names(said) == ["same-session", "same-session", "second-session"]
    last = said[-1]
    assert last.look and last.look.client and last.look.days and last.session == "second-session"
    assert [probe.id for probe in last.look.before][:2] == ["L03", "L01"]
    assert all(probe.alive for probe in last.look.before)


OTHER = SURFACE.model_copy(update={"instructions": "other"})


def asked(actions: list[Action]) -> list[tuple[str, bool, bool]]:
    """The further lives: their names, whether they are greeted with another name, whether their clock is later."""
    looked = [action.look for action in actions if action.look and action.look.name.endswith("-session")]
    return [(look.name, bool(look.client), bool(look.days)) for look in looked if look.name != "same-session"]


def test_what_differs_is_looked_at_as_it_was_first_and_then_with_the_name_alone() -> None:
    said = looks({"second-session": OTHER})
    lives = [("second-session", True, True), ("third-session", False, False), ("fourth-session", True, False)]
    assert asked(said) == lives
    assert not any(action.look.before for action in said[-2:] if action.look)
    assert asked(looks({"second-session": OTHER, "third-session": OTHER})) == lives[:2]  # it differs at each start


def test_a_life_that_does_not_bear_the_clock_is_tried_with_the_name_alone() -> None:
    lives = [("second-session", True, True), ("third-session", True, True)]
    said = looks({"second-session": None})
    assert asked(said) == lives and said[-1].look and not said[-1].look.before
    said = looks({"second-session": None, "third-session": OTHER})
    assert asked(said) == [*lives, ("fourth-session", False, False)]
    said = looks({"second-session": None, "third-session": None})
    assert asked(said) == [*lives, ("fourth-session", True, False)]


def test_a_session_that_is_over_is_not_looked_at() -> None:
    gone = Ground(open=True, usable=False, surface=SURFACE, first=SURFACE)
    assert names(looks({}, ground=gone)) == ["second-session"]
    assert names(looks({"same-session": None})) == ["same-session", "second-session"]


def test_nothing_comes_before_the_handshake_where_no_sign_of_life_is_known() -> None:
    assert looks({}, alive="")[-1].look.before == ()  # type: ignore[union-attr]


# The catalog


def test_every_entry_says_where_the_text_says_so() -> None:
    assert len(CATALOG.entries) >= 60
    for entry in CATALOG.entries:
        assert entry.source and entry.title
        assert entry.must is not Must.REJECT or entry.source != "-", entry.id


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("transport", list(Transport))
def test_probes_unfold_for_each_revision_and_transport(revision: str, transport: Transport) -> None:
    era = Era.STATELESS if revision == "2026-07-28" else Era.HANDSHAKE
    surface = SURFACE.model_copy(update={"protocol_version": revision, "era": era})
    probes = [*CATALOG.probes(surface, transport, Ids()), *CATALOG.probes(surface, transport, Ids(), before=True)]
    assert len({probe.id for probe in probes}) == len(probes) >= 45
    for probe in probes:
        data = wire_bytes(probe)
        assert data.endswith(b"\n") and b"<" not in data.replace(b"<frozen", b""), probe.id
        for text in probe.ids:
            json.loads(text)
    for probe in probes:
        if era is Era.STATELESS and probe.id in ("R11", "T01", "U02"):
            assert b"io.modelcontextprotocol/protocolVersion" in wire_bytes(probe)
    ids = {probe.id for probe in probes}
    assert ("R16" in ids) is (revision == "2025-03-26") and ("R17" in ids) is (revision > "2025-03-26")
    assert ("L01" in ids) is (era is Era.HANDSHAKE) and ("M02" in ids) is (era is Era.STATELESS)
    assert any(probe.http for probe in probes) is (transport is Transport.HTTP)
    more = {probe.id for probe in CATALOG.probes(surface, transport, Ids(), credential="X-API-Key")} - ids
    assert more == ({"H18", "H20"} if transport is Transport.HTTP else set())


def test_no_probe_calls_a_tool_with_valid_arguments() -> None:
    calls = []
    for probe in CATALOG.probes(SURFACE, Transport.STDIO, Ids()):
        for line in wire_bytes(probe).splitlines():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict) and message.get("method") == "tools/call":
                calls.append(message["params"])
    assert len(calls) > 5
    for params in calls:
        assert params.get("name") != "free", "it has no required argument: nothing surely refuses a call of it"
        if params.get("name") == "add":
            arguments = params["arguments"]
            assert not isinstance(arguments, dict) or not isinstance(arguments.get("a"), int | float)


@pytest.mark.parametrize(
    ("schema", "missing", "wrong"),
    [
        ({}, {}, {"a": {"$gt": ""}}),
        ({"required": []}, None, None),
        ({"required": ["b"]}, None, None),
        ({"required": "a"}, None, None),
        ({"properties": {"a": {"type": "object"}}}, {}, None),
        ({"properties": {"a": {}}}, {}, None),
        ({"properties": {"a": {"type": ["string", "null"]}}}, {}, {"a": {"$gt": ""}}),
        ({"properties": {"a": {"type": ["string", "object"]}}}, {}, None),
        ({"properties": {"a": {"$ref": "#/x"}}}, {}, None),
        ({"properties": []}, None, None),
    ],
)
def test_arguments_are_surely_refused_or_not_made(schema: dict[str, object], missing: object, wrong: object) -> None:
    assert faulty_arguments(tool(**schema).value, Fault.MISSING) == missing
    assert faulty_arguments(tool(**schema).value, Fault.WRONG_TYPE) == wrong


@pytest.mark.parametrize("value", [None, 7, "x", [], {"inputSchema": []}])
def test_a_tool_of_any_shape_is_read(value: object) -> None:
    assert faulty_arguments(value, Fault.MISSING) is None


def test_bytes_are_what_the_catalog_says() -> None:
    probes = {probe.id: probe for probe in CATALOG.probes(SURFACE, Transport.STDIO, Ids())}
    assert b"\xff\xfe" in wire_bytes(probes["J06"])
    assert wire_bytes(probes["J07"]).startswith(b"\xef\xbb\xbf{")
    assert b'{\x00"\x00j\x00' in wire_bytes(probes["J08"])
    assert b"\x00" in wire_bytes(probes["J15"])
    assert len(wire_bytes(probes["J04"]).splitlines()) == 4
    assert wire_bytes(probes["J12"]).count(b"[") == 20_000
    assert wire_bytes(probes["Z03"]).count(b'{"a":') == 5_000
    assert wire_bytes(probes["Z01"]).count(b"\n") == 200
    assert len(wire_bytes(probes["J13"])) > 4 << 20
    assert all(len("".join(probe.sends)) < 4096 for probe in probes.values()), "the plan holds them folded"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[probe]\n", "no TOML"),
        ('[[probe]]\nid = "J01"\n', "J01"),
        ('[[probe]]\ntitle = "x"\n', "number 1"),
        ('[[probe]]\nid="A9"\ntitle="t"\nfamily="framing"\nsend=["x"]\nmust="live"\nsource="-"\n', "id"),
        ('[[probe]]\nid="A91"\ntitle="t"\nfamily="framing"\nsend=["x"]\nmust="live"\nsource="-"\nwhat=1\n', "what"),
        (
            '[[probe]]\nid="A91"\ntitle="t"\nfamily="framing"\nsend=["x"]\nmust="live"\nsource="-"\nper="tool"\n',
            "together",
        ),
        (
            '[[probe]]\nid="A91"\ntitle="t"\nfamily="framing"\nsend=["x"]\nmust="live"\nsource="-"\nrevisions="new"\n',
            "revisions",
        ),
        ('[[probe]]\nid="A91"\ntitle="t"\nfamily="framing"\nsend=["x"]\nmust="live"\nsource="-"\n' * 2, "twice"),
    ],
)
def test_a_mistake_in_the_catalog_is_named(text: str, words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        parse_catalog(text)


def test_the_sign_of_life_of_the_stateless_revision_carries_its_envelope() -> None:
    stateless = SURFACE.model_copy(update={"era": Era.STATELESS})
    assert "_meta" in json.loads(alive_request("tools/list", 5, stateless))["params"]
    assert "params" not in json.loads(alive_request("ping", 5, SURFACE))


def test_an_empty_catalog_has_only_the_sign_of_life() -> None:
    assert talk(lives, planner=ProbePlanner(Catalog(), GROUND)).words == ["A01", "conclude"]
