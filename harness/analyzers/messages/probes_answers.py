"""What an answer to a malformed message is, and what it lets out. Pure functions over one decoded message."""

from __future__ import annotations

import re
from enum import StrEnum

from harness.analyzers.messages import probes_rules as rules
from harness.analyzers.messages.probes_rules import Fault
from harness.model.base import JsonObject, JsonValue, canonical_json
from harness.model.finding import Severity
from harness.model.probe import Family, Must, Probe

#: So much of an answer is searched for what should not be in it.
MOST_SEARCHED = 256 << 10

_TRACE = re.compile(
    r"Traceback \(most recent call last\)|\bFile \"[^\"\n]{1,300}\", line \d+"
    r"|\bat [^\n(]{0,200}\(?(?:file://)?/[^\s()]{1,300}:\d+:\d+\)?|\bat [\w.$<>]+\([\w]+\.java:\d+\)"
    r"|goroutine \d+ \[|panicked at [^\n]{1,200}\.rs:\d+"
)
_INSIDE = re.compile(r"(?:/app/|/usr/(?:local/)?lib/(?:python|node))[\w@./+-]{3,200}")
_VARIABLE = re.compile(
    r"\b(PATH|HOME|HOSTNAME|NODE_OPTIONS|PYTHONPATH|LANG|USER|PWD)\b['\"\\]{0,2}\s?[=:]\s?['\"\\]{0,2}[\w/]"
)
_PASSWD = re.compile(r"\broot:[^:\s]{0,80}:0:0:")
#: How errors that are told as results read.
_COMPLAINT = re.compile(
    r"\b(?:error|unknown|not found|no such|invalid|missing|required|fail|unsupported|not (?:allowed|supported|exist)"
    r"|must (?:be|have|provide)|expected|undefined|cannot|can't|unable|exception)",
    re.IGNORECASE,
)
_COMPLAINT_CHARACTERS = 600
#: So many variables with their values are no accident.
MOST_VARIABLES = 2


class Kind(StrEnum):
    """What a response says."""

    ERROR = "error"
    REFUSAL = "refusal"  # a tool's result that says that it is an error, or reads like one
    RESULT = "result"


def kind_of(message: JsonObject, probe: Probe | None) -> Kind:
    """What this response to the probe is."""
    if message.get("error") is not None or "result" not in message:
        return Kind.ERROR
    result = message["result"]
    if isinstance(result, dict) and result.get("isError") is True:
        return Kind.REFUSAL
    if probe is not None and probe.family in (Family.TOOLS, Family.HANDSHAKE, Family.ENVELOPE) and _complains(result):
        return Kind.REFUSAL
    return Kind.RESULT


def judged_acceptance(message: JsonObject, probe: Probe) -> Severity | None:
    """How bad it is that the probe was answered so; None where it is in order."""
    kind = kind_of(message, probe)
    if kind is Kind.ERROR:
        return None
    result = message["result"]
    if probe.must is Must.NEGOTIATE:
        echoed = isinstance(result, dict) and result.get("protocolVersion") == probe.version
        return probe.accepted if echoed else None
    if probe.must is not Must.REJECT:
        return None
    if kind is Kind.REFUSAL:
        marked = isinstance(result, dict) and result.get("isError") is True
        return None if marked else Severity.INFO
    if probe.family is Family.RESOURCES and not _contents(result):
        return min(probe.accepted, Severity.LOW, key=lambda severity: severity.rank)  # an answer with nothing in it
    return probe.accepted


def leak_of(message: JsonObject, probe: Probe | None, secrets: tuple[str, ...]) -> tuple[Fault, str] | None:
    """The worst that an answer lets out, with the text that shows it. `secrets`: values that were planted."""
    text = _text(message)
    sent = "\n".join(probe.sends) if probe is not None else ""
    if (secret := next((value for value in secrets if value in text and value not in sent), None)) is not None:
        return rules.SECRET, secret
    if (hit := _PASSWD.search(text)) is not None:
        return rules.SYSTEM_FILE, hit[0]
    names = sorted({hit[1] for hit in _VARIABLE.finditer(text)})
    if len(names) >= MOST_VARIABLES:
        return rules.ENVIRONMENT, ", ".join(names)
    trace = _TRACE.search(text) or next((hit for hit in _INSIDE.finditer(text) if hit[0] not in sent), None)
    return (rules.TRACE, trace[0]) if trace is not None else None


def same_number(identifier: JsonValue, wanted: str) -> bool:
    """True when an id is the wanted one (as JSON text) but for its type, or but for what a double loses."""
    text = wanted.strip('"')
    if isinstance(identifier, bool) or identifier is None:
        return False
    if isinstance(identifier, str):
        return identifier == text
    if isinstance(identifier, float) and not identifier.is_integer():
        return False
    return str(int(identifier)) == text if isinstance(identifier, int | float) else False


def rounded(identifier: JsonValue, wanted: str) -> bool:
    """True when an id is what a double makes of the wanted one."""
    if not isinstance(identifier, int | float) or isinstance(identifier, bool) or not wanted.isdigit():
        return False
    return len(wanted) > 15 and float(wanted) == float(identifier)


def _contents(result: JsonValue) -> bool:
    """True when the result of reading holds something."""
    if not isinstance(result, dict):
        return bool(result)
    contents = result.get("contents", result.get("messages", result))
    return bool(contents)


def _complains(result: JsonValue) -> bool:
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(content, list):
        return False
    texts = [block.get("text") for block in content[:10] if isinstance(block, dict)]
    return any(isinstance(text, str) and _COMPLAINT.search(text[:_COMPLAINT_CHARACTERS]) for text in texts)


def _text(message: JsonObject) -> str:
    """All texts of the answer, as they are: JSON's escapes would hide line ends and quotes."""
    pieces: list[str] = []
    room = MOST_SEARCHED
    stack: list[JsonValue] = [message.get("result"), message.get("error")]
    while stack and room > 0:
        value = stack.pop()
        if isinstance(value, str):
            pieces.append(value[:room])
            room -= len(value)
        elif isinstance(value, dict):
            for key, entry in value.items():
                if isinstance(entry, str | int | float) and not isinstance(entry, bool):
                    pieces.append(f"{key}={entry}"[:room])
                    room -= len(pieces[-1])
                else:
                    stack.append(entry)
        elif isinstance(value, list):
            stack.extend(reversed(value))
        elif value is not None:
            pieces.append(canonical_json(value)[:room])
    return "\n".join(pieces)
