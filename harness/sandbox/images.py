"""Sandbox images on the engine: which are there, which are missing or out of date, and making them.

An image is found by its tag, which holds the digest of all that it is made from; so looking is one call, and a change
to an image folder makes a new image. Builds are serialised over all processes of this user with a file lock.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from filelock import FileLock, Timeout

from harness.model.base import Record
from harness.model.errors import EngineError, HarnessError, UsageError
from harness.model.recording import ImageFact
from harness.sandbox.bootstrap import Progress
from harness.sandbox.cache import cache_dir
from harness.sandbox.engine import Engine, EngineConflict, EngineNotFound
from harness.sandbox.image_build import Build
from harness.sandbox.image_spec import BUILDERS, ImageSpec, image_spec, image_specs, program_builder
from harness.sandbox.native import remove_dead_builds

#: `auto` (default): on a slim image that the engine has, else a bootstrap; `bootstrap`: always that; `pull`: on a slim
#: image, pulled if need be.
SOURCE_VARIABLE = "HARNESS_IMAGE_SOURCE"


class ImageState(StrEnum):
    """How an image folder and the engine agree. `OUTDATED`: the engine has one made from other content."""

    PRESENT = "present"
    MISSING = "missing"
    OUTDATED = "outdated"


class ImageStatus(Record):
    """One image, as `harness images list` shows it. `id` and `size_bytes` are of what the engine has, if anything."""

    name: str
    state: ImageState
    tag: str
    summary: str = ""
    id: str = ""
    size_bytes: int = 0


async def ensure_image(engine: Engine, name: str, progress: Progress) -> ImageFact:
    """The image of that name, made first if it is missing; one engine call when it is there.

    Raises UsageError for a name without a folder, HarnessError or EngineError when the image can't be made.
    """
    spec = image_spec(name)
    found = await _find(engine, spec)
    if found is None:
        await build_images(engine, [name], False, progress)
        found = await _find(engine, spec)
        if found is None:
            raise EngineError(f"the sandbox image {name} is gone right after it was made", remedy="try again")
    return ImageFact(name=name, id=found)


async def find_image(engine: Engine, name: str) -> ImageFact | None:
    """The image of that folder as the engine has it now; None where it would have to be made."""
    found = await _find(engine, image_spec(name))
    return None if found is None else ImageFact(name=name, id=found)


async def list_images(engine: Engine) -> tuple[ImageStatus, ...]:
    """The state of every image folder, then what the engine has of folders that no longer exist."""
    specs = image_specs()
    found = await _ours(engine)
    listed = []
    for spec in specs:
        ours = [image for image in found if image["Labels"].get("harness.image") == spec.name]
        current = [image for image in ours if spec.tag in (image.get("RepoTags") or ())]
        state = ImageState.PRESENT if current else ImageState.OUTDATED if ours else ImageState.MISSING
        shown = (current or ours or [{}])[0]
        listed.append(_status(spec.name, state, spec.tag, shown, spec.summary))
    known = {spec.name for spec in specs}
    for image in found:
        name = image["Labels"].get("harness.image", "")
        if name not in known:
            tag = (image.get("RepoTags") or [""])[0]
            listed.append(_status(name, ImageState.OUTDATED, tag, image, "its image folder no longer exists"))
    return tuple(listed)


async def remove_outdated(engine: Engine, progress: Progress) -> int:
    """Remove images of ours that no image folder stands for any more; return how many. Those in use are spared."""
    tags = {spec.tag for spec in image_specs()}
    removed = 0
    for image in await _ours(engine):
        if tags & set(image.get("RepoTags") or ()):
            continue
        name = image["Labels"].get("harness.image", "")
        try:
            await engine.call(engine.api.remove_image, image["Id"], force=len(image.get("RepoTags") or ()) > 1)
        except EngineConflict:
            progress(f"{name}: an outdated image is in use and stays")
        except EngineNotFound:
            pass
        else:
            progress(f"{name}: removed an outdated image")
            removed += 1
    return removed


async def build_images(engine: Engine, names: Iterable[str], force: bool, progress: Progress) -> None:
    """Make the named images where they are missing, or anew with `force`. The builder is made when it is needed.

    Raises UsageError for a name without a folder or a bad HARNESS_IMAGE_SOURCE, HarnessError or EngineError when one
    can't be made; the others that were begun are given up then.
    """
    specs = [image_spec(name) for name in dict.fromkeys(names)]
    source = os.environ.get(SOURCE_VARIABLE, "auto")
    if source not in ("auto", "bootstrap", "pull"):
        raise UsageError(f"{SOURCE_VARIABLE}={source} is unknown", remedy="use auto, bootstrap or pull")
    cache = cache_dir()
    async with _lock(cache / "images.lock", progress):
        wanted = [spec for spec in specs if force or await _find(engine, spec) is None]
        if not wanted:
            return
        await remove_dead_builds(engine)
        with TemporaryDirectory(prefix="build-", dir=cache) as scratch:
            work = Build(engine, source, cache, Path(scratch), progress)
            # Builders first: the others wait for the programs they compile.
            needed = {program_builder(name) for spec in wanted for name in spec.programs}
            for builder in map(image_spec, sorted(needed - {spec.name for spec in wanted})):
                wanted += [builder] if await _find(engine, builder) is None else []
            try:
                await work.make(sorted(wanted, key=lambda spec: spec.name not in BUILDERS))
            except* (HarnessError, UsageError) as group:
                error = group.exceptions[0]
                while isinstance(error, BaseExceptionGroup):
                    error = error.exceptions[0]
                raise error from None


async def _find(engine: Engine, spec: ImageSpec) -> str | None:
    try:
        found = await engine.ask(engine.api.inspect_image, spec.tag)
    except EngineNotFound:
        return None
    labels = found["Config"].get("Labels") or {}
    return str(found["Id"]) if labels.get("harness.digest") == spec.digest else None


async def _ours(engine: Engine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await engine.ask(engine.api.images, filters={"label": "harness.image"})
    return found


def _status(name: str, state: ImageState, tag: str, image: dict[str, Any], summary: str) -> ImageStatus:
    return ImageStatus(
        name=name,
        state=state,
        tag=tag,
        summary=summary,
        id=image.get("Id", ""),
        size_bytes=image.get("Size", 0),
    )


@asynccontextmanager
async def _lock(path: Path, progress: Callable[[str], None]) -> AsyncIterator[None]:
    await anyio.Path(path.parent).mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, thread_local=False)
    told = False
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            if not told:
                progress("waiting for another process that makes sandbox images")
                told = True
            await anyio.sleep(0.2)
    try:
        yield
    finally:
        lock.release()
