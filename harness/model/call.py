"""Calls of a target's items, what is predicted of each, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from harness.model.base import JsonObject, JsonValue, Record
from harness.model.event import EventBase
from harness.model.payload import Boundary, Effect, PayloadClass
from harness.model.world import World


class Purpose(StrEnum):
    """Why a call is made."""

    BASELINE = "baseline"  # valid and benign: should succeed
    PREPARE = "prepare"  # makes what a later call needs (an earlier step, an id)
    PAYLOAD = "payload"
    CONTROL = "control"  # the inert twin of a payload
    DOCUMENTED = "documented"  # documented use, which must not already grant the effect
    CONFIRM = "confirm"  # the payload again, with fresh nonces, in a clean start
    MINIMISE = "minimise"  # a smaller form of a confirmed payload
    REFUSAL = "refusal"  # benign, and what the server asks of its client meanwhile is refused


class ClientAnswer(Record):
    """What the client answers when the server asks it for something during a call.

    `number`: which of the requests of that `method` in the call it answers, from 1; 0 for all. `action`: `accept`, with
    `content` (the fields of a form; a model's text as `answer`), or a refusal, which is an error where the method
    knows no other.
    """

    method: str
    number: int = 0
    action: Literal["accept", "decline", "cancel"] = "accept"
    content: JsonObject = {}


class Asked(Record):
    """A request of the server to its client during a call, the `number`th of its method, and what was answered."""

    method: str
    number: int
    params: JsonObject = {}
    answer: ClientAnswer


class Call(Record):
    """One request, complete, and the prediction that goes with it. Written to plan.jsonl before it is sent.

    `id` is unique in the run (`c17`) and names the phase `call:<item>:<id>`. `method`: tools/call, resources/read,
    prompts/get, completion/complete. `item`: the tool's (prompt's …) name. `argument`: JSON pointer into the
    arguments where the payload stands, `place` what it is (see `Applies.places`). `about`: the id of the payload
    call that a control, confirmation or minimisation belongs to. `world`: nonce of the session's world. `answers`: what
    the client answers to what it is asked meanwhile; what is not among them gets a plausible answer. `into`: index of
    the answer that `argument` points into; None for the arguments.
    """

    id: str
    method: str = "tools/call"
    item: str
    params: JsonObject
    purpose: Purpose
    headers: dict[str, str] = {}
    payload: str = ""
    payload_class: PayloadClass | None = None
    cwe: int | None = None
    argument: str = ""
    place: str = "argument"
    nonce: str = ""
    effects: tuple[Effect, ...] = ()
    boundary: Boundary | None = None
    about: str = ""
    world: str = ""
    step: int = 1
    steps: int = 1
    answers: tuple[ClientAnswer, ...] = ()
    into: int | None = None

    @property
    def holder(self) -> JsonValue:
        """What `argument` points into."""
        if self.into is not None and self.into < len(self.answers):
            return self.answers[self.into].content
        return self.params.get("arguments", self.params)

    @property
    def asked(self) -> str:
        """The method in whose answer the payload stands; empty where it stands in the arguments."""
        return self.answers[self.into].method if self.into is not None and self.into < len(self.answers) else ""

    @property
    def given(self) -> JsonValue:
        """All that is sent with the call beside its headers: its parameters, and what is answered."""
        contents: list[JsonValue] = [answer.content for answer in self.answers if answer.content]
        return [self.params, *contents] if contents else self.params


class OpenedFile(Record):
    """A path that a call opened or changed. `how`: read, write, create, delete, rename, link, mkdir, chmod,
    access.
    """

    path: str
    how: str
    ok: bool = True
    claimed: bool = False
    seq: int = 0


class Execution(Record):
    """A program that a call executed, with its whole argument vector."""

    path: str
    argv: tuple[str, ...]
    ok: bool = True
    seq: int = 0


class Connection(Record):
    """An address that a call connected or sent to. `names`: under which the fake DNS had given it out. `flow`: its
    number, if one is known.
    """

    address: str
    names: tuple[str, ...] = ()
    text: str = ""
    flow: int | None = None
    seq: int = 0


class Outcome(Record):
    """What came of one call: the answer, and what the records hold between its two marks.

    `state`: answered (a result), tool-error (a result with `isError`), error (a JSON-RPC error), timeout, closed
    (the target is gone), unreadable. `text`: the texts of the result or the error, bounded; `size`: of the whole
    answer in bytes. The lists hold the target's own doings only, in order and bounded (`cut` says that something is
    missing). `complete`: the records were whole. `asked`: what the server asked its client for, bounded; known while
    the run goes on only.
    """

    call: str
    state: Literal["answered", "tool-error", "error", "timeout", "closed", "unreadable", "unsent"]
    text: str = ""
    size: int = 0
    code: int | None = None
    seconds: float = 0.0
    files: tuple[OpenedFile, ...] = ()
    executions: tuple[Execution, ...] = ()
    connections: tuple[Connection, ...] = ()
    names: tuple[str, ...] = ()
    memory_bytes: int | None = None
    cut: bool = False
    complete: bool = True
    asked: tuple[Asked, ...] = ()


class Cell(Record):
    """One field of the plan of calls: a class of payloads at one argument of an item, and whether it was executed.

    `state`: `executed`; `operator`: not asked for (outside of the default plan, or cut by `--call-budget`); `limit`:
    planned, and no time or room was left; `target`: the item could not be reached, because its baseline failed or
    the target was gone. `detail`: why, in the words of a report. A cell without a class stands for the baseline.
    """

    item: str
    argument: str = ""
    payload_class: PayloadClass | None = None
    state: Literal["executed", "operator", "limit", "target"]
    detail: str = ""


class CallBooks(Record):
    """Every cell of the plan of calls, each once."""

    cells: tuple[Cell, ...] = ()


class WorldEvent(EventBase):
    """The world of a session was planted. `network`: what its gateway does (answer, refuse, none), if it is known."""

    kind: Literal["world"] = "world"
    world: World
    network: str = ""


class BoundariesEvent(EventBase):
    """The boundaries of this target, found before its calls."""

    kind: Literal["boundaries"] = "boundaries"
    boundaries: tuple[Boundary, ...]


class CallEvent(EventBase):
    """A call is about to be made, with its prediction."""

    kind: Literal["call"] = "call"
    call: Call


class CallBooksEvent(EventBase):
    """All calls that there was time for were made."""

    kind: Literal["call-books"] = "call-books"
    books: CallBooks


class CallEndEvent(EventBase):
    """A call ended like this; `frame`: number of the frame with its answer, `state` and the rest as in `Outcome`."""

    kind: Literal["call-end"] = "call-end"
    call: str
    state: str
    text: str = ""
    size: int = 0
    code: int | None = None
    seconds: float = 0.0
    frame: int | None = None
    memory_bytes: int | None = None
