"""The programs of the sandbox (gate, warden, recorder, the later clock), compiled in a container without a network.

The sources go in and the programs come out as archives; nothing of this machine is mounted. What was compiled once is
kept in the cache by the digest of source, compiler image and options.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio
from docker import APIClient

from harness.model.base import canonical_json, sha256_hex
from harness.model.errors import HarnessError
from harness.sandbox.engine import Engine, EngineNotFound
from harness.sandbox.image_spec import program_sources

COMPILE = ("musl-gcc", "-std=c11", "-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror")
_MAX_PROGRAM_BYTES = 4 << 20


async def compile_programs(engine: Engine, builder: str, names: Iterable[str], cache: Path) -> dict[str, bytes]:
    """Compile the named programs in the image with the id or tag `builder`; return their bytes by name.

    A folder with a `build.sh` is built by it (its argument: where the program goes), any other is one C file.

    Raises HarnessError with the compiler's words when one does not compile.
    """
    made: dict[str, bytes] = {}
    for name in names:
        sources = program_sources(name)
        digests = {file: sha256_hex(data) for file, data in sources.items()}
        kept = anyio.Path(cache / "programs" / sha256_hex(canonical_json([builder, COMPILE, digests])))
        if await kept.is_file():
            made[name] = await kept.read_bytes()
            continue
        made[name] = await compile_sources(engine, builder, name, sources)
        await kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".part")
        await partial.write_bytes(made[name])
        await partial.rename(kept)
    return made


async def compile_sources(engine: Engine, builder: str, name: str, sources: dict[str, bytes]) -> bytes:
    """Compile the program `name` from its `sources` (contents by file name) in the image `builder`; returns its bytes.

    Raises HarnessError with the compiler's words when it does not compile.
    """
    api = engine.api
    host = api.create_host_config(network_mode="none", cap_drop=["ALL"], security_opt=["no-new-privileges"])
    made = f"/tmp/{name}.made"  # noqa: S108 - inside the container
    command = [*COMPILE, "-o", made, f"/tmp/{name}.c"]  # noqa: S108
    if "build.sh" in sources:
        command = ["sh", "/tmp/build.sh", made]  # noqa: S108
    container = await create_container(engine, f"compile-{name}", builder, command, host_config=host)
    try:
        await engine.call(api.put_archive, container, "/tmp", _packed(sources))  # noqa: S108
        await engine.call(api.start, container)
        code = await engine.wait(container)
        if code != 0:
            reason = " ".join(" ".join(await last_words(engine, container, 5)).split())
            raise HarnessError(f"the {name} does not compile: {reason}", remedy="mend its source")
        return await engine.call(_taken_out, api, container, made)
    finally:
        await remove_container(engine, container)


def _prefix() -> str:
    # Not a label: an image that is committed from a container would hand it on to every container made from it.
    return f"harness-build-{os.getuid()}-"


async def create_container(engine: Engine, name: str, image: str, command: list[str], **options: Any) -> str:
    """Create a container for a build and return its id; `remove_dead_builds` finds it by its name."""
    created = await engine.call(
        engine.api.create_container, image, command, name=_prefix() + name, working_dir="/", user="0:0", **options
    )
    return str(created["Id"])


async def last_words(engine: Engine, container: str, lines: int) -> list[str]:
    """The last lines that a container printed on stdout and stderr."""
    words = cast("bytes", await engine.ask(engine.api.logs, container, tail=lines))
    return words.decode(errors="replace").splitlines()


async def remove_container(engine: Engine, container: str) -> None:
    """Remove a container of a build whatever its state, also while being cancelled."""
    with anyio.CancelScope(shield=True):
        with suppress(EngineNotFound):
            await engine.call(engine.api.remove_container, container, force=True, v=True)


async def remove_dead_builds(engine: Engine) -> None:
    """Remove the containers that earlier builds of this user left; call it only while holding the lock of builds."""
    for found in await engine.ask(engine.api.containers, all=True, filters={"name": f"^/{_prefix()}"}):
        await remove_container(engine, found["Id"])


def _packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _taken_out(api: APIClient, container: str, path: str) -> bytes:
    chunks, _ = api.get_archive(container, path)
    buffer = io.BytesIO()
    for chunk in chunks:
        buffer.write(chunk)
        if buffer.tell() > _MAX_PROGRAM_BYTES:
            raise HarnessError(f"the compiled {path} is too large", remedy="mend its source")
    buffer.seek(0)
    with tarfile.open(fileobj=buffer) as tar:
        member = tar.extractfile(tar.getmembers()[0])
        assert member is not None
        return member.read()
