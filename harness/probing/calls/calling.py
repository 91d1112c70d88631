"""Calls and clean sessions: the part of the conversation that the plan is made of. Sans I/O."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from harness.model.base import JsonObject
from harness.model.call import Call, ClientAnswer, Outcome, Purpose
from harness.model.options import NetworkChoice, RunOptions
from harness.model.payload import EffectKind
from harness.model.plan import Action, ActionKind, Adjustment, Observation
from harness.model.world import World
from harness.probing.calls.carried import Carried
from harness.probing.calls.header_kit import PLACE, HeaderKit
from harness.probing.calls.kit import Attack, Filled, Kit
from harness.probing.calls.state import Maker, State, moved, renewed, wears
from harness.probing.calls.subjects import Subject
from harness.probing.drift import DAYS
from harness.probing.starting.obstacles import is_sealed

#: Bounds. Clean starts cost about a second each.
MOST_RESTARTS = 80
#: Clean starts only because a call took away what was planted.
MOST_RENEWALS = 12
#: Seconds of the run's time that are kept for what was seen, beside a share of it.
KEPT_SECONDS = 5.0
KEPT_SHARE = 0.15

#: Parts of the conversation: they yield actions and return what came of them.
Asking = Generator[Action, None, Outcome | None]
Trying = Generator[Action, None, bool]


class Calling:
    """Calls and clean sessions, and what is known of the run meanwhile. The base of the planner.

    `world` is that of the session at hand. `_gone`: why no call can be made any more, empty while one can.
    """

    def __init__(self, options: RunOptions, world: World, kit: Kit, headers: HeaderKit | None = None) -> None:
        self._options = options
        self._kit = kit
        self._headers = headers
        self._world = world
        self._states: list[State] = []
        self._make = Maker(options.seed)
        self._carried = Carried()
        self._left: float | None = None
        self._restarts = 0
        self._worn = False
        self._hung = False
        self._wear = 0
        self._network = options.network
        self._days = 0
        self._unsealed = self._unsealing = False
        self._gone = ""
        self._seen: Observation | None = None

    def _fill(self, state: State, attack: Attack, *, control: bool) -> tuple[Filled | None, str]:
        nonce = self._make.nonce(self._world.nonce)
        arguments = renewed(self._arguments(state), nonce)
        if self._headers is not None and attack.place == PLACE:
            return self._headers.fill(attack, arguments, self._world, nonce, control=control), nonce
        return self._kit.fill(state.subject, attack, arguments, self._world, nonce, control=control), nonce

    def _arguments(self, state: State) -> JsonObject:
        """The subject's benign arguments in the world at hand."""
        if state.arguments is None or state.world is None:
            return {}
        return moved(state.arguments, state.world, self._world)

    def _message(
        self, subject: Subject, arguments: JsonObject, nonce: str = ""
    ) -> tuple[JsonObject, tuple[ClientAnswer, ...], int | None]:
        """The parameters of a call with these arguments, what is answered meanwhile, and which of the answers they are.

        Where a subject is what the client answers, the call is of what asks for that, with its benign arguments.
        """
        asking = self._state(subject.within or subject)
        old = asking.world or self._world
        answers = tuple(a.model_copy(update={"content": moved(a.content, old, self._world)}) for a in asking.answers)
        if subject.within is None:
            return subject.params(arguments), answers, None
        own = ClientAnswer(method=subject.asks, number=subject.number, content=arguments)
        others = (answer for answer in answers if (answer.method, answer.number) != (own.method, own.number))
        benign = renewed(self._arguments(asking), nonce) if nonce else self._arguments(asking)
        return subject.within.params(benign), (own, *others), 0

    def _call_of(
        self,
        subject: Subject,
        purpose: Purpose,
        arguments: JsonObject,
        attack: Attack,
        filled: Filled,
        nonce: str,
        *,
        step: int,
        steps: int,
        about: str = "",
    ) -> Call:
        params, answers, into = self._message(subject, arguments, nonce)
        return Call(
            id=self._make.call_id(),
            method=subject.method,
            item=subject.name,
            params=params,
            answers=answers,
            into=into,
            purpose=purpose,
            headers={**self._state(subject).headers, **filled.headers},
            payload=attack.payload.id,
            payload_class=attack.payload.payload_class,
            cwe=attack.payload.cwe,
            argument=attack.argument,
            place=attack.place,
            nonce=nonce,
            effects=filled.effects,
            boundary=attack.boundary,
            about=about,
            world=self._world.nonce,
            step=step,
            steps=steps,
        )

    def _send(self, state: State, purpose: Purpose, arguments: JsonObject) -> Asking:
        """A call without a payload."""
        subject = state.subject
        params, answers, into = self._message(subject, arguments)
        call = Call(
            id=self._make.call_id(),
            method=subject.method,
            item=subject.name,
            params=params,
            answers=answers,
            into=into,
            purpose=purpose,
            headers=dict(state.headers),
            world=self._world.nonce,
        )
        state.world = self._world
        return (yield from self._do(state, call))

    def _do(self, state: State, call: Call) -> Asking:
        """Make a call. None when nothing came of it and nothing can: the time is over, or the target is gone."""
        if self._gone:
            return None
        patience = self._patience(state, call)
        yield Action(number=0, kind=ActionKind.CALL, call=call, patience=patience)
        seen = self._seen
        if seen is None or seen.outcome is None or seen.outcome.state == "unsent":
            self._gone = (seen.detail if seen is not None else "") or "the call could not be made"
            return None
        state.calls += 1
        outcome = seen.outcome
        self._hung |= outcome.state == "timeout" and not patience
        self._worn |= wears(outcome, self._world)
        if not seen.usable:
            state.broke(call.payload_class)
            yield from self._restart()
        return outcome

    def _patience(self, state: State, call: Call) -> float:
        """How long the answer is waited for, in seconds; 0: as the option says.

        One hang is seen to the end, so that it can be told as one; what is predicted to hang always is.
        """
        predicted = any(effect.kind is EffectKind.EXHAUSTED for effect in call.effects)
        if not self._hung or predicted or call.purpose is Purpose.BASELINE:
            return 0.0
        return state.patience(first=state.breaks == 0 or call.purpose is not Purpose.PAYLOAD)

    def _renew(self) -> Iterator[Action]:
        """Where calls took away what was planted for others, a clean session with a whole world."""
        if self._worn and self._wear < MOST_RENEWALS and not self._gone:
            self._wear += 1
            yield from self._restart()

    def _restart(self, network: NetworkChoice | None = None) -> Trying:
        """A clean session in place of the one at hand; one more try where it does not come up. False: it is gone.

        `network`: the mode from here on.
        """
        self._network = network or self._network
        seen: Observation | None = None
        for _ in range(2):
            if self._restarts >= MOST_RESTARTS:
                self._gone = f"it was started anew {MOST_RESTARTS} times"
                return False
            self._restarts += 1
            self._worn = False
            mode = self._network if self._network is not self._options.network else None
            adjustment = Adjustment(unsealed=self._unsealed)
            yield Action(number=0, kind=ActionKind.RESTART, network=mode, days=self._days, adjustment=adjustment)
            self._carried.forget()
            seen = self._seen
            if seen is not None and seen.world is not None:
                self._world = seen.world
            if seen is not None and seen.usable:
                return True
            if seen is not None and seen.detail:
                break
        self._gone = (seen.detail if seen is not None else "") or "it did not start again"
        return False

    def _later(self, states: Sequence[State]) -> Iterator[Action]:
        """What succeeded, once more in a life with a later clock: what a tool does only after a date shows then."""
        reached = [state for state in states if state.reached and not state.set_aside][: self._options.call_budget]
        if not reached or self._gone or self._short():
            return
        self._days = DAYS
        if not (yield from self._restart(self._options.network)):
            return
        for state in reached:
            if self._short():
                return
            nonce = self._make.nonce(self._world.nonce)
            yield from self._send(state, Purpose.BASELINE, renewed(self._arguments(state), nonce))

    def _unseal(self, outcome: Outcome) -> Trying:
        """Where a tool fails because it writes into its installation, a session in which it can; once."""
        if self._unsealing or self._gone or not is_sealed(outcome.text):
            return False
        self._unsealing = self._unsealed = True
        if (yield from self._restart()):
            return True
        self._unsealed, self._gone = False, ""  # as it was, then
        yield from self._restart()
        return False

    def _short(self) -> bool:
        """Whether what is left of the time is kept for proofs."""
        return self._left is not None and self._left < KEPT_SECONDS + KEPT_SHARE * self._options.timeout

    def _state(self, subject: Subject) -> State:
        return next(state for state in self._states if state.subject is subject)
