"""What a source tree says about itself: inline metadata, imports, manifests; read in linear time."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.acquisition.nearest import npm_variants, package_variants
from harness.acquisition.node.plan import entry_points as node_entry_points
from harness.acquisition.node.plan import inner_path
from harness.acquisition.node.source import node_file_dependencies
from harness.acquisition.python.fetch import WheelFacts
from harness.acquisition.python.plan import entry_points
from harness.acquisition.python.source import describe, python_file_requirements
from harness.acquisition.store import Store
from harness.acquisition.tree import SourceTree, read_tree
from harness.model.errors import TargetError


def tree(tmp_path: Path, **files: str) -> tuple[Store, SourceTree]:
    root = tmp_path / "t"
    root.mkdir()
    for name, text in files.items():
        (root / name.replace("_DOT_", ".")).write_text(text)
    store = Store(tmp_path / "cache")
    return store, read_tree(store, root)


def test_inline_metadata(tmp_path: Path) -> None:
    text = '#!/usr/bin/env python\n# /// script\n# requires-python = ">=3.12"\n#\n# dependencies = [\n#   "mcp<2",\n# ]\n# ///\nimport httpx\n'  # noqa: E501
    found = python_file_requirements(*tree(tmp_path, s_DOT_py=text))
    assert (found.requirements, found.requires_python) == (("mcp<2",), ">=3.12")


@pytest.mark.parametrize(
    "text", ["# /// script\n# dependencies = [\n# ///\n", '# /// script\n# dependencies = ["x @ file:///y"]\n# ///\n']
)
def test_inline_metadata_that_is_damaged_or_leads_elsewhere(tmp_path: Path, text: str) -> None:
    with pytest.raises(TargetError):
        python_file_requirements(*tree(tmp_path, s_DOT_py=text))


def test_an_open_block_is_no_metadata_and_imports_tell(tmp_path: Path) -> None:
    text = "# /// script\n# dependencies = ['x']\nfrom mcp.server import x\nimport requests, os\n# import fastmcp\n"
    found = python_file_requirements(*tree(tmp_path, s_DOT_py=text))
    assert found.requirements == ("mcp", "requests")
    assert "mcp, requests" in found.notes[0]


@pytest.mark.parametrize(
    "text", ["\n" * 2_000_000, "# /// script\n" * 200_000, " " * 3_000_000, "from" + " " * 3_000_000]
)
def test_hostile_texts_take_linear_time(tmp_path: Path, text: str) -> None:
    found = tree(tmp_path, s_DOT_py=text)
    assert python_file_requirements(*found).requirements == ()
    assert node_file_dependencies(*found) == {}


@pytest.mark.parametrize(
    "text",
    [
        "import { z } from 'zod';",
        'const z = require("zod")',
        "import('zod/v4')",
        "import 'zod'",
        "import z from\n  'zod'",
    ],
)
def test_node_imports(tmp_path: Path, text: str) -> None:
    assert node_file_dependencies(*tree(tmp_path, s_DOT_js=text)) == {"zod": "latest"}


def test_projects(tmp_path: Path) -> None:
    text = '[project]\nname="p"\nversion="1"\ndependencies=["a"]\nscripts={p="p:m"}\n'
    text += '[build-system]\nrequires=["hatchling"]\n'
    found = describe(*tree(tmp_path, pyproject_DOT_toml=text))
    assert (found.name, found.requirements, found.scripts, found.build) == ("p", ("a",), ("p",), ("hatchling",))


@pytest.mark.parametrize(
    "text",
    [
        "[project",
        "a=" + "[" * 5000,
        '[project]\nname="p"\ndynamic=["dependencies"]\n',
        '[project]\nname="p"\ndependencies="x"\n',
        "[tool.poetry]\nname='p'\n",
        "#" * 300_000,
    ],
)
def test_projects_that_can_not_be_known_without_running_them(tmp_path: Path, text: str) -> None:
    with pytest.raises(TargetError):
        describe(*tree(tmp_path, pyproject_DOT_toml=text))


def test_the_likeliest_entry_point_comes_first() -> None:
    facts = WheelFacts(scripts=("aaa", "x-server", "x-mcp", "my_pkg"), modules=("my_pkg",))
    assert [e.name for e in entry_points("my-pkg", facts)] == ["my_pkg", "x-mcp", "x-server", "aaa"]
    only = entry_points("my-pkg", WheelFacts(modules=("my_pkg", "my_pkg.sub.deep", "bad-name")), ("--x",))
    assert [e.argv for e in only] == [("/app/bin/python", "-m", "my_pkg", "--x")]
    bins = {"bin": {"aaa": "a.js", "y": "./dist/../y.js", "out": "../../etc/x", "n": 3}}
    assert [(e.name, e.argv[1]) for e in node_entry_points("@x/y", bins, "22")] == [
        ("y", "/app/node_modules/@x/y/y.js"),
        ("aaa", "/app/node_modules/@x/y/a.js"),
    ]
    assert inner_path("/abs/x.js") == "abs/x.js"


def test_suggestions_are_few_and_other_than_what_was_asked_for() -> None:
    for name in ("mcp-server-time", "time", "mcp", "Time_MCP", "@a/time", "x" * 200):
        for found in (package_variants(name), npm_variants(name)):
            assert len(found) <= 5
            assert name not in found
    assert "mcp-server-time" in package_variants("time-mcp")
    assert "@modelcontextprotocol/server-everything" in npm_variants("everything")
