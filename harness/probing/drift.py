"""The plan of looking again: the same session once more, then a second life with another client's name and a later
clock. Where that one shows something else, further ones tell what it goes by: one as the first was, and where that
is as the first was, one with the name alone. Where it shows nothing, it is tried without what came before the
handshake, and then with the name alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.options import Transport
from harness.model.plan import Action, ActionKind, Observation
from harness.model.probe import LookRequest, Probe
from harness.probing.chain import MAIN, Ground
from harness.probing.malformed.catalog import Catalog
from harness.probing.malformed.planner import alive_request
from harness.probing.malformed.templates import Ids

#: A client that many people use, by the name that it gives itself.
OTHER_CLIENT = "claude-ai"
#: How far ahead the later clock is: past every anniversary, and in another year, month and week, on another weekday.
DAYS = 400

SAME_SESSION = "same-session"
SECOND_SESSION = "second-session"
THIRD_SESSION = "third-session"
FOURTH_SESSION = "fourth-session"

#: Looks within one session: what changes with their number shows.
LOOKS = 2


class DriftPlanner:
    """Made for one ground. `next(observation)` answers with the next look; None when there are no more.

    `alive`: the method that this server gives a sign of life to; where it is empty nothing is sent before a handshake.
    """

    def __init__(
        self, catalog: Catalog, ground: Ground, transport: Transport = Transport.STDIO, *, alive: str = ""
    ) -> None:
        assert ground.first is not None
        self._ground = ground
        self._first = ground.first
        ids = Ids()
        # Over HTTP no server gives a sign of life before it was greeted: there is no session yet.
        sent = alive and transport is not Transport.HTTP
        early = catalog.probes(self._first, transport, ids, before=True) if sent else ()
        self._before = tuple(self._with_alive(probe, alive, ids) for probe in early)
        self._seen: Observation | None = None
        self._steps = self._conversation()

    def next(self, observation: Observation | None) -> Action | None:
        """The look to take now, given what came of the last one (None at the beginning)."""
        self._seen = observation
        return next(self._steps, None)

    def _conversation(self) -> Iterator[Action]:
        if self._ground.usable:
            for _ in range(LOOKS):
                yield _look(LookRequest(name=SAME_SESSION), MAIN)
                if not self._usable():
                    break
        yield _look(
            LookRequest(name=SECOND_SESSION, client=OTHER_CLIENT, days=DAYS, before=self._before), SECOND_SESSION
        )
        if not self._usable():  # what came before the handshake may have ended it; else it was the clock
            yield _look(LookRequest(name=THIRD_SESSION, client=OTHER_CLIENT, days=DAYS), THIRD_SESSION)
            if not self._usable():
                yield _look(LookRequest(name=FOURTH_SESSION, client=OTHER_CLIENT), FOURTH_SESSION)
            elif self._changed():
                yield _look(LookRequest(name=FOURTH_SESSION), FOURTH_SESSION)
        elif self._changed():
            yield _look(LookRequest(name=THIRD_SESSION), THIRD_SESSION)
            if self._usable() and not self._changed():
                yield _look(LookRequest(name=FOURTH_SESSION, client=OTHER_CLIENT), FOURTH_SESSION)

    def _usable(self) -> bool:
        return self._seen is not None and self._seen.usable

    def _changed(self) -> bool:
        surface = self._seen.surface if self._seen is not None else None
        return surface is not None and surface.unlike(self._first)

    def _with_alive(self, probe: Probe, method: str, ids: Ids) -> Probe:
        identifier = ids.take()
        alive = alive_request(method, identifier, self._first)
        return probe.model_copy(update={"alive": alive, "alive_id": identifier, "method": method})


def _look(request: LookRequest, session: str) -> Action:
    return Action(number=0, kind=ActionKind.LOOK, session=session, look=request)
