"""Servers whose lists are wrong. Usage: faulty_lists.py MODE (or --list).

A mode maps (list method, cursor) to the result; None means "method not found". `NAME-benign` is the twin of `NAME`.
"""

import json
import sys
import uuid


def tool(name: str, text: str = "d") -> dict:
    """One tool."""
    return {"name": name, "description": text, "inputSchema": {"type": "object", "properties": {}}}


def tools_only(pages):
    """A mode that serves tools by cursor and has no other list."""
    return lambda method, cursor: pages(cursor) if method == "tools/list" else None


def page(cursor, following, *tools):
    """One page of tools."""
    return {"tools": list(tools) or [tool(f"at-{cursor}")]} | ({"nextCursor": following} if following else {})


MODES = {
    "endless-pages": tools_only(lambda cursor: page(cursor, uuid.uuid4().hex)),
    "endless-pages-benign": tools_only(lambda cursor: page(cursor, {None: "b", "b": "c", "c": None}[cursor])),
    "cursor-loop": tools_only(lambda cursor: page(cursor, {None: "b", "b": "c", "c": "b"}[cursor])),
    "cursor-loop-benign": tools_only(lambda cursor: page(cursor, {None: "b", "b": ""}[cursor])),
    "long-cursor": tools_only(lambda cursor: page(cursor, "C" * 1_000_000)),
    "long-cursor-benign": tools_only(lambda cursor: page(cursor, None if cursor else "C" * 4000)),
    "odd-cursor": tools_only(lambda cursor: page(cursor, {"page": 2})),
    "odd-cursor-benign": tools_only(lambda cursor: page(cursor, None) | {"nextCursor": None}),
    "many-tools": tools_only(lambda cursor: page(cursor, None, *(tool(f"t{number}") for number in range(12_000)))),
    "many-tools-benign": tools_only(lambda cursor: page(cursor, None, *(tool(f"t{number}") for number in range(200)))),
    "big-tools": tools_only(lambda cursor: page(cursor, uuid.uuid4().hex, tool("t", "y" * 3_000_000))),
    "big-tools-benign": tools_only(lambda cursor: page(cursor, None if cursor else "b", tool("t", "y" * 300_000))),
    "no-list": tools_only(lambda cursor: {"tools": {"t": 1}}),
    "no-list-benign": tools_only(lambda cursor: page(cursor, None, tool("t"))),
    "odd-items": tools_only(lambda cursor: page(cursor, None, 7, None, {"name": 5}, tool("t"))),
    "odd-items-benign": tools_only(lambda cursor: page(cursor, None, tool("t"))),
    # Declares tools only, and has a prompt all the same.
    "hidden-list": lambda method, cursor: {
        "tools/list": page(cursor, None, tool("t")),
        "prompts/list": {"prompts": [{"name": "hidden"}]},
    }.get(method),
    "hidden-list-benign": tools_only(lambda cursor: page(cursor, None, tool("t"))),
    "missing-list": lambda method, cursor: None,
    "missing-list-benign": tools_only(lambda cursor: page(cursor, None, tool("t"))),
}


def main(mode: str) -> None:
    """Serve until stdin ends."""
    for raw in sys.stdin.buffer:
        message = json.loads(raw)
        number, method = message.get("id"), message.get("method")
        if number is None or method is None:
            continue
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": mode, "version": "1"}}
            result = {"protocolVersion": "2025-11-25", **about}
        else:
            result = MODES[mode](method, (message.get("params") or {}).get("cursor"))
        reply = {"jsonrpc": "2.0", "id": number}
        reply |= {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if sys.argv[1] == "--list":
    print("\n".join(MODES))
else:
    main(sys.argv[1])
