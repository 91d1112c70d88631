"""What `behavior.canaries` can say."""

from __future__ import annotations

from harness.analyzers.behavior.ledger import Kind
from harness.model.finding import Severity, Threat

_LEAVES = "behavior.canaries.leaves"
_SHOWN = "behavior.canaries.disclosed"
_ASK = "Do not connect to it with real credentials before its author has said why."


def _leaves(severity: Severity, title: str, text: str) -> Kind:
    return Kind(_LEAVES, title, severity, text, threat=Threat.EXFILTRATION, cwe=200, remediation=_ASK)


LEAVES_UNASKED = _leaves(
    Severity.CRITICAL,
    "Sends the user's secrets elsewhere",
    "A secret that was planted where the user keeps such ones, and that the server did not ask for, left for a "
    "destination that it is not for.",
)
LEAVES_ASKED = _leaves(
    Severity.HIGH,
    "Sends a credential to others than its service",
    "A credential that the server asked for left for a destination that it is not for.",
)
LEAVES_SOMEWHERE = _leaves(
    Severity.MEDIUM,
    "Sends a credential somewhere",
    "A credential that the server asked for left for a destination of which neither its name nor the server's own "
    "words speak.",
)
LEAVES_FORM = _leaves(
    Severity.HIGH,
    "Sends on what a user types into a form",
    "A secret that the server had its client ask the user for left for a destination of which the server's own words "
    "do not speak.",
)
LEAVES_NEAR = _leaves(
    Severity.MEDIUM,
    "Sends the user's secrets to a local port",
    "A secret that was planted where the user keeps such ones, and that the server did not ask for, was sent to a "
    "local or private address.",
)
LEAVES_IN_CALL = _leaves(
    Severity.MEDIUM,
    "A tool sends the workspace's secrets elsewhere",
    "While a tool was called, a secret of the workspace left for another machine.",
)
USED = Kind(
    "behavior.canaries.used",
    "Used a credential with its service",
    Severity.INFO,
    "A credential went to the service that it is for.",
    threat=Threat.UNCATEGORIZED,
    remediation="A fact to know.",
)


def _shown(severity: Severity, title: str, text: str) -> Kind:
    return Kind(_SHOWN, title, severity, text, threat=Threat.EXFILTRATION, cwe=200, remediation=_ASK)


SHOWN_UNASKED = _shown(
    Severity.HIGH,
    "Tells the client the user's secrets",
    "What the server declares or says holds a secret of the user that it was neither given nor asked for; a client "
    "hands it on to a model and to whoever reads there.",
)
SHOWN_ASKED = _shown(
    Severity.MEDIUM,
    "Tells the client a credential that it was given",
    "What the server declares or says holds a credential that it was started with; a client hands it on to a model.",
)
SHOWN_CAPABILITY = _shown(
    Severity.LOW,
    "A tool shows secrets",
    "The result of a call holds a secret; showing such things is what the tool is for, or it was asked to.",
)
ARGUMENTS = Kind(
    "behavior.canaries.in-arguments",
    "Puts a secret into a program's arguments",
    Severity.MEDIUM,
    "A program was started with a secret among its arguments, where every user of the machine can read it.",
    threat=Threat.EXFILTRATION,
    cwe=214,
)
ARGUMENTS_ASKED = Kind(
    "behavior.canaries.in-arguments",
    "Puts a credential into a program's arguments",
    Severity.LOW,
    "A program was started with a credential among its arguments, where every user of the machine can read it.",
    threat=Threat.UNCATEGORIZED,
    cwe=214,
    remediation="Have it hand credentials over by environment or file.",
)
LOGGED = Kind(
    "behavior.canaries.logged",
    "Prints a secret of the user",
    Severity.MEDIUM,
    "The server's error output, which clients keep in files, holds a secret that it did not ask for.",
    threat=Threat.EXFILTRATION,
    cwe=532,
)
LOGGED_ASKED = Kind(
    "behavior.canaries.logged",
    "Prints a credential that it was given",
    Severity.LOW,
    "The server's error output, which clients keep in files, holds a credential that it was started with.",
    threat=Threat.UNCATEGORIZED,
    cwe=532,
    remediation="Have it leave credentials out of what it prints.",
)
KINDS = (
    LEAVES_UNASKED, LEAVES_ASKED, LEAVES_SOMEWHERE, LEAVES_FORM, LEAVES_NEAR, LEAVES_IN_CALL, USED, SHOWN_UNASKED,
    SHOWN_ASKED, SHOWN_CAPABILITY, ARGUMENTS, ARGUMENTS_ASKED, LOGGED, LOGGED_ASKED,
)  # fmt: skip
#: Rules of which a hit is worth a second life with other canaries.
WORTH_A_SECOND_LOOK = frozenset({_LEAVES, _SHOWN})
