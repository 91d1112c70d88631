"""The plan of the calls: baselines, then payloads in a fair order, then what a seen effect needs to become a proof.

A conversation without I/O: observations in, next action out, the same for the same seed, target and observations.
A session that can't go on is replaced by a clean one; a target that can't be started again ends the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.model.base import JsonObject
from harness.model.call import Call, Outcome, Purpose
from harness.model.options import NetworkChoice, RunOptions
from harness.model.payload import Boundary, Effect, EffectKind
from harness.model.plan import Action, ActionKind, Observation
from harness.model.surface import Surface
from harness.model.world import World
from harness.probing.calls.asking import Answering
from harness.probing.calls.books import books_of, reason_of
from harness.probing.calls.calling import KEPT_SECONDS, Trying
from harness.probing.calls.carried import followers, handed_out
from harness.probing.calls.header_kit import PLACE, HeaderKit
from harness.probing.calls.kit import Attack, Filled, Kit, Rank
from harness.probing.calls.schedule import Cell, Schedule, sparing
from harness.probing.calls.state import State, gentle_first, harsh, renewed
from harness.probing.calls.subjects import Subject, allowed, check_names, subjects_of
from harness.probing.calls.usage import reactions, usage_of
from harness.probing.oracle import Case, hits
from harness.probing.oracle.case import Need

#: Bounds of a plan.
MOST_CANDIDATES = 5
#: Calls that follow a payload with a value that its result handed out.
MOST_FOLLOWERS = 2
#: Calls of other tools that may show what a payload was only seen to read.
MOST_SHOWING = 6
#: So many cases are carried to their ends; of one item and class only the first is.
MOST_CASES = 40

#: What a further call can bring to light.
_LASTING = frozenset(kind for kind in EffectKind if Effect(kind=kind).proves)


@dataclass(frozen=True)
class Pursued:
    """A case, and the attack that it came from."""

    case: Case
    state: State
    attack: Attack
    network: NetworkChoice


class CallPlanner(Answering):
    """Made for one run, on a session that was greeted. `next(observation)` answers with the next action.

    `boundaries` were found beforehand; `world` is that of the session at hand. `usable`: whether that session goes on.
    `headers`: what is tried in headers, over HTTP.
    Raises UsageError at once for an allowed name that matches nothing the server has.
    """

    def __init__(
        self,
        options: RunOptions,
        surface: Surface,
        world: World,
        kit: Kit,
        *,
        boundaries: tuple[Boundary, ...] = (),
        usable: bool = True,
        headers: HeaderKit | None = None,
    ) -> None:
        check_names(surface, options.allow)
        super().__init__(options, world, kit, headers)
        self._boundaries = boundaries
        self._usable = usable
        self._every = subjects_of(surface)
        self._states = [State(subject) for subject in allowed(self._every, options.allow)]
        self._schedule = Schedule()
        self._pursued: list[Pursued] = []
        self._spent = 0
        self._steps = self._conversation()

    def next(self, observation: Observation | None) -> Action | None:
        """The action to do now, given what came of the last one (None at the beginning)."""
        self._seen = observation
        if observation is not None and observation.left is not None:
            self._left = observation.left
        return next(self._steps, None)

    def later(self) -> CallPlanner:
        """The plan that is made of this one once it is over: what succeeded, once more with a later clock."""
        self._steps = self._later(gentle_first(self._states))
        return self

    def _conversation(self) -> Iterator[Action]:
        yield Action(number=0, kind=ActionKind.CONCLUDE, boundaries=self._boundaries)
        if not self._usable:
            yield from self._restart()
        gentle = gentle_first(self._states)
        for state in gentle:
            yield from self._baseline(state)
        for state in gentle:  # what the others handed out may be what one lacked
            if not state.reached and self._carried.values:
                yield from self._baseline(state)
        yield from self._asks(gentle)
        for state in gentle:
            self._plan(state)
        self._plan_headers([state for state in gentle if state.subject.within is None])
        yield from self._attacks()
        if self._options.network is NetworkChoice.ANSWER:
            for state in gentle:
                if state.outcome is not None and (state.outcome.connections or state.outcome.names):
                    self._plan(state, NetworkChoice.REFUSE)  # a dead network can lead it to another way
            yield from self._attacks(NetworkChoice.REFUSE)
        for pursued in self._pursued:
            yield from self._pursue(pursued)
        books = books_of(self._every, self._states, self._schedule.cells.values(), gone=self._gone)
        yield Action(number=0, kind=ActionKind.CONCLUDE, call_books=books)

    # Baselines

    def _baseline(self, state: State) -> Iterator[Action]:
        """Try arguments until some succeed; the first reason that it gives is kept."""
        for _ in range(MOST_CANDIDATES):
            if self._gone or state.set_aside or self._short():
                return
            yield from self._renew()
            arguments = self._kit.baseline(state.subject, self._world, self._carried.values, tuple(state.tried))
            if arguments is None or any(arguments == tried for tried, _ in state.tried):
                state.reason = state.reason or "no arguments could be made for its schema"
                return
            outcome = yield from self._send(state, Purpose.BASELINE, arguments)
            if outcome is None:
                return
            state.learn(arguments, outcome)
            if state.reached:
                self._carried.learn(outcome.text)
                return
            if (yield from self._unseal(outcome)):
                continue  # the same arguments again
            state.reason = state.reason or reason_of(outcome)
            if self._headers is not None and (asked := self._headers.hear(outcome.text, self._world)):
                fresh = asked.keys() - state.headers.keys()
                state.headers |= asked
                if fresh:
                    continue  # the same arguments again, beside what it asked for
            state.tried.append((arguments, outcome.text[:2000]))

    def _plan(self, state: State, network: NetworkChoice | None = None) -> None:
        """Plan the attacks on what the baseline showed; where it failed, on what the best of the tries showed."""
        attacks = self._attacks_on(state, {}, network)
        self._schedule.add(state, sparing(attacks) if state.subject.task else attacks)

    def _plan_headers(self, states: Sequence[State]) -> None:
        """Plan the attacks by headers, with what worked first."""
        if self._headers is None:
            return
        called = sorted((s for s in states if s.arguments is not None), key=lambda state: not state.reached)
        planned: dict[Subject, list[Attack]] = {}
        for subject, attack in self._headers.attacks(
            [state.subject for state in called], self._world, self._boundaries, network=self._options.network
        ):
            planned.setdefault(subject, []).append(attack)
        for subject, attacks in planned.items():
            self._schedule.add(self._state(subject), attacks)

    def _attacks_on(
        self, state: State, shown: Mapping[str, frozenset[str]], network: NetworkChoice | None = None
    ) -> tuple[Attack, ...]:
        """The attacks on a subject; `shown` joins what the baseline showed of a place."""
        if state.arguments is None or state.outcome is None:
            return ()
        usage = usage_of(state.arguments, state.outcome, self._world.root)
        for pointer, uses in shown.items():
            usage[pointer] = usage.get(pointer, frozenset()) | uses
        return self._kit.attacks(
            state.subject,
            self._arguments(state),
            usage,
            self._world,
            self._boundaries,
            network=network or self._options.network,
            again=network is not None,
        )

    def _react(self, state: State, attack: Attack, sent: JsonObject, outcome: Outcome) -> None:
        """Where a refusal shows what reads the place, plan more of what is made for that."""
        if state.outcome is None:
            return
        new = reactions(sent, outcome, state.outcome) - state.reactions.get(attack.argument, frozenset())
        if not new:
            return
        state.reactions[attack.argument] = new | state.reactions.get(attack.argument, frozenset())
        more = [
            other
            for other in self._attacks_on(state, {attack.argument: new})
            if other.argument == attack.argument and other.rank is Rank.OBSERVED
        ]
        self._schedule.add(state, [other for other in more if not self._schedule.holds(state, other)])

    # Attacks

    def _attacks(self, network: NetworkChoice | None = None) -> Iterator[Action]:
        """What is planned, in turn; in a mode of the network of its own where one is given."""
        for cell, attack in self._schedule.turns():
            if self._stop(cell):
                continue
            if network is not None and network is not self._network:
                yield from self._restart(network)
            else:
                yield from self._renew()
            if not self._stop(cell):
                yield from self._attack(cell, attack)

    def _stop(self, cell: Cell) -> bool:
        """Whether the rest of this cell stays undone, and why."""
        budget = self._options.call_budget
        if budget is not None and self._spent >= budget:
            cell.left("operator", "cut by --call-budget")
        elif self._gone:
            cell.left("target", self._gone)
        elif cell.state.set_aside:
            cell.left("target", "it hung or crashed again and again")
        elif cell.state.breaks_on(cell.payload_class):
            cell.left("target", "payloads of this class make it hang or crash")
        elif self._short():
            cell.left("limit", "the time of the run was over")
        else:
            return False
        return True

    def _attack(self, cell: Cell, attack: Attack) -> Iterator[Action]:
        """One payload: its steps, what they hand out followed up, and a case where a predicted effect is seen."""
        state = cell.state
        filled, nonce = self._fill(state, attack, control=False)
        if filled is None:
            cell.unfit += 1
            return
        cell.executed += 1
        answers: list[Outcome] = []
        for number, arguments in enumerate(filled.steps, 1):
            self._spent += 1
            call = self._call_of(
                state.subject, Purpose.PAYLOAD, arguments, attack, filled, nonce, step=number, steps=len(filled.steps)
            )
            outcome = yield from self._do(state, call)
            if outcome is None:
                return
            answers.append(outcome)
            if (case := self._open(cell, attack, call, outcome)) is not None:
                if not any(effect.proves for effect in case.effects):
                    yield from self._show(cell, attack, filled, nonce, case)
                return
            self._react(state, attack, arguments, outcome)
        if any(effect.kind in _LASTING for effect in filled.effects):
            yield from self._follow(cell, attack, filled, nonce, answers)

    def _follow(
        self, cell: Cell, attack: Attack, filled: Filled, nonce: str, answers: Sequence[Outcome]
    ) -> Iterator[Action]:
        """Hand on what the payload's answer gave out: what was let in by one call may come out of another."""
        given = [pair for outcome in answers if outcome.state == "answered" for pair in handed_out(outcome.text)]
        fresh = [(name, value) for name, value in given if value not in self._carried.values.get(name, ())]
        allowed_subjects = [state.subject for state in self._states if state.subject.within is None]
        for number, (subject, argument, value) in enumerate(followers(allowed_subjects, fresh)):
            state = self._state(subject)
            if number >= MOST_FOLLOWERS or state.arguments is None or self._stop(cell):
                return
            arguments: JsonObject = {**self._arguments(state), argument: value}
            self._spent += 1
            call = self._call_of(subject, Purpose.PAYLOAD, arguments, attack, filled, nonce, step=2, steps=2)
            outcome = yield from self._do(state, call)
            if outcome is None or self._open(cell, attack, call, outcome) is not None:
                return

    def _show(self, cell: Cell, attack: Attack, filled: Filled, nonce: str, seen: Case) -> Iterator[Action]:
        """Ask the tools about the same thing whether they show what this one only took in: a case of its own then."""
        if not any(effect.proves for effect in filled.effects) or all(p.case is not seen for p in self._pursued):
            return
        sharing = [state for state in self._states if self._shares(cell.state, state)]
        for state in sharing[:MOST_SHOWING]:
            if self._stop(cell):
                return
            self._spent += 1
            arguments = self._arguments(state)
            call = self._call_of(state.subject, Purpose.PAYLOAD, arguments, attack, filled, nonce, step=2, steps=2)
            outcome = yield from self._do(state, call)
            if outcome is None:
                return
            case = Case.open(call, outcome, self._world)
            if case is not None and any(effect.proves for effect in case.effects):
                mine = next(number for number, p in enumerate(self._pursued) if p.case is seen)
                self._pursued[mine] = Pursued(case, cell.state, attack, self._network)
                return

    def _shares(self, state: State, other: State) -> bool:
        """Whether a tool that works and takes nothing away was asked about the same thing as another, by name."""
        mine, theirs = self._arguments(state), self._arguments(other)
        same = any(isinstance(value, str) and value and mine.get(name) == value for name, value in theirs.items())
        return same and other is not state and other.reached and not harsh(other)

    def _open(self, cell: Cell, attack: Attack, call: Call, outcome: Outcome) -> Case | None:
        """Open a case where a predicted effect was seen; the rest of the cell is not needed then."""
        case = Case.open(call, outcome, self._world)
        if case is None:
            return None
        cell.settled = True
        key = cell.state.subject, attack.payload.payload_class
        first = all((p.state.subject, p.attack.payload.payload_class) != key for p in self._pursued)
        if first and len(self._pursued) < MOST_CASES:
            self._pursued.append(Pursued(case, cell.state, attack, self._network))
        return case

    # Proof

    def _pursue(self, pursued: Pursued) -> Iterator[Action]:
        """Make the calls that a case asks for until it is over, or there is no time or no target left."""
        case = pursued.case
        while (need := case.next()) is not None:
            made = yield from self._need(pursued, need)
            if not made:
                case.cannot()
                return

    def _need(self, pursued: Pursued, need: Need) -> Trying:
        state, attack = pursued.state, pursued.attack
        if self._gone or (self._left is not None and self._left < KEPT_SECONDS):
            return False
        away = pursued.network is not self._network
        opened = pursued.case.call
        elsewhere = (opened.method, opened.item) != (state.subject.method, state.subject.name)
        # What a payload let in is still there: a control that looks for it elsewhere needs a start of its own.
        if (need.clean or away or elsewhere) and not (yield from self._restart(pursued.network)):
            return False
        control = need.purpose is Purpose.CONTROL
        filled, nonce = self._fill(state, attack, control=control)
        if filled is None:
            return False
        steps = filled.steps
        if need.purpose is Purpose.DOCUMENTED:
            benign = renewed(self._arguments(state), nonce)
            if attack.place == PLACE:
                steps, filled = (benign,), replace(filled, headers={})
            elif (plain := self._kit.documented(state.subject, attack, benign, self._world, nonce)) is not None:
                steps = (plain,)
            else:
                return False
        elif need.value is not None:
            steps = (self._make.put(steps[0], attack, need.value.replace(pursued.case.call.nonce, nonce)),)
        outcome: Outcome | None = None
        for number, arguments in enumerate(steps, 1):
            call = self._call_of(
                state.subject,
                need.purpose,
                arguments,
                attack,
                filled,
                nonce,
                step=number,
                steps=len(steps) + elsewhere,
                about=opened.id,
            )
            outcome = yield from self._do(state, call)
            if outcome is None:
                return False
            if number < len(steps) and hits(call, outcome, self._world):
                break
        if outcome is None:
            return False
        if elsewhere:
            passed = self._passed_on(state, opened, outcome)
            if passed is None:
                return False
            subject, arguments = passed
            call = self._call_of(
                subject, need.purpose, arguments, attack, filled, nonce,
                step=call.step + 1, steps=call.steps, about=opened.id,
            )  # fmt: skip
            outcome = yield from self._do(self._state(subject), call)
            if outcome is None:
                return False
        pursued.case.take(call, outcome, self._world)
        return True

    def _passed_on(self, state: State, opened: Call, outcome: Outcome) -> tuple[Subject, JsonObject] | None:
        """The call that showed the effect of what another one let in, with what this answer handed out, or about the
        same thing.
        """
        mine = [s.subject for s in self._states if (s.subject.method, s.subject.name) == (opened.method, opened.item)]
        for subject, argument, value in followers(mine, handed_out(outcome.text)):
            return subject, {**self._arguments(self._state(subject)), argument: value}
        for subject in mine:
            if self._shares(state, self._state(subject)):
                return subject, self._arguments(self._state(subject))
        return None
