"""The rules of the `protocol` analyzer, and what each anomaly of framing means.

Calibration: harmless noise is LOW, what makes a client lose its place or stand still is MEDIUM, what the reference
SDKs do themselves is INFO, and silence is no finding (measured with 103 probes on four reference servers).
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.analyzers.base import Rule
from harness.model.finding import Severity, Threat
from harness.model.recording import Anomaly


@dataclass(frozen=True)
class Kind:
    """One kind of deviation: its rule, how bad it is, and what to say."""

    rule: str
    severity: Severity
    description: str
    remediation: str = "Report it to the server's author."
    threat: Threat = Threat.PROTOCOL_VIOLATION
    cwe: int | None = None


TITLES: dict[str, str] = {
    "protocol.non-json-output": "Output on stdout that is no message",
    "protocol.malformed-message": "Malformed JSON-RPC message",
    "protocol.ambiguous-json": "JSON that parsers read differently",
    "protocol.oversized-message": "Message too large or too deep to read",
    "protocol.wrong-id": "Answer that fits no request",
    "protocol.schema": "Answer that breaks the protocol's schema",
    "protocol.duplicate-name": "Several items under one name",
    "protocol.unstable-declarations": "Other tools are declared to another client",
    "protocol.uninvited-request": "Request that the client did not offer to answer",
    "protocol.flood": "Flood of output",
    "protocol.hang": "No answer in time",
    "protocol.crash": "The server crashed",
    "protocol.early-exit": "The server ended by itself",
}
RULES = tuple(Rule(id=rule, title=title) for rule, title in TITLES.items())

_NOISE = "Log to stderr: the specification reserves stdout for messages."
_DOS = Threat.DENIAL_OF_SERVICE

#: What an anomaly of a received frame means. FLOOD and BYTE_LIMIT come as LimitEvent too, and are told there.
ANOMALIES: dict[Anomaly, Kind] = {
    Anomaly.NOT_JSON: Kind(
        "protocol.non-json-output",
        Severity.LOW,
        "Lines on stdout are not JSON; strict clients end the session.",
        _NOISE,
    ),
    Anomaly.NOT_AN_OBJECT: Kind(
        "protocol.malformed-message", Severity.LOW, "A message is JSON, but no object (or an array not allowed here)."
    ),
    Anomaly.NOT_JSONRPC: Kind(
        "protocol.malformed-message", Severity.LOW, "A message is not JSON-RPC 2.0 (wrong `jsonrpc` or members)."
    ),
    Anomaly.INVALID_UTF8: Kind(
        "protocol.malformed-message", Severity.MEDIUM, "Bytes on stdout are not UTF-8; the SDK's client dies of it."
    ),
    Anomaly.LONE_SURROGATE: Kind(
        "protocol.malformed-message", Severity.LOW, "A string holds half a surrogate pair; clients drop the message."
    ),
    Anomaly.NON_FINITE: Kind(
        "protocol.malformed-message", Severity.LOW, "A number is NaN or infinite, which JSON does not know."
    ),
    Anomaly.NO_NEWLINE_AT_END: Kind(
        "protocol.malformed-message", Severity.INFO, "The last message does not end with a newline."
    ),
    Anomaly.DUPLICATE_KEY: Kind(
        "protocol.ambiguous-json",
        Severity.MEDIUM,
        "An object has a key twice: a checker and a client can read different declarations.",
        cwe=436,
    ),
    Anomaly.HUGE_NUMBER: Kind(
        "protocol.oversized-message", Severity.LOW, "A number has more digits than clients take.", threat=_DOS
    ),
    Anomaly.TOO_LONG: Kind(
        "protocol.oversized-message",
        Severity.MEDIUM,
        "A line is longer than what is read; clients without a bound keep all of it.",
        threat=_DOS,
        cwe=770,
    ),
    Anomaly.TOO_DEEP: Kind(
        "protocol.oversized-message",
        Severity.MEDIUM,
        "A message nests deeper than parsers go; clients drop it or crash.",
        threat=_DOS,
        cwe=674,
    ),
    Anomaly.TOO_MANY_VALUES: Kind(
        "protocol.oversized-message",
        Severity.MEDIUM,
        "A message holds more values than are read; parsed, they take many times its size.",
        threat=_DOS,
        cwe=770,
    ),
    Anomaly.UNKNOWN_ID: Kind("protocol.wrong-id", Severity.MEDIUM, "An answer has an id that no request had."),
    Anomaly.REPEATED_ID: Kind("protocol.wrong-id", Severity.MEDIUM, "A request was answered more than once."),
    Anomaly.WRONG_ID_TYPE: Kind(
        "protocol.wrong-id", Severity.MEDIUM, "An answer's id has another type than the request's."
    ),
}
#: Told elsewhere, or of no consequence: clients skip a byte order mark.
SILENT = frozenset({"flood", "byte-limit", "byte-order-mark"})
OTHER_ANOMALY = Kind("protocol.malformed-message", Severity.LOW, "A message deviates from the protocol.")

FLOOD = Kind(
    "protocol.flood",
    Severity.MEDIUM,
    "More came than is read; clients without a bound queue it in memory.",
    threat=_DOS,
    cwe=770,
)
HANG = Kind("protocol.hang", Severity.MEDIUM, "A request got no answer in time.", threat=_DOS)
BLOCKED = Kind("protocol.hang", Severity.MEDIUM, "The server stopped reading its input.", threat=_DOS)
CRASH = Kind("protocol.crash", Severity.MEDIUM, "The process ended with an error while it was in use.", threat=_DOS)
OUT_OF_MEMORY = Kind(
    "protocol.crash", Severity.MEDIUM, "The process was ended because it took all of its memory.", threat=_DOS, cwe=770
)
FAILED_START = Kind(
    "protocol.early-exit",
    Severity.LOW,
    "The process ended before it answered the handshake; often an argument or a setting is missing.",
    "See what it wrote on stderr; give what it asks for with --arg or --env.",
    threat=Threat.UNCATEGORIZED,
)
EARLY_EXIT = Kind(
    "protocol.early-exit", Severity.LOW, "The process ended by itself, without an error, while it was in use."
)
UNINVITED = Kind(
    "protocol.uninvited-request",
    Severity.LOW,
    "The server sent a request for a feature that the client had not declared.",
)
UNSTABLE = Kind(
    "protocol.unstable-declarations",
    Severity.MEDIUM,
    "A second client, in a fresh start, was shown other tools than the first: what was vetted is not what is served.",
    "Pin the server's version and compare what it declares at each start.",
    threat=Threat.RUG_PULL,
)
DUPLICATE_NAME = Kind(
    "protocol.duplicate-name",
    Severity.MEDIUM,
    "Items of one list share a name: which one a client takes is not defined.",
    cwe=694,
)
