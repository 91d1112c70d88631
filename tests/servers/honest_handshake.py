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
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
            "serverInfo": {"name": "honest-handshake", "version": "1.0"},
            "instructions": "Three tools about text.",
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        tools, following = PAGES[params.get("cursor")]
        return {"tools": tools} | ({"nextCursor": following} if following else {})
    if method == "tools/call":
        text = params["arguments"]["text"]
        done = {"echo": text, "count": str(len(text)), "upper": text.upper()}[params["name"]]
        return {"content": [{"type": "text", "text": done}]}
    if method == "prompts/list":
        return {"prompts": [{"name": "summarise", "description": "Summarise a text"}]}
    if method == "resources/list":
        return {"resources": [{"uri": "note://one", "name": "one", "mimeType": "text/plain"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "note://{name}", "name": "note"}]}
    return None


for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    reply |= {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
