"""From a `TargetRef` to an `Acquired`: the one way in. Fetches, reads and plans; executes nothing of the target.

A resolution is remembered for an hour under everything that it depends on: the reference, the options, the
registry settings, the architecture. Found again, nothing is asked of a registry and no process is started.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio.to_thread

from harness.acquisition.store import Store
from harness.model.base import JsonObject, canonical_json, sha256_hex
from harness.model.errors import HarnessError, UsageError
from harness.model.options import RunOptions
from harness.model.target import Acquired, ImageConfig, TargetKind, TargetRef

if TYPE_CHECKING:
    from harness.acquisition.node.package import NodeWorld
    from harness.acquisition.python.world import PythonWorld
    from harness.acquisition.tree import SourceTree

#: Asks the engine about an image by its name. Raises UsageError when it has none of that name.
ImageLookup: TypeAlias = Callable[[str], Awaitable[ImageConfig]]

#: Raised whenever what is remembered changes its meaning.
_FORMAT = 2

#: The names that engines and Python use for the architectures there are images for.
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


async def acquire(
    ref: TargetRef,
    options: RunOptions,
    cache_dir: Path,
    progress: Callable[[str], None],
    *,
    architecture: str | None = None,
    images: ImageLookup | None = None,
) -> Acquired:
    """Fetch what `ref` names, with its whole closure, into the cache below `cache_dir`.

    `progress` gets one short line a stage. `images` asks the engine about an image of its own. `architecture` is
    the engine's (`x86_64`, `aarch64`; this machine's when None). Raises UsageError for what can't be done as asked,
    TargetError for what the target itself makes impossible (a refused or missing dependency), RegistryError when a
    registry does not answer.
    """
    machine = architecture or platform.machine()
    if machine.lower() not in _ARCHITECTURES:
        raise HarnessError(f"there are no sandbox images for the architecture {machine}")
    try:
        store = Store(cache_dir)
        return await _any(ref, options, store, progress, _ARCHITECTURES[machine.lower()], images)
    except OSError as error:
        raise HarnessError(
            f"the cache of packages can't be used: {error.strerror or error}",
            remedy=f"check space and permissions of {cache_dir}",
        ) from error


async def _any(
    ref: TargetRef,
    options: RunOptions,
    store: Store,
    progress: Callable[[str], None],
    architecture: str,
    images: ImageLookup | None,
) -> Acquired:
    """Forms that stand for another target are read first; what they add is never remembered on disk."""
    if ref.kind in (TargetKind.CONFIG, TargetKind.SERVER_JSON):
        from harness.acquisition.configured.config_file import read_config
        from harness.acquisition.configured.launch import launched
        from harness.acquisition.configured.server_json import read_server_json

        if ref.kind is TargetKind.CONFIG:
            launch = await anyio.to_thread.run_sync(read_config, ref)
        else:
            launch = await anyio.to_thread.run_sync(read_server_json, ref, options.entry)
        return launched(await _any(launch.ref, options, store, progress, architecture, images), launch, ref)
    if ref.kind is TargetKind.OCI:
        from harness.acquisition.configured.image import acquire_image

        if images is None or ref.name is None:
            raise HarnessError("there is no engine to ask for the image")
        return acquire_image(ref, await images(ref.name))
    if ref.kind is TargetKind.TOOLS:
        raise UsageError(f"{ref.text[:80]!a} is a saved tool list, which is not run", remedy="use harness scan")
    return await _acquire(ref, options, store, progress, architecture)


async def _acquire(
    ref: TargetRef, options: RunOptions, store: Store, progress: Callable[[str], None], architecture: str
) -> Acquired:
    if ref.kind is TargetKind.COMMAND:
        from harness.acquisition.command import acquire_command

        return acquire_command(ref)

    source: SourceTree | None = None
    if ref.path is not None:
        from harness.acquisition.tree import read_tree

        source = await anyio.to_thread.run_sync(read_tree, store, ref.path)
    from harness.acquisition.node.settings import read_registry_settings
    from harness.acquisition.python.settings import read_index_settings

    indexes, registry = read_index_settings(), read_registry_settings()
    key = sha256_hex(
        canonical_json(
            [
                _FORMAT,
                [ref.text, ref.kind, ref.name, ref.version, list(ref.command)],
                [list(options.constraints), options.python, options.node, options.as_of],
                [architecture, indexes.digest, registry.digest],
                source.digest if source else None,
            ]
        )
    )
    remembered = _recall(store, key, ref)
    if remembered is not None:
        return remembered
    async with store.lock(key):
        remembered = _recall(store, key, ref)  # another process may have done it meanwhile
        if remembered is not None:
            return remembered
        await anyio.to_thread.run_sync(store.sweep)
        from harness.acquisition.node.package import NodeWorld, acquire_npm
        from harness.acquisition.python.package import acquire_pypi
        from harness.acquisition.python.world import PythonWorld

        python = PythonWorld(store, indexes, architecture, progress)
        node = NodeWorld(store, registry, python, architecture, progress)
        if source is not None and ref.kind in (TargetKind.WHEEL, TargetKind.ARCHIVE, TargetKind.BUNDLE):
            acquired = await _local_package(python, node, ref, source, options)
        elif source is not None:
            from harness.acquisition.project import acquire_source

            acquired = await acquire_source(python, node, ref, source, options)
        elif ref.kind is TargetKind.PYPI:
            acquired = await acquire_pypi(python, ref, options)
        else:
            acquired = await acquire_npm(node, ref, options)
        acquired = acquired.model_copy(update={"notes": (*acquired.notes, *python.warnings)})
        store.remember(key, _packed(acquired))
        await anyio.to_thread.run_sync(store.trim)
        return acquired


async def _local_package(
    python: PythonWorld, node: NodeWorld, ref: TargetRef, source: SourceTree, options: RunOptions
) -> Acquired:
    """A package in a file: what an archive is, its content tells."""
    from harness.acquisition.configured.bundle import acquire_bundle
    from harness.acquisition.node.tarball import acquire_tarball, tarball_manifest
    from harness.acquisition.python.wheel import acquire_sdist, acquire_wheel

    if ref.kind is TargetKind.WHEEL:
        return await acquire_wheel(python, ref, source, options)
    if ref.kind is TargetKind.BUNDLE:
        return await acquire_bundle(python, node, ref, source, options)
    manifest = await anyio.to_thread.run_sync(tarball_manifest, python.store, source)
    if manifest is not None:
        return await acquire_tarball(node, ref, source, manifest, options)
    return await acquire_sdist(python, ref, source, options)


def _packed(acquired: Acquired) -> JsonObject:
    """An `Acquired` as JSON, the places of its files (which the model leaves out) beside it."""
    return {
        "acquired": acquired.model_dump(mode="json"),
        "sources": [[str(file.source), file.source.stat().st_size] for file in acquired.install.files],
    }


def _recall(store: Store, key: str, ref: TargetRef) -> Acquired | None:
    """The remembered `Acquired`, when all its files are still there."""
    found = store.recall(key)
    if found is None:
        return None
    age, value = found
    try:
        data = value["acquired"]
        files = data["install"]["files"]
        for file, (source, size) in zip(files, value["sources"], strict=True):
            path = Path(source)
            if path.stat().st_size != size:
                return None
            os.utime(path)  # used now: the cache's bound takes it last
            file["source"] = path
        acquired = Acquired.model_validate({**data, "ref": ref})
    except (OSError, KeyError, TypeError, ValueError):
        return None
    note = f"resolved {round(age / 60)} min ago and kept; resolutions are renewed after an hour"
    return acquired.model_copy(update={"notes": (*acquired.notes, note)})
