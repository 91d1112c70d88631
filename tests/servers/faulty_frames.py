"""Servers that are wrong at the level of bytes and envelopes. Usage: faulty_frames.py MODE (or --list).

A mode says which bytes go out for the `tools/list` request with this id. `NAME-benign` is the twin of `NAME`.
"""

import json
import sys

TOOL = {"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {}}}


def line(message: object) -> bytes:
    """One frame."""
    return json.dumps(message).encode() + b"\n"


def ok(number: object, **more: object) -> bytes:
    """A good answer to tools/list."""
    return line({"jsonrpc": "2.0", "id": number, "result": {"tools": [TOOL], **more}})


def with_x(number: int, value: bytes) -> bytes:
    """A good answer with one more member, of these bytes."""
    return ok(number, x=0)[: -len(b"0}}\n")] + value + b"}}\n"


def nested(depth: int) -> bytes:
    """An array in an array in an array …"""
    return b"[" * depth + b"]" * depth


MODES = {
    "banner": lambda n: b"\x1b[2JStarting server...\n" + ok(n),
    "banner-benign": lambda n: b"\n \r\n" + ok(n),
    "garbage": lambda n: b"{not json\n\x00\x01\x02\n" + ok(n),
    "garbage-benign": lambda n: b"  " + ok(n)[:-1] + b" \r\n",
    "bad-utf8": lambda n: with_x(n, b'"\xff\xfe"'),
    "bad-utf8-benign": lambda n: with_x(n, '"žluťoučký 😀"'.encode()),
    "byte-order-mark": lambda n: b"\xef\xbb\xbf" + ok(n),
    "byte-order-mark-benign": lambda n: with_x(n, '"\ufeff"'.encode()),
    "long-line": lambda n: with_x(n, b'"' + b"A" * (5 << 20) + b'"') + ok(n),
    "long-line-benign": lambda n: with_x(n, b'"' + b"A" * (2 << 20) + b'"'),
    "deep": lambda n: with_x(n, nested(100_000)),
    "deep-benign": lambda n: with_x(n, nested(40) + b',"y":"' + b"[" * 1000 + b'"'),
    "duplicate-keys": lambda n: with_x(n, b'{"a":1,"a":2}'),
    "duplicate-keys-benign": lambda n: with_x(n, b'[{"a":1},{"a":2}]'),
    "nan": lambda n: with_x(n, b"[NaN,Infinity,-Infinity]"),
    "nan-benign": lambda n: with_x(n, b'[1e308,"NaN"]'),
    "huge-number": lambda n: with_x(n, b"[" + b"9" * 200_000 + b",1e999]"),
    "huge-number-benign": lambda n: with_x(n, b"[18446744073709551615,-9223372036854775808]"),
    "lone-surrogate": lambda n: with_x(n, b'"a\\ud800"'),
    "lone-surrogate-benign": lambda n: with_x(n, b'"a\\ud83d\\ude00"'),
    "wrong-id": lambda n: ok(99_999) + ok(n),
    "wrong-id-benign": lambda n: (
        line({"jsonrpc": "2.0", "method": "notifications/message", "params": {"id": 9}}) + ok(n)
    ),
    "text-id": lambda n: ok(str(n)),
    "text-id-benign": ok,
    "repeated-answer": lambda n: ok(n) + ok(n),
    "repeated-answer-benign": lambda n: 2 * line({"jsonrpc": "2.0", "method": "notifications/message"}) + ok(n),
    "both-members": lambda n: line(
        {"jsonrpc": "2.0", "id": n, "result": {"tools": [TOOL]}, "error": {"code": 1, "message": "x"}}
    ),
    "both-members-benign": lambda n: ok(n, error={"code": 1, "message": "x"}),
    "neither-member": lambda n: line({"jsonrpc": "2.0", "id": n}),
    "neither-member-benign": ok,
    "no-version": lambda n: line({"id": n, "result": {"tools": [TOOL]}}),
    "no-version-benign": lambda n: ok(n, jsonrpc="1.0"),
    "batch": lambda n: b"[" + ok(n)[:-1] + b"]\n",
    "batch-benign": lambda n: with_x(n, b"[]"),
    "no-object": lambda n: b"42\n" + ok(n),
    "no-object-benign": lambda n: with_x(n, b"42"),
    "no-newline": lambda n: ok(n)[:-1],
    "no-newline-benign": ok,
}


def main(mode: str) -> None:
    """Serve until stdin ends."""
    for raw in sys.stdin.buffer:
        message = json.loads(raw)
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": mode, "version": "1"}}
            out = line({"jsonrpc": "2.0", "id": number, "result": {"protocolVersion": "2025-11-25", **about}})
        elif method == "tools/list":
            out = MODES[mode](number)
        elif number is not None and method is not None:
            out = line({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}})
        else:
            continue
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()
        if mode == "no-newline" and method == "tools/list":
            return


if sys.argv[1] == "--list":
    print("\n".join(MODES))
else:
    main(sys.argv[1])
