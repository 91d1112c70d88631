"""Servers with one fault each in how they take malformed messages. Usage: faulty_probes.py MODE (or --list).

The server itself is strict. A mode is a function that sees what the server is about to reject, or to ignore, and does
the wrong thing; NAME-benign is its twin, which is tempted in the same way and does the right one.
"""

import json
import os
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NOTES = Path.home() / "workspace"
TOOLS = [
    {
        "name": "add",
        "description": "Add two numbers",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    },
    {
        "name": "note",
        "description": "Keep a note",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
]
KINDS = {"number": (int, float), "string": str}


class Reject(Exception):
    """What is wrong with a message: `why` is a short word for modes, `code` and `text` go into the error."""

    def __init__(self, why: str, code: int, text: str, number=None, message=None) -> None:
        super().__init__(text)
        self.why, self.code, self.number, self.message = why, code, number, message


def write(value) -> None:
    """One message."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def error(rejected: Reject, **more) -> dict:
    """The answer to what is rejected."""
    body = {"code": rejected.code, "message": str(rejected), **more}
    return {"jsonrpc": "2.0", "id": rejected.number, "error": body}


def result(number, value) -> dict:
    """The answer to what is in order."""
    return {"jsonrpc": "2.0", "id": number, "result": value}


def no_constants(text: str):
    """JSON has no NaN."""
    raise ValueError(text)


def read(line: bytes):
    """One line as a message; None for a blank one. Raises Reject."""
    if not line.strip():
        return None
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=no_constants)
    except RecursionError:
        raise Reject("deep", -32700, "Parse error") from None
    except ValueError:
        raise Reject("json", -32700, "Parse error") from None
    if isinstance(message, list):
        raise Reject("batch", -32600, "Batches are not supported", message=message)
    if not isinstance(message, dict):
        raise Reject("shape", -32600, "Invalid request", message=message)
    return message


def check(message: dict) -> None:
    """Whether the envelope is in order. Raises Reject."""
    number = message.get("id")
    if "method" not in message and "id" in message and ("result" in message or "error" in message):
        raise Reject("response", 0, "not asked")
    if "id" in message and (number is None or isinstance(number, bool) or not isinstance(number, int | str)):
        raise Reject("id", -32600, "Invalid request id", message=message)
    if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise Reject("envelope", -32600, "Invalid request", number, message)
    if "result" in message or "error" in message or not isinstance(message.get("params", {}), dict):
        raise Reject("envelope", -32600, "Invalid request", number, message)


def answer(method: str, params: dict, number):
    """The result of a request. Raises Reject."""
    if method == "initialize":
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise Reject("version", -32602, "protocolVersion is missing", number)
        return {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "faulty-probes", "version": "1.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        if "cursor" in params or not isinstance(params.get("_meta", {}), dict):
            raise Reject("params", -32602, "Invalid params", number)
        return {"tools": TOOLS}
    if method == "resources/list":
        return {"resources": [{"uri": "note://one", "name": "one"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read":
        if params.get("uri") != "note://one":
            raise Reject("uri", -32002, "Resource not found", number, params)
        return {"contents": [{"uri": "note://one", "text": "one"}]}
    if method == "tools/call":
        tool = next((tool for tool in TOOLS if tool["name"] == params.get("name")), None)
        if tool is None:
            raise Reject("tool", -32602, "Unknown tool", number, params)
        given, schema = params.get("arguments", {}), tool["inputSchema"]
        if not isinstance(given, dict) or any(
            not isinstance(given.get(name), KINDS[rule["type"]]) for name, rule in schema["properties"].items()
        ):
            raise Reject("arguments", -32602, "Invalid arguments", number, params)
        return {"content": [{"type": "text", "text": "done"}]}
    raise Reject("list" if method.endswith("/list") else "method", -32601, "Method not found", number, method)


def refuse(rejected: Reject) -> None:
    """In order."""
    if rejected.why != "response":
        write(error(rejected))


def text(words: str) -> dict:
    """A tool's result."""
    return {"content": [{"type": "text", "text": words}]}


# --- The faults: each takes what is to be rejected


def on(why: str, wrong, right=refuse):
    """A pair of modes: on a message of this sort `wrong` and `right`; everything else is refused."""
    return tuple(
        lambda rejected, do=do: do(rejected) if rejected.why == why else refuse(rejected) for do in (wrong, right)
    )


def die(rejected: Reject) -> None:
    raise SystemExit(1)


def sleep(rejected: Reject) -> None:
    time.sleep(3600)


def swallow(rejected: Reject) -> None:
    """As a parser does that waits for the rest of an object."""
    sys.stdin.buffer.read()


def read_and_drop(rejected: Reject) -> None:
    refuse(rejected)


def keep_much(rejected: Reject) -> None:
    if MESSAGE_BYTES > 1 << 20:
        KEPT.append(bytearray(os.urandom(1 << 20) * 300))
    refuse(rejected)


def keep_little(rejected: Reject) -> None:
    if MESSAGE_BYTES > 1 << 20:
        KEPT.append(bytearray(MESSAGE_BYTES))
    refuse(rejected)


def talk_much(rejected: Reject) -> None:
    write(error(rejected, data="x" * (6 << 20)))


def talk_some(rejected: Reject) -> None:
    write(error(rejected, data="x" * 2000))


def keep_note(rejected: Reject) -> None:
    with (NOTES / "rejected.txt").open("a") as file:
        file.write("rejected\n")
    refuse(rejected)


def log(rejected: Reject) -> None:
    sys.stderr.write(f"rejected: {rejected.why}\n")
    refuse(rejected)


def run_shell(rejected: Reject) -> None:
    subprocess.run(["sh", "-c", f"echo {rejected.message}"], stdout=subprocess.DEVNULL, check=False)
    refuse(rejected)


def tell_somebody(rejected: Reject) -> None:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.sendto(b"rejected", ("198.51.100.7", 9999))
    except OSError:
        pass
    refuse(rejected)


def show_trace(rejected: Reject) -> None:
    write(error(rejected, data="".join(traceback.format_exception(rejected))))


def show_class(rejected: Reject) -> None:
    write(error(rejected, data=type(rejected).__name__))


def show_environment(rejected: Reject) -> None:
    write(error(rejected, data=dict(os.environ)))


def show_names(rejected: Reject) -> None:
    write(error(rejected, data=sorted(os.environ)))


def read_any(rejected: Reject) -> None:
    path = Path(str(rejected.message.get("uri")).removeprefix("file://"))
    if not path.is_file():
        refuse(rejected)
        return
    write(result(rejected.number, {"contents": [{"uri": rejected.message["uri"], "text": path.read_text()}]}))


def nothing_of_it(rejected: Reject) -> None:
    write(error(rejected, data=rejected.message.get("uri")))


def empty_result(rejected: Reject) -> None:
    write(result(rejected.number, {}))


def run_anyway(rejected: Reject) -> None:
    write(result(rejected.number, text("0")))


def complain(rejected: Reject) -> None:
    write(result(rejected.number, {"content": text("missing arguments")["content"], "isError": True}))


def constant_id(rejected: Reject) -> None:
    write(error(rejected) | {"id": 4242})


def answer_twice(rejected: Reject) -> None:
    write(error(rejected))
    write(error(rejected))


def speak_up(rejected: Reject) -> None:
    sys.stdout.write(f"ERROR: bad message ({rejected.why})\n")
    refuse(rejected)


def run_batch(rejected: Reject) -> None:
    entries = [entry for entry in rejected.message if isinstance(entry, dict) and "id" in entry]
    if entries:
        write([result(entry["id"], answer(entry["method"], {}, entry["id"])) for entry in entries])
    else:
        refuse(rejected)


def run_null(rejected: Reject) -> None:
    write(result(rejected.message.get("id"), answer(rejected.message["method"], {}, None)))


def run_notification(rejected: Reject) -> None:
    write(result(None, {}))


def silence(rejected: Reject) -> None:
    pass


PAIRS = {
    "dies-of-bad-json": on("json", die),
    "dies-of-depth": on("deep", die),
    "dies-of-a-batch": on("batch", die),
    "hangs-on-unknown-method": on("method", sleep),
    "hangs-on-bad-id": on("id", sleep),
    "loses-its-place": on("json", swallow, read_and_drop),
    "keeps-much": on("method", keep_much, keep_little),
    "answers-much": on("method", talk_much, talk_some),
    "writes-a-file": on("arguments", keep_note, log),
    "runs-a-shell": on("method", run_shell, log),
    "connects-elsewhere": on("uri", tell_somebody, log),
    "shows-a-trace": on("arguments", show_trace, show_class),
    "shows-the-environment": on("tool", show_environment, show_names),
    "reads-any-file": on("uri", read_any, nothing_of_it),
    "takes-any-method": on("method", empty_result),
    "runs-without-arguments": on("arguments", run_anyway, complain),
    "runs-any-tool": on("tool", run_anyway, complain),
    "constant-id": on("tool", constant_id),
    "answers-twice": on("arguments", answer_twice),
    "speaks-up": on("json", speak_up, log),
    "runs-batches": on("batch", run_batch),
    "runs-null-ids": on("id", run_null),
    "answers-notifications": on("notification", run_notification, silence),
    "ids-become-numbers": on("text id", refuse),
    "parrots-versions": on("old version", refuse),
    "two-on-a-line": on("two", refuse),
}
MODES = {f"{name}{end}": mode for name, pair in PAIRS.items() for end, mode in zip(("", "-benign"), pair, strict=True)}
KEPT: list = []
MESSAGE_BYTES = 0


def serve(line: bytes, mode: str) -> None:
    """Take one line."""
    message = read(line)
    if message is None:
        return
    check(message)
    number, method, params = message.get("id"), message["method"], message.get("params", {})
    if "id" not in message:
        if not method.startswith("notifications/initialized"):
            rejected = Reject("notification", 0, "nothing to answer")
            if mode == "answers-notifications":
                MODES[mode](rejected)
        return
    value = answer(method, params, number)
    if mode == "ids-become-numbers" and isinstance(number, str) and number.isdigit():
        number = int(number)
    if mode == "parrots-versions" and method == "initialize":
        value["protocolVersion"] = params["protocolVersion"]
    write(result(number, value))


def main(mode: str) -> None:
    """Serve until stdin ends."""
    global MESSAGE_BYTES
    for line in iter(sys.stdin.buffer.readline, b""):
        MESSAGE_BYTES = len(line)
        lines = line.replace(b"}{", b"}\n{").splitlines() if mode == "two-on-a-line" else [line]
        for part in lines:
            try:
                serve(part, mode)
            except Reject as rejected:
                MODES[mode](rejected)


if sys.argv[1] == "--list":
    print("\n".join(MODES))
else:
    main(sys.argv[1])
