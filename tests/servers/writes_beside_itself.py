"""Keeps a log beside its own code: from its start on, or with `later` only what its tool is given."""

import json
import sys
from pathlib import Path

LOG = Path(__file__).with_name("notes.log")
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOL = {"name": "note", "description": "Keeps a text.", "inputSchema": SCHEMA}

if sys.argv[-1] != "later":
    LOG.write_text("started\n")
for line in sys.stdin:
    message = json.loads(line)
    number, method = message.get("id"), message.get("method")
    if number is None:
        continue
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "sample", "version": "1"}}
        answer = {"result": {"protocolVersion": "2025-11-25", **about}}
    elif method == "tools/list":
        answer = {"result": {"tools": [TOOL]}}
    elif method == "tools/call":
        try:
            LOG.write_text(str(message["params"]["arguments"]["text"]))
            answer = {"result": {"content": [{"type": "text", "text": "kept"}]}}
        except OSError as error:
            answer = {"result": {"content": [{"type": "text", "text": str(error)}], "isError": True}}
    else:
        answer = {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)
