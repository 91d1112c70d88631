"""The closure of a target in its bundle: what a confirmed finding is reproduced from, and nothing else is needed.

`closure.json` holds the `Acquired` (secrets replaced) and the digests of its files, which lie in `blobs/`.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from pydantic import ValidationError

from harness.model.base import JsonObject, Record, sha256_hex
from harness.model.errors import BundleError, HarnessError
from harness.model.options import PlantedFile, RunOptions
from harness.model.target import Acquired, InputFile
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.redaction import REDACTED

CLOSURE = "closure.json"
#: What a closure may take in a bundle; larger ones are named by their digests only.
MOST_BYTES = 1 << 30
MAX_JSON_BYTES = 64 << 20


class KeptFile(Record):
    """A file in `blobs/`. `destination`: of an input file, or the path below the workspace of a planted one."""

    destination: str
    sha256: str
    size: int
    mode: int = 0o644


class KeptClosure(Record):
    """What is written. `acquired` without its install's files, which `inputs` names in order; `entry`: the one started.

    `planted`: the contents of `--file`.
    """

    format: int = 1
    acquired: JsonObject
    entry: str
    inputs: tuple[KeptFile, ...] = ()
    planted: tuple[KeptFile, ...] = ()


def keep_closure(bundle: BundleWriter, acquired: Acquired, entry: str, options: RunOptions) -> str | None:
    """Put the closure into a bundle that is not sealed yet. Blocking. Returns why it could not be kept, or None.

    Raises HarnessError when the disk fails.
    """
    blobs = bundle.folder / "blobs"
    try:
        total = sum(file.source.stat().st_size for file in acquired.install.files)
        if total > MOST_BYTES:
            return f"its closure of {total >> 20} MiB is larger than {MOST_BYTES >> 20} MiB"
        inputs = [_keep(file, blobs) for file in acquired.install.files]
        planted = []
        for given in options.files:
            if given.link is None:
                (blobs / given.sha256).write_bytes(given.data)
                planted.append(KeptFile(destination=given.path, sha256=given.sha256, size=given.size))
    except OSError as error:
        raise HarnessError(
            f"the closure can't be put into the bundle: {error.strerror}", remedy="check the space on the disk"
        ) from error
    data = acquired.model_dump(mode="json")
    data["install"]["files"] = []
    kept = KeptClosure(acquired=data, entry=entry, inputs=tuple(inputs), planted=tuple(planted))
    bundle.further(CLOSURE, kept.model_dump_json(indent=1) + "\n")
    return None


def _keep(file: InputFile, blobs: Path) -> KeptFile:
    fresh = blobs / "closure.new"
    shutil.copyfile(file.source, fresh)
    with fresh.open("rb") as copied:
        digest = hashlib.file_digest(copied, "sha256").hexdigest()
    size = fresh.stat().st_size
    fresh.replace(blobs / digest)
    return KeptFile(destination=file.destination, sha256=digest, size=size, mode=file.mode)


class Loaded(Record):
    """A closure read back: ready to be installed from the bundle's own files. `options` have their files again.

    `missing`: what was secret in the target's configuration and is not recorded.
    """

    acquired: Acquired
    entry: str
    options: RunOptions
    missing: tuple[str, ...] = ()


def load_closure(folder: Path, options: RunOptions) -> Loaded | None:
    """The closure in a bundle whose seal was checked; None when there is none. Raises BundleError."""
    path = folder / CLOSURE
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise BundleError(f"{CLOSURE} is too large", remedy="this is no bundle of ours")
        kept = KeptClosure.model_validate_json(path.read_bytes())
        files = [
            {"source": folder / "blobs" / _digest(file), "destination": file.destination, "mode": file.mode}
            for file in kept.inputs
        ]
        install = {**kept.acquired["install"], "files": files}
        acquired = Acquired.model_validate({**kept.acquired, "install": install})
        data = {file.destination: (folder / "blobs" / _digest(file)).read_bytes() for file in kept.planted}
    except (ValidationError, KeyError, TypeError, OSError) as error:
        raise BundleError(f"{CLOSURE} can't be read", remedy="the bundle is damaged") from error
    given = tuple(_planted(file, data) for file in options.files)
    secret = [name for name, value in acquired.environment.items() if REDACTED in value]
    secret += [f"an argument of {entry.name}" for entry in acquired.entry_points if REDACTED in "".join(entry.argv)]
    return Loaded(
        acquired=acquired,
        entry=kept.entry,
        options=options.model_copy(update={"files": given}),
        missing=tuple(dict.fromkeys(secret)),
    )


def _planted(file: PlantedFile, data: dict[str, bytes]) -> PlantedFile:
    if file.link is not None:
        return file
    content = data.get(file.path)
    if content is None or sha256_hex(content) != file.sha256:
        raise BundleError(f"{file.path} is not in the bundle", remedy="the bundle is damaged")
    return file.model_copy(update={"data": content})


def _digest(file: KeptFile) -> str:
    """A name that can't lead out of the folder."""
    if len(file.sha256) != 64 or not set(file.sha256) <= set("0123456789abcdef"):
        raise BundleError(f"{CLOSURE} names what is no digest", remedy="the bundle is damaged")
    return file.sha256
