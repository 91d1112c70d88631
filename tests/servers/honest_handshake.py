"""An honest server of the handshake revisions: two pages of tools, a prompt, a resource, a template, instructions."""

import json
import sys

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
TOOLS = [
    {
        "name": name,
        "description": text,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    for name, text in (("echo", "Give the text back"), ("count", "Count the characters"), ("upper", "To upper case"))
]
PAGES = {None: (TOOLS[:2], "page-2"), "page-2": (TOOLS[2:], None)}


def answer(method: str, params: dict) -> dict | None:
    """The result for one request, or None for a method that isn't offered."""
    if method == "initialize":
        asked = params["protocolVersion"]
        return {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
            "serverInfo": {"name": "honest-handshake", "version": "1.0"},
            "instructions": "Three tools about text.",
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        if not isinstance(params.get("_meta", {}).get("progressToken", 0), int | str):
            raise TypeError("_meta")
        tools, following = PAGES[params.get("cursor")]
        return {"tools": tools} | ({"nextCursor": following} if following else {})
    if method == "tools/call":
        text = params["arguments"]["text"]
        if not isinstance(text, str):
            raise TypeError("text")
        done = {"echo": text, "count": str(len(text)), "upper": text.upper()}[params["name"]]
        return {"content": [{"type": "text", "text": done}]}
    if method == "prompts/list":
        return {"prompts": [{"name": "summarise", "description": "Summarise a text"}]}
    if method == "resources/list":
        return {"resources": [{"uri": "note://one", "name": "one", "mimeType": "text/plain"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "note://{name}", "name": "note"}]}
    return None


def write(value: dict) -> None:
    """One message."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


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
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        result = answer(method, params)
    except (KeyError, TypeError, AttributeError):
        write(reply | {"error": {"code": -32602, "message": "Invalid params"}})
        return
    missing = {"error": {"code": -32601, "message": "Method not found"}}
    write(reply | (missing if result is None else {"result": result}))


for raw in iter(sys.stdin.buffer.readline, b""):
    serve(raw)
