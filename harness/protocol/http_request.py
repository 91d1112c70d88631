"""The headers that go with a message over HTTP, by revision of the protocol. Pure.

Facts from the specification's pages on transports (2025-03-26 to 2026-07-28) and the official Python SDK 2.3.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from harness.model.base import JsonValue
from harness.model.probe import HttpShape
from harness.protocol.era import STATELESS_REVISION

SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"
#: What the SDK's HTTP client calls itself, so that a target can't tell a vetting client.
USER_AGENT = "python-httpx2/2.16.2"
BOTH = "application/json, text/event-stream"

_META_VERSION = "io.modelcontextprotocol/protocolVersion"
#: Methods whose parameter is mirrored in `Mcp-Name` (2026-07-28).
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
_PLAIN = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Sent:
    """What a line that we send is: `id` of a request of ours, None for anything else."""

    id: int | None = None
    method: str = ""
    version: str = ""
    name: str = ""


def read_sent(line: bytes) -> Sent:
    """What we are about to send; what is no message of ours has no id and no method."""
    try:
        message: JsonValue = json.loads(line)
    except (ValueError, RecursionError):
        return Sent()
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return Sent()
    method, params = str(message["method"]), message.get("params")
    found, identifier = params if isinstance(params, dict) else {}, message.get("id")
    meta, name = found.get("_meta"), found.get(_NAMED.get(method, ""))
    version = meta.get(_META_VERSION) if isinstance(meta, dict) else None
    return Sent(
        id=identifier if type(identifier) is int else None,
        method=method,
        version=version if isinstance(version, str) else "",
        name=name if isinstance(name, str) else "",
    )


def headers_of(sent: Sent, port: int, session: str | None, version: str | None) -> dict[str, str]:
    """The headers of the POST that carries a message. `version`: the one agreed on, None before."""
    headers = {
        "Host": f"localhost:{port}",  # servers that check it know this name best
        "Accept": BOTH,
        "User-Agent": USER_AGENT,
        "Content-Type": "application/json",
    }
    if session is not None:
        headers["Mcp-Session-Id"] = session
    spoken = sent.version or (version if sent.method != "initialize" else None)
    if spoken:
        headers["MCP-Protocol-Version"] = header_value(spoken)
    if spoken == STATELESS_REVISION and sent.method:
        headers["Mcp-Method"] = header_value(sent.method)
        if sent.method in _NAMED:
            headers["Mcp-Name"] = header_value(sent.name)
    return headers


def header_value(text: str) -> str:
    """A value as it may stand in a header; others in the encoding that revision 2026-07-28 has for them."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


class Credentials:
    """Ways to show who we are, each a header and its value; `shown`: the one that is sent with each message.

    `standing`: headers that go with every message anyhow.
    """

    def __init__(self, ways: Sequence[tuple[str, str]] = (), standing: Mapping[str, str] | None = None) -> None:
        self._ways = tuple(ways)
        self._standing = dict(standing or {})
        self._untried = iter(self._ways)
        self.shown: tuple[str, str] | None = None

    @property
    def header(self) -> str:
        """The header of the one that is shown, or else could be; empty where there is none."""
        way = self.shown or next(iter(self._ways), None)
        return way[0] if way is not None else ""

    def another(self) -> bool:
        """We were turned away: show the next from here on. False when there is no other."""
        self.shown = next(self._untried, None)
        return self.shown is not None

    def on(self, headers: dict[str, str], *, which: str = "kept") -> dict[str, str]:
        """The headers with what is shown, without it (`none`), or with one that was never given out (`wrong`)."""
        headers = replaced(headers, self._standing)
        if which == "wrong":
            name = self.header or "Authorization"
            other = sha256("\n".join(map(":".join, self._ways)).encode()).hexdigest()[:40]
            return headers | {name: f"Bearer {other}" if name == "Authorization" else other}
        return headers if self.shown is None or which == "none" else headers | dict([self.shown])


def replaced(headers: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    """The usual headers of a message with the given ones in their place; one that is empty is left out."""
    names = {name.lower() for name in given}
    kept = {name: value for name, value in headers.items() if name.lower() not in names}
    return kept | {name: value for name, value in given.items() if value}


def deviating(headers: dict[str, str], shape: HttpShape) -> list[tuple[str, str]]:
    """The usual headers of a message, changed as a probe wants them."""
    if shape.session == "none":
        headers = {name: value for name, value in headers.items() if name != "Mcp-Session-Id"}
    lowered = {name.lower(): (name, value) for name, value in headers.items()}
    for name, value in shape.headers.items():
        lowered.pop(name.lower(), None)
        if value is not None:
            lowered[name.lower()] = name, value
    if shape.method in WITHOUT_BODY:
        lowered.pop("content-type", None)
    return list(lowered.values())
