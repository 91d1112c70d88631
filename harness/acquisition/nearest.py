"""Names that a user may have meant, when the registry has none like the one given."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

import anyio

#: Each variant costs one question to the registry.
MOST = 5


def package_variants(name: str) -> list[str]:
    """At most five likely spellings of an MCP server's package name, the likeliest first.

    Server packages are named `mcp-server-X`, `X-mcp`, `mcp-X` or `X-mcp-server` by their authors; what is tried
    is the same core in the other shapes.
    """
    plain = re.sub(r"[-_.]+", "-", name.lower()).strip("-")
    core = re.sub(r"^(mcp-server-|server-|mcp-)|(-mcp-server|-server-mcp|-mcp|-server)$", "", plain) or plain
    shapes = [f"mcp-server-{core}", f"{core}-mcp", f"mcp-{core}", f"{core}-mcp-server"]
    return [shape for shape in dict.fromkeys(shapes) if shape != plain][:MOST]


def npm_variants(name: str) -> list[str]:
    """At most five likely spellings of an npm package name; the reference servers live in one scope."""
    scope, _, bare = name.rpartition("/")
    core = re.sub(r"^(mcp-server-|server-|mcp-)|(-mcp-server|-mcp|-server)$", "", bare.lower()) or bare.lower()
    shapes = [f"@modelcontextprotocol/server-{core}", f"mcp-server-{core}", f"{core}-mcp", f"{core}-mcp-server"]
    shapes += [f"{scope}/mcp", f"{scope}/mcp-server"] if scope else [f"mcp-{core}"]
    return [shape for shape in dict.fromkeys(shapes) if shape != name and not shape.startswith("/")][:MOST]


async def existing(names: Sequence[str], versions: Callable[[str], Awaitable[list[str]]]) -> list[str]:
    """Those of `names` that the registry has, asked for at the same time, in the order given."""
    there: set[str] = set()

    async def ask(name: str) -> None:
        if await versions(name):
            there.add(name)

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(ask, name)
    return [name for name in names if name in there]
