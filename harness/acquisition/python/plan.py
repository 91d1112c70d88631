"""How a Python closure is installed in the sandbox and how it is started there.

A virtual environment is made at /app with the image's interpreter, so console scripts stand in /app/bin. The
wheels are installed by uv without a network, by SHA-256, and compiled once: a start on the sealed, read-only
volume could not keep what it compiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from packaging.utils import canonicalize_name

from harness.acquisition.python.fetch import WheelFacts
from harness.acquisition.store import Store
from harness.model.target import Artifact, EntryPoint, InputFile, InstallPlan

UV = "/usr/local/bin/uv"
PYTHON = "/usr/bin/python3"

#: uv's scratch lies beside what it installs: hard links instead of copies, and no memory of a tmpfs used.
ENVIRONMENT = {
    "UV_CACHE_DIR": "/app/.uv-cache",
    "UV_NO_CONFIG": "1",
    "UV_OFFLINE": "1",
    "UV_NO_INDEX": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_NO_PROGRESS": "1",
    "UV_LINK_MODE": "hardlink",
    "SOURCE_DATE_EPOCH": "946684800",
    # As an install elsewhere has it; with an epoch set, a module's source would be read at each import, to be compared.
    "PYC_INVALIDATION_MODE": "TIMESTAMP",
}


def image(python: str) -> str:
    """The image folder of an interpreter: `python313` for `3.13`."""
    return f"python{python.replace('.', '')}"


def install_plan(
    store: Store,
    python: str,
    artifacts: Sequence[Artifact],
    closure_digest: str,
    *,
    backends: Sequence[Artifact] = (),
    files: Sequence[InputFile] = (),
    after: Sequence[tuple[str, ...]] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> InstallPlan:
    """Install wheels, then build and install sdists with the wheels of `backends`, then do `after`.

    Every file is pinned by its SHA-256. `files` come along as they are.
    """
    wheels = [a for a in artifacts if a.filename.endswith(".whl")]
    sdists = [a for a in artifacts if not a.filename.endswith(".whl")]
    inputs = [*files, *_placed(store, wheels, "wheels"), *_placed(store, sdists, "sdists")]
    inputs += _placed(store, backends, "build-wheels")
    steps: list[tuple[str, ...]] = [(UV, "venv", "--quiet", "--python", PYTHON, "--allow-existing", "/app")]
    install = (UV, "pip", "install", "--quiet", "--python", "/app/bin/python", "--no-deps", "--compile-bytecode")
    if wheels:
        inputs.append(_pins(store, "requirements.txt", (f"{a.name}=={a.version}" for a in wheels), wheels))
        pinned = ("--require-hashes", "--find-links", "/input/wheels", "-r", "/input/requirements.txt")
        steps.append((*install, *pinned))
    if sdists:
        inputs.append(
            _pins(store, "sdists.txt", (f"{a.name} @ file:///input/sdists/{a.filename}" for a in sdists), sdists)
        )
        pinned = ("--require-hashes", "--find-links", "/input/build-wheels", "-r", "/input/sdists.txt")
        steps.append((*install, "--no-sources", *pinned))
    return InstallPlan(
        image=image(python),
        files=tuple(inputs),
        steps=(*steps, *after, ("rm", "-rf", "/app/.uv-cache")),
        environment={**ENVIRONMENT, **environment},
        closure_digest=closure_digest,
    )


def _placed(store: Store, artifacts: Sequence[Artifact], folder: str) -> list[InputFile]:
    return [InputFile(source=store.path(a.sha256), destination=f"{folder}/{a.filename}") for a in artifacts]


def _pins(store: Store, name: str, requirements: Iterable[str], artifacts: Sequence[Artifact]) -> InputFile:
    lines = [f"{line} --hash=sha256:{a.sha256}\n" for line, a in zip(requirements, artifacts, strict=True)]
    return InputFile(source=store.path(store.add_bytes("".join(lines).encode())[0]), destination=name)


def entry_points(name: str, facts: WheelFacts, arguments: tuple[str, ...] = ()) -> tuple[EntryPoint, ...]:
    """The ways to start the package `name`, the likeliest server first.

    A console script named like the package comes first, then one with "mcp" in its name, then "server"; then
    `python -m` for a package with a `__main__`.
    """

    def rank(script: str) -> tuple[bool, bool, bool, str]:
        plain = canonicalize_name(script)
        return (plain != canonicalize_name(name), "mcp" not in plain, "server" not in plain, script)

    scripts = [
        EntryPoint(name=script, argv=(f"/app/bin/{script}", *arguments), source="console_scripts")
        for script in sorted(facts.scripts, key=rank)
    ]
    modules = [
        EntryPoint(name=module, argv=("/app/bin/python", "-m", module, *arguments), source="__main__.py")
        for module in facts.modules
        if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", module) and not scripts
    ]
    return (*scripts, *modules)
