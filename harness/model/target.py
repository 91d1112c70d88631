"""What is to be vetted, and what acquisition brings home of it.

A `TargetRef` is what the user typed, parsed; an `Acquired` is the same after fetching: every file with its
digest, how to install it in the sandbox, and how it can be started. Nothing here reads a file.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import Field

from harness.model.base import Record, canonical_json, sha256_hex


class TargetKind(StrEnum):
    """The forms of TARGET (interface.md)."""

    PYPI = "pypi"
    NPM = "npm"
    DIRECTORY = "dir"
    FILE = "file"
    COMMAND = "command"
    WHEEL = "wheel"
    ARCHIVE = "archive"
    BUNDLE = "mcpb"
    CONFIG = "config"
    SERVER_JSON = "server-json"
    OCI = "oci"
    TOOLS = "tools"


class Ecosystem(StrEnum):
    """Which package world a target belongs to."""

    PYTHON = "python"
    NODE = "node"
    NONE = "none"


class TargetRef(Record):
    """A target as asked for. `text` is the user's spelling and is what reports show."""

    text: str
    kind: TargetKind
    name: str | None = None
    version: str | None = None
    path: Path | None = Field(default=None, exclude=True)
    command: tuple[str, ...] = ()


class Artifact(Record):
    """One fetched file of the closure. `size` in bytes; `sha256` lower-case hex of the file as fetched."""

    name: str
    version: str
    filename: str
    sha256: str
    size: int


class Closure(Record):
    """Everything that gets installed, the target itself included, sorted by name, version and file name."""

    artifacts: tuple[Artifact, ...] = ()

    @property
    def digest(self) -> str:
        """A digest of all names, versions and file digests (64 hex digits), the key of the install cache."""
        return sha256_hex(canonical_json([[a.name, a.version, a.filename, a.sha256] for a in self.artifacts]))


class InputFile(Record):
    """A file to be put below the install input directory: where it lies here, and its name there."""

    source: Path = Field(exclude=True)
    destination: str
    mode: int = 0o644


class InstallPlan(Record):
    """How the sandbox installs the closure, without a network.

    `image`: folder name below sandboxes/ (e.g. `python313`). `files`: streamed below `/input`, gone afterwards.
    `steps`: argument vectors run in order as the unprivileged user, with cwd `/input`; the first that fails
    ends the phase. Everything written below `/app` stays. `environment` holds for the steps only.
    """

    image: str
    files: tuple[InputFile, ...] = ()
    steps: tuple[tuple[str, ...], ...] = ()
    environment: dict[str, str] = {}
    closure_digest: str

    @property
    def cache_key(self) -> str:
        """Digest of closure, image name and options; the engine adds the image's own id."""
        return sha256_hex(
            canonical_json(
                [
                    self.closure_digest,
                    self.image,
                    [list(step) for step in self.steps],
                    self.environment,
                    [[f.destination, f.mode] for f in self.files],
                ]
            )
        )


class EntryPoint(Record):
    """One way to start the target: a name for `--entry`, and its argument vector inside the sandbox.

    `planted`: placeholders in the arguments (`{workspace}`, `{canary}`) are ours, and filled when it is started.
    """

    name: str
    argv: tuple[str, ...]
    source: str = ""
    planted: bool = False


class ImageConfig(Record):
    """What the engine says of an image that is a target: how it starts, as whom, and where it wants to write.

    `user` as the image declares it, `run_as` the numbers `uid:gid` it is started as. `size` in bytes.
    """

    reference: str
    id: str
    argv: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    user: str = ""
    run_as: str = ""
    workdir: str = "/"
    environment: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    size: int = 0
    labels: dict[str, str] = {}


class Acquired(Record):
    """A fetched target. `entry_points` in order of preference; empty when none was found in the metadata.

    `image`: the engine's id of the image to start in, where that is not the install's. `secrets`: values among
    arguments and environment that must not be recorded; they are never written down with the rest.
    """

    ref: TargetRef
    name: str
    version: str
    ecosystem: Ecosystem
    closure: Closure
    install: InstallPlan
    entry_points: tuple[EntryPoint, ...] = ()
    environment: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    image: ImageConfig | None = None
    secrets: tuple[str, ...] = Field(default=(), exclude=True)
