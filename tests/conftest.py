"""What all tests share: the async backend, the `--docker` switch, folders of their own, no blocking, nothing left.

`--docker=require` fails the whole run where no engine answers; `--docker=no` deselects what needs one;
the default uses the engine when there is one and says loudly when there is none.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest

# Timings never decide whether a test passes; the same examples are tried every time, so that a failure can be repeated.
hypothesis.settings.register_profile("harness", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("harness")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--docker",
        choices=["auto", "require", "no"],
        default="auto",
        help="whether tests that need a Docker engine must run",
    )


def _engine_answers() -> bool:
    import docker
    from docker.errors import DockerException

    try:
        client = docker.APIClient(version="auto", timeout=10)
        client.ping()
        client.close()
    except DockerException:
        return False
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--docker")
    needing = [item for item in items if item.get_closest_marker("docker")]
    if not needing or (wanted != "no" and _engine_answers()):
        return
    if wanted == "require":
        pytest.exit("--docker=require, and no Docker engine answers: run `make setup`", returncode=4)
    items[:] = [item for item in items if item not in needing]
    config.hook.pytest_deselected(items=needing)
    sys.stderr.write(f"\n{len(needing)} tests that need a Docker engine were NOT run (--docker={wanted})\n")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Bundles and crash files of a test go to a folder of its own; the cache of fetched packages is shared."""
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("HARNESS_STATE", str(state))
    return state


@pytest.fixture
def run_harness(own_state: Path):  # type: ignore[no-untyped-def]
    """Run the installed command in a child: `run_harness("run", "pypi:x")` -> completed process with text."""
    import subprocess

    def run(*arguments: str, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("harness")), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**os.environ, **environment},
        )

    return run
