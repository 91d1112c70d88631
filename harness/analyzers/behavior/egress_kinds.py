"""What `behavior.egress` can say."""

from __future__ import annotations

from harness.analyzers.behavior.ledger import Kind
from harness.model.finding import Severity, Threat

_ASK = "See whether what the server is for explains it; a policy can allow the destination."

METADATA = Kind(
    "behavior.egress.metadata",
    "Asked for the machine's cloud credentials",
    Severity.MEDIUM,
    "The server tried to reach an address where clouds give a machine its credentials.",
    threat=Threat.EXFILTRATION,
    cwe=918,
    remediation="Fine where the server is for that cloud: its client library asks; otherwise ask the author.",
)
INSTALL = Kind(
    "behavior.egress.install",
    "The installation reached another machine",
    Severity.MEDIUM,
    "While it was installed, code of the package or of what it needs talked to another machine.",
    threat=Threat.EXFILTRATION,
    cwe=829,
    remediation="Do not install it before its author has said why; install with scripts turned off.",
)
TUNNEL = Kind(
    "behavior.egress.dns-tunnel",
    "Carried data in DNS questions",
    Severity.HIGH,
    "The server asked for many names of one domain whose labels are data, not names: that is how data leaves where "
    "nothing else may.",
    threat=Threat.EXFILTRATION,
    cwe=200,
)
SCAN = Kind(
    "behavior.egress.scan",
    "Looked through ports or addresses of the local network",
    Severity.HIGH,
    "The server tried many ports or addresses that are local or private.",
    threat=Threat.SSRF,
    cwe=918,
)
BEACON = Kind(
    "behavior.egress.beacon",
    "Calls home at regular times",
    Severity.MEDIUM,
    "The server talked to the same destination again and again at regular times, without being asked for anything.",
    threat=Threat.MALICIOUS_CODE,
    cwe=506,
)
MAIL = Kind(
    "behavior.egress.mail",
    "Sent mail unasked",
    Severity.MEDIUM,
    "The server spoke to a mail server before it was asked for anything.",
    threat=Threat.EXFILTRATION,
    remediation=_ASK,
)
HIDDEN_COPY = Kind(
    "behavior.egress.hidden-recipient",
    "Sent a mail to somebody whom the call did not name",
    Severity.HIGH,
    "A call named who a mail is for, and the server gave the mail to somebody else, or to somebody else too.",
    threat=Threat.EXFILTRATION,
    cwe=200,
    remediation="Do not use the tool before its author has said who reads along.",
)
FIXED_RECIPIENT = Kind(
    "behavior.egress.hidden-recipient",
    "Sends mail to an address of its own",
    Severity.LOW,
    "The call named nobody who a mail is for, and the server sent one to an address that it has from elsewhere.",
    threat=Threat.UNCATEGORIZED,
    remediation="See whether the tool says that it does so.",
)
LITERAL = Kind(
    "behavior.egress.literal-address",
    "Connected to a bare public address unasked",
    Severity.MEDIUM,
    "The server connected to a public address that no name was looked up for, before it was asked for anything.",
    threat=Threat.EXFILTRATION,
    remediation=_ASK,
)
OWN_RESOLVER = Kind(
    "behavior.egress.own-resolver",
    "Looks names up by ways of its own",
    Severity.LOW,
    "The server resolved names over an encrypted service instead of the machine's resolver.",
    threat=Threat.UNCATEGORIZED,
    remediation=_ASK,
)
TELEMETRY = Kind(
    "behavior.egress.telemetry",
    "Reports its use to a vendor",
    Severity.LOW,
    "The server talked to a service that gathers how programs are used or fail, before it was asked for anything.",
    threat=Threat.UNCATEGORIZED,
    remediation="Turn it off by the server's settings if that is not wanted.",
)
PUBLIC = Kind(
    "behavior.egress.unprompted",
    "Talked to another machine unasked",
    Severity.LOW,
    "The server talked to another machine before it was asked for anything.",
    threat=Threat.EXFILTRATION,
    remediation=_ASK,
)
PRIVATE = Kind(
    "behavior.egress.private",
    "Talked to a private address unasked",
    Severity.LOW,
    "The server tried to reach an address of the local network, or a local port, before it was asked.",
    threat=Threat.SSRF,
    remediation=_ASK,
)
OPAQUE = Kind(
    "behavior.egress.opaque",
    "Sent what could not be read",
    Severity.LOW,
    "What the server sent there could not be read, so what it was is not known.",
    threat=Threat.UNCATEGORIZED,
    remediation="Ask the author what it sends, and why it does not accept the machine's certificates.",
)
EXPECTED = Kind(
    "behavior.egress.expected",
    "Talked to a service that is to be expected",
    Severity.INFO,
    "The server talked to another machine before it was asked for anything, and its own words let expect it.",
    threat=Threat.UNCATEGORIZED,
    remediation="A fact to know.",
)
LOOKUP = Kind(
    "behavior.egress.lookup",
    "Looked up a name unasked",
    Severity.INFO,
    "The server looked up a name before it was asked for anything.",
    threat=Threat.UNCATEGORIZED,
    remediation="A fact to know.",
)
IN_CALL = Kind(
    "behavior.egress.in-call",
    "A tool talks to another machine",
    Severity.INFO,
    "Calls of this tool talk to another machine.",
    threat=Threat.UNCATEGORIZED,
    remediation="A fact to know.",
)
KINDS = (
    METADATA, INSTALL, TUNNEL, SCAN, BEACON, MAIL, HIDDEN_COPY, LITERAL, OWN_RESOLVER, TELEMETRY, PUBLIC, PRIVATE,
    OPAQUE, EXPECTED, LOOKUP, IN_CALL,
)  # fmt: skip
