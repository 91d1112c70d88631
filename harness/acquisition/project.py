"""Acquiring a source tree or a single file: which world it belongs to, then that world's reading of it."""

from __future__ import annotations

import re

from harness.acquisition.node.package import NodeWorld
from harness.acquisition.node.source import acquire_node_source, node_file_dependencies
from harness.acquisition.python.source import acquire_python_source, python_file_requirements
from harness.acquisition.python.world import PythonWorld
from harness.acquisition.reference import NODE_SUFFIXES
from harness.acquisition.tree import SourceTree
from harness.model.errors import UsageError
from harness.model.options import RunOptions
from harness.model.target import Acquired, TargetKind, TargetRef

#: Files that are a server by their name, the likeliest first.
_PYTHON_SERVERS = ("server.py", "main.py", "app.py", "mcp_server.py", "__main__.py", "src/server.py", "src/main.py")
_NODE_SERVERS = tuple(
    f"{stem}{suffix}"
    for stem in ("index", "server", "main", "src/index", "src/server", "dist/index", "build/index")
    for suffix in (".js", ".mjs", ".cjs")
)


async def acquire_source(
    python: PythonWorld, node: NodeWorld, ref: TargetRef, tree: SourceTree, options: RunOptions
) -> Acquired:
    """Acquire a folder or file that was read into the store.

    Raises UsageError when nothing in it looks like a server, TargetError for refused dependencies and links,
    and what resolving and fetching raise.
    """
    if ref.kind is TargetKind.FILE:
        name = tree.files[0].path
        if name.endswith(NODE_SUFFIXES):
            return await acquire_node_source(
                node, ref, tree, options, (name,), node_file_dependencies(node.store, tree)
            )
        return await acquire_python_source(
            python, ref, tree, options, (name,), python_file_requirements(python.store, tree)
        )
    servers = tuple(name for name in _PYTHON_SERVERS if tree.has(name))
    scripts = tuple(name for name in _NODE_SERVERS if tree.has(name))
    described = any(tree.has(name) for name in ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"))
    if tree.has("package.json") and not tree.has("pyproject.toml"):
        return await acquire_node_source(node, ref, tree, options, scripts, None)
    if described:
        return await acquire_python_source(python, ref, tree, options, servers or _alone(tree), None)
    if servers or _alone(tree):
        chosen = servers or _alone(tree)
        return await acquire_python_source(
            python, ref, tree, options, chosen, python_file_requirements(python.store, tree, chosen)
        )
    if scripts:
        return await acquire_node_source(
            node, ref, tree, options, scripts, node_file_dependencies(node.store, tree, scripts)
        )
    raise UsageError(
        "the folder has no pyproject.toml, requirements.txt, package.json, nor a file like server.py or index.js",
        remedy="name the server's file, or give the command after --",
    )


def _alone(tree: SourceTree) -> tuple[str, ...]:
    """The only Python file at the top of the tree, if there is just one."""
    names = [file.path for file in tree.files if re.fullmatch(r"[^/]+\.py", file.path) and file.path != "setup.py"]
    return tuple(names) if len(names) == 1 else ()
