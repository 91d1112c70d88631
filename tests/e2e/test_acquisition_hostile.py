"""Nothing of a target runs on the host, and no direct reference is followed.

A registry on loopback serves both worlds: packages whose metadata points to files, repositories and addresses, an
sdist whose setup.py leaves a marker, an npm package whose install scripts leave one. Each test looks at three
things: the error names who is to blame, no marker exists, and the registry saw no request for what was pointed to.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest
from loopback_registry import Registry, sdist, tarball, wheel

from harness.acquisition import acquire, parse_target
from harness.acquisition.node.tool import node_tool
from harness.acquisition.python.settings import read_index_settings
from harness.acquisition.python.world import PythonWorld
from harness.acquisition.store import Store
from harness.acquisition.tools import run_tool
from harness.model.errors import RegistryError, TargetError, UsageError
from harness.model.options import Limits, RunOptions
from harness.model.target import Acquired
from harness.pipeline.places import packages_dir
from harness.sandbox.base import InstalledTarget, LaunchSpec
from harness.sandbox.provider import open_sandbox

pytestmark = pytest.mark.anyio


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.fixture
def python_index(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The registry as this machine's only Python index."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "pip.conf"
    missing = (tmp_path / "not-there").as_uri()
    config.write_text(f"[global]\nindex-url = {registry.url}/simple\nextra-index-url = {missing}\nfind-links =\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    return registry


@pytest.fixture
def npm_registry(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The registry as this machine's npm registry; npm itself comes from the real Python index."""
    config = tmp_path / "npmrc"
    config.write_text(f"registry={registry.url}/\n")
    monkeypatch.setenv("NPM_CONFIG_USERCONFIG", str(config))
    return registry


@pytest.fixture
async def npm_cache(tmp_path: Path) -> Path:
    """An empty cache, but for npm itself, which all tests share."""
    world = PythonWorld(Store(packages_dir()), read_index_settings(), "x86_64", lambda line: None)
    tool = await node_tool(world)
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "tools").symlink_to(tool.root.parent)
    return cache


async def fetch(text: str, cache: Path, **options: object) -> Acquired:
    return await acquire(parse_target(text, ()), RunOptions(**options), cache, lambda line: None)  # type: ignore[arg-type]


DIRECT = {
    "file": "x @ {file}",
    "wheel": "x @ {url}/evil/x-1.0-py3-none-any.whl",
    "sdist": "x @ {url}/evil/x-1.0.tar.gz",
    "git": "x @ git+{url}/evil/x.git",
}


@pytest.mark.parametrize("how", DIRECT)
@pytest.mark.parametrize("depth", [0, 1])
async def test_a_direct_reference_in_a_wheels_metadata(
    python_index: Registry, tmp_path: Path, how: str, depth: int
) -> None:
    marker = tmp_path / "marker"
    name, data = sdist("x", "1.0", marker)
    (tmp_path / name).write_bytes(data)
    reference = DIRECT[how].format(file=(tmp_path / name).as_uri(), url=python_index.url)
    python_index.add("evil", wheel("evil", "1.0", (reference,)))
    python_index.add("outer", wheel("outer", "1.0", ("evil",)))
    with pytest.raises(TargetError, match=r"evil depends on x by a direct reference"):
        await fetch("pypi:outer" if depth else "pypi:evil", tmp_path / "cache")
    assert not marker.exists()
    assert not python_index.asked_for("/evil/x")
    assert not python_index.asked_for("/simple/x")


async def test_the_benign_twin_is_acquired(python_index: Registry, tmp_path: Path) -> None:
    optional = f"x @ {python_index.url}/evil/x.whl ; extra == 'dev'"
    python_index.add("good", wheel("good", "1.0", ("dep>=1", optional), ("other", "good")))
    python_index.add("dep", wheel("dep", "1.5"))
    acquired = await fetch("pypi:good", tmp_path / "cache")
    assert [(a.name, a.version) for a in acquired.closure.artifacts] == [("dep", "1.5"), ("good", "1.0")]
    assert [e.argv for e in acquired.entry_points] == [("/app/bin/good",), ("/app/bin/other",)]
    assert acquired.install.image == "python313"
    assert all(file.source.is_file() for file in acquired.install.files)
    for artifact in acquired.closure.artifacts:
        (path,) = [f.source for f in acquired.install.files if f.destination.endswith(artifact.filename)]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == artifact.sha256
    assert not python_index.asked_for("/evil/")


async def test_found_again_nothing_is_asked(python_index: Registry, tmp_path: Path) -> None:
    python_index.add("good", wheel("good", "1.0"))
    first = await fetch("pypi:good", tmp_path / "cache")
    python_index.requests.clear()
    second = await fetch("pypi:good", tmp_path / "cache")
    assert not python_index.requests
    assert second.closure == first.closure
    assert second.install == first.install
    assert [file.source for file in second.install.files] == [file.source for file in first.install.files]
    assert any("kept" in note for note in second.notes)
    await fetch("pypi:good", tmp_path / "cache", python="3.11")
    assert python_index.requests


async def test_an_sdist_is_not_built_here(python_index: Registry, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    python_index.add("setuptools", wheel("setuptools", "80.0"))
    python_index.add("wheel", wheel("wheel", "1.0"))
    python_index.add("sdonly", sdist("sdonly", "1.0", marker))
    python_index.add("outer", wheel("outer", "1.0", ("sdonly",)))
    for target in ("sdonly", "outer"):
        acquired = await fetch(f"pypi:{target}", tmp_path / "cache")
        assert any(note == "built in the sandbox: sdonly" for note in acquired.notes)
        names = [artifact.filename for artifact in acquired.closure.artifacts]
        assert {"sdonly-1.0.tar.gz", "setuptools-80.0-py3-none-any.whl"} <= set(names)
        (path,) = [f.source for f in acquired.install.files if f.destination == "sdists/sdonly-1.0.tar.gz"]
        assert path.read_bytes() == python_index.python["sdonly"][0][1]
    assert not marker.exists()


async def test_an_older_wheel_is_not_taken_for_a_newer_sdist(python_index: Registry, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    python_index.add("setuptools", wheel("setuptools", "80.0"))
    python_index.add("wheel", wheel("wheel", "1.0"))
    python_index.add("newest", wheel("newest", "1.0"))
    python_index.add("newest", sdist("newest", "2.0", marker))
    assert (await fetch("pypi:newest", tmp_path / "cache")).version == "2.0"
    assert (await fetch("pypi:newest==1.0", tmp_path / "cache")).version == "1.0"
    python_index.add("newest", sdist("newest", "3.0", marker, ("x @ git+https://example.org/x",)))
    with pytest.raises(TargetError, match=r"newest release 3\.0 .*direct reference.*newest==1\.0"):
        await fetch("pypi:newest", tmp_path / "other")
    assert not marker.exists()


async def test_unknown_names_and_versions(python_index: Registry, tmp_path: Path) -> None:
    python_index.add("mcp-server-good", wheel("mcp-server-good", "1.0"))
    with pytest.raises(UsageError, match="did you mean pypi:mcp-server-good"):
        await fetch("pypi:good-mcp", tmp_path / "cache")
    with pytest.raises(UsageError, match=r"no version 7\.0; the newest versions are 1\.0"):
        await fetch("pypi:mcp-server-good==7.0", tmp_path / "cache")
    python_index.add("outer", wheel("outer", "1.0", ("missing",)))
    with pytest.raises(TargetError, match="does not exist in the configured indexes: missing"):
        await fetch("pypi:outer", tmp_path / "cache")


async def test_constraints_and_the_choice_of_python(python_index: Registry, tmp_path: Path) -> None:
    python_index.add("good", wheel("good", "1.0", ("dep",)))
    for version in ("1.0", "2.0"):
        python_index.add("dep", wheel("dep", version))
    acquired = await fetch("pypi:good", tmp_path / "cache", constraints=("dep<2",), python="3.11")
    assert acquired.install.image == "python311"
    assert [a.version for a in acquired.closure.artifacts if a.name == "dep"] == ["1.0"]
    with pytest.raises(UsageError):
        await fetch("pypi:good", tmp_path / "cache", python="2.7")


async def test_an_index_that_is_down_is_the_registrys_fault_and_its_password_is_not_told(
    python_index: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://somebody:hunter2@127.0.0.1:9/simple")
    with pytest.raises(RegistryError) as caught:
        await fetch("pypi:good", tmp_path / "cache")
    assert "hunter2" not in str(caught.value)
    assert "pip's configuration" in str(caught.value)


async def test_a_fetch_that_is_cancelled_leaves_nothing(python_index: Registry, tmp_path: Path) -> None:
    python_index.add("slow", wheel("slow", "1.0"))
    python_index.hold = threading.Event()
    with anyio.move_on_after(30) as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch, "pypi:slow", tmp_path / "cache")
            while not python_index.requests:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    python_index.hold.set()
    assert not scope.cancelled_caught
    assert not list((tmp_path / "cache" / "work").iterdir())
    assert not [child for child in psutil.Process().children(recursive=True) if "uv" in child.name()]


async def test_a_closure_that_goes_round_in_circles(python_index: Registry, tmp_path: Path) -> None:
    for name, needs in (("a", "b"), ("b", "c"), ("c", "a>=1")):
        python_index.add(name, wheel(name, "1.0", (needs,)))
    acquired = await fetch("pypi:a", tmp_path / "cache")
    assert [artifact.name for artifact in acquired.closure.artifacts] == ["a", "b", "c"]
    python_index.add("x", wheel("x", "1.0", ("y>=2",)))
    python_index.add("y", wheel("y", "1.0", ("x",)))
    python_index.add("y", wheel("y", "2.0", ("x<1",)))
    with pytest.raises(TargetError, match="no set of packages fits"):
        await fetch("pypi:x", tmp_path / "cache")


async def test_a_closure_that_explodes(python_index: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def branch(name: str) -> tuple[str, bytes] | None:
        depth = len(name) - 1
        return wheel(name, "1.0", (f"{name}a", f"{name}b") if depth < 6 else ())

    python_index.endless = branch
    monkeypatch.setattr("harness.acquisition.python.resolve.CLOSURE_FILES", 100)
    with pytest.raises(TargetError, match="closure is too large: 127 packages"):
        await fetch("pypi:n", tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("files/*/*"))


async def test_a_closure_without_end(python_index: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def following(name: str) -> tuple[str, bytes] | None:
        return wheel(name, "1.0", (f"n-{int(name.removeprefix('n-')) + 1}",)) if name.startswith("n-") else None

    python_index.endless = following
    monkeypatch.setattr(run_tool, "__kwdefaults__", {**run_tool.__kwdefaults__, "seconds": 5})
    with pytest.raises(RegistryError, match="no complete answer"):
        await fetch("pypi:n-1", tmp_path / "cache")
    assert not list((tmp_path / "cache" / "work").iterdir())
    assert not [child for child in psutil.Process().children(recursive=True) if "uv" in child.name()]


async def test_a_name_on_two_indexes_is_said(
    python_index: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Registry() as own:
        own.add("internal", wheel("internal", "1.0"))
        own.add("same", python_index.python.setdefault("same", [wheel("same", "1.0")])[0])
        python_index.add("internal", wheel("internal", "99.0"))
        python_index.add("good", wheel("good", "1.0", ("internal", "same")))
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{own.url}/simple")
        acquired = await fetch("pypi:good", tmp_path / "cache")
        (warning,) = [note for note in acquired.notes if note.startswith("warning")]
        theirs, ours = (index.url.removeprefix("http://") for index in (python_index, own))
        assert warning == (
            f"warning: internal is on several indexes: 99.0 from {theirs} was taken, 1.0 from {ours} was not"
        )
        again = await fetch("pypi:good", tmp_path / "cache")
        assert warning in again.notes


async def test_another_file_than_was_announced(python_index: Registry, tmp_path: Path) -> None:
    python_index.add("setuptools", wheel("setuptools", "80.0"))
    python_index.add("wheel", wheel("wheel", "1.0"))
    python_index.add("swapped", wheel("swapped", "1.0"))
    python_index.add("source", sdist("source", "1.0", tmp_path / "marker"))
    for name, (filename, data) in {n: python_index.python[n][0] for n in ("swapped", "source")}.items():
        python_index.replaced[filename] = data + b" "
        with pytest.raises((RegistryError, TargetError)) as caught:
            await fetch(f"pypi:{name}", tmp_path / "cache")
        assert not isinstance(caught.value, UsageError)
        del python_index.replaced[filename]
        assert (await fetch(f"pypi:{name}", tmp_path / "cache")).version == "1.0"
    assert not (tmp_path / "marker").exists()


async def test_as_of_a_day_and_what_has_no_date(python_index: Registry, tmp_path: Path) -> None:
    python_index.add("good", wheel("good", "1.0"))
    with pytest.raises(UsageError, match="is no date"):
        await fetch("pypi:good", tmp_path / "cache", as_of="yesterday")
    with pytest.raises((TargetError, UsageError)):  # this index tells no dates, so nothing is known to be old enough
        await fetch("pypi:good", tmp_path / "cache", as_of="2025-01-01")


async def test_text_of_packages_reaches_no_message_raw(python_index: Registry, tmp_path: Path) -> None:
    evil = "x\x1b[2J\u202e @ https://example.org/x"
    python_index.add("evil", wheel("evil", "1.0", (evil,), ("ok", "e\x1b[31mvil")))
    with pytest.raises(TargetError) as caught:
        await fetch("pypi:evil", tmp_path / "cache")
    assert str(caught.value).isprintable()
    python_index.add("named", wheel("named", "1.0", (), ("ok", "e\x1b[31mvil")))
    acquired = await fetch("pypi:named", tmp_path / "cache")
    assert [entry.name for entry in acquired.entry_points] == ["ok"]


async def test_a_project_builds_nothing_here(python_index: Registry, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    root = tmp_path / "project"
    root.mkdir()
    (root / "setup.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    (root / "backend.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    project = '[project]\nname = "p"\nversion = "1"\ndependencies = ["dep"]\nscripts.p = "p:main"\n'
    system = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (root / "pyproject.toml").write_text(project + system)
    for name in ("dep", "setuptools", "wheel"):
        python_index.add(name, wheel(name, "80.0"))
    acquired = await fetch(str(root), tmp_path / "cache")
    assert [e.argv for e in acquired.entry_points] == [("/app/bin/p",)]
    assert {"dep", "setuptools", "project"} <= {a.name for a in acquired.closure.artifacts}
    assert not marker.exists()
    (root / "pyproject.toml").write_text(project.replace('"dep"', f'"x @ {root.as_uri()}"'))
    with pytest.raises(TargetError, match="direct reference"):
        await fetch(str(root), tmp_path / "cache")
    (root / "pyproject.toml").write_text(project + system.replace('"setuptools"', f'"x @ {root.as_uri()}"'))
    with pytest.raises(TargetError, match="direct reference"):
        await fetch(str(root), tmp_path / "cache")
    assert not marker.exists()


SPECS = {
    "git": "git+{url}/evil/x.git",
    "short": "evil/x",
    "remote": "{url}/evil/x.tgz",
    "file": "file:{folder}/x.tgz",
    "folder": "file:{folder}",
    "link": "link:{folder}",
    "ssh": "git+ssh://git@127.0.0.1/evil/x.git",
}


@pytest.mark.registry
@pytest.mark.parametrize("how", SPECS)
async def test_a_direct_reference_among_npm_dependencies(
    npm_registry: Registry, tmp_path: Path, npm_cache: Path, how: str
) -> None:
    marker = tmp_path / "marker"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare", "prepack"), f"touch {marker}")
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "package.json").write_text(json.dumps({"name": "x", "version": "1.0.0", "scripts": scripts}))
    (folder / "x.tgz").write_bytes(tarball({"package.json": (folder / "package.json").read_text()}, "package"))
    spec = SPECS[how].format(url=npm_registry.url, folder=folder)
    for kind in ("dependencies", "optionalDependencies", "peerDependencies"):
        npm_registry.publish(f"evil-{kind.lower()}", "1.0.0", scripts=scripts, **{kind: {"x": spec}})
        npm_registry.publish(f"outer-{kind.lower()}", "1.0.0", dependencies={f"evil-{kind.lower()}": "^1.0.0"})
        for name in ("evil", "outer"):
            with pytest.raises(
                TargetError, match=r"evil-\w+(@1\.0\.0)? depends on x by a direct reference|direct reference \(link:"
            ):
                await fetch(f"npm:{name}-{kind.lower()}", npm_cache)
    assert not marker.exists()
    assert not npm_registry.asked_for("/evil/")
    assert not npm_registry.asked_for("/-/")


@pytest.mark.registry
@pytest.mark.parametrize("how", ["git", "remote", "file"])
async def test_a_direct_reference_in_a_packages_own_lock(
    npm_registry: Registry, tmp_path: Path, npm_cache: Path, how: str
) -> None:
    resolved = SPECS[how].format(url=npm_registry.url, folder=tmp_path)
    shrinkwrap = {
        "name": "evil",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "packages": {
            "": {"name": "evil", "version": "1.0.0", "dependencies": {"x": "^1.0.0"}},
            "node_modules/x": {"version": "1.0.0", "resolved": resolved, "hasInstallScript": True},
        },
    }
    npm_registry.publish("x", "1.0.0")
    npm_registry.publish(f"evil-{how}", "1.0.0", dependencies={"x": "^1.0.0"}, shrinkwrap=shrinkwrap)
    with pytest.raises(TargetError, match="own locked"):
        await fetch(f"npm:evil-{how}", npm_cache)
    assert not npm_registry.asked_for("/evil/")


@pytest.mark.registry
async def test_the_benign_npm_twin_is_acquired_and_its_scripts_wait(
    npm_registry: Registry, tmp_path: Path, npm_cache: Path
) -> None:
    marker = tmp_path / "marker"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), f"touch {marker}")
    npm_registry.publish("good", "1.0.0", scripts=scripts, dependencies={"dep": "^1.0.0"}, bin={"good": "./index.js"})
    npm_registry.publish("dep", "1.2.0", scripts=scripts, engines={"node": ">=18"})
    npm_registry.publish("dep", "2.0.0")
    acquired = await fetch("npm:good", npm_cache)
    assert [(a.name, a.version) for a in acquired.closure.artifacts] == [("dep", "1.2.0"), ("good", "1.0.0")]
    assert acquired.entry_points[0].argv == ("/opt/node/22/bin/node", "/app/node_modules/good/index.js")
    for artifact in acquired.closure.artifacts:
        data = npm_registry.npm[artifact.name][artifact.version][1]
        assert artifact.sha256 == hashlib.sha256(data).hexdigest()
    assert not marker.exists()
    npm_registry.publish("picky", "1.0.0", engines={"node": ">=24"}, bin="index.js")
    assert (await fetch("npm:picky", npm_cache)).entry_points[0].argv[0] == "/opt/node/24/bin/node"
    assert (await fetch("npm:picky", npm_cache, node="20")).entry_points[0].argv[0] == "/opt/node/20/bin/node"


@pytest.mark.registry
async def test_a_version_that_came_out_since_a_package_was_fetched_is_fetched_too(
    npm_registry: Registry, tmp_path: Path, npm_cache: Path
) -> None:
    npm_registry.publish("dep", "1.0.0")
    npm_registry.publish("first", "1.0.0", dependencies={"dep": "1"}, bin="index.js")
    await fetch("npm:first", npm_cache)
    npm_registry.publish("dep", "1.1.0")
    npm_registry.publish("second", "1.0.0", dependencies={"dep": "1"}, bin="index.js")
    acquired = await fetch("npm:second", npm_cache)
    assert [p.version for p in acquired.closure.artifacts if p.name == "dep"] == ["1.1.0"]


@pytest.mark.registry
async def test_npm_closures_in_circles_other_files_and_overrides(
    npm_registry: Registry, tmp_path: Path, npm_cache: Path
) -> None:
    npm_registry.publish("a", "1.0.0", dependencies={"b": "1"}, bin="index.js")
    npm_registry.publish("b", "1.0.0", dependencies={"a": "1"})
    assert [p.name for p in (await fetch("npm:a", npm_cache)).closure.artifacts] == ["a", "b"]

    npm_registry.publish("top", "1.0.0", dependencies={"mid": "1"}, bin="index.js")
    npm_registry.publish("mid", "1.0.0", dependencies={"leaf": "*"})
    for version in ("1.0.0", "2.0.0", "3.0.0"):
        npm_registry.publish("leaf", version)
    for constraint, taken in (
        ("leaf@1", "1.0.0"),
        ("leaf<3", "2.0.0"),
        ("leaf==1.0.0", "1.0.0"),
        ("leaf>=3,<4", "3.0.0"),
    ):
        acquired = await fetch("npm:top", npm_cache, constraints=(constraint,))
        assert [p.version for p in acquired.closure.artifacts if p.name == "leaf"] == [taken]
        assert f"constraints: {constraint}" in acquired.notes
    for constraint in ("top@2", "leaf", "leaf@file:../x", "leaf@git+https://x", "@x", "leaf@https://x/y.tgz"):
        with pytest.raises(UsageError, match="--constraint"):
            await fetch("npm:top", npm_cache, constraints=(constraint,))

    npm_registry.publish("swapped", "1.0.0", bin="index.js")
    npm_registry.replaced["swapped"] = npm_registry.npm["a"]["1.0.0"][1]
    with pytest.raises(RegistryError, match=r"another file|could not be fetched"):
        await fetch("npm:swapped", npm_cache)


@pytest.mark.registry
async def test_npm_as_of_a_day(npm_registry: Registry, tmp_path: Path, npm_cache: Path) -> None:
    npm_registry.publish("top", "1.0.0", dependencies={"leaf": "*"}, bin="index.js")
    npm_registry.publish("leaf", "1.0.0")
    npm_registry.publish("leaf", "2.0.0")
    npm_registry.times = {"top": {"1.0.0": "2025-01-01T00:00:00.000Z"}}
    npm_registry.times["leaf"] = {"1.0.0": "2025-01-02T00:00:00.000Z", "2.0.0": "2025-06-01T00:00:00.000Z"}
    acquired = await fetch("npm:top", npm_cache, as_of="2025-03-01")
    assert [p.version for p in acquired.closure.artifacts if p.name == "leaf"] == ["1.0.0"]
    assert "dependencies as of 2025-03-01" in acquired.notes
    assert [p.version for p in (await fetch("npm:top", npm_cache)).closure.artifacts if p.name == "leaf"] == ["2.0.0"]


async def inside(acquired: Acquired, *argv: str) -> bytes:
    """Install in a sandbox and return what a command prints there."""
    async with open_sandbox("acquisition-test", lambda line: None) as sandbox:
        installed = await sandbox.install(acquired.install, timeout=120, limits=Limits())
        assert isinstance(installed, InstalledTarget), installed
        spec = LaunchSpec(
            image=acquired.install.image, volume=installed.volume, argv=argv, environment=acquired.environment
        )
        printed = b""
        async with sandbox.launch(spec) as process:
            with anyio.fail_after(60), suppress(anyio.EndOfStream):
                while True:
                    printed += await process.stdout.receive()
    return printed


@pytest.mark.docker
@pytest.mark.registry
@pytest.mark.parametrize("node", ["20", "22", "24"])
async def test_install_scripts_run_in_the_sandbox_only(
    npm_registry: Registry, tmp_path: Path, npm_cache: Path, node: str
) -> None:
    marker = tmp_path / "marker"
    # Both a path that exists here and one that exists there: what ran where shows in what was left.
    script = f"node -e \"const f = require('fs'); f.writeFileSync('ran', process.version); try {{ f.writeFileSync('{marker}', '') }} catch {{}}\""  # noqa: E501
    npm_registry.publish("good", "1.0.0", dependencies={"dep": "1"}, bin="index.js")
    npm_registry.publish("dep", "1.0.0", scripts={"postinstall": script})
    acquired = await fetch("npm:good", npm_cache, node=node)
    assert (await inside(acquired, "cat", "/app/node_modules/dep/ran")).startswith(f"v{node}.".encode())
    assert not marker.exists()


@pytest.mark.docker
@pytest.mark.parametrize("python", ["3.11", "3.13"])
async def test_console_scripts_work_in_the_sandbox(python_index: Registry, tmp_path: Path, python: str) -> None:
    python_index.add(
        "good", wheel("good", "1.0", scripts=("good",), body="import sys\ndef main(): print(sys.version)\n")
    )
    acquired = await fetch("pypi:good", tmp_path / "cache", python=python)
    assert (await inside(acquired, *acquired.entry_points[0].argv)).startswith(python.encode())


@pytest.mark.registry
async def test_unknown_npm_names_and_versions(npm_registry: Registry, tmp_path: Path, npm_cache: Path) -> None:
    npm_registry.publish("mcp-server-good", "1.0.0")
    with pytest.raises(UsageError, match="did you mean npm:mcp-server-good"):
        await fetch("npm:good-mcp", npm_cache)
    with pytest.raises(UsageError, match=r"no version 7\.0\.0; the newest versions are 1\.0\.0"):
        await fetch("npm:mcp-server-good@7.0.0", npm_cache)
    npm_registry.publish("outer", "1.0.0", dependencies={"missing": "1"})
    with pytest.raises(TargetError, match="missing"):
        await fetch("npm:outer", npm_cache)


@pytest.mark.registry
async def test_a_folders_package_json_and_lock_lead_nowhere(
    npm_registry: Registry, tmp_path: Path, npm_cache: Path
) -> None:
    npm_registry.publish("dep", "1.2.0")
    root = tmp_path / "p"
    root.mkdir()
    (root / "index.js").write_text("")
    manifest: dict[str, object] = {"name": "p", "main": "index.js", "dependencies": {"dep": "^1.0.0"}}
    (root / "package.json").write_text(json.dumps(manifest))
    acquired = await fetch(str(root), npm_cache)
    assert [a.name for a in acquired.closure.artifacts] == ["dep", "p"]
    entry = {
        "version": "1.2.0",
        "resolved": f"{npm_registry.url}.evil/dep.tgz",
        "integrity": "sha512-" + "A" * 86 + "==",
    }
    (root / "package-lock.json").write_text(
        json.dumps({"lockfileVersion": 3, "packages": {"": manifest, "node_modules/dep": entry}})
    )
    with pytest.raises(TargetError, match="the lock depends on dep by a direct reference"):
        await fetch(str(root), npm_cache)
    (root / "package-lock.json").unlink()
    (root / "package.json").write_text(
        json.dumps({**manifest, "dependencies": {"x": f"{npm_registry.url}/evil/x.tgz"}})
    )
    with pytest.raises(TargetError, match="direct reference"):
        await fetch(str(root), npm_cache)
    assert not npm_registry.asked_for("/evil/")
