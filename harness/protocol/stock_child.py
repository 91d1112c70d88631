"""The child of the stock-client check: the official SDK's client over its own standard streams.

Run as `python -I -m harness.protocol.stock_child`. stdin begins with one line of JSON, the job (`Job`); what follows
is the server's output. stdout goes to the server; over HTTP, requests go to a socket instead. The last line of stderr
is the verdict, one JSON object.
The SDK is for honest servers (it may hang, grow or end on others), so all of this lives in a process that limits
itself and that the parent kills. This is the only module that imports the SDK.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.text import TextReceiveStream
from mcp.client._transport import TransportStreams
from mcp.client.client import Client
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, jsonrpc_message_adapter

from harness.protocol.orphan import end_with_parent

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


class _Stdin(anyio.abc.ByteReceiveStream):
    """This process's stdin. Cancellable, unlike a file read in a thread: a silent server must not keep us."""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.wait_readable(0)
        data = os.read(0, max_bytes)
        if not data:
            raise anyio.EndOfStream
        return data

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def own_streams() -> AsyncIterator[TransportStreams]:
    """A transport over this process's own streams that treats lines as the SDK's `stdio_client` does.

    So invalid UTF-8 ends it, and what is no JSON-RPC message goes to the session as an exception.
    """
    received, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, to_send = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        buffer = ""
        async with received:
            with suppress(anyio.BrokenResourceError):  # nobody reads any more while the session ends
                async for chunk in TextReceiveStream(_Stdin()):
                    *lines, buffer = (buffer + chunk).split("\n")
                    for line in lines:
                        await received.send(_message(line))

    async def write() -> None:
        async with to_send:
            async for item in to_send:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                sys.stdout.buffer.write(text.encode() + b"\n")
                sys.stdout.buffer.flush()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield inbound, outbound
        finally:
            inbound.close()
            outbound.close()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def over_http(job: dict[str, Any]) -> AsyncIterator[TransportStreams]:
    """The SDK's own transport over HTTP, whose connections all end at the parent's socket."""
    import httpx2

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        made = httpx2.AsyncHTTPTransport(uds=job["socket"])
        return httpx2.AsyncClient(headers=headers, timeout=timeout or job["timeout"], auth=auth, transport=made)

    if job["older"]:
        from mcp.client.sse import sse_client

        async with sse_client(job["url"], httpx_client_factory=client) as streams:
            yield streams
        return
    from mcp.client.streamable_http import streamable_http_client

    async with client() as http, streamable_http_client(job["url"], http_client=http) as streams:
        yield streams


def _message(line: str) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def refuse(context: object, params: object) -> ErrorData:
    """What a server asks for is refused here: it was declared for the list of tools that depends on it."""
    return ErrorData(code=INVALID_REQUEST, message="User rejected the request")


async def try_server(job: dict[str, Any], facts: dict[str, Any]) -> None:
    """Connect and list the tools in at most `timeout` seconds; what was learnt goes into `facts`.

    `job`: as the parent gave it; `offers` in it: declare sampling and elicitation. Raises whatever the SDK raises.
    """
    asked = refuse if job["offers"] else None
    with anyio.fail_after(job["timeout"]):
        async with Client(
            over_http(job) if "socket" in job else own_streams(),
            mode=job["mode"],
            cache=None,
            read_timeout_seconds=job["timeout"],
            sampling_callback=asked,
            elicitation_callback=asked,
        ) as client:
            facts["protocol_version"] = client.protocol_version
            if client.server_capabilities.tools is not None:
                total = 0
                cursor: str | None = None
                for _ in range(MAX_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    total += len(page.tools)
                    facts["tools"] = total
                    cursor = page.next_cursor
                    if not cursor:
                        break
            facts["works"] = True


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
    end_with_parent()
    logging.disable(logging.CRITICAL)
    job = json.loads(sys.stdin.buffer.readline())
    if "socket" in job:
        import mcp.client.streamable_http  # noqa: F401 - loaded before the limits
    limit(job["memory_bytes"], job["timeout"])
    facts: dict[str, Any] = {"works": False}
    try:
        anyio.run(try_server, job, facts)
    except TimeoutError:
        facts["error"] = f"no usable answer in {job['timeout']:g} s"
    except MemoryError:
        facts["error"] = "the client ran out of memory"
    except BaseException as error:
        if not facts["works"]:  # what goes wrong at hanging up is not the server's
            facts["error"] = one_line(error)
    report(facts)
    os._exit(0)


if __name__ == "__main__":
    main()
