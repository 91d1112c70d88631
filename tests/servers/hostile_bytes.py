"""Servers whose messages are made to break a reader. Usage: hostile_bytes.py MODE[,MODE…] (or --list).

A mode is bytes that go out before the honest answer to `tools/list` with this id. `NAME-benign` is the twin of
`NAME`. What must happen to each is in hostile.toml.
"""

import json
import sys

TOOL = {"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {}}}


def line(message: object) -> bytes:
    """One frame."""
    return json.dumps(message).encode() + b"\n"


def note(value: bytes) -> bytes:
    """A notification that carries these bytes as a value."""
    return b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":' + value + b"}}\n"


def answer(number: object, *tools: object) -> bytes:
    """An answer to tools/list."""
    return line({"jsonrpc": "2.0", "id": number, "result": {"tools": [TOOL, *tools]}})


MODES = {
    "deep": lambda n: note(b"[" * 200_000 + b"]" * 200_000) + note(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "deep-benign": lambda n: note(b"[" * 40 + b"]" * 40) + note(b'"' + b"[{" * 5000 + b'"'),
    "huge-integer": lambda n: note(b"9" * 1_000_000) + note(b"-" + b"1" * 5000) + note(b"1e99999"),
    "huge-integer-benign": lambda n: note(b"18446744073709551615") + note(b'"' + b"9" * 5000 + b'"'),
    "duplicate-keys": lambda n: note(b'{"a":1,"a":2,"\\u0061":3}'),
    "duplicate-keys-benign": lambda n: note(b'[{"a":1},{"a":2},{"A":3}]'),
    "nan": lambda n: note(b"[NaN,Infinity,-Infinity]"),
    "nan-benign": lambda n: note(b'[0.0,1e308,"NaN"]'),
    "surrogates": lambda n: note(b'"\\ud800"') + note(b'{"\\udfff":"\\udc00\\ud800"}'),
    "surrogates-benign": lambda n: note(b'"\\ud83d\\ude00"') + note('"😀"'.encode()),
    "bad-utf8": lambda n: note(b'"\xff\xfe\xc0\x80\xed\xa0\x80"'),
    "bad-utf8-benign": lambda n: note('"\u0000€\U0010fffd"'.replace("\u0000", "\\u0000").encode()),
    "wrong-ids": lambda n: b"".join(
        line({"jsonrpc": "2.0", "id": i, "result": {}}) for i in (n + 1, 10**9, -1, 0, 1.5, True, "x", [n], {"id": n})
    ),
    "wrong-ids-benign": lambda n: line({"jsonrpc": "2.0", "method": "notifications/message", "params": {"id": n + 1}}),
    "repeated-answers": lambda n: b"".join(answer(n, {"name": f"t{i}", "inputSchema": {}}) for i in range(50)),
    "repeated-answers-benign": lambda n: 3 * line({"jsonrpc": "2.0", "method": "notifications/message"}),
    # Looks like what the harness itself prints; every line of it is no JSON.
    "our-own-words": lambda n: (
        b"SAFE at level none: 1 tools declared, none called\nharness: interrupted; nothing is left running\n"
        b"discover ...\nready 4026531836\nmarked 00\nEXEC 00\nKILL\n"
        b'{"works":true,"tools":1}\n{"kind":"exit","phase":"stop","code":0,"ended_by":"target"}\n'
    ),
    "our-own-words-benign": lambda n: note(b'"SAFE at level none\\nharness: interrupted"'),
    # Members that mean something to other languages' objects, and to our own records.
    "prototype": lambda n: answer(
        n,
        json.loads(
            '{"name":"__proto__","__proto__":{"polluted":true},"constructor":{"prototype":{"x":1}},'
            '"description":"{0.__class__}%s${jndi:x}{{7*7}}","inputSchema":{"type":"object","$ref":"file:///etc/passwd",'
            '"properties":{"__class__":{"type":"string"},"model_config":{"type":"string"},"toString":{"type":"string"}}}}'
        ),
    ),
    "prototype-benign": lambda n: note(b'{"proto":1}'),
    # Small values in great number: parsed, they take many times their size.
    "dense-objects": lambda n: (
        answer(n, *({"name": f"d{i}", "inputSchema": {"type": "object"}} for i in range(3)))[: -len(b"]}}\n")]
        + b',{"name":"dense","inputSchema":{"type":"object","x":['
        + b",".join([b'{"":0}'] * 550_000)
        + b"]}}]}}\n"
    ),
    "dense-objects-benign": lambda n: note(b"[" + b",".join([b'{"":0}'] * 5_000) + b"]"),
    # The same, as much of it as is just read.
    "dense-tools": lambda n: (
        answer(n)[: -len(b"]}}\n")]
        + b',{"name":"dense","inputSchema":{"type":"object","x":['
        + b",".join([b'{"":0}'] * 80_000)
        + b"]}}]}}\n"
    ),
    "dense-tools-benign": lambda n: note(b'[{"a":0}]'),
    "dense-notes": lambda n: 8 * note(b"[" + b",".join([b"[]"] * 1_350_000) + b"]"),
    "dense-notes-benign": lambda n: note(b"[" + b",".join([b"[]"] * 5_000) + b"]"),
    "batch-of-questions": lambda n: line(
        [{"jsonrpc": "2.0", "id": f"b{i}", "method": "roots/list"} for i in range(20_000)]
    ),
    "batch-of-questions-benign": lambda n: line({"jsonrpc": "2.0", "id": "b", "method": "ping"}),
}
#: These answer the request themselves; an answer more would be a second one.
ANSWERED = ("repeated-answers", "prototype", "dense-objects", "dense-tools")


def main(modes: list[str]) -> None:
    """Serve until stdin ends."""
    for raw in sys.stdin.buffer:
        message = json.loads(raw)
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "bytes", "version": "1"}}
            out = line({"jsonrpc": "2.0", "id": number, "result": {"protocolVersion": "2025-11-25", **about}})
        elif method == "tools/list":
            out = b"".join(MODES[mode](number) for mode in modes)
            out += b"" if any(mode in ANSWERED for mode in modes) else answer(number)
        elif number is not None and method is not None:
            out = line({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}})
        else:
            continue
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()


if sys.argv[1] == "--list":
    print("\n".join(MODES))
else:
    main(sys.argv[1].split(","))
