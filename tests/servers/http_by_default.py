"""Listens on a port and is silent on its standard streams, unless the flag `--stdio` is given."""

import json
import socket
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


if "--stdio" not in sys.argv:
    with socket.create_server(("127.0.0.1", 3333)) as listener:
        print("[INFO] HTTP server listening on port 3333", file=sys.stderr, flush=True)
        listener.settimeout(600)  # it ends by itself at last
        listener.accept()
    sys.exit(0)
serve(["now"])
