"""How a Python closure is installed in the sandbox and how it is started there.

A virtual environment is made at /app with the image's interpreter, so console scripts stand in /app/bin. The
wheels are installed by uv without a network, by SHA-256, and compiled once: a start on the sealed, read-only
volume could not keep what it compiles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.utils import canonicalize_name

from harness.acquisition.python.fetch import WheelFacts
from harness.acquisition.store import Store
from harness.model.target import Artifact, EntryPoint, InputFile

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
}


def image(python: str) -> str:
    """The image folder of an interpreter: `python313` for `3.13`."""
    return f"python{python.replace('.', '')}"


def wheel_files(
    store: Store, artifacts: Sequence[Artifact], folder: str = "wheels", pins: str | None = "requirements.txt"
) -> tuple[InputFile, ...]:
    """The stored wheels as input files, with a requirements file that pins each by name, version and SHA-256."""
    files = [InputFile(source=store.path(a.sha256), destination=f"{folder}/{a.filename}") for a in artifacts]
    if pins is not None and artifacts:
        text = "".join(f"{a.name}=={a.version} --hash=sha256:{a.sha256}\n" for a in artifacts)
        files.append(InputFile(source=store.path(store.add_bytes(text.encode())[0]), destination=pins))
    return tuple(files)


def install_steps(*, wheels: bool = True, after: Sequence[tuple[str, ...]] = ()) -> tuple[tuple[str, ...], ...]:
    """The steps that install `/input/wheels` by `/input/requirements.txt`, then `after`, then remove the scratch."""
    steps: list[tuple[str, ...]] = [(UV, "venv", "--quiet", "--python", PYTHON, "--allow-existing", "/app")]
    if wheels:
        install = (UV, "pip", "install", "--quiet", "--python", "/app/bin/python", "--no-deps", "--require-hashes")
        steps.append((*install, "--compile-bytecode", "--find-links", "/input/wheels", "-r", "/input/requirements.txt"))
    return (*steps, *after, ("rm", "-rf", "/app/.uv-cache"))


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
