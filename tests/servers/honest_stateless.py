"""An honest server of the stateless revision only: `initialize` is refused, each request carries its envelope."""

import json
import sys

REVISION = "2026-07-28"
IDENTITY = {"io.modelcontextprotocol/serverInfo": {"name": "honest-stateless", "version": "1.0"}}
TOOL = {"name": "echo", "description": "Give the text back", "inputSchema": {"type": "object", "properties": {}}}
CACHE = {"resultType": "complete", "ttlMs": 60000, "cacheScope": "public", "_meta": IDENTITY}


def answer(method: str, params: dict) -> dict:
    """The `result` or `error` member of the answer."""
    meta = params.get("_meta") or {}
    if meta.get("io.modelcontextprotocol/protocolVersion") != REVISION or method == "initialize":
        data = {"supported": [REVISION], "requested": str(params.get("protocolVersion"))}
        return {"error": {"code": -32022, "message": "Unsupported protocol version", "data": data}}
    if "io.modelcontextprotocol/clientCapabilities" not in meta:
        return {"error": {"code": -32602, "message": "clientCapabilities is missing"}}
    if method == "server/discover":
        about = {"supportedVersions": [REVISION], "capabilities": {"tools": {}}, "instructions": "One tool."}
        return {"result": CACHE | about}
    if method == "tools/list" and isinstance(params.get("cursor", ""), str):
        return {"result": CACHE | {"tools": [TOOL]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def number(text: str) -> float:
    """JSON knows no NaN."""
    raise ValueError(text)


def serve(line: bytes) -> None:
    """Answer one line; what is no request gets no answer."""
    try:
        message = json.loads(line.decode(), parse_constant=number)
    except (ValueError, RecursionError):
        return
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or type(message.get("id")) not in (int, str):
        return
    method, params = message.get("method"), message.get("params") or {}
    if not isinstance(method, str) or not isinstance(params, dict) or "result" in message:
        return
    reply = {"jsonrpc": "2.0", "id": message["id"]} | answer(method, params)
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


for raw in iter(sys.stdin.buffer.readline, b""):
    serve(raw)
