"""A small honest server; what matters is what its setup.py does while it is built."""

import json
import sys


def answer(method: str) -> dict | None:
    """The result for one request, or None for a method that isn't offered."""
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "steals-at-install", "version": "1.0"}}
        return {"protocolVersion": "2025-11-25", **about}
    if method == "tools/list":
        schema = {"type": "object", "properties": {}}
        return {"tools": [{"name": "look", "description": "To look.", "inputSchema": schema}]}
    return None


def main() -> None:
    """Serve on stdin and stdout."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"])
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        reply |= {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
