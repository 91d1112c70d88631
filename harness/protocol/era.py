"""The protocol's revisions and how requests of each era look on the wire. Pure.

Handshake revisions begin with `initialize`; the stateless one carries version, client and capabilities in the
`_meta` of every request and has `server/discover` (facts from the specification's revisions and the types of the
official Python SDK 2.3).
"""

from __future__ import annotations

from harness.model.base import JsonObject, JsonValue

#: Oldest first.
HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_REVISION = "2026-07-28"

#: Error code of a server that does not speak the proposed revision; `data.supported` names those it does.
UNSUPPORTED_PROTOCOL_VERSION = -32022

_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_CLIENT = "io.modelcontextprotocol/clientInfo"
_META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_META_SERVER = "io.modelcontextprotocol/serverInfo"

#: What the client offers unless told otherwise: a server that asks for sampling or elicitation does so uninvited, and
#: servers that change their tools with what the client offers show the set that every client gets.
CLIENT_CAPABILITIES: JsonObject = {}
#: The same where what a server asks for is answered: as the official SDK declares them for a client that can.
ANSWERING: JsonObject = {"sampling": {}, "elicitation": {"form": {}, "url": {}}}


def client_info(client: str = "") -> JsonObject:
    """How we name ourselves: as the official SDK does by default, so that a target can't tell a vetting client.

    `client`: another name, to see whether a target goes by it.
    """
    return {"name": client or "mcp", "version": "0.1.0"}


def initialize_params(revision: str, client: str = "", offers: JsonObject = CLIENT_CAPABILITIES) -> JsonObject:
    """Parameters of `initialize` that propose `revision`. `offers`: the client's capabilities."""
    return {"protocolVersion": revision, "capabilities": offers, "clientInfo": client_info(client)}


def with_envelope(params: JsonObject, client: str = "", offers: JsonObject = CLIENT_CAPABILITIES) -> JsonObject:
    """`params` with the `_meta` that each request of the stateless revision carries."""
    meta = {
        _META_VERSION: STATELESS_REVISION,
        _META_CLIENT: client_info(client),
        _META_CAPABILITIES: offers,
    }
    return {**params, "_meta": meta}


def stateless_server_info(result: JsonObject) -> JsonObject:
    """The server's name and version as a `server/discover` result carries them; empty when it carries none."""
    meta = result.get("_meta")
    return as_object(meta.get(_META_SERVER)) if isinstance(meta, dict) else {}


def supported_revisions(value: JsonValue) -> tuple[str, ...]:
    """The strings of a list of revisions, or () for anything else; the first 32 count."""
    return tuple(entry for entry in value[:32] if isinstance(entry, str)) if isinstance(value, list) else ()


def newest_handshake(revisions: tuple[str, ...]) -> str | None:
    """The newest handshake revision among `revisions` that we speak, or None."""
    return next((revision for revision in reversed(HANDSHAKE_REVISIONS) if revision in revisions), None)


def as_object(value: JsonValue) -> JsonObject:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_text(value: JsonValue) -> str | None:
    """`value` if it is a string, else None."""
    return value if isinstance(value, str) else None
