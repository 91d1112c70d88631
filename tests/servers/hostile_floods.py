"""Servers that send too much, too little, or without end. Usage: hostile_floods.py MODE[,MODE…] (or --list).

A mode acts when `tools/list` is asked for (those in AT_START already at `initialize`); where it comes back, the
honest answer follows. `NAME-benign` is the twin of `NAME`. What must happen to each is in hostile.toml.
"""

import json
import os
import signal
import subprocess
import sys
import time

TOOL = {"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {}}}
PATIENCE = 600  # a stuck server ends by itself at last
TEN_GIGABYTES = 10 << 30
NOTICE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}\n'


def write(descriptor: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[os.write(descriptor, data) :]


def send(**message: object) -> None:
    """Write one frame."""
    write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def pour(descriptor: int, block: bytes, total: int) -> None:
    """Write `total` bytes, block by block."""
    for _ in range(total // len(block)):
        write(descriptor, block)


def endlessly(make) -> None:
    """Write frames until nobody reads."""
    number = 0
    while True:
        send(**make(number))
        number += 1


def progress(number: int) -> dict:
    """One more step of a request that never ends."""
    return {"method": "notifications/progress", "params": {"progressToken": 1, "progress": number}}


def ask(number: int) -> dict:
    """A request to the client, in turn of every kind."""
    method = ("sampling/createMessage", "roots/list", "elicitation/create", "ping", "tools/call")[number % 5]
    return {"id": f"q{number}", "method": method, "params": {"messages": [], "maxTokens": 5}}


def drip(data: bytes, seconds: float) -> None:
    """One byte at a time."""
    for byte in data:
        write(1, bytes([byte]))
        time.sleep(seconds)


def slow_progress() -> None:
    """Progress for ever, and never an answer."""
    for number in range(PATIENCE * 20):
        send(**progress(number))
        time.sleep(0.05)


def close_both() -> None:
    """Close every way out and stay."""
    os.close(1)
    os.close(2)
    time.sleep(PATIENCE)


def close_out() -> None:
    """Close stdout only, and go on talking on stderr."""
    os.close(1)
    for _ in range(PATIENCE):
        os.write(2, b"still here\n")
        time.sleep(1)


def grandchild_holds_the_pipe() -> None:
    """End, while a grandchild in a session of its own keeps stdout open."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(PATIENCE)
        os._exit(0)
    os.wait()
    os._exit(0)


def half_a_character() -> None:
    """End in the middle of a character, in the middle of a line."""
    write(1, b'{"jsonrpc":"2.0","method":"notifications/message","params":"\xe2\x82')
    os._exit(0)


def child_and_back() -> None:
    """A child that ends, as many servers have."""
    subprocess.run(["/bin/true"], check=True)


MODES = {
    "stdout-flood": lambda: pour(1, NOTICE % (b"x" * 60_000), TEN_GIGABYTES),
    "stdout-flood-benign": lambda: pour(1, NOTICE % (b"x" * 60_000), 600_000),
    "stdout-zeros": lambda: pour(1, bytes(65536), TEN_GIGABYTES),
    "stdout-zeros-benign": lambda: pour(1, b" " * 1023 + b"\n", 64 << 10),
    "stdout-controls": lambda: pour(1, (b"\x01" * 4095 + b"\n") * 16, TEN_GIGABYTES),
    "stdout-controls-benign": lambda: pour(1, b"\t\r\n" * 10, 300),
    "stderr-flood": lambda: pour(2, b"harness: engine: the target could not be ended\n" * 1400, TEN_GIGABYTES),
    "stderr-flood-benign": lambda: pour(2, b"listening\n" * 100, 100_000),
    "long-line": lambda: (pour(1, b"A" * 65536, 100_000_000), write(1, b"\n")),
    "long-line-benign": lambda: send(method="notifications/message", params={"data": "A" * 900_000}),
    "notification-flood": lambda: endlessly(progress),
    "notification-flood-benign": lambda: [send(**progress(number)) for number in range(50)],
    "request-flood": lambda: endlessly(ask),
    "request-flood-benign": lambda: [send(id=f"q{number}", method="ping") for number in range(5)],
    "endless-progress": slow_progress,
    "endless-progress-benign": lambda: [send(**progress(number)) for number in range(3)],
    "drip": lambda: drip(b'{"jsonrpc":"2.0","id":1,"result":' + b" " * PATIENCE, 1.0),
    "drip-benign": lambda: drip(b'{"jsonrpc":"2.0","method":"notifications/x"}\n', 0.005),
    "close-both": close_both,
    "close-both-benign": lambda: os.close(2),
    "close-out": close_out,
    "close-out-benign": lambda: send(method="notifications/message", params={"data": "still here"}),
    "pipe-holder": grandchild_holds_the_pipe,
    "pipe-holder-benign": child_and_back,
    "half-a-character": half_a_character,
    "half-a-character-benign": lambda: send(method="notifications/message", params="\u20ac"),
    "exit-137": lambda: os._exit(137),
    "exit-137-benign": lambda: None,
    "exit-255": lambda: os._exit(255),
    "exit-255-benign": lambda: None,
}
AT_START = ("drip", "drip-benign")


def main(modes: list[str]) -> None:
    """Serve until stdin ends."""
    for raw in sys.stdin.buffer:
        message = json.loads(raw)
        number, method = message.get("id"), message.get("method")
        if number is None or method is None:
            continue
        for mode in modes:
            if method == ("initialize" if mode in AT_START else "tools/list"):
                MODES[mode]()
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "floods", "version": "1"}}
            send(id=number, result={"protocolVersion": "2025-11-25", **about})
        elif method == "tools/list":
            send(id=number, result={"tools": [TOOL]})
        else:
            send(id=number, error={"code": -32601, "message": "Method not found"})


if sys.argv[1] == "--list":
    print("\n".join(MODES))
else:
    main(sys.argv[1].split(","))
