"""Configurations, registry entries and command lines as clients have them: what each comes down to."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.acquisition.configured.command_line import launch_of
from harness.acquisition.configured.config_file import read_config
from harness.acquisition.configured.launch import Launch
from harness.acquisition.configured.server_json import read_server_json
from harness.acquisition.configured.values import is_secret, planted, planted_path
from harness.model.errors import UsageError
from harness.model.target import TargetKind, TargetRef


def config(tmp_path: Path, entry: object, key: str = "mcpServers", name: str | None = "one") -> Launch:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({key: {"one": entry}}))
    return read_config(TargetRef(text="c.json#one", kind=TargetKind.CONFIG, path=path, name=name))


@pytest.mark.parametrize(
    ("command", "kind", "name", "version", "arguments"),
    [
        (["npx", "-y", "@a/b@1.2.3", "--flag"], TargetKind.NPM, "@a/b", "1.2.3", ("--flag",)),
        (["/usr/local/bin/npx", "a@latest"], TargetKind.NPM, "a", "latest", ()),
        (["C:\\node\\npx.cmd", "a"], TargetKind.NPM, "a", None, ()),
        (["cmd", "/c", "npx", "-y", "a"], TargetKind.NPM, "a", None, ()),
        (["bunx", "a", "x"], TargetKind.NPM, "a", None, ("x",)),
        (["pnpm", "dlx", "a"], TargetKind.NPM, "a", None, ()),
        (["uvx", "--python", "3.12", "a@1.0", "x"], TargetKind.PYPI, "a", "1.0", ("x",)),
        (["uv", "tool", "run", "--from", "pkg", "prog"], TargetKind.PYPI, "pkg", None, ()),
        (["pipx", "run", "a"], TargetKind.PYPI, "a", None, ()),
        (
            ["docker", "run", "-i", "--rm", "-e", "A=b", "-v", "/x:/y", "img:1", "go"],
            TargetKind.OCI,
            "img:1",
            None,
            ("go",),
        ),
    ],
)
def test_command_lines(
    command: list[str], kind: TargetKind, name: str, version: str | None, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    launch = launch_of(tuple(command), {}, tmp_path, "t")
    assert (launch.ref.kind, launch.ref.name, launch.ref.version) == (kind, name, version)
    assert launch.arguments == arguments


def test_docker_variables_are_passed_as_docker_would_and_the_rest_is_said(tmp_path: Path) -> None:
    words = ("docker", "run", "-e", "GIVEN", "--env=SET=1", "-e", "UNKNOWN", "--network", "host", "--mount=x", "img")
    launch = launch_of(words, {"GIVEN": "g", "OTHER": "o"}, tmp_path, "t")
    assert launch.environment == {"GIVEN": "g", "SET": "1"}
    assert launch.notes == ("not given to the container: --network, --mount",)
    assert not launch.replace_command


@pytest.mark.parametrize(
    "command", [["/opt/tool"], ["my-server"], ["docker", "run", "-i"], ["npx"], ["uv", "run", "x"]]
)
def test_what_can_not_be_started_in_a_sandbox(command: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        launch_of(tuple(command), {}, tmp_path, "t")


def test_scripts_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("")
    assert launch_of(("python3", "alone.py", "x"), {}, tmp_path, "t").ref.kind is TargetKind.FILE
    project = tmp_path / "p"
    (project / "build").mkdir(parents=True)
    (project / "package.json").write_text("{}")
    (project / "build" / "index.js").write_text("")
    launch = launch_of(("node", "--no-warnings", str(project / "build" / "index.js"), "x"), {}, tmp_path, "t")
    assert (launch.ref.kind, launch.ref.path, launch.script) == (TargetKind.DIRECTORY, project, "build/index.js")
    assert launch.arguments == ("x",)
    (project / "pyproject.toml").write_text("")
    (project / "server.py").write_text("")
    launch = launch_of(("uv", "--directory", str(project), "run", "server.py"), {}, tmp_path, "t")
    assert (launch.ref.path, launch.script) == (project, "server.py")
    launch = launch_of(("uv", "run", "--directory", str(project), "tool", "x"), {}, tmp_path, "t")
    assert (launch.ref.path, launch.entry, launch.arguments) == (project, "tool", ("x",))
    with pytest.raises(UsageError, match="not here"):
        launch_of(("python", "gone.py"), {}, tmp_path, "t")


def test_credentials_of_a_configuration_stay_where_they_are(tmp_path: Path) -> None:
    entry = {
        "command": "npx",
        "args": [
            "-y",
            "a",
            "--api-key",
            "live-1234567890",
            "--token=live-1234567890",
            "--mode",
            "fast",
            "ghp_" + "a" * 36,
        ],
        "env": {
            "API_KEY": "live-1234567890",
            "DB": "postgres://u:live-1234567890@h/d",
            "MODE": "fast",
            "N": 5,
            "B": True,
        },
    }
    launch = config(tmp_path, entry)
    assert launch.arguments == ("--api-key", "{canary}", "--token={canary}", "--mode", "fast", "{canary}")
    assert launch.environment == {"API_KEY": "{canary}", "DB": "{canary}", "MODE": "fast", "N": "5", "B": "true"}
    assert "live" not in launch.model_dump_json()
    assert any("credentials" in note and "API_KEY" in note and "--token" in note for note in launch.notes)


def test_paths_and_variables_of_this_machine_stand_for_planted_ones(tmp_path: Path) -> None:
    entry = {
        "command": "uvx",
        "args": [
            "a",
            "/home/me/Documents",
            "--db=~/x.sqlite",
            "${workspaceFolder}/src",
            "${input:token}",
            "relative/x",
        ],
        "env": {"FOLDER": "C:\\Users\\me", "FROM": "${env:GITHUB_TOKEN}", "URL": "http://localhost:1"},
    }
    launch = config(tmp_path, entry, key="servers")
    expected = ("{workspace}", "--db={workspace}/x.sqlite", "{workspace}/src", "{canary}", "relative/x")
    assert launch.arguments == expected
    assert launch.environment == {"FOLDER": "{workspace}", "FROM": "{canary}", "URL": "http://localhost:1"}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"url": "https://x"}, "remote"),
        ({}, "no command"),
        ({"command": "npx", "args": "x"}, "list of texts"),
        ({"command": ["npx"]}, "list of texts"),
        ({"command": "npx", "args": ["a"], "env": {"A=B": "c"}}, "can't be set"),
        ({"command": "uvx", "args": ["--from", "git+https://x", "a"]}, "PyPI package"),
        ("npx", "names no entry"),
    ],
)
def test_entries_that_are_refused(tmp_path: Path, entry: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        config(tmp_path, entry)


def test_an_unknown_name_is_told_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"#NAME; there are: one"):
        config(tmp_path, {"command": "npx"}, name="two")
    assert config(tmp_path, {"command": "npx", "args": ["a"]}, name=None).ref.name == "a"


def server_json(tmp_path: Path, package: dict[str, object], wanted: str | None = None) -> Launch:
    path = tmp_path / "server.json"
    other = {"registryType": "nuget", "identifier": "Other", "version": "1.0.0"}
    path.write_text(json.dumps({"name": "io.example/x", "version": "1.0.0", "packages": [other, package]}))
    return read_server_json(TargetRef(text="server.json", kind=TargetKind.SERVER_JSON, path=path), wanted)


FULL = {
    "registryType": "npm",
    "identifier": "@a/b",
    "version": "1.2.3",
    "runtimeHint": "npx",
    "transport": {"type": "stdio"},
    "runtimeArguments": [
        {"type": "positional", "value": "-y"},
        {"type": "named", "name": "--silent", "format": "boolean"},
    ],
    "packageArguments": [
        {"type": "positional", "value": "serve"},
        {"type": "named", "name": "--mode", "default": "fast", "choices": ["fast", "slow"]},
        {"type": "named", "name": "--left-out", "description": "optional"},
        {"type": "named", "name": "--root", "isRequired": True, "format": "filepath"},
        {"type": "named", "name": "--verbose", "format": "boolean", "default": "true"},
        {"type": "named", "name": "--quiet", "format": "boolean", "default": "false"},
        {"type": "named", "name": "--url", "value": "http://{host}:{port}/{unknown}",
         "variables": {"host": {"default": "localhost"}, "port": {"isRequired": True, "format": "number"}}},
        {"type": "positional", "valueHint": "choice", "isRequired": True, "choices": ["one", "two"]},
    ],
    "environmentVariables": [
        {"name": "GIVEN", "value": "1"},
        {"name": "DEFAULT", "default": "d"},
        {"name": "OPTIONAL", "isSecret": True},
        {"name": "SECRET", "isRequired": True, "isSecret": True},
        {"name": "AUTH", "value": "Bearer {token}", "variables": {"token": {"isRequired": True, "isSecret": True}}},
    ],
}  # fmt: skip


def test_a_registry_entry_with_everything(tmp_path: Path) -> None:
    launch = server_json(tmp_path, FULL)
    assert (launch.ref.kind, launch.ref.name, launch.ref.version) == (TargetKind.NPM, "@a/b", "1.2.3")
    assert launch.arguments == (
        *("serve", "--mode", "fast", "--root", "{workspace}", "--verbose"),
        *("--url", "http://localhost:8080/{unknown}", "one"),
    )
    assert launch.environment == {"GIVEN": "1", "DEFAULT": "d", "SECRET": "{canary}", "AUTH": "Bearer {canary}"}
    assert any("--root" in note and "SECRET" in note and "token" in note for note in launch.notes)


def test_the_older_spelling_says_the_same(tmp_path: Path) -> None:
    def old(value: object) -> object:
        if isinstance(value, dict):
            return {"".join(f"_{c.lower()}" if c.isupper() else c for c in str(k)): old(v) for k, v in value.items()}
        return [old(entry) for entry in value] if isinstance(value, list) else value

    package = {**FULL, "environmentVariables": [FULL["environmentVariables"][0]]}  # type: ignore[index]
    spelled = old(package)
    assert isinstance(spelled, dict)
    assert server_json(tmp_path, spelled).arguments == server_json(tmp_path, package).arguments


def test_the_kinds_of_packages(tmp_path: Path) -> None:
    launch = server_json(tmp_path, {"registryType": "pypi", "identifier": "a", "version": "1.0"}, "pypi")
    assert (launch.ref.name, launch.ref.version, launch.alias) == ("a", "1.0", "pypi")
    image = {"registryType": "oci", "identifier": "docker.io/a/b", "version": "1.0"}
    image["runtimeArguments"] = [{"type": "named", "name": "-e", "value": "K=V"}]  # type: ignore[assignment]
    launch = server_json(tmp_path, image)
    assert (launch.ref.name, launch.environment, launch.replace_command) == ("docker.io/a/b:1.0", {"K": "V"}, False)
    assert server_json(tmp_path, {"registryType": "oci", "identifier": "a/b:2"}).ref.name == "a/b:2"
    with pytest.raises(UsageError, match="nuget:Other"):
        server_json(tmp_path, {"registryType": "cargo", "identifier": "x"})
    with pytest.raises(UsageError, match="PyPI package"):
        server_json(tmp_path, {"registryType": "pypi", "identifier": "x @ file:///y"})


def test_a_bundle_named_by_its_address_is_taken_from_beside_or_not_at_all(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"bundle").hexdigest()
    package: dict[str, object] = {
        "registryType": "mcpb",
        "identifier": "https://x.example/d/a.mcpb",
        "fileSha256": digest,
    }
    with pytest.raises(UsageError, match="not fetched"):
        server_json(tmp_path, package)
    (tmp_path / "a.mcpb").write_bytes(b"bundle")
    assert server_json(tmp_path, package).ref.path == tmp_path / "a.mcpb"
    (tmp_path / "a.mcpb").write_bytes(b"other")
    with pytest.raises(UsageError, match="SHA-256"):
        server_json(tmp_path, package)


WORDS = (
    "mcpServers one command args env packages registryType identifier version packageArguments environmentVariables "
    "name value variables type npm server"
)
KEYS = WORDS.split(" ")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(KEYS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=30,
)


@given(JSON)
def test_whatever_the_file_holds_ends_in_a_launch_or_a_usage_error(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.mktemp("j") / "server.json"
    path.write_text(json.dumps(value))
    for read in (read_config, lambda ref: read_server_json(ref, None)):
        try:
            launch = read(TargetRef(text="x", kind=TargetKind.CONFIG, path=path))
        except UsageError as error:
            assert "\n" not in str(error)
        else:
            assert isinstance(launch, Launch)


def test_what_is_a_secret() -> None:
    for name in (
        "API_KEY",
        "GITHUB_TOKEN",
        "password",
        "--api-key",
        "clientSecret",
        "DB_PASSWORD",
        "SENTRY_DSN",
        "PAT",
    ):
        assert is_secret(name, "x"), name
    for name in ("PATH", "MODE", "KEYBOARD", "AUTHOR", "--repository", "TOKENIZER", "MONKEY"):
        assert not is_secret(name, "x"), name
    assert is_secret("ANY", "sk-abcdefgh12345678")
    assert is_secret("ANY", "mysql://u:p@h")
    assert not is_secret("ANY", "mysql://h/d")


def test_planted_values() -> None:
    assert planted("baseUrl") == "https://example.com"
    assert planted("projectDir") == planted("x", "directory") == "{workspace}"
    assert planted("x", "file") == "{workspace}/README.md"
    assert (planted("x", "boolean"), planted("x", "number"), planted("PORT", "number")) == ("false", "1", "8080")
    assert planted_path("/a/b.db") == "{workspace}/b.db"
    assert planted_path("C:\\a\\b\\") == "{workspace}"
