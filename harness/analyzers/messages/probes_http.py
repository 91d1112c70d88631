"""What the answer to one HTTP request of a probe says, by its status and the few headers that matter. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analyzers.messages import probes_rules as rules
from harness.analyzers.messages.probes_rules import Fault
from harness.model.finding import Severity
from harness.model.probe import HttpReply, HttpShape, Must, Probe

#: A header of an answer that lets pages of other origins read it; its value names them.
_ALLOWS = "access-control-allow-origin"
_SESSION = "mcp-session-id"


def judge_reply(probe: Probe, reply: HttpReply) -> Iterator[tuple[Fault, str]]:
    """What is wrong with the answer: faults, each with the words that show it."""
    shape = probe.http or HttpShape()
    words = f"{probe.id}, {probe.title}: status {reply.status} ({probe.source})"
    answered = bool(probe.ids)  # what it answered is a message, and judged as such: status 200 may carry an error
    if probe.must is Must.REJECT and not answered and _taken(shape, reply):
        if probe.accepted is Severity.INFO:
            yield rules.LENIENT, words
        else:
            yield rules.accepted(probe.accepted, probe.fault), words
    sent = {name.lower(): value for name, value in shape.headers.items() if value}
    allowed = reply.headers.get(_ALLOWS, "")
    if "origin" in sent and allowed in ("*", sent["origin"]):
        yield rules.ORIGIN, f"{words}; {_ALLOWS}: {allowed}"
    chosen = sent.get(_SESSION)
    if chosen is not None and reply.headers.get(_SESSION) == chosen and reply.status < 300:
        yield rules.ADOPTED, f"{words}; the session id of our choice came back"


def _taken(shape: HttpShape, reply: HttpReply) -> bool:
    """True for an answer of success; a redirect or a fault of the server's own is none."""
    return 200 <= reply.status < 300 and reply.status not in shape.refused
