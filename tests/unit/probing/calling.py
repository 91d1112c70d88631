"""Conversations with the planner of calls, without a container: a server as a function, and a kit of a few payloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.model.base import JsonObject, JsonValue
from harness.model.call import Call, CallBooks, Outcome, Purpose
from harness.model.options import ActiveLevel, NetworkChoice, RunOptions
from harness.model.payload import Boundary, BoundaryKind, Effect, EffectKind, EffectTemplate, Payload, PayloadClass
from harness.model.plan import Action, ActionKind, Observation
from harness.model.surface import Item, ItemKind, Surface
from harness.model.world import PlantedItem, World
from harness.probing.calls.kit import Attack, Filled, Known, Rank, Tried, Usage
from harness.probing.calls.planner import CallPlanner
from harness.probing.calls.subjects import Subject
from harness.probing.payloads.matching import observed

ROOT = Boundary(kind=BoundaryKind.ROOT, source="arguments", value="/home/user/workspace", text="/home/user/workspace")
DATA = Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="convention")


def world(number: int = 1) -> World:
    """The world of the session with this number."""
    secret = PlantedItem(
        name="outside/account.txt",
        path="/home/user/private/account.txt",
        kind="file",
        where="outside",
        secret=f"never-sent-{number:04d}",
    )
    inside = PlantedItem(name="inside/notes.txt", path="/home/user/workspace/notes.txt", kind="file", where="inside")
    return World(
        nonce=f"{number:020d}",
        root="/home/user/workspace",
        outside="/home/user/private",
        roots=("/home/user/workspace",),
        items=(inside, secret),
    )


def tool(name: str, *arguments: str, **more: JsonValue) -> Item:
    schema: JsonObject = {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in arguments},
        "required": list(arguments),
    }
    return Item(kind=ItemKind.TOOL, name=name, value={"name": name, "inputSchema": schema, **more}, frame=1)


def payload(name: str, payload_class: PayloadClass, kind: EffectKind, template: str = "{x}") -> Payload:
    return Payload(
        id=f"{payload_class}/{name}",
        payload_class=payload_class,
        title=name,
        cwe=22,
        boundary=BoundaryKind.ROOT,
        template=template,
        control="inert",
        effects=(EffectTemplate(kind=kind),),
    )


READ = payload("parent", PayloadClass.TRAVERSAL_READ, EffectKind.DISCLOSED)
READ_AGAIN = payload("absolute", PayloadClass.TRAVERSAL_READ, EffectKind.DISCLOSED)
SHELL = payload("semicolon", PayloadClass.COMMAND_INJECTION, EffectKind.COMPUTED)


@dataclass
class SmallKit:
    """Gives each argument its name as a value; a payload stands there as its id and nonce."""

    payloads: Sequence[Payload] = (READ, SHELL)
    candidates: int = 2

    def baseline(self, subject: Subject, world: World, known: Known, tried: Tried) -> JsonObject | None:
        if len(tried) >= self.candidates and not known:
            return None
        properties = subject.schema.get("properties", {}) if isinstance(subject.schema, dict) else {}
        assert isinstance(properties, dict)
        made: JsonObject = {name: known.get(name, (f"/{name}-{len(tried)}",))[0] for name in properties}
        return made if made not in [arguments for arguments, _ in tried] else None

    def attacks(
        self,
        subject: Subject,
        arguments: JsonObject,
        usage: Usage,
        world: World,
        boundaries: tuple[Boundary, ...],
        *,
        network: NetworkChoice,
        again: bool = False,
    ) -> tuple[Attack, ...]:
        return tuple(
            Attack(
                p,
                f"/{name}",
                subject.place,
                ROOT,
                Rank.OBSERVED if observed(p, usage.get(f"/{name}", ())) else Rank.ANY,
            )
            for name in arguments
            for p in self.payloads
            if p.network in ("", network) and not (again and p.network == "")
        )

    def fill(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str, *, control: bool
    ) -> Filled | None:
        value = "inert" if control else f"{attack.payload.id}!{nonce}"
        secret = world.items[1].secret
        kind = attack.payload.effects[0].kind
        effect = Effect(kind=kind, text=secret if kind is EffectKind.DISCLOSED else f"computed-{nonce}")
        return Filled(steps=({**arguments, attack.argument[1:]: value},), effects=(effect,))

    def documented(
        self, subject: Subject, attack: Attack, arguments: JsonObject, world: World, nonce: str
    ) -> JsonObject | None:
        return arguments


@dataclass(frozen=True)
class Says:
    """What a server says to one call. `state` as in `Outcome`; `gone`: the session can't go on."""

    text: str = "fine"
    state: str = "answered"
    gone: bool = False
    more: dict[str, object] = field(default_factory=dict)


#: A server: what it says to a call in this world.
Server = Callable[[Call, World], Says]


@dataclass
class Calls:
    """A whole conversation."""

    actions: list[Action] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    worlds: int = 1

    def of(self, *purposes: Purpose) -> list[Call]:
        return [call for call in self.calls if call.purpose in purposes]

    @property
    def books(self) -> CallBooks:
        found = [action.call_books for action in self.actions if action.call_books is not None]
        assert len(found) == 1
        return found[0]

    @property
    def kinds(self) -> list[str]:
        return [action.kind.value for action in self.actions]

    def brief(self) -> list[str]:
        """The calls as `purpose item payload`."""
        return [f"{call.purpose} {call.item} {call.payload}".strip() for call in self.calls]


def hold(
    server: Server,
    *items: Item,
    allow: tuple[str, ...] = ("*",),
    kit: SmallKit | None = None,
    seconds: float = 1000.0,
    each: float = 0.0,
    comes_up: bool | Callable[[Action], bool] = True,
    usable: bool = True,
    capabilities: JsonObject | None = None,
    later: bool = False,
    **options: object,
) -> Calls:
    """Hold the conversation to its end. `seconds`: of the run, of which `each` goes by with every action; `later`: with
    what comes last, in a life with a later clock.
    """
    surface = Surface(items=items, capabilities=capabilities or {})
    given = RunOptions.model_validate({"active": ActiveLevel.TOOL_CALLS, "allow": allow, **options})
    planner = CallPlanner(given, surface, world(), kit or SmallKit(), boundaries=(ROOT, DATA), usable=usable)
    found, now, observation, left = Calls(), world(), None, seconds
    while True:
        action = planner.next(observation)
        if action is None:
            if not later:
                return found
            later, planner, observation = False, planner.later(), None
            continue
        assert len(found.actions) < 2000
        found.actions.append(action)
        left -= each
        seen: dict[str, object] = {"number": action.number, "usable": True, "left": left}
        if action.kind is ActionKind.RESTART:
            found.worlds += 1
            now = world(found.worlds)
            usable = comes_up(action) if callable(comes_up) else comes_up
            seen |= {"usable": usable, "world": now}
        elif action.kind is ActionKind.CALL:
            assert action.call is not None
            assert action.call.world == now.nonce
            found.calls.append(action.call)
            says = server(action.call, now)
            outcome = {"call": action.call.id, "state": says.state, "text": says.text, **says.more}
            seen |= {"usable": not says.gone, "outcome": Outcome.model_validate(outcome)}
        observation = Observation.model_validate(seen)


def value_of(call: Call, argument: str = "path") -> str:
    """The value of one argument of a tool call."""
    arguments = call.params["arguments"]
    assert isinstance(arguments, dict)
    value = arguments.get(argument, "")
    assert isinstance(value, str)
    return value
