"""The child of the stock-client check: the official SDK's client over its own standard streams.

Run as `python -I -m harness.protocol.stock_child`. stdin begins with one line of JSON, the job (`Job`); what follows
is the server's output. stdout goes to the server. The last line of stderr is the verdict, one JSON object.
The SDK is for honest servers (it may hang, grow or end on others), so all of this lives in a process that limits
itself and that the parent kills. This is the only module that imports the SDK.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.server.stdio import stdio_server

#: A stock client follows pages for ever; this one proves its point before.
MAX_PAGES = 100


def limit(memory_bytes: int, seconds: float) -> None:
    """Bound this process: address space, CPU time, files; no core dump."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    cpu = int(seconds) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


async def try_server(timeout: float, mode: str, facts: dict[str, Any]) -> None:
    """Connect and list the tools in at most `timeout` seconds; what was learnt goes into `facts`.

    The SDK's line transport for a server's own stdin and stdout serves a client as well: lines are lines.
    Raises whatever the SDK raises.
    """
    with anyio.fail_after(timeout):
        async with Client(stdio_server(), mode=mode, cache=None, read_timeout_seconds=timeout) as client:
            facts["protocol_version"] = client.protocol_version
            if client.server_capabilities.tools is not None:
                facts["tools"] = 0
                cursor: str | None = None
                for _ in range(MAX_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    facts["tools"] += len(page.tools)
                    cursor = page.next_cursor
                    if not cursor:
                        break
            facts["works"] = True
            report(facts)
            os._exit(0)  # the streams are the parent's to end


def report(facts: dict[str, Any]) -> None:
    """Print the verdict."""
    sys.stderr.write("\n" + json.dumps(facts) + "\n")
    sys.stderr.flush()


def one_line(error: BaseException) -> str:
    """The innermost cause of an error in one line of at most 300 characters."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def main() -> None:
    """Read the job, try the server, print the verdict, end."""
    logging.disable(logging.CRITICAL)
    job = json.loads(sys.stdin.buffer.readline())
    limit(job["memory_bytes"], job["timeout"])
    facts: dict[str, Any] = {"works": False}
    try:
        anyio.run(try_server, job["timeout"], job["mode"], facts)
    except TimeoutError:
        facts["error"] = f"no usable answer in {job['timeout']:g} s"
    except MemoryError:
        facts["error"] = "the client ran out of memory"
    except BaseException as error:
        facts["error"] = one_line(error)
    report(facts)
    os._exit(0)


if __name__ == "__main__":
    main()
