"""Several plans as one: the stages of a run in turn, each begun on what the earlier ones found. Sans I/O.

The chain numbers the actions, keeps the ground that the stages stand on, and stops the main session at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from harness.model.plan import Action, ActionKind, Observation
from harness.model.surface import Surface
from harness.model.world import World
from harness.probing.planner import Planner

MAIN = "main"

_OPENING = frozenset({ActionKind.START, ActionKind.RESTART})
#: What answers say nothing about whether the main session can go on.
_ASIDE = frozenset({ActionKind.READ_SOURCE, ActionKind.CONCLUDE, ActionKind.STOCK_CLIENT})


@dataclass(frozen=True)
class Ground:
    """What a stage begins on.

    `open`: a main session runs; `usable`: it answered when it was last asked. A stage that finds it open and not
    usable begins with RESTART, or leaves. `surface`: what the main session declared when it was last looked at, and
    `first` what it declared at the beginning. `world`: that of the session. `arguments` and `environment`: what the
    target was started with; `http`: it was found to serve HTTP where it was started for its standard streams;
    `credential`: the header of the one that it was started with, or asked for.
    """

    open: bool = False
    usable: bool = False
    surface: Surface | None = None
    first: Surface | None = None
    world: World | None = None
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    http: bool = False
    credential: str = ""

    def after(self, action: Action, seen: Observation) -> Ground:
        """The ground once `action` came to `seen`."""
        if action.session != MAIN or action.background or action.kind in _ASIDE:
            return self
        if action.kind is ActionKind.STOP:
            return replace(self, open=False, usable=False)
        opened = self.open or (action.kind in _OPENING and seen.usable)
        surface = seen.surface or self.surface
        return Ground(
            open=opened,
            usable=opened and seen.usable,
            surface=surface,
            first=self.first or surface,
            world=seen.world or self.world,
            arguments=seen.arguments or self.arguments,
            environment=seen.environment or self.environment,
            credential=seen.credential or self.credential,
            http=action.adjustment.port is not None if action.kind is ActionKind.START else self.http,
        )


#: Makes a stage's plan on this ground, or None when there is nothing for it to do.
Stage: TypeAlias = Callable[[Ground], Planner | None]


class Chain:
    """The plan of starting, then the stages. `start` leaves the session open when it is to go on (`hold`)."""

    def __init__(self, start: Planner, stages: Sequence[Stage] = ()) -> None:
        self._start = start
        self._stages = stages
        self._number = 0
        self._ground = Ground()
        self._last: Action | None = None
        self._seen: Observation | None = None
        self._steps = self._conversation()

    @property
    def ground(self) -> Ground:
        """What is known so far."""
        return self._ground

    def next(self, observation: Observation | None) -> Action | None:
        """The action to do now, given what came of the last one (None at the beginning)."""
        if observation is not None and self._last is not None:
            self._ground = self._ground.after(self._last, observation)
        self._seen = observation
        action = next(self._steps, None)
        if action is None:
            return None
        self._number += 1
        self._last = action.model_copy(update={"number": self._number})
        return self._last

    def _conversation(self) -> Iterator[Action]:
        yield from self._follow(self._start)
        if not self._ground.open:
            return
        for stage in self._stages:
            if (plan := stage(self._ground)) is not None:
                yield from self._follow(plan)
        if self._ground.open:
            yield Action(number=0, kind=ActionKind.STOP)

    def _follow(self, plan: Planner) -> Iterator[Action]:
        """Each plan begins without an observation, as if it were alone."""
        seen: Observation | None = None
        while (action := plan.next(seen)) is not None:
            yield action
            seen = self._seen
