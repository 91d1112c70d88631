"""A server over streamable HTTP that takes more than it should from the headers of requests. Standard library only.

`headers_http.py MODE ROOT [--auth-token TOKEN]`, on port 8000. `faulty`: `X-Acme-Site-Url` may lead anywhere,
`X-Acme-File` out of ROOT, a token is asked for in the first message only, and Host and Origin are not looked at.
`benign`: the same tools, and all of that is checked.
"""

import argparse
import json
import os
import secrets
import sys
import urllib.request
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TOOLS = [
    {
        "name": "get_issue",
        "description": "Get an issue of the Acme site by its key.",
        "inputSchema": {
            "type": "object",
            "properties": {"issue_key": {"type": "string", "description": "Key of the issue, such as ACME-1"}},
            "required": ["issue_key"],
        },
    },
    {"name": "read_note", "description": "Read the note.", "inputSchema": {"type": "object", "properties": {}}},
]
LOCAL = ("127.0.0.1", "localhost")


class Refused(Exception):
    pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faulty, root, token = False, "", ""
    sessions: set[str] = set()

    def log_message(self, *args):
        pass

    # What may be asked

    def refused(self, message):
        """Status and text for a request that is turned away; None for one that is served."""
        host = (self.headers.get("host") or "").partition(":")[0]
        origin = self.headers.get("origin")
        if not self.faulty and host not in LOCAL:
            return 421, "Invalid Host header"
        if not self.faulty and origin is not None and urlsplit(origin).hostname not in LOCAL:
            return 403, "Invalid Origin header"
        begins = message.get("method") == "initialize"
        shown = secrets.compare_digest(self.headers.get("authorization") or "", f"Bearer {self.token}")
        if self.token and not shown and (begins or not self.faulty):
            return 401, "Unauthorized"
        if not begins and self.headers.get("mcp-session-id") not in self.sessions:
            return 404, "Session not found"
        return None

    # What is done

    def get_issue(self, arguments):
        key = arguments.get("issue_key")
        if not isinstance(key, str):
            raise Refused("issue_key must be a text")
        site = self.headers.get("X-Acme-Site-Url")
        if site is None:
            return f"{key}: all is well"
        if not self.faulty and not (urlsplit(site).hostname or "").endswith(".acme.example"):
            raise Refused("this is no site of Acme")
        asked = urllib.request.Request(f"{site.rstrip('/')}/rest/me")
        asked.add_header("Authorization", self.headers.get("X-Acme-Token") or "")
        with urllib.request.urlopen(asked, timeout=5) as said:
            return f"{key}: {said.read(4096).decode('utf-8', 'replace')}"

    def read_note(self, _):
        path = os.path.realpath(os.path.join(self.root, self.headers.get("X-Acme-File") or "notes.txt"))
        if not self.faulty and not path.startswith(os.path.realpath(self.root) + os.sep):
            raise Refused("the file lies outside")
        with open(path, encoding="utf-8", errors="replace") as note:
            return note.read(65536)

    def answer(self, message):
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if number is None or not isinstance(method, str):
            return None
        odd = isinstance(number, (bool, float, list, dict)) or not isinstance(params, dict)
        if odd or message.get("jsonrpc") != "2.0":
            return failure(number if isinstance(number, (int, str)) else None, -32600, "Invalid Request")
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "headers", "version": "1.0"}}
            return done(number, {"protocolVersion": "2025-11-25", **about})
        if method == "ping":
            return done(number, {})
        if method == "tools/list":
            return done(number, {"tools": TOOLS})
        if method != "tools/call":
            return failure(number, -32601, "Method not found")
        tool = {"get_issue": self.get_issue, "read_note": self.read_note}.get(str(params.get("name")))
        arguments = params.get("arguments", {})
        if tool is None or not isinstance(arguments, dict):
            return failure(number, -32602, "unknown tool or arguments")
        try:
            return done(number, {"content": [{"type": "text", "text": tool(arguments)}]})
        except (Refused, OSError, ValueError, HTTPException) as error:
            return done(number, {"content": [{"type": "text", "text": str(error)}], "isError": True})

    # HTTP

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        accept, kind = self.headers.get("accept") or "", self.headers.get("content-type") or ""
        version = self.headers.get("mcp-protocol-version", "2025-11-25")
        if "application/json" not in accept or kind.partition(";")[0].strip() != "application/json":
            self.say(415, failure(None, -32000, "only JSON is spoken here"))
            return
        if version != "2025-11-25":
            self.say(400, failure(None, -32000, "unsupported protocol version"))
            return
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            self.say(400, failure(None, -32700, "Parse error"))
            return
        if not isinstance(message, dict):
            self.say(400, failure(None, -32600, "Invalid Request"))
            return
        if (refused := self.refused(message)) is not None:
            self.say(refused[0], failure(None, -32000, refused[1]))
            return
        extra = {}
        if message.get("method") == "initialize":
            extra["Mcp-Session-Id"] = session = secrets.token_hex(16)
            self.sessions.add(session)
        said = self.answer(message)
        self.say(200 if said is not None else 202, said, extra)

    def do_DELETE(self):
        self.sessions.discard(self.headers.get("mcp-session-id") or "")
        self.say(200, None)

    def do_GET(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.say(405, None)

    do_PUT = do_OPTIONS = do_PATCH = do_GET

    def say(self, status, message, extra=None):
        body = b"" if message is None else json.dumps(message).encode()
        self.send_response(status)
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def done(number, result):
    return {"jsonrpc": "2.0", "id": number, "result": result}


def failure(number, code, text):
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


if __name__ == "__main__":
    given = argparse.ArgumentParser()
    given.add_argument("mode", choices=["faulty", "benign"])
    given.add_argument("root")
    given.add_argument("--auth-token", default="")
    options = given.parse_args()
    Handler.faulty, Handler.root, Handler.token = options.mode == "faulty", options.root, options.auth_token
    server = ThreadingHTTPServer(("127.0.0.1", 8000), Handler)
    server.daemon_threads = True
    print("listening on http://127.0.0.1:8000/mcp", file=sys.stderr, flush=True)
    server.serve_forever()
