"""The plan of a reproduction: a proven payload's steps with fresh nonces, then its control, each from a clean start.

Sans I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.model.base import sha256_hex
from harness.model.call import Call, Outcome, Purpose
from harness.model.payload import Boundary
from harness.model.plan import Action, ActionKind, Adjustment, Observation
from harness.model.world import World
from harness.probing.oracle.effects import Sighting, sightings
from harness.probing.oracle.fold import Confirmation
from harness.probing.oracle.proof import Judgement
from harness.probing.oracle.reissue import Reissue, fresh


@dataclass(frozen=True)
class Recorded:
    """What a bundle tells of a proof: the calls of one confirming try and of its control, each with its world.

    `answers`: the text that came of each step. `boundaries`: all that were found then.
    """

    steps: tuple[Call, ...]
    world: World
    answers: tuple[str, ...]
    control: tuple[Call, ...]
    control_world: World
    boundaries: tuple[Boundary, ...] = ()


def recorded_of(judgement: Judgement, fold: Confirmation, answers: Mapping[str, str]) -> Recorded | None:
    """What is needed to try a proven payload again; None when its world is not in the recording.

    `answers`: the texts that came of calls, by their ids.
    """
    group = judgement.confirming[0]
    control = judgement.controls[0] if judgement.controls else None
    world = fold.world(group.call.world)
    beside = fold.world(control.call.world) if control is not None else world
    if world is None or beside is None:
        return None
    steps = tuple(trace.call for trace in group.steps)
    return Recorded(
        steps=steps,
        world=world,
        answers=tuple(answers.get(step.id, "") for step in steps),
        control=tuple(trace.call for trace in control.steps) if control is not None else (),
        control_world=beside,
        boundaries=fold.boundaries,
    )


class ReproductionPlanner:
    """Made for one finding. Once `next` is None, `seen`, `controlled` and `problem` tell what came of it."""

    def __init__(self, recorded: Recorded, adjustment: Adjustment, seed: str) -> None:
        self._recorded = recorded
        self._adjustment = adjustment
        self._seed = seed
        self._world: World | None = None
        self._observation: Observation | None = None
        self._steps = self._conversation()
        self._number = 0
        #: Proofs of the payload's effect.
        self.seen: tuple[Sighting, ...] = ()
        #: Effects of the control: one is too many.
        self.controlled: tuple[Sighting, ...] = ()
        #: Why it could not be tried, or came to no clear end.
        self.problem = ""
        #: The calls as they were sent.
        self.calls: tuple[Call, ...] = ()

    def next(self, observation: Observation | None) -> Action | None:
        """The action to do now, given what came of the last one."""
        self._observation = observation
        if observation is not None and observation.world is not None:
            self._world = observation.world
        action = next(self._steps, None)
        if action is None:
            return None
        self._number += 1
        return action.model_copy(update={"number": self._number})

    @property
    def reproduced(self) -> bool:
        """The effect was seen again, and the control stayed without it."""
        return bool(self.seen) and not self.controlled

    def _conversation(self) -> Iterator[Action]:
        recorded = self._recorded
        yield Action(number=0, kind=ActionKind.START, adjustment=self._adjustment)
        if not self._usable() or self._world is None:
            self.problem = "it could not be started"
            return
        world = self._world
        yield Action(number=0, kind=ActionKind.DISCOVER)
        usable = self._usable()
        yield Action(number=0, kind=ActionKind.CONCLUDE, boundaries=recorded.boundaries)
        if usable:
            yield from self._payload(world)
            if not self.problem and recorded.control:
                # From another clean start: what the payload left behind may come back with whatever is asked next.
                yield Action(number=0, kind=ActionKind.RESTART)
                if self._usable():
                    yield from self._control(self._world)
        else:
            self.problem = "it did not answer when it was started again"
        yield Action(number=0, kind=ActionKind.STOP)

    def _payload(self, world: World) -> Iterator[Action]:
        recorded = self._recorded
        nonce = recorded.steps[0].nonce
        change = Reissue(recorded.world, world, nonce, self._nonce(nonce, "payload"))
        made: list[Call] = []
        for number, step in enumerate(recorded.steps):
            call = change.call(step, f"r{number + 1}").model_copy(update={"purpose": Purpose.PAYLOAD})
            made.append(call)
            if not fresh((step,), (call,)):
                self.problem = "its payload can't be made with fresh nonces from the recording alone"
                return
            yield Action(number=0, kind=ActionKind.CALL, call=call)
            outcome = self._outcome()
            if outcome is None:
                self.problem = "the call could not be made"
                return
            self.calls = tuple(made)
            found = sightings(call, outcome, world, boundaries=recorded.boundaries)
            self.seen += tuple(sighting for sighting in found if sighting.proof)
            if not self._usable():
                return
            if number < len(recorded.answers):
                change.hand(recorded.answers[number], outcome.text)

    def _control(self, world: World) -> Iterator[Action]:
        recorded = self._recorded
        nonce = recorded.control[0].nonce
        change = Reissue(recorded.control_world, world, nonce, self._nonce(nonce, "control"))
        for number, step in enumerate(recorded.control):
            call = change.call(step, f"r{len(recorded.steps) + number + 1}", about="r1")
            yield Action(number=0, kind=ActionKind.CALL, call=call)
            outcome = self._outcome()
            if outcome is None:
                return  # what it does was recorded before
            self.controlled += sightings(call, outcome, world, boundaries=recorded.boundaries)

    def _usable(self) -> bool:
        return self._observation is not None and self._observation.usable

    def _outcome(self) -> Outcome | None:
        seen = self._observation
        if seen is None or seen.outcome is None or seen.outcome.state == "unsent":
            return None
        return seen.outcome

    def _nonce(self, like: str, what: str) -> str:
        """As long as the recorded one: payloads may count on it."""
        return sha256_hex(f"{self._seed}/{what}")[: len(like) or 20]
