"""Acquisition against the real registries, and installs of what it plans in real sandboxes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import anyio
import pytest

from harness.acquisition import acquire, parse_target
from harness.model.options import Limits, RunOptions
from harness.model.target import Acquired
from harness.pipeline.places import packages_dir
from harness.sandbox.base import InstalledTarget, LaunchSpec
from harness.sandbox.provider import open_sandbox

pytestmark = [pytest.mark.anyio, pytest.mark.registry]


async def fetch(text: str) -> Acquired:
    return await acquire(parse_target(text, ()), RunOptions(), packages_dir(), lambda line: None)


def check_files(acquired: Acquired) -> None:
    """Every artifact of the closure is among the input files, with the digest that is claimed."""
    digests = {hashlib.sha256(file.source.read_bytes()).hexdigest() for file in acquired.install.files}
    assert {artifact.sha256 for artifact in acquired.closure.artifacts} <= digests
    assert len({file.destination for file in acquired.install.files}) == len(acquired.install.files)


async def test_a_python_server() -> None:
    acquired = await fetch("pypi:mcp-server-time")
    names = [artifact.name for artifact in acquired.closure.artifacts]
    assert {"mcp-server-time", "mcp", "pydantic", "pydantic-core", "anyio"} <= set(names)
    assert names == sorted(names)
    assert acquired.entry_points[0].argv == ("/app/bin/mcp-server-time",)
    check_files(acquired)


async def test_a_node_server() -> None:
    acquired = await fetch("npm:@modelcontextprotocol/server-everything")
    names = [artifact.name for artifact in acquired.closure.artifacts]
    assert {"@modelcontextprotocol/server-everything", "@modelcontextprotocol/sdk", "zod"} <= set(names)
    assert acquired.entry_points[0].name == "mcp-server-everything"
    check_files(acquired)


async def test_an_old_release_gets_the_dependencies_of_its_time() -> None:
    acquired = await fetch("pypi:mcp-server-duckdb==1.1.0")
    (mcp,) = [artifact for artifact in acquired.closure.artifacts if artifact.name == "mcp"]
    assert mcp.version.startswith("1.")
    assert any("released on 2025-05-05" in note for note in acquired.notes)


async def start(acquired: Acquired, *arguments: str) -> bytes:
    """Install in a sandbox, start the first entry point, and return what it answers to `initialize`."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    async with open_sandbox("acquisition-test", lambda line: None) as sandbox:
        installed = await sandbox.install(acquired.install, timeout=240, limits=Limits())
        assert isinstance(installed, InstalledTarget), installed
        spec = LaunchSpec(
            image=acquired.install.image,
            volume=installed.volume,
            argv=(*acquired.entry_points[0].argv, *arguments),
            environment=acquired.environment,
        )
        answer = b""
        async with sandbox.launch(spec) as process:
            with anyio.fail_after(60):
                await process.stdin.send(request.encode())
                while b"\n" not in answer:
                    answer += await process.stdout.receive()
            await process.stop(1)
    return answer


PYTHON_FILE = """\
# /// script
# dependencies = ["mcp>=1.9,<2"]
# ///
from mcp.server.fastmcp import FastMCP

server = FastMCP("small")
if __name__ == "__main__":
    server.run()
"""

NODE_FILE = """\
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

const server = new McpServer({ name: "small", version: "1.0.0" });
await server.connect(new StdioServerTransport());
"""

PYPROJECT = """\
[project]
name = "small-server"
version = "1.0"
dependencies = ["mcp>=1.9,<2"]
scripts.small-server = "small_server:main"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"""


def write(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


@pytest.mark.docker
@pytest.mark.parametrize("shape", ["file.py", "file.mjs", "project", "package.json", "requirements.txt"])
async def test_source_is_installed_and_started(tmp_path: Path, shape: str) -> None:
    manifest = {"name": "s", "type": "module", "main": "index.js"}
    manifest["dependencies"] = {"@modelcontextprotocol/sdk": "^1.20.0", "zod": "^3.25.0"}  # type: ignore[assignment]
    files = {
        "file.py": {"small.py": PYTHON_FILE},
        "file.mjs": {"small.mjs": NODE_FILE},
        "project": {
            "pyproject.toml": PYPROJECT,
            "small_server.py": PYTHON_FILE.replace("if __name__", "def main(): server.run()\nif __name__"),
        },
        "package.json": {"package.json": json.dumps(manifest), "index.js": NODE_FILE},
        "requirements.txt": {"requirements.txt": "mcp<2\n", "server.py": PYTHON_FILE},
    }[shape]
    root = write(tmp_path / "server", files)
    acquired = await fetch(f"{root}/{next(iter(files))}" if shape.startswith("file") else root)
    assert b'"serverInfo"' in await start(acquired)


@pytest.mark.docker
async def test_packages_are_installed_and_started() -> None:
    assert b'"serverInfo"' in await start(await fetch("pypi:mcp-server-time"))
    assert b'"serverInfo"' in await start(await fetch("npm:@modelcontextprotocol/server-everything"))
