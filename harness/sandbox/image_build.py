"""Making several sandbox images at once: fetch wheels, make roots, compile the programs once, put all together.

`harness.sandbox.images` decides what is made, holds the lock meanwhile, and gives the folders.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from docker import APIClient

from harness.model.errors import HarnessError
from harness.sandbox import slim
from harness.sandbox.bootstrap import Progress, bootstrap
from harness.sandbox.engine import Engine
from harness.sandbox.image_overlay import append_overlay, changes
from harness.sandbox.image_spec import BUILDERS, ImageSpec, image_spec, program_builder
from harness.sandbox.image_wheels import fetch_wheel
from harness.sandbox.native import compile_programs, create_container, last_words, remove_container

#: More roots at a time only fight for the disk and two processors.
CONCURRENT = 2


class Build:
    """One build of several images: at most CONCURRENT roots at a time, the programs compiled once."""

    def __init__(self, engine: Engine, source: str, cache: Path, scratch: Path, progress: Progress) -> None:
        self._engine, self._source, self._cache, self._scratch = engine, source, cache, scratch
        self._progress = progress
        self._slots = anyio.CapacityLimiter(CONCURRENT)
        self._builder_ready = {name: anyio.Event() for name in BUILDERS}
        self._compiling = anyio.Lock()
        self._fetching = anyio.Lock()

    async def make(self, specs: list[ImageSpec]) -> None:
        """Make the images in this order; raises an exception group. A builder that is not among them must exist."""
        for name in set(BUILDERS) - {spec.name for spec in specs}:
            self._builder_ready[name].set()
        async with anyio.create_task_group() as tasks:
            for spec in specs:
                tasks.start_soon(self._one, spec)

    async def _one(self, spec: ImageSpec) -> None:
        started = anyio.current_time()
        wheels: dict[str, Path] = {}
        for wheel in spec.wheels:
            async with self._fetching:
                self._progress(f"{spec.name}: fetching {wheel.requirement}")
                wheels[wheel.requirement] = await fetch_wheel(wheel.requirement, self._scratch)
        reference = await self._slim_reference(spec)
        archive = self._scratch / f"{spec.name}.tar"
        if reference is None and not spec.program:
            async with self._slots:
                archive = await bootstrap(spec, self._scratch, self._progress)
        programs = await self._programs(spec)
        overlay = partial(append_overlay, spec=spec, programs=programs, wheels=wheels)
        final = spec
        if spec.bytecode:  # under another name until it is whole
            spec = spec.model_copy(update={"digest": f"raw{spec.digest}"})
        if reference is not None:
            async with self._slots:
                await slim.build_on_slim(self._engine, spec, reference, overlay, self._scratch, self._progress)
        else:
            try:
                await anyio.to_thread.run_sync(overlay, archive)
            except ValueError as error:
                raise HarnessError(f"{spec.name}: {error}", remedy="mend the image folder") from error
            self._progress(f"{spec.name}: importing")
            await self._engine.call(_import, self._engine.api, spec, archive)
            await anyio.Path(archive).unlink()
        if spec is not final:
            await self._compile_bytecode(spec, final)
        if spec.name in self._builder_ready:
            self._builder_ready[spec.name].set()
        self._progress(f"{spec.name}: ready after {anyio.current_time() - started:.0f} s")

    async def _compile_bytecode(self, raw: ImageSpec, spec: ImageSpec) -> None:
        """Compile Python in a container of `raw`, without a network, and keep what comes out as `spec`."""
        api = self._engine.api
        command = ["python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", *spec.bytecode]
        host = api.create_host_config(network_mode="none", cap_drop=["ALL"], security_opt=["no-new-privileges"])
        name = f"bytecode-{spec.name}"
        container = await create_container(self._engine, name, raw.tag, command, host_config=host)
        try:
            await self._engine.call(api.start, container)
            if await self._engine.wait(container) != 0:
                words = " ".join(await last_words(self._engine, container, 3))
                raise HarnessError(f"{spec.name}: its Python does not compile: {words}", remedy="mend its source")
            tag = spec.tag.rpartition(":")[2]
            await self._engine.call(api.commit, container, spec.repository, tag, changes=changes(spec))
        finally:
            await remove_container(self._engine, container)
        await self._engine.call(api.remove_image, raw.tag)

    async def _slim_reference(self, spec: ImageSpec) -> str | None:
        if spec.program or self._source == "bootstrap":
            return None
        reference = slim.slim_reference(spec)
        if await slim.present(self._engine, reference):
            return reference
        if self._source == "pull":
            await slim.pull(self._engine, reference, self._progress)
            return reference
        return None

    async def _programs(self, spec: ImageSpec) -> dict[str, bytes]:
        made: dict[str, bytes] = {}
        for name in spec.programs:
            builder = program_builder(name)
            await self._builder_ready[builder].wait()
            async with self._compiling:
                made |= await compile_programs(self._engine, image_spec(builder).tag, (name,), self._cache)
        return made


def _import(api: APIClient, spec: ImageSpec, archive: Path) -> None:
    tag = spec.tag.rpartition(":")[2]
    api.import_image_from_file(str(archive), repository=spec.repository, tag=tag, changes=changes(spec))
