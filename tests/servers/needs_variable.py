"""Ends with exit code 1 unless two variables are set, one of them in the shape of its provider."""

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


token = os.environ.get("ACME_SLACK_BOT_TOKEN", "")
if not token or not os.environ.get("ACME_SITE_URL"):
    sys.exit("Error: Please set ACME_SLACK_BOT_TOKEN and ACME_SITE_URL environment variables")
if not token.startswith("xoxb-"):
    sys.exit("Error: ACME_SLACK_BOT_TOKEN is no bot token")
serve(["now"])
