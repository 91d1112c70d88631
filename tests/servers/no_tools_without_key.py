"""Starts without a key, and then offers no tools."""

import json
import os
import sys


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


key = os.environ.get("ACME_API_KEY")
if not key:
    print("warning: ACME_API_KEY is not set, no tools are offered", file=sys.stderr, flush=True)
serve(["now", "then"] if key else [])
