"""A program of several commands: without one it prints its usage on stdout and ends with exit code 0."""

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


USAGE = """Usage: sample <command>

Commands:
  login    Log in to the service
  mcp      Run the server on standard streams
  index    Build the index
"""
if sys.argv[1:] != ["mcp"]:
    print(USAGE)
    sys.exit(0)
serve(["now"])
