"""Malformed and unsupported messages as they are sent, what a correct server does about each, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from harness.model.base import Record
from harness.model.event import EventBase
from harness.model.finding import Severity
from harness.model.options import Transport
from harness.model.surface import ItemKind


class Family(StrEnum):
    """What a probe is about; findings about acceptance are told by family."""

    ALIVE = "alive"  # in order, to know how the server says that it lives
    FRAMING = "framing"  # bytes and lines
    ENVELOPE = "envelope"  # members of JSON-RPC
    HANDSHAKE = "handshake"
    METHODS = "methods"
    TOOLS = "tools"
    RESOURCES = "resources"
    SIZE = "size"
    HTTP = "http"


class Must(StrEnum):
    """What the text asks of a server that gets this. Silence is never held against it."""

    REJECT = "reject"  # an error, or silence; nothing is done
    IGNORE = "ignore"  # no answer at all: it was a notification or a response
    NEGOTIATE = "negotiate"  # another protocol version than the one proposed
    LIVE = "live"  # not said, or answered: whatever it does, it goes on


class Encoding(StrEnum):
    """How the text of a probe becomes bytes: Latin-1 makes invalid UTF-8 of what lies above U+007F."""

    UTF8 = "utf-8"
    LATIN1 = "latin-1"
    UTF16 = "utf-16-le"


class HttpShape(Record):
    """How the request that carries a probe over HTTP deviates. Headers replace the usual ones, None leaves one out.

    `session`: the session id is sent, left out, or was ended by a DELETE before. `credential`: what the server asks for
    is sent, left out, or another one is. `refused`: statuses of a server that
    turns it away; what else it does is held against it only where `must` says so.
    """

    method: str = "POST"
    headers: dict[str, str | None] = {}
    session: Literal["kept", "none", "ended"] = "kept"
    credential: Literal["kept", "none", "wrong"] = "kept"
    refused: tuple[int, ...] = (400, 401, 403, 404, 405, 406, 415, 421)


class Probe(Record):
    """One probe, complete: written to plan.jsonl before it is sent; its phase is `probe:<id>`.

    `sends`: the lines in order, with `<fill:X:N>` for N times X still to be unfolded (see `wire_bytes` of the catalog).
    `ids`: those that an answer can carry, each as JSON text, at most
    `answers` times. `alive`: the request sent right behind, with the
    id `alive_id`, whose answer says that the server goes on. `version`: the protocol version that was proposed.
    `patience`: seconds that the answers are waited for once the server is known to live, `wait`: that the
    sign of life is, 0 for the usual time. `accepted`: how bad it is
    where what must be rejected is accepted, `fault` the rule that it then is, where it has one of its own.
    `attempt`: 2 when it is sent again in a fresh session.
    """

    id: str
    title: str
    family: Family
    sends: tuple[str, ...]
    encoding: Encoding = Encoding.UTF8
    ids: tuple[str, ...] = ()
    answers: int = 1
    alive: str = ""
    alive_id: int = 0
    must: Must = Must.LIVE
    source: str = ""
    accepted: Severity = Severity.INFO
    fault: str = ""
    tool: str = ""
    method: str = ""
    version: str = ""
    patience: float = 0.0
    wait: float = 0.0
    attempt: int = 1
    transport: Transport = Transport.STDIO
    http: HttpShape | None = None


class HttpReply(Record):
    """The answer to one HTTP request. `headers`: the few that matter, names in lower case."""

    status: int
    headers: dict[str, str] = {}


class Probed(Record):
    """What came of one probe. `state`: alive, silent (no sign of life in time), closed, or unsent.

    `memory_bytes`: the peak afterwards, `grown` how much it rose; None where it is not known. `seconds`: until the
    server was known to live. `closed`: why nothing more came. `bytes_sent` counts the probe's own.
    """

    probe: str
    state: Literal["alive", "silent", "closed", "unsent"]
    closed: str = ""
    seconds: float = 0.0
    bytes_sent: int = 0
    memory_bytes: int | None = None
    grown: int | None = None
    reply: HttpReply | None = None


class Unsent(Record):
    """A probe that was planned and not sent, and why: `target` or `limit`."""

    probe: str
    reason: Literal["target", "limit"]
    detail: str = ""


class ProbeBooks(Record):
    """How many probes apply to this server, and which of them were not sent."""

    planned: int
    unsent: tuple[Unsent, ...] = ()


class LookRequest(Record):
    """How to look again. `name`: of the surface. In another session than main the target is started anew for it.

    `client`: the name we greet with, empty for the usual one. `days`: how far ahead the clock is set, where the image
    can. `before`: probes sent before the handshake.
    """

    name: str
    client: str = ""
    days: int = 0
    before: tuple[Probe, ...] = ()


class ProbeEvent(EventBase):
    """A probe is about to be sent."""

    kind: Literal["probe"] = "probe"
    probe: Probe


class ProbeEndEvent(EventBase):
    """A probe is over."""

    kind: Literal["probe-end"] = "probe-end"
    probed: Probed


class ProbeBooksEvent(EventBase):
    """All probes that there was time for were sent."""

    kind: Literal["probe-books"] = "probe-books"
    books: ProbeBooks


class LookEvent(EventBase):
    """The declarations were looked at again. `changed`: they are not those of the first look, and are kept.

    `days`: how far ahead the target's clock was set, 0 where it was not. `unread`: lists that were read whole at
    first, and not this time.
    """

    kind: Literal["look"] = "look"
    look: str
    changed: bool
    client: str = ""
    days: int = 0
    items: int = 0
    unread: tuple[ItemKind, ...] = ()
