"""The planner of calls: which calls are made in which order, what follows a sighting, and what the books say."""

from __future__ import annotations

from typing import cast

import pytest

from harness.model.base import JsonObject
from harness.model.call import Call, OpenedFile, Purpose
from harness.model.errors import UsageError
from harness.model.options import NetworkChoice, RunOptions
from harness.model.payload import Effect, EffectKind, PayloadClass
from harness.model.plan import ActionKind
from harness.model.surface import Item, ItemKind, ListEnd, ListOutcome, Surface
from harness.model.world import World
from harness.probing.calls.kit import Attack, Filled
from harness.probing.calls.planner import CallPlanner
from harness.probing.calls.state import renewed
from harness.probing.calls.subjects import Subject
from tests.unit.probing.calling import (
    READ,
    READ_AGAIN,
    SHELL,
    Calls,
    Says,
    SmallKit,
    hold,
    payload,
    tool,
    value_of,
    world,
)
from tests.unit.probing.calling import world as made_world


def benign(call: Call, world: World) -> Says:
    return Says()


def escapes(call: Call, world: World) -> Says:
    """Reads what the traversal payload names, and nothing else outside."""
    return Says(world.items[1].secret if READ.id in value_of(call) else "fine")


def test_an_honest_server_is_asked_for_its_baseline_and_then_gets_each_payload_once() -> None:
    talk = hold(benign, tool("read", "path"))
    assert talk.brief() == [
        "baseline read",
        "payload read traversal-read/parent",
        "payload read command-injection/semicolon",
    ]
    assert talk.kinds[0] == "conclude"
    assert {cell.state for cell in talk.books.cells} == {"executed"}


def test_boundaries_are_told_before_the_first_call() -> None:
    talk = hold(benign, tool("read", "path"))
    assert [boundary.source for boundary in talk.actions[0].boundaries] == ["arguments", "convention"]


def test_what_is_seen_is_controlled_and_confirmed_in_clean_starts_with_fresh_nonces() -> None:
    talk = hold(escapes, tool("read", "path"))
    proof = talk.of(Purpose.CONTROL, Purpose.DOCUMENTED, Purpose.CONFIRM)
    assert [call.purpose for call in proof[:4]] == [
        Purpose.CONTROL,
        Purpose.DOCUMENTED,
        Purpose.CONFIRM,
        Purpose.CONFIRM,
    ]
    found = talk.of(Purpose.PAYLOAD)[0]
    assert {call.about for call in proof} == {found.id}
    confirmations = talk.of(Purpose.CONFIRM)
    assert len({call.world for call in (found, *confirmations)}) == 3
    assert len({call.nonce for call in (found, *confirmations)}) == 3
    assert talk.kinds.count("restart") == 2


def test_a_server_that_refuses_everything_is_unreachable_with_the_first_reason_and_still_probed() -> None:
    talk = hold(lambda call, world: Says("no such thing as " + value_of(call), "tool-error"), tool("read", "path"))
    reached = [cell for cell in talk.books.cells if cell.payload_class is None]
    assert [(cell.state, cell.detail) for cell in reached] == [("target", "no such thing as /path-0")]
    assert len(talk.of(Purpose.BASELINE)) == 2
    assert len(talk.of(Purpose.PAYLOAD)) == 2


def test_a_tool_that_keeps_its_data_beside_its_code_is_told_what_to_do_about_it() -> None:
    said = "EROFS: read-only file system, open '/app/node_modules/x/dist/memory.jsonl.tmp'"
    talk = hold(lambda call, world: Says(said, "tool-error"), tool("read", "path"))
    (reached,) = [cell for cell in talk.books.cells if cell.payload_class is None]
    assert "sealed: name another place with --env or --arg" in reached.detail and reached.detail.endswith(said)


SEALED = Says("EROFS: read-only file system, open '/app/node_modules/x/memory.jsonl.tmp'", "tool-error")


def test_a_tool_that_writes_into_its_installation_is_tried_again_where_it_can() -> None:
    first = made_world().nonce
    talk = hold(
        lambda call, world: SEALED if world.nonce == first else Says(), tool("save", "text"), tool("read", "path")
    )
    assert {cell.state for cell in talk.books.cells if cell.payload_class is None} == {"executed"}
    saves = [call for call in talk.of(Purpose.BASELINE) if call.item == "save"]
    assert len(saves) == 2 and saves[0].params == saves[1].params
    restarts = [action for action in talk.actions if action.kind is ActionKind.RESTART]
    assert restarts and all(action.adjustment.unsealed for action in restarts)


def test_an_installation_that_can_not_be_copied_stays_as_it_is() -> None:
    talk = hold(
        lambda call, world: SEALED if call.item == "save" else Says(),
        tool("save", "text"),
        tool("read", "path"),
        comes_up=lambda action: not action.adjustment.unsealed,
    )
    reached = {cell.item: cell.state for cell in talk.books.cells if cell.payload_class is None}
    assert reached == {"save": "target", "read": "executed"}
    restarts = [action.adjustment.unsealed for action in talk.actions if action.kind is ActionKind.RESTART]
    assert restarts[:3] == [True, True, False] and not any(restarts[3:])


def test_a_later_candidate_can_be_the_one_that_works() -> None:
    talk = hold(
        lambda call, world: Says() if value_of(call) != "/path-0" else Says("not that", "tool-error"),
        tool("read", "path"),
    )
    assert [cell.state for cell in talk.books.cells if cell.payload_class is None] == ["executed"]


def test_an_id_that_one_tool_hands_out_is_given_to_the_next() -> None:
    def shop(call: Call, world: World) -> Says:
        if call.item == "open":
            return Says('{"output_id": "k-771"}')
        return Says() if value_of(call, "output_id") == "k-771" else Says("unknown id", "error")

    talk = hold(shop, tool("fetch", "output_id"), tool("open", "path"), kit=SmallKit(payloads=()))
    assert value_of(talk.calls[-1], "output_id") == "k-771"
    assert {cell.state for cell in talk.books.cells} == {"executed"}


def test_what_a_payload_lets_in_is_looked_for_where_it_comes_out() -> None:
    """Two steps with state between them: the first call attaches a file from outside, the second shows it."""
    attached: dict[str, str] = {}

    def server(call: Call, world: World) -> Says:
        if call.item == "attach":
            number = f"h-{len(attached)}"
            attached[number] = world.items[1].secret if READ.id in value_of(call) else "notes"
            return Says(f'{{"handleId": "{number}"}}')
        return Says(attached.get(value_of(call, "handle_id"), "nothing"))

    talk = hold(server, tool("attach", "path"), tool("show", "handle_id"), kit=SmallKit(payloads=(READ,)))
    followed = [call for call in talk.of(Purpose.PAYLOAD) if call.item == "show" and call.step == 2]
    assert followed
    assert talk.of(Purpose.CONTROL)


def test_what_one_call_stores_and_another_runs_is_followed_whatever_its_effect() -> None:
    stored: list[str] = []

    def server(call: Call, world: World) -> Says:
        if call.item == "create":
            stored.append(value_of(call))
            return Says(f'{{"job_id": "job-{len(stored)}"}}')
        return Says("done")

    touch = payload("touch", PayloadClass.COMMAND_INJECTION, EffectKind.CREATED)
    talk = hold(server, tool("create", "title"), tool("run", "job_id"), kit=SmallKit(payloads=(touch,)))
    (made,) = [call for call in talk.of(Purpose.PAYLOAD) if call.item == "create"]
    followed = [call for call in talk.of(Purpose.PAYLOAD) if call.item == "run" and call.nonce == made.nonce]
    assert [(call.step, value_of(call, "job_id")) for call in followed] == [(2, "job-2")]


def test_what_comes_out_of_another_call_is_controlled_and_confirmed_by_both() -> None:
    stored: list[str] = []

    def server(call: Call, world: World) -> Says:
        if call.item == "create":
            stored.append(value_of(call))
            return Says(f'{{"job_id": "job-{len(stored)}"}}')
        number = value_of(call, "job_id").partition("-")[2]
        reads = number.isdecimal() and READ.id in stored[int(number) - 1]
        return Says(world.items[1].secret if reads else "done")

    talk = hold(server, tool("create", "path"), tool("run", "job_id"), kit=SmallKit(payloads=(READ,)))
    proof = talk.of(Purpose.CONTROL, Purpose.DOCUMENTED, Purpose.CONFIRM)
    assert [(call.purpose, call.item, call.step, call.steps) for call in proof] == [
        (purpose, item, step, 2)
        for purpose in (Purpose.CONTROL, Purpose.DOCUMENTED, Purpose.CONFIRM, Purpose.CONFIRM)
        for step, item in ((1, "create"), (2, "run"))
    ]


class ReadingKit(SmallKit):
    """Predicts that the file outside is opened too."""

    def fill(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str, *, control: bool
    ) -> Filled | None:
        filled = super().fill(subject, attack, arguments, world, nonce, control=control)
        assert filled is not None
        opened = Effect(kind=EffectKind.OPENED, path=world.items[1].path)
        return Filled(steps=filled.steps, effects=(*filled.effects, opened))


def test_what_a_payload_was_only_seen_to_read_is_asked_of_the_tools_about_the_same_thing() -> None:
    """One call takes a file from outside in, and hands nothing out; another about the same place shows it."""
    taken: set[str] = set()

    def server(call: Call, world: World) -> Says:
        if call.item == "stage" and READ.id in value_of(call, "file"):
            taken.add(world.nonce)
            read = OpenedFile(path=world.items[1].path, how="read", ok=True, seq=7)
            more: dict[str, object] = {"files": (read,)}
            return Says("staged", more=more)
        return Says(world.items[1].secret if call.item == "changes" and world.nonce in taken else "nothing")

    tools = (tool("stage", "place", "file"), tool("other", "else"), tool("remove", "place"), tool("changes", "place"))
    talk = hold(server, *tools, kit=ReadingKit(payloads=(READ,)))
    (shown,) = [call for call in talk.of(Purpose.PAYLOAD) if call.step == 2]
    assert (shown.item, value_of(shown, "place")) == ("changes", "/place-0")
    proof = talk.of(Purpose.CONTROL, Purpose.DOCUMENTED, Purpose.CONFIRM)
    made = [(call.purpose, call.item) for call in proof]
    purposes = (Purpose.CONTROL, Purpose.DOCUMENTED, Purpose.CONFIRM, Purpose.CONFIRM)
    assert made == [(purpose, item) for purpose in purposes for item in ("stage", "changes")]
    assert len({call.world for call in proof}) == len(purposes)


def test_a_refusal_that_names_what_reads_a_place_brings_more_of_what_is_made_for_it() -> None:
    query = payload("quote", PayloadClass.SQL, EffectKind.COMPUTED)
    union = payload("union", PayloadClass.SQL, EffectKind.COMPUTED)

    class Reserved(SmallKit):
        """Keeps one payload back until something points to its class."""

        def attacks(self, subject, arguments, usage, world, boundaries, **more):  # type: ignore[no-untyped-def]
            made = super().attacks(subject, arguments, usage, world, boundaries, **more)
            seen = any("in-query" in uses for uses in usage.values())
            return tuple(attack for attack in made if seen or attack.payload is not union)

    def refuses(call: Call, world: World) -> Says:
        bad = call.purpose is Purpose.PAYLOAD
        return Says('near "!": syntax error' if bad else "[]", "tool-error" if bad else "answered")

    talk = hold(refuses, tool("find", "w"), kit=Reserved(payloads=(query, union)))
    assert [call.payload for call in talk.of(Purpose.PAYLOAD)] == [query.id, union.id]
    echoes = hold(
        lambda call, world: Says(f'no such thing: near "{value_of(call, "w")}', "tool-error"),
        tool("find", "w"),
        kit=Reserved(payloads=(query, union)),
    )
    assert [call.payload for call in echoes.of(Purpose.PAYLOAD)] == [query.id]


def test_a_tool_that_never_returns_gets_a_fresh_session_and_is_set_aside_in_the_end() -> None:
    def hangs(call: Call, world: World) -> Says:
        return Says("", "timeout", gone=True) if call.item == "slow" else Says()

    talk = hold(hangs, tool("slow", "path"), tool("quick", "path"), kit=SmallKit(payloads=(READ, READ_AGAIN, SHELL)))
    assert len([call for call in talk.calls if call.item == "slow"]) == 3
    assert talk.kinds.count("restart") == 3
    cells = {(cell.item, cell.state) for cell in talk.books.cells}
    assert ("slow", "target") in cells
    assert {state for item, state in cells if item == "quick"} == {"executed"}


def test_one_hang_is_seen_to_its_end_and_further_ones_are_waited_for_by_the_baseline() -> None:
    def hangs(call: Call, world: World) -> Says:
        if call.purpose is Purpose.BASELINE:
            return Says(more={"seconds": 0.5 if call.item == "a" else 0.01})
        return Says("", "timeout", gone=True)

    stands = payload("pattern", PayloadClass.EXHAUSTION, EffectKind.EXHAUSTED)
    talk = hold(hangs, tool("a", "path"), tool("b", "path"), kit=SmallKit(payloads=(READ, READ_AGAIN, SHELL, stands)))
    made = [(a.call.item, a.call.payload_class, a.patience) for a in talk.actions if a.call is not None]
    assert made[:2] == [("a", None, 0.0), ("b", None, 0.0)], "baselines have their full time"
    assert made[2][2] == 0.0, "the first that hangs has too"
    waits = {item: [w for name, c, w in made[3:] if name == item and c is not stands.payload_class] for item in "ab"}
    assert waits == {"a": [10.0, 10.0], "b": [8.0, 3.0, 3.0]}
    assert {w for _, c, w in made if c is stands.payload_class} == {0.0}, "a hang that is predicted is seen to its end"
    tried = {cell.payload_class: cell.state for cell in talk.books.cells if cell.item == "a"}
    assert tried[READ.payload_class] == "executed"


def test_a_target_that_does_not_come_up_again_ends_the_calls() -> None:
    talk = hold(lambda call, world: Says("", "closed", gone=True), tool("a", "path"), tool("b", "path"), comes_up=False)
    assert talk.kinds.count("restart") == 2
    assert len(talk.calls) == 1
    assert {(cell.item, cell.state) for cell in talk.books.cells} == {("a", "target"), ("b", "target")}


def test_a_session_that_is_over_is_replaced_before_the_first_call() -> None:
    talk = hold(benign, tool("read", "path"), usable=False)
    assert talk.kinds[1] == "restart"


def test_the_budget_is_shared_fairly_and_what_it_cuts_is_the_operators() -> None:
    talk = hold(benign, tool("a", "path"), tool("b", "path"), tool("c", "path"), call_budget=4)
    assert [call.item for call in talk.of(Purpose.PAYLOAD)] == ["a", "b", "c", "a"]
    assert {cell.state for cell in talk.books.cells} == {"executed", "operator"}


def test_what_there_was_no_time_for_is_a_gap_of_ours() -> None:
    talk = hold(benign, tool("a", "path"), tool("b", "path"), seconds=60.0, each=2.0, timeout=300.0)
    assert {cell.state for cell in talk.books.cells} <= {"executed", "limit"}
    assert "limit" in {cell.state for cell in talk.books.cells}


def test_the_class_that_the_baseline_points_to_comes_first_whatever_the_argument_is_called() -> None:
    def shell(call: Call, world: World) -> Says:
        run = {"path": "/bin/sh", "argv": ("/bin/sh", "-c", f"ls {value_of(call, 'q')}")}
        return Says(more={"executions": [run]})

    kit = SmallKit(payloads=(READ, READ_AGAIN, SHELL))
    talk = hold(shell, tool("t", "q"), kit=kit)
    assert talk.of(Purpose.PAYLOAD)[0].payload_class is PayloadClass.COMMAND_INJECTION
    talk = hold(benign, tool("t", "q"), kit=kit)
    assert talk.of(Purpose.PAYLOAD)[0].payload_class is PayloadClass.TRAVERSAL_READ


def test_only_what_is_allowed_is_called() -> None:
    talk = hold(benign, tool("a", "path"), tool("b", "path"), tool("ab", "path"), allow=("a", "*b"))
    assert {call.item for call in talk.calls} == {"a", "b", "ab"}
    talk = hold(benign, tool("a", "path"), tool("b", "path"), allow=("a",))
    assert {call.item for call in talk.calls} == {"a"}
    assert [(cell.item, cell.state) for cell in talk.books.cells if cell.item == "b"] == [("b", "operator")]


def test_an_unknown_name_is_said_with_the_names_there_are() -> None:
    whole = ListOutcome(kind=ItemKind.TOOL, pages=1, items=1, end=ListEnd.COMPLETE)
    surface = Surface(items=(tool("read_file", "path"),), lists=(whole,))
    with pytest.raises(UsageError, match="it has: read_file"):
        CallPlanner(RunOptions(allow=("read",)), surface, world(), SmallKit())


def test_prompts_resources_and_templates_are_called_in_their_own_way() -> None:
    prompt = Item(kind=ItemKind.PROMPT, name="greet", value={"name": "greet", "arguments": [{"name": "who"}]}, frame=1)
    resource = Item(kind=ItemKind.RESOURCE, name="memo://one", value={"uri": "memo://one"}, frame=1)
    template = Item(
        kind=ItemKind.RESOURCE_TEMPLATE, name="file:///{+path}", value={"uriTemplate": "file:///{+path}"}, frame=1
    )
    talk = hold(benign, prompt, resource, template, kit=SmallKit(payloads=(READ,)))
    methods = {(call.method, call.place) for call in talk.of(Purpose.PAYLOAD)}
    assert methods == {("prompts/get", "prompt-argument"), ("resources/read", "resource-uri")}
    uris = [call.params["uri"] for call in talk.of(Purpose.PAYLOAD) if call.item == template.name]
    assert uris
    assert str(uris[0]).startswith("file:///traversal-read/parent!")


def test_the_same_observations_give_the_same_calls() -> None:
    def once() -> Calls:
        return hold(escapes, tool("a", "path"), tool("b", "path", "q"), seed=7)

    assert [action.model_dump() for action in once().actions] == [action.model_dump() for action in once().actions]


def test_effects_that_prove_nothing_are_not_worth_clean_starts() -> None:
    opened = payload("opened", PayloadClass.TRAVERSAL_READ, EffectKind.OPENED)
    talk = hold(benign, tool("read", "path"), kit=SmallKit(payloads=(opened,)))
    assert talk.kinds.count("restart") == 0


def test_a_call_that_takes_the_planted_files_away_is_followed_by_a_clean_start() -> None:
    def server(call: Call, world: World) -> Says:
        gone = {"path": world.root, "how": "delete"}
        return Says(more={"files": [gone]}) if call.item == "delete_all" else Says()

    talk = hold(server, tool("delete_all", "path"), tool("read", "path"), kit=SmallKit(payloads=(READ,)))
    assert [call.item for call in talk.of(Purpose.BASELINE)] == ["read", "delete_all"]
    assert talk.kinds.count("restart") == 1
    assert len({call.world for call in talk.calls}) == 2


def test_completions_are_asked_for_where_they_are_declared() -> None:
    prompt = Item(kind=ItemKind.PROMPT, name="greet", value={"name": "greet", "arguments": [{"name": "who"}]}, frame=1)
    assert {call.method for call in hold(benign, prompt).calls} == {"prompts/get"}
    talk = hold(benign, prompt, capabilities={"completions": {}}, kit=SmallKit(payloads=()))
    asked = [call for call in talk.calls if call.method == "completion/complete"]
    assert [call.params for call in asked] == [
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "/who-0"}}
    ]
    assert [cell.item for cell in talk.books.cells] == ["greet", "greet who?"]


def test_a_tool_that_uses_the_network_is_tried_again_without_it_and_proven_there() -> None:
    """A fallback that runs a shell only where the network is dead: found, controlled and confirmed in that mode."""
    dead = READ.model_copy(update={"id": "traversal-read/when-dead", "network": "refuse"})
    connects: dict[str, object] = {"connections": [{"address": "203.0.113.9:443"}]}

    def server(call: Call, world: World) -> Says:
        return Says(world.items[1].secret if dead.id in value_of(call) else "fine", more=connects)

    kit = SmallKit(payloads=(READ, dead))
    talk = hold(server, tool("fetch", "path"), kit=kit, network="answer")
    modes = [action.network for action in talk.actions if action.kind is ActionKind.RESTART]
    assert modes == [NetworkChoice.REFUSE] * 3
    assert [call.payload for call in talk.of(Purpose.CONFIRM)] == [dead.id, dead.id]
    quiet = hold(benign, tool("read", "path"), kit=kit, network="answer")
    assert quiet.kinds.count("restart") == 0


def test_what_is_to_be_made_has_another_name_in_each_call() -> None:
    given: JsonObject = {"to": ["/w/made-0123ab.txt", "remade-0123ab"], "n": 1, "text": 'made-0123ab "quoted" \n'}
    one, other = renewed(given, "a" * 20), renewed(given, "b" * 20)
    assert one != other and one["n"] == 1
    assert renewed(given, "a" * 20) == one
    path, kept = cast("list[str]", one["to"])
    assert path.startswith("/w/made-") and path.endswith(".txt") and "0123ab" not in path
    assert kept == "remade-0123ab"


# A later clock


def test_what_succeeded_is_called_once_more_with_a_later_clock_and_nothing_else_is() -> None:
    def server(call: Call, world: World) -> Says:
        return Says() if call.item != "broken" else Says("no", "tool-error")

    talk = hold(server, tool("read", "path"), tool("broken", "path"), tool("list", "path"), later=True)
    number = next(n for n, action in enumerate(talk.actions) if action.days)
    first, *rest = talk.actions[number:]
    assert (first.kind, first.days) == (ActionKind.RESTART, 400)
    made = [action.call for action in rest if action.call is not None]
    assert [(call.purpose, call.item) for call in made] == [(Purpose.BASELINE, "read"), (Purpose.BASELINE, "list")]
    assert len(rest) == len(made) and {call.world for call in made} == {made[0].world}
    assert len({call.id for call in talk.calls}) == len(talk.calls)
    assert talk.kinds.index("conclude", 1) < number, "the books are closed before"


def test_the_budget_bounds_the_calls_with_a_later_clock() -> None:
    tools = [tool(name, "path") for name in ("one", "two", "three")]
    talk = hold(benign, *tools, later=True, call_budget=2)
    assert len(talk.calls[-2:]) == 2 and sum(action.days > 0 for action in talk.actions) == 1
    number = next(n for n, action in enumerate(talk.actions) if action.days)
    assert len(talk.actions) - number - 1 == 2


def test_no_later_life_without_a_call_that_succeeded_or_without_time_or_target() -> None:
    no = hold(lambda call, world: Says("no", "tool-error"), tool("read", "path"), later=True)
    short = hold(benign, tool("read", "path"), later=True, seconds=20.0, each=1.0)
    gone = hold(lambda call, world: Says(gone=True), tool("read", "path"), comes_up=False, later=True)
    for talk in (no, short, gone):
        assert not any(action.days for action in talk.actions)
