"""A sandbox image on top of a `debian:*-slim` image that the engine has, or pulls when asked to.

Needs the engine's default network for the packages; the image folder and the result are those of a bootstrap.
"""

from __future__ import annotations

import io
import os
import shlex
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import anyio.to_thread
from docker import APIClient

from harness.model.errors import EngineError, HarnessError
from harness.sandbox.apt_sources import DEBIAN_KEYRING, find_mirror
from harness.sandbox.engine import Engine, EngineNotFound
from harness.sandbox.image_overlay import changes, finish_script
from harness.sandbox.image_spec import ImageSpec
from harness.sandbox.native import create_container, last_words, remove_container

TIMEOUT_SECONDS = 900.0
PULL_SECONDS = 120.0
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_CA_FILE = "/etc/ssl/certs/ca-certificates.crt"


def slim_reference(spec: ImageSpec) -> str:
    """The name of the slim image that `spec` can be built on."""
    return f"debian:{spec.suite}-slim"


async def present(engine: Engine, reference: str) -> bool:
    """Whether the engine has an image of that name."""
    try:
        await engine.ask(engine.api.inspect_image, reference)
    except EngineNotFound:
        return False
    return True


async def pull(engine: Engine, reference: str, progress: Callable[[str], None]) -> None:
    """Pull an image. Raises EngineError when that fails or takes longer than PULL_SECONDS."""
    progress(f"pulling {reference}")
    remedy = "unset HARNESS_IMAGE_SOURCE to make the images from distribution packages"
    repository, _, tag = reference.rpartition(":")
    try:
        with anyio.fail_after(PULL_SECONDS):
            await engine.ask(engine.api.pull, repository, tag)
        if not await present(engine, reference):  # what goes wrong late is only told in the progress
            raise EngineError("the download did not end well")
    except (EngineError, TimeoutError) as error:
        raise EngineError(f"{reference} can't be pulled: {str(error) or 'no answer in time'}", remedy=remedy) from error


async def build_on_slim(
    engine: Engine,
    spec: ImageSpec,
    reference: str,
    overlay: Callable[[Path], None],
    scratch: Path,
    progress: Callable[[str], None],
) -> None:
    """Build `spec` on the image `reference` and tag it. `overlay` writes the overlay's archive to the path it gets.

    Raises HarnessError when the packages can't be installed (apt's last words are in it).
    """
    api = engine.api
    progress(f"{spec.name}: installing packages on {reference}")
    container = await create_container(engine, f"image-{spec.name}", reference, ["sh", "/root/build.sh"])
    try:
        await engine.call(api.put_archive, container, "/", await anyio.to_thread.run_sync(_kit, spec, os.environ))
        await engine.call(api.start, container)
        with anyio.fail_after(TIMEOUT_SECONDS):
            code = await engine.wait(container)
        if code != 0:
            words = await last_words(engine, container, 20)
            reason = " | ".join([line for line in words if line.startswith(("E:", "Err"))] or words[-3:])
            raise HarnessError(f"packages for {spec.name} can't be installed: {reason}", remedy="check the mirror")
        archive = scratch / f"{spec.name}-overlay.tar"
        await anyio.to_thread.run_sync(overlay, archive)
        progress(f"{spec.name}: committing")
        await engine.call(_put_file, api, container, archive)
        await engine.call(api.commit, container, spec.repository, spec.tag.rpartition(":")[2], changes=changes(spec))
    except TimeoutError as error:
        message = f"installing packages for {spec.name} took longer than {TIMEOUT_SECONDS:.0f} s"
        raise HarnessError(message, remedy="check the mirror") from error
    finally:
        await remove_container(engine, container)


def _put_file(api: APIClient, container: str, archive: Path) -> None:
    with archive.open("rb") as file:
        api.put_archive(container, "/", file)


def _kit(spec: ImageSpec, environ: Mapping[str, str]) -> bytes:
    """The archive with the build script and what it needs: sources, keyring and the machine's CA bundle."""
    files: dict[str, bytes] = {}
    script = ["set -e", "export DEBIAN_FRONTEND=noninteractive"]
    script += [f"export {name}={shlex.quote(environ[name])}" for name in _PROXIES if environ.get(name)]
    apt = ["apt-get", "-q"]
    try:
        mirror = find_mirror(environ)
    except HarnessError:
        pass  # no Debian machine: the image's own sources stand
    else:
        files["etc/apt/sources.list.d/harness.sources"] = mirror.sources(spec.suite).encode()
        script.append("rm -f /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources")
        for source in (mirror.main, mirror.security):
            keyring = Path(source.options.get("Signed-By", DEBIAN_KEYRING) if source else DEBIAN_KEYRING)
            if str(keyring) != DEBIAN_KEYRING and keyring.is_file():
                files[str(keyring).lstrip("/")] = keyring.read_bytes()
    bundles = [environ[name] for name in _CA_VARIABLES if environ.get(name)]
    bundle = next((Path(path) for path in [*bundles, _CA_FILE] if Path(path).is_file()), None)
    if bundle is not None:  # where egress is intercepted, an https mirror shows the interceptor's certificate
        files["root/ca.pem"] = bundle.read_bytes()
        apt.append("-oAcquire::https::CaInfo=/root/ca.pem")
    packages = " ".join(shlex.quote(name) for name in spec.packages)
    script += [f"{shlex.join(apt)} update", f"{shlex.join(apt)} install -y --no-install-recommends {packages}"]
    script.append("sh /root/finish.sh /")
    script.append("rm -f /root/build.sh /root/finish.sh /root/ca.pem")
    files["root/build.sh"] = ("\n".join(script) + "\n").encode()
    files["root/finish.sh"] = finish_script(spec).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
