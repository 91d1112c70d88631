# error texts are kept as they were printed
"""Conversations with the planner of starts, without a container: what a server prints in, what is tried next out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.model.options import RunOptions
from harness.model.plan import Action, ActionKind, Adjustment, Observation
from harness.probing.starting import StartFacts, StartPlanner

HOME = "/home/user"
WORKSPACE = "/home/user/workspace"


@dataclass(frozen=True)
class Shown:
    """What one attempt showed. `tools`: listed, when it was answered."""

    stderr: str = ""
    output: tuple[str, ...] = ()
    code: int | None = 1
    silent: bool = False
    tools: int | None = None
    refusal: str = ""
    failed_lists: int = 0


#: A server: what it shows when it is started with this adjustment.
Server = Callable[[Adjustment], Shown]
STARTED = Shown(code=None, tools=3)


@dataclass
class Talk:
    """A whole conversation: every action, and the attempts among them."""

    actions: list[Action] = field(default_factory=list)

    @property
    def attempts(self) -> list[Action]:
        return [action for action in self.actions if action.kind is ActionKind.START]

    @property
    def last(self) -> Adjustment:
        return self.attempts[-1].adjustment

    @property
    def notes(self) -> str:
        return "\n".join(note for action in self.actions for note in action.notes)

    @property
    def kinds(self) -> list[str]:
        return [action.kind.value for action in self.actions]


def facts(**more: object) -> StartFacts:
    given: dict[str, object] = {
        "argv": ("/app/bin/server",),
        "home": HOME,
        "workspace": WORKSPACE,
        "seed": "0f" * 10,
    }
    return StartFacts(**(given | more))  # type: ignore[arg-type]


def talk(
    server: Server,
    *,
    source: tuple[str, ...] | None = None,
    stock_client: bool = False,
    can: bool = True,
    **more: object,
) -> Talk:
    """Hold the conversation to its end. `source`: variables that its source reads; `can`: renewal is possible."""
    known = facts(readable=source is not None, **more)
    planner = StartPlanner(RunOptions(stock_client=stock_client), known)
    found, observation, shown = Talk(), None, STARTED
    while (action := planner.next(observation)) is not None:
        found.actions.append(action)
        assert len(found.actions) < 100
        usable = True
        extra: dict[str, object] = {}
        if action.kind is ActionKind.START:
            usable = can or not action.adjustment.of_its_time
            shown = server(action.adjustment)
        elif action.kind is ActionKind.DISCOVER:
            usable = shown.tools is not None
            extra = {"tools": shown.tools, "failed_lists": shown.failed_lists}
        elif action.kind is ActionKind.STOP:
            usable = False
            extra = {
                "stderr": shown.stderr,
                "output": shown.output,
                "exit_code": shown.code,
                "silent": shown.silent,
                "refusal": shown.refusal,
            }
        elif action.kind is ActionKind.READ_SOURCE:
            extra = {"variables": source}
        observation = Observation.model_validate({"number": action.number, "usable": usable, **extra})
    return found


def needs(text: str, satisfied: Callable[[Adjustment], bool], **shown: object) -> Server:
    """A server that prints `text` and ends until it is started with what it needs."""
    return lambda adjustment: STARTED if satisfied(adjustment) else Shown(stderr=text, **shown)  # type: ignore[arg-type]
