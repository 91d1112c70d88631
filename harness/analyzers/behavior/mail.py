"""Who a mail was sent to, and whether the call that sent it named them. Bounded memories, no judgement of content."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.model.base import JsonValue
from harness.model.call import CallEvent
from harness.model.recording import FlowEvent

#: Calls whose addresses are remembered, addresses of one call, and characters that are read of its arguments.
MAX_CALLS = 4096
MAX_ADDRESSES = 256
MAX_CHARACTERS = 64 << 10
#: A path in an envelope is no longer (RFC 5321, 4.5.3.1.3).
MAX_NAME = 256
_ADDRESS = re.compile(r"[\w.+%'*/=?^{|}~-]{1,64}@[\w.-]{1,190}")
#: Commands of RFC 5321; the path may come without its brackets.
_ENVELOPE = re.compile(r"\s*(MAIL FROM|RCPT TO)\s*:\s*<?([^<>\s]{1,260})>?", re.IGNORECASE)


class Envelope:
    """Sender and recipients of the mails of one flow, in lower case."""

    __slots__ = ("recipients", "senders")

    def __init__(self, event: FlowEvent) -> None:
        self.senders: set[str] = set()
        self.recipients: dict[str, None] = {}
        for part in event.parts:
            match = _ENVELOPE.match(part.text) if part.what == "smtp-command" else None
            if match is None or len(self.recipients) >= MAX_ADDRESSES:
                continue
            if match[1].upper() == "RCPT TO":
                self.recipients[match[2].lower()] = None
            else:
                self.senders.add(match[2].lower())

    def unnamed(self, named: Iterable[str]) -> list[str]:
        """The recipients that are neither named nor the sender."""
        return [address for address in self.recipients if address not in self.senders and address not in named]


class Named:
    """Whom the arguments of each call name: addresses in them, and short texts that are one as a whole."""

    def __init__(self) -> None:
        self._calls: dict[str, frozenset[str]] = {}
        self._all: set[str] = set()

    def take(self, event: CallEvent) -> None:
        """Learn from a call that is about to be made."""
        if len(self._calls) >= MAX_CALLS:
            return
        found = frozenset(_names(event.call.given))
        self._calls[event.call.id] = found
        if len(self._all) < MAX_CALLS:
            self._all |= found

    def readers(self, call: str | None, recipients: Iterable[str]) -> list[str]:
        """Whom this call named as readers: those of the recipients whom it names, and every address in it.

        Where it is not known which call it was, of all calls.
        """
        named = self._calls.get(call, frozenset(self._all)) if call is not None else frozenset(self._all)
        return sorted({name for name in named if "@" in name and " " not in name} | (named & set(recipients)))

    @property
    def ever(self) -> set[str]:
        """The names that any call gave: a draft may be written by one call and sent by another."""
        return self._all


def _names(value: JsonValue) -> set[str]:
    found: set[str] = set()
    room = MAX_CHARACTERS
    stack: list[JsonValue] = [value]
    while stack and room > 0 and len(found) < MAX_ADDRESSES:
        node = stack.pop()
        if isinstance(node, str):
            found.update(match.lower() for match in _ADDRESS.findall(node[:room]))
            if len(node) <= MAX_NAME:
                found.add(node.strip().lower())
            room -= len(node)
        elif isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list | tuple):
            stack.extend(node)
    return found
