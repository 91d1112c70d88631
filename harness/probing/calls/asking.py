"""What a server asks its client for while it is called: found in the baselines, refused once in each way, and a place
for payloads from then on. Sans I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.model.base import JsonObject, JsonValue
from harness.model.call import Asked, Call, ClientAnswer, Outcome, Purpose
from harness.model.plan import Action
from harness.probing.answers import PLACES, REFUSALS
from harness.probing.calls.calling import Asking, Calling
from harness.probing.calls.state import State
from harness.probing.calls.subjects import Subject

#: Requests during one call whose answers are exercised.
MOST_ASKS = 4
#: A refusal that ends the server, or is not answered, is tried once more.
MOST_REFUSALS = 2
#: Characters of an item's words that are looked at, and what speaks of a client that is asked for something.
MOST_WORDS = 8_000
_ASKS = re.compile(
    r"elicit|\bsampling\b|clarif|input_required|\bask(?:s|ing)? (?:the )?(?:user|model|client)", re.IGNORECASE
)
_BROKEN = frozenset({"closed", "timeout"})


class Answering(Calling):
    """The part of the planner that is about answers. `_every`: all that can be called."""

    _every: tuple[Subject, ...]

    def _baseline(self, state: State) -> Iterator[Action]:
        """Try arguments until some succeed."""
        raise NotImplementedError

    def _asks(self, states: list[State]) -> Iterator[Action]:
        """For each subject that asked for something: the states of its answers, which join `states`, and refusals."""
        for parent in list(states):
            yield from self._invite(parent)
            known: set[tuple[str, int]] = set()
            outcome: Outcome | None = parent.outcome
            while len(known) < MOST_ASKS and (asked := _unknown(outcome, known)) is not None:
                known.add((asked.method, asked.number))
                state = self._answered(parent, asked, outcome)
                states.append(state)
                if not parent.reached and outcome is not None:
                    state.tried.append((asked.answer.content, outcome.text[:2000]))
                    yield from self._baseline(state)
                    self._take_over(parent, state)
                    outcome = state.outcome
            for method in dict.fromkeys(method for method, _ in known):
                for answer in REFUSALS[method]:
                    yield from self._refuse(parent, answer)

    def _invite(self, parent: State) -> Iterator[Action]:
        """Where an item that asked for nothing speaks of asking, once more with all that it can be told to do."""
        subject, arguments = parent.subject, self._arguments(parent)
        if not parent.reached or parent.outcome is None or parent.outcome.asked or self._gone or self._short():
            return
        said = f"{subject.description} {subject.schema}"[:MOST_WORDS]
        switches = {name: True for name in _switches(subject.schema) if arguments.get(name) is not True}
        if not switches or _ASKS.search(said) is None:
            return
        yield from self._renew()
        parent.arguments = self._arguments(parent)
        more: JsonObject = {**parent.arguments, **switches}
        outcome = yield from self._send(parent, Purpose.BASELINE, more)
        if outcome is not None and outcome.asked and outcome.state == "answered":
            parent.arguments, parent.outcome = more, outcome

    def _answered(self, parent: State, asked: Asked, outcome: Outcome | None) -> State:
        """The state of one answer: what was answered by itself is its baseline."""
        state = State(
            parent.subject.asking(asked),
            reached=parent.reached,
            reason=parent.reason,
            arguments=asked.answer.content,
            outcome=outcome,
            world=self._world if parent.world is None else parent.world,
        )
        self._states.append(state)
        self._every = (*self._every, state.subject)
        return state

    def _take_over(self, parent: State, state: State) -> None:
        """An answer with which the call succeeded is given from now on."""
        subject = state.subject
        if state.reached and state.arguments is not None and state.outcome is not None and parent.arguments is not None:
            content = ClientAnswer(method=subject.asks, number=subject.number, content=state.arguments)
            parent.answers = (*parent.answers, content)
            parent.learn(parent.arguments, state.outcome)
            parent.world = state.world

    def _refuse(self, parent: State, answer: ClientAnswer) -> Iterator[Action]:
        """The benign call, and what is asked for meanwhile refused; once more where the server does not get over it."""
        for _ in range(MOST_REFUSALS):
            if self._gone or self._short() or parent.set_aside:
                return
            yield from self._renew()
            outcome = yield from self._refused(parent, answer)
            if outcome is None or outcome.state not in _BROKEN:
                return

    def _refused(self, parent: State, answer: ClientAnswer) -> Asking:
        subject = parent.subject
        params, _, _ = self._message(subject, self._arguments(parent))
        call = Call(
            id=self._make.call_id(),
            method=subject.method,
            item=subject.name,
            params=params,
            purpose=Purpose.REFUSAL,
            world=self._world.nonce,
            answers=(answer,),
        )
        return (yield from self._do(parent, call))


def _switches(schema: JsonValue) -> Iterator[str]:
    """The names of what can be switched on."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, field in properties.items() if isinstance(properties, dict) else ():
        if isinstance(field, dict) and field.get("type") == "boolean":
            yield name


def _unknown(outcome: Outcome | None, known: set[tuple[str, int]]) -> Asked | None:
    """The first request during a call that was answered with something, and is not known yet."""
    for asked in outcome.asked if outcome is not None else ():
        if asked.method in PLACES and asked.answer.action == "accept" and (asked.method, asked.number) not in known:
            return asked
    return None
