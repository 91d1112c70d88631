"""The plan of the malformed messages, as a conversation: each with a sign of life behind it; a fresh session after a
death, and the same message once more, so that what a single one did is told from what it was blamed for.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from typing import TypeAlias

from harness.model.options import Transport
from harness.model.plan import Action, ActionKind, Observation
from harness.model.probe import Family, Must, Probe, ProbeBooks, Unsent
from harness.model.surface import ItemKind, ListEnd, Surface
from harness.probing.chain import Ground
from harness.probing.malformed.catalog import Catalog
from harness.probing.malformed.templates import Ids, meta

#: Once deaths and fresh starts took so many seconds, or there were so many of them, no more is sent.
MOST_SECONDS = 120.0
MAX_DEATHS = 40
#: How long a sign of life is waited for at least where a message of the same family made the server stand still, twice.
SHORT_WAIT = 1.0

#: Methods that a server can be asked for a sign of life, beside ping: the lists that it gave.
_LISTS = {
    ItemKind.TOOL: "tools/list",
    ItemKind.PROMPT: "prompts/list",
    ItemKind.RESOURCE: "resources/list",
}
#: Actions, and at the end whether the session can go on.
Steps: TypeAlias = Generator[Action, None, bool]


class ProbePlanner:
    """Made for one ground. `next(observation)` answers with the next action; None when the probes are over."""

    def __init__(self, catalog: Catalog, ground: Ground, transport: Transport = Transport.STDIO) -> None:
        assert ground.surface is not None
        self._surface = ground.surface
        self._ids = Ids()
        self._probes = tuple(catalog.probes(ground.surface, transport, self._ids, credential=ground.credential))
        self._transport = transport
        #: The method that a sign of life is asked for with: the last that was tried.
        self.alive = ""
        self._deaths = 0
        self._mourned = 0.0
        self._sure: set[tuple[Family, str]] = set()
        self._unsent: list[Unsent] = []
        self._seen: Observation | None = None
        self._steps = self._conversation()

    def next(self, observation: Observation | None) -> Action | None:
        """The action to do now, given what came of the last one (None at the beginning)."""
        self._seen = observation
        return next(self._steps, None)

    def _conversation(self) -> Iterator[Action]:
        usable = yield from self._find_alive()
        for number, probe in enumerate(self._probes):
            if not usable:
                self._rest(self._probes[number:])
                break
            usable = yield from self._one(probe)
        books = ProbeBooks(planned=len(self._probes), unsent=tuple(self._unsent))
        yield Action(number=0, kind=ActionKind.CONCLUDE, books=books)

    def _find_alive(self) -> Steps:
        """How this server says that it lives: what it answers of ping and the lists that it gave.

        Where it answers none, reading its lists may have been too much for it: it gets a fresh session.
        """
        if (yield from self._ask_for_life(1)):
            return True
        return (yield from self._again()) and (yield from self._ask_for_life(2))

    def _ask_for_life(self, attempt: int) -> Steps:
        for number, method in enumerate(alive_methods(self._surface)):
            probe = Probe(
                id=f"A{number + 1:02}",
                title=f"{method}, in order",
                family=Family.ALIVE,
                sends=(),
                must=Must.LIVE,
                transport=self._transport,
                attempt=attempt,
            )
            self.alive = method
            yield self._action(probe)
            if self._state() in ("alive", "closed", "unsent"):
                return self._state() == "alive"
        return False

    def _one(self, probe: Probe) -> Steps:
        """Send it; where the server does not live on, once more in a fresh session. True when it can go on.

        What a second message of its family did twice already is not asked of a third.
        """
        before = self._left()
        if (probe.family, "silent") in self._sure:
            probe = probe.model_copy(update={"wait": SHORT_WAIT})
        yield self._action(probe)
        state = self._state()
        if state == "alive":
            return True
        if state == "unsent":
            self._unsent.append(Unsent(probe=probe.id, reason="limit", detail=self._detail()))
            return not self._out_of_time() and (yield from self._again())
        usable = yield from self._again()
        self._deaths += 1
        if usable and (probe.family, state) not in self._sure:
            yield self._action(probe.model_copy(update={"attempt": 2}))
            usable = self._state() == "alive"
            if not usable:
                self._sure.add((probe.family, self._state()))
                usable = yield from self._again()
        self._mourned += max(0.0, before - self._left())
        return usable and self._deaths < MAX_DEATHS and self._mourned < MOST_SECONDS

    def _again(self) -> Steps:
        """A fresh session. True when it was greeted."""
        yield Action(number=0, kind=ActionKind.RESTART)
        return self._usable()

    def _rest(self, probes: Sequence[Probe]) -> None:
        """What is not sent any more, and whose doing that is."""
        late = self._out_of_time()
        detail = self._detail() if late else "the server did not live on"
        self._unsent += [Unsent(probe=p.id, reason="limit" if late else "target", detail=detail) for p in probes]

    def _action(self, probe: Probe) -> Action:
        identifier = self._ids.take()
        alive = alive_request(self.alive, identifier, self._surface)
        with_alive = probe.model_copy(update={"alive": alive, "alive_id": identifier, "method": self.alive})
        return Action(number=0, kind=ActionKind.PROBE, probe=with_alive, prediction=f"must {probe.must}")

    def _usable(self) -> bool:
        return self._seen is not None and self._seen.usable

    def _state(self) -> str:
        probed = self._seen.probed if self._seen is not None else None
        return probed.state if probed is not None else "unsent"

    def _detail(self) -> str:
        return self._seen.detail if self._seen is not None else ""

    def _left(self) -> float:
        """Seconds that are left of the run's time, as last told."""
        return self._seen.left if self._seen is not None and self._seen.left is not None else 0.0

    def _out_of_time(self) -> bool:
        return self._seen is not None and self._seen.left is not None and self._seen.left <= 0


def alive_methods(surface: Surface) -> tuple[str, ...]:
    """Requests in order, of which this server must answer one: ping, then the lists that it gave to their end."""
    whole = {outcome.kind for outcome in surface.lists if outcome.end is ListEnd.COMPLETE}
    return ("ping", *(method for kind, method in _LISTS.items() if kind in whole))


def alive_request(method: str, identifier: int, surface: Surface) -> str:
    """The line that asks for a sign of life."""
    params = json.loads("{" + meta(surface.era, comma=False) + "}")
    message = {"jsonrpc": "2.0", "id": identifier, "method": method} | ({"params": params} if params else {})
    return json.dumps(message, separators=(",", ":"))
