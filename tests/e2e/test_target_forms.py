"""The forms in which people have servers, each from its file to a report, in real sandboxes.

One small honest server is packed in every form. What is special to a form leaves a trace in what the server declares:
its instructions tell the arguments and variables that it was given.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from loopback_registry import Registry, tarball, wheel

pytestmark = [pytest.mark.docker, pytest.mark.alone]

Run = Callable[..., CompletedProcess[str]]

PYTHON = """
import json, os, sys


def main():
    env = {k: v for k, v in os.environ.items() if k.startswith("T_")}
    told = {"args": sys.argv[1:], "env": env, "uid": os.getuid()}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answers = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "packed", "version": "1"},
                "instructions": json.dumps(told),
            },
            "tools/list": {"tools": [{"name": "add", "description": "Add", "inputSchema": {"type": "object"}}]},
        }
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if message.get("method") in answers:
            reply["result"] = answers[message["method"]]
        else:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        print(json.dumps(reply), flush=True)
"""
STARTED = f"{PYTHON}\nif __name__ == '__main__':\n    main()\n"

NODE = """#!/usr/bin/env node
const told = { args: process.argv.slice(2), env: Object.fromEntries(Object.entries(process.env).filter(([k]) => k.startsWith("T_"))) };
const answers = {
  initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "packed", version: "1" }, instructions: JSON.stringify(told) },
  "tools/list": { tools: [{ name: "add", description: "Add", inputSchema: { type: "object" } }] },
};
let rest = "";
process.stdin.on("data", (data) => {
  const lines = (rest + data).split("\\n");
  rest = lines.pop();
  for (const line of lines) {
    const { id, method } = JSON.parse(line);
    if (id === undefined) continue;
    const body = method in answers ? { result: answers[method] } : { error: { code: -32601, message: "Method not found" } };
    process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...body }) + "\\n");
  }
});
"""  # noqa: E501


@pytest.fixture
def vet(run_harness: Run) -> Callable[..., dict[str, Any]]:
    """Run a target that must be completed; the result, with what the server tells about itself under `told`."""

    def run(*arguments: str, **environment: str) -> dict[str, Any]:
        done = run_harness(
            "run",
            *arguments,
            "--active",
            "none",
            "--format",
            "json",
            "--no-stock-client",
            "--no-progress",
            timeout=240,
            **environment,
        )
        assert done.returncode == 0, done.stderr + done.stdout[-3000:]
        result: dict[str, Any] = json.loads(done.stdout)
        assert [tool["name"] for tool in result["surface"]["tools"]] == ["add"]
        result["told"] = json.loads(result["surface"]["instructions"])
        return result

    return run


Vet = Callable[..., dict[str, Any]]


def test_a_local_wheel(vet: Vet, tmp_path: Path) -> None:
    name, data = wheel("packed", "1.0", scripts=("packed",), body=PYTHON)
    (tmp_path / name).write_bytes(data)
    result = vet(str(tmp_path / name), "--arg=x")
    assert (result["target"]["name"], result["target"]["version"]) == ("packed", "1.0")
    assert result["told"]["args"] == ["x"]


@pytest.mark.registry
def test_a_local_npm_package_with_an_install_script_and_a_dependency(vet: Vet, tmp_path: Path) -> None:
    manifest = {
        "name": "@sample/packed",
        "version": "1.2.3",
        "bin": {"packed": "index.js"},
        "dependencies": {"is-number": "7.0.0"},
        "scripts": {"postinstall": "node -e \"require('fs').writeFileSync('ran.js', 'process.env.T_RAN = 1')\""},
    }
    body = NODE.replace("const told", "require('is-number'); require('./ran.js');\nconst told", 1)
    (tmp_path / "p.tgz").write_bytes(tarball({"package.json": json.dumps(manifest), "index.js": body}, "package"))
    result = vet(str(tmp_path / "p.tgz"))
    assert (result["target"]["name"], result["target"]["version"]) == ("@sample/packed", "1.2.3")
    assert result["told"]["env"] == {"T_RAN": "1"}


#: Build backends by the `build-system` table that asks for them (packaging.python.org, "Tool recommendations").
BACKENDS = {
    "setuptools": ("setuptools>=61", "setuptools.build_meta"),
    "hatchling": ("hatchling", "hatchling.build"),
    "hatchvcs": ("hatchling", "hatchling.build"),
    "flit": ("flit_core>=3.9", "flit_core.buildapi"),
    "poetry": ("poetry-core>=2", "poetry.core.masonry.api"),
    "pdm": ("pdm-backend", "pdm.backend"),
    "uvbuild": ("uv_build>=0.9", "uv_build"),
}


def sources(backend: str, requires: tuple[str, ...] = ()) -> dict[str, str]:
    """The files of an sdist that this backend builds; one without pyproject.toml for `legacy`."""
    name = f"sample-{backend}"
    module = name.replace("-", "_")
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + "".join(f"Requires-Dist: {r}\n" for r in requires)
    package = f"src/{module}/__init__.py" if backend in ("uvbuild", "setuptools", "legacy") else f"{module}/__init__.py"
    files = {"PKG-INFO": info, "README.md": "x", package: f'"""A sample."""\n__version__ = "1.0"\n{PYTHON}'}
    if backend == "legacy":
        return files | {
            "setup.py": "from setuptools import setup\nopen('built', 'w').close()\n"
            f"setup(name='{name}', version='1.0', packages=['{module}'], package_dir={{'': 'src'}},\n"
            f"      install_requires={list(requires)}, entry_points={{'console_scripts': ['{name}={module}:main']}})\n",
            f"src/{module}.egg-info/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
        }
    needed, used = BACKENDS[backend]
    extra = ', "hatch-vcs"' if backend == "hatchvcs" else ""
    version = 'dynamic = ["version"]' if backend == "hatchvcs" else 'version = "1.0"'
    project = (
        f'[build-system]\nrequires = ["{needed}"{extra}]\nbuild-backend = "{used}"\n'
        f'[project]\nname = "{name}"\n{version}\ndescription = "x"\ndependencies = {list(requires)}\n'
        f'[project.scripts]\n{name} = "{module}:main"\n'
    )
    project += '[tool.hatch.version]\nsource = "vcs"\n' if backend == "hatchvcs" else ""
    return files | {"pyproject.toml": project}


@pytest.fixture
def extra_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A loopback index beside the machine's own, which has the build backends."""
    with Registry() as registry:
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{registry.url}/simple")
        yield registry


@pytest.mark.registry
def test_sources_of_every_common_backend_are_built_in_the_sandbox(vet: Vet, extra_index: Registry) -> None:
    for backend in BACKENDS:
        extra_index.add(
            f"sample-{backend}", (f"sample-{backend}-1.0.tar.gz", tarball(sources(backend), f"s-{backend}"))
        )
    all_of_them = tuple(f"sample-{backend}" for backend in BACKENDS)
    extra_index.add("sample-legacy", ("sample-legacy-1.0.tar.gz", tarball(sources("legacy", all_of_them), "s-legacy")))
    result = vet("pypi:sample-legacy")
    (built,) = [note for note in result["notes"] if note.startswith("built in the sandbox")]
    assert all(name in built for name in (*all_of_them, "sample-legacy"))


@pytest.mark.registry
def test_a_local_source_distribution(vet: Vet, tmp_path: Path) -> None:
    (tmp_path / "sample.tar.gz").write_bytes(tarball(sources("flit"), "anything-1.0"))
    result = vet(str(tmp_path / "sample.tar.gz"))
    assert (result["target"]["name"], result["target"]["version"]) == ("sample-flit", "1.0")


def bundle(path: Path, server: dict[str, Any], files: dict[str, str], **fields: Any) -> Path:
    manifest = {"manifest_version": "0.3", "name": "packed", "version": "2.0", "server": server, **fields}
    with zipfile.ZipFile(path, "w") as out:
        for name, text in {"manifest.json": json.dumps(manifest), **files}.items():
            out.writestr(name, text)
    return path


def test_mcp_bundles(vet: Vet, tmp_path: Path) -> None:
    settings = {
        "folders": {"type": "directory", "multiple": True, "default": ["${HOME}/Desktop", "${DOCUMENTS}"]},
        "key": {"type": "string", "sensitive": True, "required": True},
        "limit": {"type": "number", "default": 5},
        "unset": {"type": "string"},
    }
    config = {
        "command": "node",
        "args": ["${__dirname}/server/index.js", "${user_config.folders}", "--limit=${user_config.limit}"],
        "env": {"T_KEY": "${user_config.key}", "T_UNSET": "${user_config.unset}"},
        "platform_overrides": {"win32": {"command": "node.exe"}},
    }
    server = {"type": "node", "entry_point": "server/index.js", "mcp_config": config}
    inner = "server/node_modules/inner/index.js"
    files = {"server/index.js": NODE.replace("const told", "require('inner');\nconst told", 1), inner: ""}
    result = vet(str(bundle(tmp_path / "n.mcpb", server, files, user_config=settings)))
    assert result["told"]["args"] == ["/home/user/Desktop", "/home/user/workspace", "--limit=5"]
    assert len(result["told"]["env"].pop("T_KEY")) >= 16
    assert not result["told"]["env"]
    assert result["target"]["version"] == "2.0"

    config = {
        "command": "python3",
        "args": ["${__dirname}/server/main.py", "x"],
        "env": {"PYTHONPATH": "${__dirname}/lib"},
    }
    server = {"type": "python", "entry_point": "server/main.py", "mcp_config": config}
    files = {"server/main.py": f"import bundled\n{STARTED}", "lib/bundled.py": ""}
    assert vet(str(bundle(tmp_path / "p.mcpb", server, files)))["told"]["args"] == ["x"]


def test_an_entry_of_a_configuration_and_of_the_registry(vet: Vet, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(STARTED)
    entry = {
        "command": "python3",
        "args": ["server.py", "--key", "live-1234567890"],
        "env": {"T_MODE": "fast", "T_KEY": "live-key"},
    }
    (tmp_path / "c.json").write_text(json.dumps({"mcpServers": {"one": entry, "two": {"url": "https://x"}}}))
    told = vet(f"{tmp_path}/c.json#one", "--env", "T_MODE=slow")["told"]
    assert told["env"]["T_MODE"] == "slow"
    assert told["args"][0] == "--key"
    assert "live" not in json.dumps(told)

    package = {
        "registryType": "mcpb",
        "identifier": "https://x.example/p.mcpb",
        "environmentVariables": [{"name": "T_KEY", "isRequired": True, "isSecret": True}],
        "packageArguments": [{"type": "named", "name": "--root", "isRequired": True, "format": "filepath"}],
    }
    server = {"type": "python", "entry_point": "main.py"}
    bundle(tmp_path / "p.mcpb", server, {"main.py": STARTED})
    (tmp_path / "server.json").write_text(json.dumps({"name": "io.example/x", "packages": [package]}))
    result = vet(str(tmp_path / "server.json"))
    assert result["told"]["args"] == ["--root", "/home/user/workspace"]
    assert len(result["told"]["env"]["T_KEY"]) >= 16


TYPESCRIPT = {
    "package.json": json.dumps(
        {
            "name": "packed",
            "version": "3.0.0",
            "type": "commonjs",
            "bin": {"packed": "dist/index.js"},
            "scripts": {"build": "tsc"},
            "devDependencies": {"typescript": "5.9.3"},
        }
    ),
    "tsconfig.json": json.dumps(
        {
            "compilerOptions": {"outDir": "dist", "module": "commonjs", "target": "es2022", "types": []},
            "files": ["src/index.ts"],
        }
    ),
    "src/index.ts": "declare const process: any;\nconst typed: number = 1;\n"
    + NODE.removeprefix("#!/usr/bin/env node\n")
    .replace('let rest = ""', 'let rest: string | undefined = ""')
    .replace("(data)", "(data: any)"),
}


@pytest.mark.registry
def test_a_typescript_tree_is_built_in_the_sandbox(vet: Vet, tmp_path: Path) -> None:
    for name, text in TYPESCRIPT.items():
        (tmp_path / "ts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ts" / name).write_text(text)
    result = vet(str(tmp_path / "ts"))
    assert any("built in the sandbox: " in note for note in result["notes"])
    assert not (tmp_path / "ts" / "dist").exists()


def image(name: str, base: str, changes: list[str], files: dict[str, str]) -> str:
    """An image of a server, made on the engine out of one of ours without building anything."""
    import docker

    client = docker.APIClient(version="auto")
    try:
        container = client.create_container(base, ["true"])["Id"]
        try:
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w") as out:
                for path, text in files.items():
                    info = tarfile.TarInfo(path)
                    info.size, info.mode = len(text.encode()), 0o644
                    out.addfile(info, io.BytesIO(text.encode()))
            client.put_archive(container, "/", buffer.getvalue())
            client.commit(container, repository=name, tag="1", changes="\n".join(changes))
        finally:
            client.remove_container(container)
    finally:
        client.close()
    return f"{name}:1"


def anonymous_volumes() -> int:
    import docker

    client = docker.APIClient(version="auto")
    try:
        volumes = client.volumes()["Volumes"] or []
        return len([v for v in volumes if not v["Name"].startswith("harness-")])
    finally:
        client.close()


@pytest.mark.parametrize(
    ("user", "uid"),
    [("", 65532), ("0", 65532), ("root", 65532), ("1234:5", 1234), ("games", 5), ("nobody-here", 65532)],
)
def test_an_image_is_run_as_it_is_but_never_as_root(vet: Vet, user: str, uid: int) -> None:
    from harness.sandbox.image_spec import image_spec

    changes = [
        'ENTRYPOINT ["python3", "/srv/server.py"]',
        'CMD ["default"]',
        "ENV T_IMAGE=own",
        "WORKDIR /srv",
        f"USER {user or 'root'}",
        'VOLUME ["/data"]',
        "HEALTHCHECK CMD touch /tmp/x",
    ]
    body = STARTED.replace(
        "import json, os, sys", "import json, os, sys\nopen('/data/x', 'w').close(); assert os.getcwd() == '/srv'"
    )
    body = body.replace(
        '"uid": os.getuid()',
        '"uid": os.getuid(), "nets": os.listdir("/sys/class/net"), "caps": open("/proc/self/status").read()',
    )
    target = image("harness-test-image", image_spec("python313").tag, changes, {"srv/server.py": body})
    before = anonymous_volumes()
    try:
        result = vet(f"oci:{target}", "--env", "T_MORE=1")
        assert result["told"]["args"] == ["default"]
        assert result["told"]["env"] == {"T_IMAGE": "own", "T_MORE": "1"}
        assert result["told"]["uid"] == uid
        assert any(f"is run as {uid}:" in note for note in result["notes"])
        assert result["told"]["nets"] == ["lo"]
        assert "CapEff:\t0000000000000000" in result["told"]["caps"]
        assert "NoNewPrivs:\t1" in result["told"]["caps"]
        assert "Seccomp:\t2" in result["told"]["caps"]
        assert anonymous_volumes() == before
    finally:
        import docker

        client = docker.APIClient(version="auto")
        client.remove_image(target, force=True)
        client.close()


def test_an_image_that_is_not_there(run_harness: Run) -> None:
    done = run_harness("run", "oci:there-is-no-such-image:1", "--no-progress")
    assert done.returncode == 2
    assert "the engine has no image" in done.stderr


def test_digests_are_those_of_the_files(vet: Vet, tmp_path: Path) -> None:
    name, data = wheel("packed", "1.0", scripts=("packed",), body=PYTHON)
    (tmp_path / name).write_bytes(data)
    folder = tmp_path / "b"
    vet(str(tmp_path / name), "--bundle", str(folder))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [a["sha256"] for a in manifest["artifacts"]] == [hashlib.sha256(data).hexdigest()]
