"""Answers what a server asks its client for: as the plan of the call at hand says, else plausibly, within bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from harness.model.base import JsonObject, JsonValue
from harness.model.call import Asked, Call, ClientAnswer
from harness.model.world import World
from harness.probing.answers import PLACES, plausible, result_of
from harness.protocol.messages import Request
from harness.protocol.server_requests import Reply, answer, with_result

#: Requests of a server that are answered during one call, and outside of calls in one session; more are refused.
MOST_IN_CALL = 8
MOST_OUTSIDE = 16
#: Characters of a request's texts that the plan gets.
MOST_PARAMS = 64 << 10


class Answerer:
    """One session's. `note` records a fact; `typed`: what is entered where a form asks for a secret."""

    def __init__(self, note: Callable[[str], int], *, seed: int = 0, typed: str = "") -> None:
        self.typed = typed
        self._note = note
        self._seed = seed
        self._world: World | None = None
        self._call: Call | None = None
        self._asked: list[Asked] = []
        self._counts: Counter[str] = Counter()
        self._outside = 0
        self._looped = False

    def begin(self, call: Call, world: World | None) -> None:
        """The call at hand from now on, in the session's world."""
        self._call, self._world = call, world or self._world
        self._asked, self._counts, self._looped = [], Counter(), False

    def end(self) -> tuple[Asked, ...]:
        """The call is over: what was asked meanwhile."""
        self._call = None
        return tuple(self._asked)

    def __call__(self, request: Request) -> Reply:
        """The reply to one request of the server."""
        if request.method not in PLACES:
            return answer(request)
        if self._call is None:
            self._outside += 1
            if self._outside > MOST_OUTSIDE:
                return self._refused(request, f"outside of calls more than {MOST_OUTSIDE} times")
            return self._reply(request, plausible(request.method, request.params, self._world, typed=self.typed))
        self._counts[request.method] += 1
        if self._counts.total() > MOST_IN_CALL:
            return self._refused(request, f"more than {MOST_IN_CALL} times in one call")
        number = self._counts[request.method]
        chosen = _chosen(self._call, request.method, number) or plausible(
            request.method, request.params, self._world, seed=self._seed, typed=self.typed
        )
        params = request.params if _small(request.params) else {}
        self._asked.append(Asked(method=request.method, number=number, params=params, answer=chosen))
        return self._reply(request, chosen)

    def fulfil(self, wanted: JsonObject) -> JsonObject | None:
        """The answers to the requests in a result that wants more input, by their keys; None where one is refused."""
        answers: JsonObject = {}
        for key, entry in list(wanted.items())[:MOST_IN_CALL]:
            method, params = (entry.get("method"), entry.get("params")) if isinstance(entry, dict) else (None, None)
            if not isinstance(method, str):
                return None
            reply = self(Request(key, method, params if isinstance(params, dict) else {}))
            result = reply.message.get("result") if reply.message is not None else None
            if not isinstance(result, dict):
                return None
            answers[key] = result
        return answers

    def _reply(self, request: Request, chosen: ClientAnswer) -> Reply:
        result = result_of(chosen)
        if result is None:
            return answer(request)
        return with_result(request, result, "result" if chosen.action == "accept" else chosen.action)

    def _refused(self, request: Request, often: str) -> Reply:
        if not self._looped:
            self._looped = True
            self._note(f"it asked its client for something {often}; further requests were refused")
        return answer(request)


def _chosen(call: Call, method: str, number: int) -> ClientAnswer | None:
    return next((a for a in call.answers if a.method == method and a.number in (0, number)), None)


def _small(params: JsonObject) -> bool:
    """Whether the texts and keys of a request are few enough to be kept."""
    left, stack = MOST_PARAMS, list[JsonValue]([params])
    while stack and left > 0:
        node = stack.pop()
        if isinstance(node, dict):
            stack += [*node, *node.values()]
        elif isinstance(node, list):
            stack += node
        left -= len(node) if isinstance(node, str) else 8
    return left > 0
