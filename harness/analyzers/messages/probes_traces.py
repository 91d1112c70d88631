"""Whose code a server died in, as far as its last words tell: a protocol SDK's own, or that of the server's author.

A trace on standard error is a claim of the target. It lowers a finding, and takes none away.
"""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last)"
_PYTHON_FRAME = re.compile(r'File "([^"\n]{1,400})", line \d+')
_NODE_FRAME = re.compile(r"\bat [^\n]{0,200}?\(?((?:file://|node:|/)[^\s():]{1,400}):\d+(?::\d+)?\)?")
#: Frames that belong to nobody here: the runtime, its standard library, and what SDKs stand on.
_BENEATH = re.compile(
    r"^<frozen |^node:|/usr/(?:local/)?lib/|/site-packages/(?:anyio|pydantic|pydantic_core|starlette|uvicorn|sniffio)/"
    r"|/node_modules/(?:zod|ajv|raw-body|content-type)/"
)
_SDK = re.compile(r"/site-packages/(?:mcp|fastmcp)/|/node_modules/(?:@modelcontextprotocol/sdk|fastmcp)/")


def died_in_sdk(stderr: str) -> bool:
    """True when the innermost trace at the end of `stderr` went through a protocol SDK and nothing else of the app."""
    at = stderr.rfind(_TRACEBACK)
    frames = _PYTHON_FRAME.findall(stderr[at:]) if at >= 0 else _NODE_FRAME.findall(stderr[-4000:])
    own = [frame for frame in frames if not _BENEATH.search(frame)]
    return bool(own) and all(_SDK.search(frame) for frame in own)
