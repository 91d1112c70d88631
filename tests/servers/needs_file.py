"""Wants the keys of an OAuth client in a file of its home."""

import json
import sys
from pathlib import Path


def serve(tools):
    """Answer as an honest server with these tools does."""
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if number is None:
            continue
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "sample", "version": "1"}}
            answer = {"result": {"protocolVersion": "2025-11-25", **about}}
        elif method == "tools/list":
            schema = {"type": "object", "properties": {}}
            answer = {
                "result": {
                    "tools": [{"name": n, "description": "Tells the time.", "inputSchema": schema} for n in tools]
                }
            }
        else:
            answer = {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)


path = Path.home() / ".sample-mail" / "gcp-oauth.keys.json"
if not path.is_file():
    sys.exit(f"Error: OAuth keys file not found. Please place gcp-oauth.keys.json at {path}")
keys = json.loads(path.read_text())
if not keys["installed"]["client_id"]:
    sys.exit("Error: no client id")
serve(["now"])
