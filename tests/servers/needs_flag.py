"""Wants a flag with the path of a database, which must exist, as the usual parser asks for it."""

import argparse
import json
import sqlite3
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


parser = argparse.ArgumentParser()
parser.add_argument("--db-path", required=True)
with sqlite3.connect(f"file:{parser.parse_args().db_path}?mode=rw", uri=True) as database:
    database.execute("select count(*) from sqlite_master")
serve(["now"])
