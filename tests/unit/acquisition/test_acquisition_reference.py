"""parse_target: the forms, the refusals, and that nothing but UsageError ever comes out of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.acquisition import parse_target
from harness.acquisition.reference import package_launch
from harness.model.errors import UsageError
from harness.model.target import TargetKind, TargetRef


@pytest.mark.parametrize(
    ("text", "kind", "name", "version"),
    [
        ("pypi:mcp-server-time", TargetKind.PYPI, "mcp-server-time", None),
        ("pypi:mcp-server-time==2025.1.0", TargetKind.PYPI, "mcp-server-time", "2025.1.0"),
        ("pypi:x==1.0RC1", TargetKind.PYPI, "x", "1.0rc1"),
        ("npm:left-pad", TargetKind.NPM, "left-pad", None),
        ("npm:left-pad@1.3.0", TargetKind.NPM, "left-pad", "1.3.0"),
        ("npm:@scope/name", TargetKind.NPM, "@scope/name", None),
        ("npm:@scope/name@next", TargetKind.NPM, "@scope/name", "next"),
    ],
)
def test_packages(text: str, kind: TargetKind, name: str, version: str | None) -> None:
    ref = parse_target(text, ())
    assert (ref.text, ref.kind, ref.name, ref.version) == (text, kind, name, version)


@pytest.mark.parametrize(
    "text",
    [
        "pypi:",
        "pypi:a b",
        "pypi:a==",
        "pypi:a==1 ; x",
        "pypi:a @ file:///x.tar.gz",
        "pypi:../x",
        "pypi:a[extra]",
        "pypi:a>=1",
        "npm:",
        "npm:@scope",
        "npm:a@^1",
        "npm:a@file:../x",
        "npm:a@https://example.org/x.tgz",
        "npm:user/repo",
        "npm:a@git+ssh://x",
        "nothing-here",
        "nothing.py",
        "-",
        "\x00",
        "a" * 5000,
    ],
)
def test_anything_else_is_a_usage_error_that_names_what_is_wrong(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(text, ())
    assert "\n" not in str(caught.value)
    assert "\x00" not in str(caught.value)


def test_later_forms_say_so() -> None:
    with pytest.raises(UsageError, match="not supported yet"):
        parse_target("https://x/mcp", ())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a-1.0-py3-none-any.whl", TargetKind.WHEEL),
        ("a-1.0.tgz", TargetKind.ARCHIVE),
        ("a-1.0.tar.gz", TargetKind.ARCHIVE),
        ("a.mcpb", TargetKind.BUNDLE),
        ("a.dxt", TargetKind.BUNDLE),
        ("a.tools.json", TargetKind.TOOLS),
        ("server.json", TargetKind.SERVER_JSON),
        ("other.json", TargetKind.CONFIG),
    ],
)
def test_files_by_their_names(tmp_path: Path, name: str, kind: TargetKind) -> None:
    path = tmp_path / name
    with pytest.raises(UsageError, match="no file or folder"):
        parse_target(str(path), ())
    path.write_text("")
    ref = parse_target(str(path), ())
    assert (ref.kind, ref.path, ref.name) == (kind, path, None)


def test_an_entry_of_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("")
    ref = parse_target(f"{tmp_path}/c.json#my#server", ())
    assert (ref.kind, ref.path, ref.name) == (TargetKind.CONFIG, tmp_path / "c.json", "my#server")
    for text in (f"{tmp_path}/none.json#x", f"{tmp_path}/c.json#"):
        with pytest.raises(UsageError, match=r"CONFIG\.json#NAME"):
            parse_target(text, ())


@pytest.mark.parametrize(
    "name", ["img", "img:1.2", "a.example:5000/b/c:tag", "x@sha256:" + "0" * 64, "sha256:" + "a" * 64]
)
def test_images(name: str) -> None:
    ref = parse_target(f"oci:{name}", ())
    assert (ref.kind, ref.name) == (TargetKind.OCI, name)


@pytest.mark.parametrize("name", ["", "-v", "a b", "a:b:c", "--privileged", "a/../b"])
def test_no_images(name: str) -> None:
    with pytest.raises(UsageError, match="does not name an image"):
        parse_target(f"oci:{name}", ())


def test_a_bare_package_name_is_told_how_to_write_it() -> None:
    with pytest.raises(UsageError, match="pypi:mcp-server-time"):
        parse_target("mcp-server-time", ())
    with pytest.raises(UsageError, match="npm:@scope/name"):
        parse_target("@scope/name", ())


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("")
    (tmp_path / "s.mjs").write_text("")
    (tmp_path / "s.txt").write_text("")
    assert parse_target(str(tmp_path), ()).kind is TargetKind.DIRECTORY
    assert parse_target(str(tmp_path / "s.py"), ()).kind is TargetKind.FILE
    assert parse_target(str(tmp_path / "s.mjs"), ()).path == tmp_path / "s.mjs"
    with pytest.raises(UsageError, match="kind of file"):
        parse_target(str(tmp_path / "s.txt"), ())


def test_target_and_command_exclude_each_other() -> None:
    with pytest.raises(UsageError):
        parse_target("pypi:x", ("python3", "x.py"))
    with pytest.raises(UsageError):
        parse_target(None, ())


def test_commands() -> None:
    ref = parse_target(None, ("python3", "-m", "http.server"))
    assert ref.kind is TargetKind.COMMAND
    assert ref.command == ("python3", "-m", "http.server")


@pytest.mark.parametrize(
    ("line", "kind", "name", "version", "program", "arguments"),
    [
        ("npx -y @a/b /tmp", TargetKind.NPM, "@a/b", None, None, ("/tmp",)),
        ("npx @a/b@1.2.3 -y", TargetKind.NPM, "@a/b", "1.2.3", None, ("-y",)),
        ("npx --package=@a/b run x", TargetKind.NPM, "@a/b", None, "run", ("x",)),
        (
            "uvx mcp-server-time --local-timezone UTC",
            TargetKind.PYPI,
            "mcp-server-time",
            None,
            None,
            ("--local-timezone", "UTC"),
        ),
        ("uvx x@1.0", TargetKind.PYPI, "x", "1.0", None, ()),
        ("uvx x@latest", TargetKind.PYPI, "x", None, None, ()),
        ("uvx --from pkg==2 prog a", TargetKind.PYPI, "pkg", "2", "prog", ("a",)),
        ("uv tool run x", TargetKind.PYPI, "x", None, None, ()),
        ("pipx run x y", TargetKind.PYPI, "x", None, None, ("y",)),
    ],
)
def test_package_runners_become_packages(
    line: str, kind: TargetKind, name: str, version: str | None, program: str | None, arguments: tuple[str, ...]
) -> None:
    command = tuple(line.split())
    ref = parse_target(None, command)
    assert (ref.kind, ref.name, ref.version, ref.command) == (kind, name, version, command)
    launch = package_launch(command)
    assert launch is not None
    assert launch[2:] == (program, arguments)


@pytest.mark.parametrize(
    "line", ["npx", "npx -y", "uvx --with x y", "npx -c x", "uvx git+https://x/y", "npx user/repo", "npx file:x"]
)
def test_package_runners_that_are_not_understood(line: str) -> None:
    with pytest.raises(UsageError):
        parse_target(None, tuple(line.split()))


_words = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["pypi:", "npm:", "npx", "uvx", "uv", "tool", "run", "-y", "--from", "@", "==", "/", "\x00", "--"]),
)


@given(st.one_of(st.none(), st.lists(_words, max_size=4).map("".join)), st.lists(_words, max_size=5).map(tuple))
def test_nothing_but_usage_error_is_raised(text: str | None, command: tuple[str, ...]) -> None:
    try:
        ref = parse_target(text, command)
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(ref, TargetRef)
