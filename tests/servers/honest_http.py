"""An honest MCP server over streamable HTTP, and its faults by name. Standard library only.

`honest_http.py [--port N] [--host H] [--path P] [MODE]`. Modes: `json` (default) and `sse` answer as they say, `older`
speaks HTTP with SSE (2024-11-05), `late` listens after a second, `stateful` takes no message without its session.
"""

from __future__ import annotations

import argparse
import json
import queue
import secrets
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = [
    {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    }
]
LOCAL = ("127.0.0.1", "localhost", "[::1]")
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def answer(message):
    """The JSON-RPC answer, or None for what wants none."""
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if number is None or not isinstance(method, str):
        return None
    if message.get("jsonrpc") != "2.0" or isinstance(number, (bool, float, list, dict)) or not isinstance(params, dict):
        return error(number if isinstance(number, (int, str)) else None, -32600, "Invalid Request")
    if method == "initialize":
        wanted = params.get("protocolVersion")
        version = wanted if wanted in VERSIONS else VERSIONS[-1]
        info = {"name": "honest-http", "version": "1.0"}
        return done(number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    if method == "ping":
        return done(number, {})
    if method == "tools/list":
        return done(number, {"tools": TOOLS})
    if method == "tools/call":
        given = params.get("arguments")
        if params.get("name") != "add":
            return error(number, -32602, "unknown tool")
        if not isinstance(given, dict) or not all(type(given.get(name)) in (int, float) for name in ("a", "b")):
            return error(number, -32602, "a and b must be numbers")
        return done(number, {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]})
    return error(number, -32601, "Method not found")


def done(number, result):
    return {"jsonrpc": "2.0", "id": number, "result": result}


def error(number, code, text):
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mode, path_served = "json", "/mcp"
    sessions: dict[str, bool] = {}
    streams: dict[str, queue.Queue] = {}

    def log_message(self, *args):
        pass

    # Who may ask

    def local(self):
        host = (self.headers.get("host") or "").rpartition(":")[0] or self.headers.get("host") or ""
        origin = self.headers.get("origin")
        if host not in LOCAL:
            self.say(421, error(None, -32000, "Invalid Host header"))
        elif origin is not None and origin.partition("://")[2].rpartition(":")[0] not in LOCAL:
            self.say(403, error(None, -32000, "Invalid Origin header"))
        else:
            return True
        return False

    def known(self):
        """Whether the request belongs to a session of ours; says so when it does not."""
        session = self.headers.get("mcp-session-id")
        if session is None:
            self.say(400, error(None, -32000, "Mcp-Session-Id header is required"))
        elif session not in self.sessions:
            self.say(404, error(None, -32001, "Session not found"))
        else:
            return True
        return False

    def fits(self):
        accept, kind = self.headers.get("accept") or "", self.headers.get("content-type") or ""
        if "application/json" not in accept or "text/event-stream" not in accept:
            self.say(406, error(None, -32000, "Not Acceptable"))
        elif kind.partition(";")[0].strip() != "application/json":
            self.say(415, error(None, -32000, "Unsupported Media Type"))
        elif self.headers.get("mcp-protocol-version", VERSIONS[-1]) not in VERSIONS:
            self.say(400, error(None, -32000, "Bad Request: unsupported protocol version"))
        else:
            return True
        return False

    # What is asked

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self.local():
            return
        place, _, query = self.path.partition("?")
        if self.mode == "older":
            self.post_older(place, query, body)
            return
        if place != self.path_served:
            self.say(404, None)
            return
        if not self.fits():
            return
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            self.say(400, error(None, -32700, "Parse error"))
            return
        if not isinstance(message, dict):
            self.say(400, error(None, -32600, "Invalid Request"))
            return
        begins = message.get("method") == "initialize"
        if not begins and not self.known():
            return
        extra = {}
        if begins:
            extra["Mcp-Session-Id"] = session = secrets.token_hex(16)
            self.sessions[session] = True
        said = answer(message)
        if said is None:
            self.say(202, None)
        elif self.mode == "sse":
            self.stream_one(said, extra)
        else:
            self.say(200, said, extra)

    def do_GET(self):
        if not self.local():
            return
        if self.mode == "older" and self.path == self.path_served:
            self.stream_older()
        elif self.mode == "sse" and self.path == self.path_served and self.known():
            if "text/event-stream" not in (self.headers.get("accept") or ""):
                self.say(406, None)
                return
            self.begin_stream()
            self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hi"}})
            self.close_connection = True
        elif self.mode != "sse":
            self.say(405, None)

    def do_DELETE(self):
        if self.local() and self.known():
            del self.sessions[self.headers["mcp-session-id"]]
            self.say(200, None)

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.say(405, None)

    do_OPTIONS = do_PATCH = do_PUT

    # HTTP with SSE

    def stream_older(self):
        session = secrets.token_hex(8)
        box = self.streams[session] = queue.Queue()
        self.begin_stream()
        self.wfile.write(f"event: endpoint\r\ndata: /messages?session={session}\r\n\r\n".encode())
        try:
            while True:
                try:
                    self.event(box.get(timeout=5))
                except queue.Empty:
                    self.wfile.write(b": still here\n\n")
        except OSError:
            self.close_connection = True

    def post_older(self, place, query, body):
        box = self.streams.get(query.partition("session=")[2])
        if place != "/messages" or box is None:
            self.say(404 if place != self.path_served else 405, None)
            return
        said = answer(json.loads(body))
        self.say(202, None)
        if said is not None:
            box.put(said)

    # Answers

    def say(self, status, message, extra=None):
        body = b"" if message is None else json.dumps(message).encode()
        self.send_response(status)
        for name, value in {**(extra or {}), **self.more_headers()}.items():
            self.send_header(name, value)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def more_headers(self):
        return {}

    def begin_stream(self, extra=None):
        self.send_response(200)
        for name, value in {**(extra or {}), **self.more_headers()}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def event(self, message):
        text = json.dumps(message, indent=1)
        lines = "".join(f"data: {line}\n" for line in text.split("\n"))
        self.wfile.write(f"event: message\nid: 1\n{lines}\n".encode())
        self.wfile.flush()

    def stream_one(self, message, extra):
        self.begin_stream(extra)
        self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "asked"}})
        self.event(message)
        self.close_connection = True


def main(handler=Handler):
    given = argparse.ArgumentParser()
    given.add_argument("--port", type=int, default=8000)
    given.add_argument("--host", default="127.0.0.1")
    given.add_argument("--path", default="/mcp")
    given.add_argument("mode", nargs="?", default="json")
    options = given.parse_args()
    handler.mode, handler.path_served = options.mode, options.path
    if options.mode == "late":
        time.sleep(1)
    server = ThreadingHTTPServer((options.host, options.port), handler)
    server.daemon_threads = True
    print(f"listening on http://{options.host}:{server.server_address[1]}{options.path}", file=sys.stderr, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
