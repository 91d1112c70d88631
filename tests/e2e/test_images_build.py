"""Looking up, making and removing images on a real engine."""

from __future__ import annotations

import io
import os
import tarfile
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from filelock import FileLock

from harness.model.errors import EngineError, HarnessError, RegistryError, UsageError
from harness.sandbox import bootstrap as bootstrap_module
from harness.sandbox import images as module
from harness.sandbox import native, slim
from harness.sandbox.engine import Engine
from harness.sandbox.image_spec import ImageSpec, image_spec
from harness.sandbox.image_wheels import fetch_wheel
from harness.sandbox.images import ImageState, build_images, ensure_image, list_images, remove_outdated

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.alone]


class CountingEngine(Engine):
    """Counts the calls to the engine."""

    calls = 0

    async def ask(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return await super().ask(function, *args, **kwargs)

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return await super().call(function, *args, **kwargs)


@pytest.fixture
async def engine() -> AsyncIterator[CountingEngine]:
    async with CountingEngine() as engine:
        yield engine


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "harness"))
    return tmp_path / "harness"


@pytest.fixture
async def base(engine: CountingEngine) -> str:
    """The id of the real image `base`."""
    return (await ensure_image(engine, "base", silent)).id


@pytest.fixture
def own_image(base: str, monkeypatch: pytest.MonkeyPatch) -> ImageSpec:
    """A specification of its own that the module takes for the folder `base`, so that no real image is touched."""
    spec = image_spec("base").model_copy(update={"name": f"test-{uuid.uuid4().hex[:8]}"})
    monkeypatch.setattr(module, "image_spec", lambda name: spec if name == "base" else image_spec(name))
    return spec


async def import_empty(engine: Engine, spec: ImageSpec) -> str:
    buffer = io.BytesIO()
    tarfile.open(fileobj=buffer, mode="w").close()
    labels = " ".join(f"{key}={value}" for key, value in spec.labels.items())
    tag = spec.tag.rpartition(":")[2]
    await engine.call(
        engine.api.import_image_from_data, buffer.getvalue(), spec.repository, tag, changes=[f"LABEL {labels}"]
    )
    return str((await engine.call(engine.api.inspect_image, spec.tag))["Id"])


def silent(message: str) -> None:
    """Progress that nobody watches."""


async def test_looking_for_an_image_that_is_there_is_one_call(engine: CountingEngine) -> None:
    first = await ensure_image(engine, "base", silent)
    engine.calls = 0
    assert await ensure_image(engine, "base", silent) == first
    assert engine.calls == 1
    assert first.name == "base" and first.id.startswith("sha256:")


async def test_nothing_is_made_that_is_there(engine: CountingEngine) -> None:
    await ensure_image(engine, "base", silent)
    said: list[str] = []
    await build_images(engine, ["base"], False, said.append)
    assert said == []


async def test_the_list_tells_present_missing_and_outdated(
    engine: CountingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"test-{uuid.uuid4().hex[:8]}"
    old, new = (image_spec("base").model_copy(update={"name": name, "digest": d * 64}) for d in "ab")
    monkeypatch.setattr(module, "image_specs", lambda: (new,))
    ours = module._ours

    async def only_this(engine: Engine) -> list[dict[str, Any]]:
        return [image for image in await ours(engine) if image["Labels"]["harness.image"] == name]

    monkeypatch.setattr(module, "_ours", only_this)
    assert [status.state for status in await list_images(engine)] == [ImageState.MISSING]
    await import_empty(engine, old)
    try:
        assert [status.state for status in await list_images(engine)] == [ImageState.OUTDATED]
        made = await import_empty(engine, new)
        assert [(status.state, status.id) for status in await list_images(engine)] == [(ImageState.PRESENT, made)]
        assert await remove_outdated(engine, silent) == 1
        assert [status.state for status in await list_images(engine)] == [ImageState.PRESENT]
        monkeypatch.setattr(module, "image_specs", lambda: ())
        assert [(status.name, status.state) for status in await list_images(engine)] == [(name, ImageState.OUTDATED)]
    finally:
        monkeypatch.setattr(module, "image_specs", lambda: ())
        await remove_outdated(engine, silent)
        assert await list_images(engine) == ()


async def test_an_image_with_our_tag_and_other_content_is_not_taken(
    engine: CountingEngine, own_image: ImageSpec
) -> None:
    false = own_image.model_copy(update={"digest": own_image.digest[:12] + "0" * 52})
    image = await import_empty(engine, false)
    try:
        assert await module._find(engine, own_image) is None
        assert await module._find(engine, false) == image
    finally:
        await engine.call(engine.api.remove_image, image)


async def test_two_builders_wait_for_each_other(engine: CountingEngine, own_cache: Path, own_image: ImageSpec) -> None:
    await anyio.Path(own_cache).mkdir(parents=True)
    said: list[str] = []
    with FileLock(own_cache / "images.lock"), anyio.move_on_after(0.5) as scope:
        await build_images(engine, ["base"], False, said.append)
    assert scope.cancelled_caught
    assert said == ["waiting for another process that makes sandbox images"]


async def test_a_missing_program_is_named_with_its_package(
    engine: CountingEngine, own_cache: Path, own_image: ImageSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_IMAGE_SOURCE", "bootstrap")
    monkeypatch.setattr(bootstrap_module.shutil, "which", lambda name: None)
    with pytest.raises(HarnessError, match=r"mmdebstrap.* not found.*apt-get install mmdebstrap"):
        await build_images(engine, ["base"], False, silent)


async def test_an_unknown_source_is_a_usage_error(engine: CountingEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_IMAGE_SOURCE", "download")
    with pytest.raises(UsageError, match="auto, bootstrap or pull"):
        await build_images(engine, ["base"], False, silent)


async def test_a_failed_pull_says_what_else_there_is(
    engine: CountingEngine, own_cache: Path, own_image: ImageSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_IMAGE_SOURCE", "pull")
    monkeypatch.setattr(slim, "slim_reference", lambda spec: "127.0.0.1:1/debian:none")
    with pytest.raises(EngineError, match="HARNESS_IMAGE_SOURCE"):
        await build_images(engine, ["base"], False, silent)


async def test_an_unreachable_mirror_is_told_in_one_line(
    engine: CountingEngine, own_cache: Path, own_image: ImageSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_IMAGE_SOURCE", "bootstrap")
    monkeypatch.setenv("HARNESS_APT_MIRROR", "http://127.0.0.1:1/debian")
    with pytest.raises(HarnessError, match="check the mirror") as caught:
        await build_images(engine, ["base"], False, silent)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(own_cache)) == ["images.lock"]


async def test_an_index_without_the_wheel_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(RegistryError, match=r"uv>=0\.9 can't be fetched"):
        await fetch_wheel("uv>=0.9", tmp_path)


async def test_a_program_that_does_not_compile_is_told(
    engine: CountingEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = await ensure_image(engine, "builder", silent)
    # A program nobody else compiles, so that two test runs don't meet in one container name.
    name = f"test{uuid.uuid4().hex[:8]}"
    monkeypatch.setattr(native, "program_sources", lambda name: {f"{name}.c": b"int main(void) { return undeclared; }"})
    with pytest.raises(HarnessError, match="undeclared"):
        await native.compile_programs(engine, builder.id, [name], tmp_path)
    assert not await engine.call(engine.api.containers, all=True, filters={"name": name})


@pytest.mark.registry
async def test_a_cancelled_bootstrap_leaves_nothing(
    engine: CountingEngine, own_cache: Path, own_image: ImageSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = tmp_path / "tmp"
    rooms.mkdir()
    monkeypatch.setenv("TMPDIR", str(rooms))
    monkeypatch.setenv("HARNESS_IMAGE_SOURCE", "bootstrap")
    seen: list[list[str]] = []
    with anyio.CancelScope() as scope:

        def watch(message: str) -> None:
            if message.endswith("extracting archives"):
                seen.append(os.listdir(rooms))
                scope.cancel()

        await build_images(engine, ["base"], False, watch)
    assert scope.cancelled_caught
    assert seen and seen[0], "mmdebstrap was not at work"
    assert os.listdir(rooms) == []
    assert sorted(os.listdir(own_cache)) == ["images.lock"]
    mounts = await anyio.Path("/proc/self/mounts").read_text()
    assert str(rooms) not in mounts
    assert await module._find(engine, own_image) is None


@pytest.mark.registry
async def test_on_a_slim_image_the_result_is_the_same(
    engine: CountingEngine, own_cache: Path, own_image: ImageSpec, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stands in for a pulled image: one of ours is as small, and as Debian."""
    reference = (await ensure_image(engine, "builder", silent)).id
    monkeypatch.setattr(slim, "slim_reference", lambda spec: reference)
    await build_images(engine, ["base"], False, silent)
    made = await module._find(engine, own_image)
    assert made is not None
    try:
        kept = ("User", "WorkingDir", "Cmd")
        configs = [(await engine.call(engine.api.inspect_image, image))["Config"] for image in (base, made)]
        assert [configs[0][key] for key in kept] == [configs[1][key] for key in kept]
        assert set(configs[0]["Env"]) == set(configs[1]["Env"])
        assert configs[1]["Labels"] == own_image.labels
        script = "stat -c '%a %u %n' /app /input /home/user /usr/local/bin/entry; id; ls -A /etc/apt/sources.list.d"
        outputs = [await _run(engine, image, script) for image in (base, made)]
        assert outputs[0] == outputs[1]
        assert b"700 65532 /app\n" in outputs[0]
        leftovers = "ls -A /root/build.sh /root/ca.pem /root/finish.sh 2>/dev/null; true"
        assert await _run(engine, made, leftovers, user="0:0") == b""
    finally:
        await engine.call(engine.api.remove_image, made)


async def _run(engine: Engine, image: str, script: str, user: str | None = None) -> bytes:
    host = engine.api.create_host_config(network_mode="none", cap_drop=["ALL"])
    created = await engine.call(engine.api.create_container, image, ["sh", "-c", script], host_config=host, user=user)
    try:
        await engine.call(engine.api.start, created["Id"])
        await engine.wait(created["Id"])
        return await engine.call(engine.api.logs, created["Id"])  # type: ignore[return-value]
    finally:
        await engine.call(engine.api.remove_container, created["Id"], force=True)
