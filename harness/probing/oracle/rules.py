"""The rules that findings of the oracle carry: what each class of fault is called, how bad it is, what to do about it.

CWE numbers are those of the Common Weakness Enumeration; a payload's own number goes before.
"""

from __future__ import annotations

from harness.model.base import Record
from harness.model.finding import CAPABILITY as CAPABILITY
from harness.model.finding import Severity, Threat
from harness.model.payload import PayloadClass


class FaultRule(Record):
    """One rule. `impact`: what somebody can do who controls the argument, as a clause for reports and advisories."""

    id: str
    title: str
    severity: Severity
    threat: Threat
    cwe: int
    impact: str
    remediation: str


def _rule(
    id_: str, title: str, severity: Severity, threat: Threat, cwe: int, impact: str, remediation: str
) -> FaultRule:
    return FaultRule(
        id=id_, title=title, severity=severity, threat=threat, cwe=cwe, impact=impact, remediation=remediation
    )


_C, _H, _M = Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM
_RESOLVE = "Resolve the path (links included) and compare it with the resolved root component by component before use."

RULES: dict[PayloadClass, FaultRule] = {
    PayloadClass.COMMAND_INJECTION: _rule(
        "injection.command", "Command injection", _C, Threat.COMMAND_INJECTION, 78,
        "run any command with the server's rights",
        "Start programs with an argument vector and without a shell; never build a command line from arguments.",
    ),
    PayloadClass.ARGUMENT_INJECTION: _rule(
        "injection.argument", "Argument injection", _H, Threat.COMMAND_INJECTION, 88,
        "pass options to the program that the server starts, and make it do what the tool does not offer",
        "Put `--` before values, refuse those that begin with a dash, and allow options by name only.",
    ),
    PayloadClass.ALLOWLIST_BYPASS: _rule(
        "bypass.allowlist", "Bypass of an allowlist", _H, Threat.COMMAND_INJECTION, 184,
        "do what the server's own list of allowed commands or operations forbids",
        "Check the whole argument vector, options that run other programs included, not the first word only.",
    ),
    PayloadClass.TRAVERSAL_READ: _rule(
        "traversal.read", "Path traversal: reads outside of its root", _H, Threat.PATH_TRAVERSAL, 22,
        "read files outside of the folder that the server was given", _RESOLVE,
    ),
    PayloadClass.TRAVERSAL_WRITE: _rule(
        "traversal.write", "Path traversal: writes outside of its root", _C, Threat.PATH_TRAVERSAL, 22,
        "create or change files outside of the folder that the server was given", _RESOLVE,
    ),
    PayloadClass.SYMLINK_ESCAPE: _rule(
        "traversal.symlink", "Symbolic link escape from its root", _H, Threat.PATH_TRAVERSAL, 59,
        "reach files outside of the folder that the server was given by way of a link inside it",
        "Compare the path with its links resolved, also of the folders above, and open it without following links.",
    ),
    PayloadClass.SSRF: _rule(
        "ssrf.internal", "Requests to internal addresses (SSRF)", _H, Threat.SSRF, 918,
        "make the server connect to addresses inside of its network, its own machine or the cloud's metadata service",
        "Resolve the host once, refuse loopback, private and link-local addresses, connect to the address that was "
        "checked, and check every redirect in the same way.",
    ),
    PayloadClass.SQL: _rule(
        "injection.sql", "SQL injection", _H, Threat.COMMAND_INJECTION, 89,
        "run statements that the tool does not offer on the server's database",
        "Bind values as parameters, open the database read-only where only reading is offered, and forbid ATTACH.",
    ),
    PayloadClass.CODE_EVALUATION: _rule(
        "injection.code", "Code injection", _C, Threat.COMMAND_INJECTION, 95,
        "have code of their own evaluated with the server's rights",
        "Parse the value; never hand it to eval, exec, Function or an interpreter.",
    ),
    PayloadClass.TEMPLATE_INJECTION: _rule(
        "injection.template", "Template injection", _H, Threat.COMMAND_INJECTION, 1336,
        "have template expressions evaluated by the server",
        "Pass values to templates as data; never make a template of them. Use a sandboxed environment.",
    ),
    PayloadClass.DESERIALISATION: _rule(
        "injection.deserialisation", "Unsafe deserialisation", _C, Threat.COMMAND_INJECTION, 502,
        "make the server build objects that run code",
        "Read data with a format that has no code in it (JSON, yaml.safe_load).",
    ),
    PayloadClass.ATTRIBUTE_ACCESS: _rule(
        "injection.attribute", "Unsafe access to attributes", _H, Threat.COMMAND_INJECTION, 915,
        "reach or change internals of the server by names that they choose",
        "Look names up in a list of allowed ones; refuse those with underscores, and prototypes.",
    ),
    PayloadClass.XXE: _rule(
        "injection.xxe", "XML external entities", _H, Threat.PATH_TRAVERSAL, 611,
        "have the server read files or addresses that a document names",
        "Turn off external entities and document type declarations in the parser.",
    ),
    PayloadClass.ARCHIVE_SLIP: _rule(
        "traversal.archive", "Archive members outside of the target folder", _C, Threat.PATH_TRAVERSAL, 22,
        "write files outside of the folder that an archive is unpacked to",
        "Resolve every member's path, links included, and refuse those outside (in Python: filter='data').",
    ),
    PayloadClass.HEADER_INJECTION: _rule(
        "injection.header", "Header or log injection", _M, Threat.COMMAND_INJECTION, 93,
        "add lines to a request or a log that the server writes",
        "Refuse line ends in values that go into headers and logs.",
    ),
    PayloadClass.MISSING_AUTHENTICATION: _rule(
        "access.authentication", "Served without authentication", _H, Threat.PROTOCOL_VIOLATION, 306,
        "use the server without being asked who they are",
        "Ask for a token made at start, and listen on the loopback interface only.",
    ),
    PayloadClass.DNS_REBINDING: _rule(
        "access.rebinding", "Foreign Host or Origin is served (DNS rebinding)", _M, Threat.PROTOCOL_VIOLATION, 350,
        "reach the server from a web page by way of a name that changes its address",
        "Check the Host and Origin headers against the names that the server goes by.",
    ),
    PayloadClass.SECRET_DISCLOSURE: _rule(
        "disclosure.secret", "Secrets in results", _H, Threat.EXFILTRATION, 200,
        "read credentials that the server holds",
        "Never put credentials into results or errors.",
    ),
    PayloadClass.RETURNED_INSTRUCTIONS: _rule(
        "injection.returned", "Foreign text is returned as it is", _M, Threat.PROMPT_INJECTION, 1427,
        "put instructions before the model by way of content that the tool returns",
        "Mark content of others as data, and strip what looks like instructions to a model.",
    ),
    PayloadClass.EXHAUSTION: _rule(
        "exhaustion.input", "Input that exhausts the server", _M, Threat.DENIAL_OF_SERVICE, 400,
        "make the server hang, grow or end with one call",
        "Bound the size of inputs and results, and the time of regular expressions and requests.",
    ),
}  # fmt: skip

#: What a class of payloads shows where there is no boundary, in the words of the report.
CAPABILITIES: dict[PayloadClass, tuple[str, str]] = {
    **dict.fromkeys(
        (
            PayloadClass.COMMAND_INJECTION,
            PayloadClass.ARGUMENT_INJECTION,
            PayloadClass.ALLOWLIST_BYPASS,
        ),
        ("commands", "runs commands given to it"),
    ),
    **dict.fromkeys(
        (
            PayloadClass.CODE_EVALUATION,
            PayloadClass.TEMPLATE_INJECTION,
            PayloadClass.DESERIALISATION,
            PayloadClass.ATTRIBUTE_ACCESS,
        ),
        ("code", "evaluates code or expressions given to it"),
    ),
    **dict.fromkeys(
        (PayloadClass.TRAVERSAL_READ, PayloadClass.XXE), ("reads-files", "reads any file that its user may read")
    ),
    **dict.fromkeys(
        (PayloadClass.TRAVERSAL_WRITE, PayloadClass.ARCHIVE_SLIP),
        ("writes-files", "writes wherever its user may write"),
    ),
    PayloadClass.SYMLINK_ESCAPE: ("follows-links", "follows links wherever they lead"),
    PayloadClass.SSRF: ("network", "connects to any address given to it"),
    PayloadClass.SQL: ("sql", "runs SQL given to it"),
    PayloadClass.HEADER_INJECTION: ("headers", "passes lines on as they are"),
    PayloadClass.MISSING_AUTHENTICATION: ("open", "serves whoever reaches it"),
    PayloadClass.DNS_REBINDING: ("open", "serves whoever reaches it"),
    PayloadClass.SECRET_DISCLOSURE: ("secrets", "returns secrets that it can read"),
    PayloadClass.RETURNED_INSTRUCTIONS: ("content", "returns content of others as it is"),
    PayloadClass.EXHAUSTION: ("load", "takes as much as it is given"),
}


def rule_ids() -> dict[str, str]:
    """Every rule id with its title, for policies."""
    found = {rule.id: rule.title for rule in RULES.values()}
    found.update({f"{CAPABILITY}{name}": f"By design it {what}" for name, what in CAPABILITIES.values()})
    return dict(sorted(found.items()))
