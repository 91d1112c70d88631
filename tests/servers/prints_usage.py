"""Prints an unhelpful usage on stderr with exit code 2 unless its command is `serve`."""

import json
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


if sys.argv[1:] != ["serve"]:
    print("usage: sample <command> [options]", file=sys.stderr)
    sys.exit(2)
serve(["now"])
