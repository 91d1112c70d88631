"""The machine's registry settings are read as their owners read them, and nothing else of the configuration is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.acquisition.node.settings import read_registry_settings
from harness.acquisition.python.settings import read_index_settings
from harness.acquisition.tools import clean_environment, redact, summary


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a system folder of the test's own, and none of this machine's variables."""
    for name in list(os.environ):
        if name.lower().startswith(("pip_", "npm_config_", "xdg_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def as_pip_reads(name: str) -> str | None:
    command = [sys.executable, "-m", "pip", "config", "list"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    values = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    return values.get(f"global.{name}", "").strip("'") or None


def test_the_later_of_pips_files_wins_as_with_pip(machine: Path) -> None:
    write(machine / "xdg/pip/pip.conf", "[global]\nindex-url = https://system.example/simple\n")
    assert read_index_settings().index == as_pip_reads("index-url") == "https://system.example/simple"
    write(machine / ".pip/pip.conf", "[global]\nindex_url = https://old.example/simple\n")
    assert read_index_settings().index == "https://old.example/simple"
    write(machine / ".config/pip/pip.conf", "[global]\nindex-url = https://user.example/simple\n")
    assert read_index_settings().index == as_pip_reads("index-url") == "https://user.example/simple"


def test_variables_and_a_named_file_override(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(machine / ".config/pip/pip.conf", "[global]\nindex-url = https://user.example/simple\n")
    write(machine / "named", "[global]\nindex-url = https://named.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(machine / "named"))
    assert read_index_settings().index == as_pip_reads("index-url") == "https://named.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable.example/simple")
    assert read_index_settings().index == "https://variable.example/simple"
    monkeypatch.delenv("PIP_INDEX_URL")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert read_index_settings().index is None


def test_only_what_says_where_packages_come_from_is_read(machine: Path) -> None:
    (machine / "wheels").mkdir()
    write(
        machine / ".config/pip/pip.conf",
        f"[global]\nextra-index-url =\n  https://a.example/simple\n  file://{machine}/none\n"
        f"find-links = {machine}/wheels {machine}/none\nconstraint = {machine}/c.txt\nuser = true\ntimeout = 45\n"
        "[download]\ntrusted-host = a.example\n[install]\nno-binary = :all:\n",
    )
    settings = read_index_settings()
    assert settings.extra == ("https://a.example/simple",)
    assert settings.find_links == (f"{machine}/wheels",)
    assert settings.trusted_hosts == ("a.example",)
    assert settings.timeout == 45
    for environment in (settings.uv_environment(machine), settings.pip_environment()):
        assert not [name for name in environment if "CONSTRAINT" in name or "BINARY" in name or name.endswith("_USER")]
    assert settings.pip_environment()["PIP_CONFIG_FILE"] == os.devnull


def test_damaged_files_do_not_stop_anything(machine: Path) -> None:
    write(machine / ".config/pip/pip.conf", "index-url = x\n[[")
    write(machine / ".npmrc", "\x00=\n=\nregistry")
    assert read_index_settings().index is None
    assert ("registry", "") not in read_registry_settings().values


def test_npm_settings(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_TOKEN", "s3cret")
    monkeypatch.setenv("NPM_CONFIG_GLOBALCONFIG", str(machine / "global"))
    write(machine / "global", "registry=https://global.example/npm\ncafile=/ca.pem\n")
    write(
        machine / ".npmrc",
        "; comment\n@scope:registry = https://scope.example/\n//scope.example/:_authToken=${NPM_TOKEN}\n"
        "omit-lockfile-registry-resolved=true\nignore-scripts=false\nscript-shell=/bin/evil\nallow-git=all\n",
    )
    settings = read_registry_settings()
    assert dict(settings.values) == {
        "registry": "https://global.example/npm",
        "cafile": "/ca.pem",
        "@scope:registry": "https://scope.example/",
        "//scope.example/:_authToken": "s3cret",
    }
    assert settings.registries("https://built-in.example")[:2] == (
        "https://scope.example/",
        "https://global.example/npm/",
    )
    monkeypatch.setenv("npm_config_registry", "https://variable.example/")
    assert read_registry_settings().digest != settings.digest


def test_tools_get_no_variable_that_could_change_what_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_INDEX_URL", "PIP_TARGET", "NODE_OPTIONS", "npm_config_allow_git", "PYTHONPATH", "LD_PRELOAD"):
        monkeypatch.setenv(name, "x")
    kept = clean_environment({})
    assert not {"UV_INDEX_URL", "PIP_TARGET", "NODE_OPTIONS", "npm_config_allow_git", "PYTHONPATH", "LD_PRELOAD"} & set(
        kept
    )


def test_no_secret_is_quoted() -> None:
    text = redact("GET https://user:pa55@host/x //h/:_authToken=npm_abc password: hunter2 Authorization: Bearer")
    for secret in ("pa55", "npm_abc", "hunter2", "user"):
        assert secret not in text
    assert "host/x" in text
    assert len(summary("x" * 1000)) == 300
    assert summary("error: a\n  cause:   b\n") == "a b"
