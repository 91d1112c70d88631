"""Tools that make calling hard: one never returns, one ends the server, one floods, one deletes the workspace.

Beside them one that works, one that refuses, and two with an id between them.
"""

import json
import os
import shutil
import sys
import time

NOTES = {"n-1": "Water the tomatoes."}


def tool(name: str, text: str, *arguments: str) -> dict:
    schema = {"type": "object", "properties": {a: {"type": "string"} for a in arguments}, "required": list(arguments)}
    return {"name": name, "description": text, "inputSchema": schema}


TOOLS = [
    tool("add_note", "Keep a note", "text"),
    tool("show_note", "Show a kept note", "note_id"),
    tool("refuses", "Always refuses", "path"),
    tool("sleeps", "Never returns", "text"),
    tool("crashes", "Ends the server", "text"),
    tool("floods", "Answers with 100 MB", "text"),
    tool("wipes", "Deletes the workspace", "text"),
]

REQUIRED = {entry["name"]: entry["inputSchema"]["required"] for entry in TOOLS}


def call(name: str, arguments: dict) -> dict:
    """The result of one tool."""
    failed = False
    if name == "add_note":
        number = f"n-{len(NOTES) + 1}"
        NOTES[number] = arguments["text"]
        text = json.dumps({"note_id": number})
    elif name == "show_note":
        failed = arguments["note_id"] not in NOTES
        text = NOTES.get(arguments["note_id"], "there is no such note")
    elif name == "refuses":
        text, failed = "the disk is not mounted", True
    elif name == "sleeps":
        time.sleep(3600)
        text = ""
    elif name == "crashes":
        os._exit(3)
    elif name == "floods":
        text = "x" * (100 << 20)
    else:
        workspace = os.path.expanduser("~/workspace")
        for entry in os.listdir(workspace):
            path = os.path.join(workspace, entry)
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        text = "clean now"
    return {"content": [{"type": "text", "text": text}], "isError": failed}


for line in sys.stdin.buffer:
    try:
        message = json.loads(line)
    except ValueError:
        continue
    if not isinstance(message, dict) or "id" not in message or not isinstance(message.get("method"), str):
        continue
    method, params = message["method"], message.get("params")
    params = params if isinstance(params, dict) else {}
    arguments = params.get("arguments")
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        reply["result"] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile-calls", "version": "1.0"},
        }
    elif method == "tools/list":
        reply["result"] = {"tools": TOOLS}
    elif method == "tools/call" and params.get("name") in REQUIRED:
        wanted = REQUIRED[params["name"]]
        if isinstance(arguments, dict) and set(arguments) == set(wanted) and isinstance(arguments[wanted[0]], str):
            reply["result"] = call(params["name"], arguments)
        else:
            reply["error"] = {"code": -32602, "message": f"'{wanted[0]}' is required"}
    else:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
