"""The rules of the `probes` analyzer: what a server can do wrong with a message that is wrong itself.

Calibration, from 103 messages tried on four reference servers: silence is never a violation; what the SDKs do
themselves is told as INFO and held against nobody; being lenient is LOW; what ends, hangs or confuses a server, or has
effects, is MEDIUM; what hands out what was never to leave is HIGH.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.analyzers.base import Rule
from harness.model.finding import EvidenceLevel, Severity, Threat

TITLES: dict[str, str] = {
    "probe.crash": "A malformed message ends the server",
    "probe.hang": "A malformed message makes the server stand still",
    "probe.desync": "Bytes that are no message make the server lose its place",
    "probe.resources": "A malformed message makes the server take much",
    "probe.side-effect": "A malformed message has an effect",
    "probe.leak": "An error tells what is inside",
    "probe.accepted": "A message that must be rejected is accepted",
    "probe.wrong-id": "An answer with an id that was not asked with",
    "probe.answered-notification": "A notification is answered",
    "probe.noise": "A malformed message makes the server write to stdout what is no message",
    "access.rebinding": "Foreign Host and Origin are served (DNS rebinding)",
    "access.authentication": "Served without authentication",
    "probe.lenient": "More lenient than the specification, as SDKs are",
}
RULES = tuple(Rule(id=rule, title=title) for rule, title in TITLES.items())


@dataclass(frozen=True)
class Fault:
    """One kind of fault: its rule, how bad it is, how it is known, and what to say."""

    rule: str
    severity: Severity
    description: str
    threat: Threat = Threat.PROTOCOL_VIOLATION
    level: EvidenceLevel = EvidenceLevel.PROTOCOL
    cwe: int | None = None
    remediation: str = "Report it to the server's author."


_DOS = Threat.DENIAL_OF_SERVICE
_SEEN = EvidenceLevel.DYNAMIC

CRASH = Fault(
    "probe.crash", Severity.MEDIUM, "The process ended, twice, when it was sent this.", _DOS, _SEEN, 248
)  # uncaught exception
CRASH_ONCE = Fault(
    "probe.crash",
    Severity.LOW,
    "The process ended when it was sent this; sent again, alone and in a fresh session, it did not.",
    _DOS,
    _SEEN,
    248,
)
CRASH_IN_SDK = Fault(
    "probe.crash",
    Severity.LOW,
    "The process ended when it was sent this, in the SDK that it is built with, by the trace that it printed.",
    _DOS,
    _SEEN,
    248,
    "Update the SDK: current ones live through all of these messages.",
)
OUT_OF_MEMORY = Fault(
    "probe.crash", Severity.MEDIUM, "The process took all of its memory when it was sent this.", _DOS, _SEEN, 770
)
HANG = Fault("probe.hang", Severity.MEDIUM, "After this the server answered nothing any more, twice.", _DOS, _SEEN, 835)
HANG_ONCE = Fault(
    "probe.hang",
    Severity.LOW,
    "After this the server answered nothing any more; sent again, alone and in a fresh session, it did.",
    _DOS,
    _SEEN,
    835,
)
DESYNC = Fault(
    "probe.desync",
    Severity.MEDIUM,
    "After this the server reads no further message: one stray line takes a session down.",
    _DOS,
    _SEEN,
    20,
)
MEMORY = Fault(
    "probe.resources", Severity.MEDIUM, "Memory rose by many times the size of the message.", _DOS, _SEEN, 789
)
OUTPUT = Fault(
    "probe.resources", Severity.MEDIUM, "What came back is many times the size of the message.", _DOS, _SEEN, 406
)
EFFECT = Fault(
    "probe.side-effect",
    Severity.MEDIUM,
    "A message that a correct server rejects made it do something, which it had not done before.",
    Threat.UNCATEGORIZED,
    _SEEN,
    20,
    "Reject what is not valid before anything is done with it.",
)
PASSED_ON = Fault(
    "probe.side-effect",
    Severity.LOW,
    "A tool was called with arguments that its schema forbids, and talked to another machine all the same: it leaves "
    "checking them to the other side.",
    Threat.UNCATEGORIZED,
    _SEEN,
    20,
    "Reject what is not valid before anything is done with it.",
)
TRACE = Fault(
    "probe.leak",
    Severity.LOW,
    "An answer holds a stack trace or paths of the installation; a model reads it, and so does whoever steers it.",
    cwe=209,
    remediation="Answer with a message of your own, and log the rest to stderr.",
)
ENVIRONMENT = Fault(
    "probe.leak",
    Severity.MEDIUM,
    "An answer holds environment variables.",
    Threat.EXFILTRATION,
    cwe=209,
    remediation="Answer with a message of your own.",
)
SECRET = Fault(
    "probe.leak",
    Severity.HIGH,
    "An answer to a malformed message holds a planted secret.",
    Threat.EXFILTRATION,
    _SEEN,
    200,
    "Do not connect to it before its author has said why.",
)
SYSTEM_FILE = Fault(
    "probe.leak",
    Severity.HIGH,
    "An answer holds the content of a system file that was never offered.",
    Threat.PATH_TRAVERSAL,
    _SEEN,
    22,
    "Serve only what was declared.",
)
UNKNOWN_ID = Fault("probe.wrong-id", Severity.MEDIUM, "An answer has an id that no request had.")
ID_TYPE = Fault("probe.wrong-id", Severity.MEDIUM, "An answer's id has another type than the request's.")
TWICE = Fault("probe.wrong-id", Severity.MEDIUM, "A request was answered more than once.")
RESULT_FOR_NOTIFICATION = Fault(
    "probe.answered-notification",
    Severity.MEDIUM,
    "A message without an id was carried out as a request and answered with a result.",
)
ERROR_FOR_NOTIFICATION = Fault(
    "probe.answered-notification", Severity.LOW, "A message without an id was answered with an error."
)
NOISE = Fault(
    "probe.noise",
    Severity.LOW,
    "Lines on stdout are not JSON; strict clients end the session.",
    remediation="Log to stderr: the specification reserves stdout for messages.",
)
ORIGIN = Fault(
    "probe.accepted",
    Severity.MEDIUM,
    "Answers carry Access-Control-Allow-Origin for any page: pages on the web can read them.",
    Threat.EXFILTRATION,
    cwe=942,
    remediation="Check the Origin header, and name the origins that may read answers.",
)
ADOPTED = Fault(
    "probe.accepted",
    Severity.HIGH,
    "A session id chosen by the client was adopted: whoever makes another use it shares the session.",
    cwe=384,
    remediation="Draw session ids at random, and accept none that was not given out.",
)


REBINDING = Fault(
    "access.rebinding",
    Severity.MEDIUM,
    "A request is answered as a page in a browser sends it whose name was bound to this machine: neither its Host nor "
    "its Origin is looked at.",
    cwe=350,
    remediation="Check the Host and Origin headers against the names that the server goes by.",
)
UNAUTHENTICATED = Fault(
    "access.authentication",
    Severity.HIGH,
    "Who has no valid credential or session is served.",
    cwe=306,
    remediation="Check the credential of every request, and accept no session that was not given out.",
)
_OWN = {fault.rule: fault for fault in (REBINDING, UNAUTHENTICATED)}


def accepted(severity: Severity, rule: str = "") -> Fault:
    """What was accepted and must be rejected. `rule`: its own, where it has one."""
    if rule in _OWN:
        return replace(_OWN[rule], severity=severity)
    return Fault("probe.accepted", severity, "The text says that a server must reject this.", cwe=20)


LENIENT = Fault(
    "probe.lenient",
    Severity.INFO,
    "The text says that a server must reject this; SDKs in wide use accept it.",
    remediation="Nothing: it is a question for the SDK.",
)
