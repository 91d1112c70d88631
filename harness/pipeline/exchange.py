"""One call as it goes over the wire: a request, or several where the server wants more input or makes a task of it.

Facts: results that want input, revision 2026-07-28; tasks, revision 2025-11-25, basic/utilities/tasks.
"""

from __future__ import annotations

import anyio

from harness.model.base import JsonObject
from harness.model.call import Call
from harness.model.surface import Era
from harness.pipeline.answering import Answerer
from harness.protocol.era import with_envelope
from harness.protocol.outcomes import Answer, Outcome
from harness.protocol.session import RawSession

#: Rounds in which a server may want more input.
MOST_ROUNDS = 8
#: Between two looks at a task, in seconds, whatever the server asks for; and its share of the time that is kept for
#: fetching what came of it.
POLL_SECONDS = (0.05, 2.0)
RESULT_SECONDS = 1.0


async def exchanged(call: Call, raw: RawSession, era: Era | None, *, seconds: float, quiet: bool) -> Outcome:
    """Make the call; `seconds` for all of it. A deadline missed is recorded unless `quiet`. Raises HarnessError."""
    until = anyio.current_time() + seconds

    async def ask(method: str, params: JsonObject) -> Outcome:
        given = with_envelope(params, offers=raw.offers) if era is Era.STATELESS else params
        left = max(RESULT_SECONDS, until - anyio.current_time())
        return await raw.request(method, given, timeout=left, quiet=quiet)

    reply = await ask(call.method, dict(call.params))
    for _ in range(MOST_ROUNDS):
        more = _wanted(reply, raw)
        if more is None or anyio.current_time() >= until:
            break
        reply = await ask(call.method, {**call.params, **more})
    task = _task(reply) if "task" in call.params else None
    if task is None:
        return reply
    name, wait = task
    while until - anyio.current_time() > RESULT_SECONDS:
        await anyio.sleep(wait)
        seen = await ask("tasks/get", {"taskId": name})
        if not isinstance(seen, Answer) or not isinstance(seen.result, dict):
            return seen
        if seen.result.get("status") != "working":
            break
    return await ask("tasks/result", {"taskId": name})


def _wanted(reply: Outcome, raw: RawSession) -> JsonObject | None:
    """What is sent with the call again: answers to what the server wants, and its own state."""
    result = reply.result if isinstance(reply, Answer) else None
    if not isinstance(result, dict) or not isinstance(raw.answerer, Answerer):
        return None
    wanted, state = result.get("inputRequests"), result.get("requestState")
    if not isinstance(wanted, dict) and not (result.get("resultType") == "input_required" and state is not None):
        return None
    answers = raw.answerer.fulfil(wanted) if isinstance(wanted, dict) else {}
    if answers is None:
        return None
    more: JsonObject = {"inputResponses": answers}
    return more if state is None else {**more, "requestState": state}


def _task(reply: Outcome) -> tuple[str, float] | None:
    """A task's id, and how long to wait between two looks at it."""
    result = reply.result if isinstance(reply, Answer) else None
    task = result.get("task") if isinstance(result, dict) else None
    name = task.get("taskId") if isinstance(task, dict) else None
    if not isinstance(task, dict) or not isinstance(name, str):
        return None
    every = task.get("pollInterval")
    least, most = POLL_SECONDS
    usable = isinstance(every, int | float) and not isinstance(every, bool)
    return name[:1024], min(most, max(least, every / 1000 if usable and isinstance(every, int | float) else 1.0))
