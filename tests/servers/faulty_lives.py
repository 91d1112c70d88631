"""Servers that live wrongly: silent, deaf, dying, flooding. Usage: faulty_lives.py MODE (or --list).

A mode is called with each message and may answer, exit, flood or do nothing; what it returns True for is answered
as an honest server would. `NAME-benign` is the twin of `NAME`.
"""

import json
import os
import sys
import time

TOOL = {"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {}}}
PATIENCE = 600  # a stuck server ends by itself at last


def send(**message: object) -> None:
    """Write one frame."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def honest(message: dict) -> bool:
    """Answer what an honest server answers."""
    number, method = message.get("id"), message.get("method")
    if number is None or method is None:
        return False
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "lives", "version": "1"}}
        send(id=number, result={"protocolVersion": "2025-11-25", **about})
    elif method == "tools/list":
        send(id=number, result={"tools": [TOOL]})
    else:
        send(id=number, error={"code": -32601, "message": "Method not found"})
    return False


def on(method, act):
    """A mode that acts on one method and is honest about the others."""
    return lambda message: act(message) if message.get("method") == method else True


def flood(make):
    """Write frames without end, or until nobody reads."""
    number = 0
    while True:
        send(**make(number))
        number += 1


def ask(number: int) -> dict:
    """A request for a sample from the client's model."""
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "x" * 200}}], "maxTokens": 5}
    return {"id": number, "method": "sampling/createMessage", "params": params}


def a_few_questions(message: dict) -> bool:
    """One request of each kind that a server may send, then the answer."""
    for number, method in enumerate(("ping", "roots/list", "elicitation/create", "sampling/createMessage", "x/y")):
        send(id=f"q{number}", method=method, params={})
    return True


def close_stdout(message: dict) -> bool:
    """Close the way out and stay."""
    sys.stdout.flush()
    os.close(1)
    time.sleep(PATIENCE)
    return False


def close_stderr(message: dict) -> bool:
    """Close stderr, which is nobody's business."""
    os.close(2)
    return True


def slow(message: dict) -> bool:
    """Take a moment."""
    time.sleep(0.2)
    return True


def sleep(message: dict) -> bool:
    """Read nothing any more."""
    time.sleep(PATIENCE)
    return False


def leave(message: dict) -> bool:
    """End."""
    sys.stdout.flush()
    os._exit(3)


def refuse_2025(message: dict) -> bool:
    """Refuse a revision instead of proposing another, as no server should."""
    if message["params"]["protocolVersion"] == "2024-11-05":
        return True
    send(id=message["id"], error={"code": -32602, "message": "Unsupported protocol version"})
    return False


MODES = {
    "silent": lambda message: False,
    "silent-benign": slow,
    "silent-list": on("tools/list", lambda message: False),
    "silent-list-benign": on("tools/list", slow),
    "silent-unknown": on("prompts/list", lambda message: False),
    "silent-unknown-benign": on("prompts/list", slow),
    "exit-at-once": leave,
    "exit-at-once-benign": lambda message: True,
    "exit-after-initialize": on("notifications/initialized", leave),
    "exit-after-initialize-benign": on("notifications/initialized", lambda message: False),
    "exit-at-list": on("tools/list", leave),
    "exit-at-list-benign": on("resources/templates/list", lambda message: True),
    "close-stdout": on("tools/list", close_stdout),
    "close-stdout-benign": on("tools/list", close_stderr),
    "deaf": on("notifications/initialized", sleep),
    "deaf-benign": on("notifications/initialized", slow),
    "request-flood": on("tools/list", lambda message: flood(ask)),
    "request-flood-benign": on("tools/list", a_few_questions),
    "notification-flood": on(
        "tools/list", lambda message: flood(lambda number: {"method": "notifications/message", "params": {"n": number}})
    ),
    "notification-flood-benign": on(
        "tools/list",
        lambda message: [send(method="notifications/message", params={"n": number}) for number in range(20)] != [],
    ),
    "refused-revision": on("initialize", refuse_2025),
    "refused-revision-benign": lambda message: True,
}


def main(mode: str) -> None:
    """Serve until stdin ends."""
    for raw in sys.stdin.buffer:
        message = json.loads(raw)
        if MODES[mode](message):
            honest(message)


if sys.argv[1] == "--list":
    print("\n".join(MODES))
elif sys.argv[1] == "exit-at-once":
    print("Traceback: no configuration", file=sys.stderr)
    sys.exit(3)
else:
    main(sys.argv[1])
