"""Server images that are targets themselves: what the engine says of one, and its container behind our gate.

Nothing in such an image is believed: the user it names is looked up without starting it, places where it wants to
write become bounded memory, and everything else is as in any target's container.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.errors import UsageError
from harness.model.target import ImageConfig
from harness.sandbox.containers import Doomed, doomed
from harness.sandbox.engine import Engine, EngineNotFound
from harness.sandbox.hardening import USER_ID

#: Where the volume with the gate is mounted: a place that no image uses, and that gives away no name.
GATE_FOLDER = "/.entry"
GATE = f"{GATE_FOLDER}/entry"

_PASSWD_BYTES = 1 << 20
#: More declared volumes than these are not covered, and the engine would make a folder of the disk for each.
MOST_VOLUMES = 16


async def image_config(engine: Engine, name: str, labels: Mapping[str, str], reference: str) -> ImageConfig:
    """What the engine knows of the image, and as whom it is run: its own user where that is not root.

    A user given by name is looked up in a container that is never started (`name` and `labels` are its).
    Raises `UsageError` when there is no image of that name, `EngineError`.
    """
    try:
        found = await engine.ask(engine.api.inspect_image, reference)
    except EngineNotFound:
        raise UsageError(
            f"the engine has no image {reference}", remedy=f"build it, or get it with: docker pull {reference}"
        ) from None
    config = found.get("Config") or {}
    volumes = tuple(sorted(config.get("Volumes") or {}))
    if len(volumes) > MOST_VOLUMES:
        raise UsageError(f"the image {reference} declares {len(volumes)} volumes, more than {MOST_VOLUMES}")
    entrypoint = tuple(config.get("Entrypoint") or ())
    image = ImageConfig(
        reference=reference,
        id=str(found["Id"]),
        argv=(*entrypoint, *(config.get("Cmd") or ())),
        entrypoint=entrypoint,
        user=str(config.get("User") or ""),
        workdir=str(config.get("WorkingDir") or "/"),
        environment=tuple(config.get("Env") or ()),
        volumes=volumes,
        size=int(found.get("Size") or 0),
        labels={str(k): str(v) for k, v in (config.get("Labels") or {}).items()},
    )
    async with doomed(engine) as collected:
        return image.model_copy(update={"run_as": await _numeric_user(engine, collected, name, labels, image)})


async def _numeric_user(
    engine: Engine, collected: Doomed, name: str, labels: Mapping[str, str], image: ImageConfig
) -> str:
    """`uid:gid` to run the image as: its own user where that is not root, else that of every sandbox."""
    user, _, group = image.user.partition(":")
    if not user.isdigit() and user:
        config = {"Image": image.id, "Cmd": ["-"], "Labels": dict(labels), "NetworkDisabled": True}
        container = await collected.create(name, config)
        user, own_group = await _looked_up(engine, container, user)
        group = group if group.isdigit() else own_group
    uid = int(user) if user.isdigit() and len(user) < 10 else 0
    if uid == 0:
        return f"{USER_ID}:{USER_ID}"
    gid = int(group) if group.isdigit() and len(group) < 10 else 0
    return f"{uid}:{gid or uid}"


def foreign_config(config: dict[str, Any], image: ImageConfig, size: int) -> dict[str, Any]:
    """The create request for a target's container, changed to fit a foreign image. `size`: bytes of each volume."""
    # By number: a runtime gives a tmpfs the mode of the image's own folder there, and root as its owner.
    uid, _, gid = image.run_as.partition(":")
    owner = f"uid={uid},gid={gid}"
    host = dict(config["HostConfig"])
    places = dict.fromkeys(image.volumes, f"rw,exec,nosuid,nodev,size={size},mode=0755,{owner}")
    sandbox_owner = f"uid={USER_ID},gid={USER_ID}"
    own = {path: options.replace(sandbox_owner, owner) for path, options in host["Tmpfs"].items()}
    host["Tmpfs"] = {**places, **own}
    return {**config, "User": image.run_as, "Entrypoint": [GATE], "HostConfig": host}


async def _looked_up(engine: Engine, container: str, user: str) -> tuple[str, str]:
    """Uid and gid of a user by name, from the image's /etc/passwd; of root when it isn't there."""
    try:
        data = await engine.call(_passwd, engine, container)
    except EngineNotFound:
        return "0", "0"
    for line in data.decode("utf-8", "replace").splitlines():
        fields = line.split(":")
        if len(fields) > 3 and fields[0] == user:
            return fields[2], fields[3]
    return "0", "0"


def _passwd(engine: Engine, container: str) -> bytes:
    """The image's /etc/passwd, bounded; empty when it is no plain file."""
    stream, _ = engine.api.get_archive(container, "/etc/passwd")
    pieces: Iterator[bytes] = iter(stream)
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > _PASSWD_BYTES:
            return b""
    try:
        with tarfile.open(fileobj=io.BytesIO(bytes(data))) as archive:
            member = archive.next()
            file = archive.extractfile(member) if member is not None and member.isreg() else None
            return file.read() if file is not None else b""
    except tarfile.TarError:
        return b""
