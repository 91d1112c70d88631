"""What an image folder below `sandboxes/` says: read, checked, and summed up in a digest.

A folder with an `image.toml` is an image. The digest covers everything that ends up in it (its folder, the programs'
sources, the architecture, the way it is made), so a change to any of these makes a new tag and an unchanged folder
never builds twice. Nothing here talks to the engine.
"""

from __future__ import annotations

import hashlib
import platform
import tomllib
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from harness.model.base import Record, canonical_json, sha256_hex
from harness.model.errors import HarnessError, UsageError

#: Raise it when the way images are made changes what comes out, so that all of them are made anew.
RECIPE = 1

#: The unprivileged user of every target image.
USER = "user"
UID = 65532
HOME = "/home/user"

#: Where the gate lies in every target image, and where the image `warden` has its program.
GATE_PATH = "/usr/local/bin/entry"
WARDEN_PATH = "/usr/bin/monitor"

RECORDER_PATH = "/usr/bin/recorder"
#: The library in every target image that moves a program's clock, where it is preloaded.
CLOCK_PATH = "/usr/local/lib/libclock.so.1"

#: The static programs, and a library: name of the folder and C file, and what they become.
PROGRAMS = {"gate": GATE_PATH, "warden": WARDEN_PATH, "recorder": RECORDER_PATH, "clock": CLOCK_PATH}

BUILDER = "builder"
RECORDER_BUILDER = "recorder-builder"
#: The images in which programs are compiled; none of them holds a program itself.
BUILDERS = (BUILDER, RECORDER_BUILDER)


_LEFT_BY_TOOLS = {"__pycache__", ".mypy_cache", ".ruff_cache"}


class CopyRule(Record):
    """Members of a wheel that match `from` (a glob) go to the path `to`; below it when `to` ends with a slash."""

    pattern: str = Field(alias="from")
    to: str


class WheelSpec(Record):
    """A wheel from the configured index: which, what is taken out of it, and links to make (path: its target)."""

    requirement: str
    copy_rules: tuple[CopyRule, ...] = Field(default=(), alias="copy")
    links: dict[str, str] = {}


class ImageSpec(Record):
    """An image folder. Either distribution packages of a Debian `suite`, or one static `program` and nothing else.

    `target` images get the unprivileged user, its directories and the gate. `files` maps files and folders of the image
    folder to where they go; below the directories in `bytecode` Python is compiled once, in the image that was made.
    `tag` is the full name on the engine.
    """

    name: str
    digest: str
    summary: str
    suite: str = ""
    target: bool = False
    packages: tuple[str, ...] = ()
    wheels: tuple[WheelSpec, ...] = ()
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    bytecode: tuple[str, ...] = ()
    program: str = ""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.suite) == bool(self.program):
            raise ValueError("an image has either a suite or a program")
        if self.program and self.program not in PROGRAMS:
            raise ValueError(f"there is no program {self.program}")
        return self

    @property
    def repository(self) -> str:
        """The name on the engine without the tag."""
        return f"harness/{self.name}"

    @property
    def tag(self) -> str:
        """The full name on the engine, `harness/<name>:<first 12 digits of the digest>`."""
        return f"{self.repository}:{self.digest[:12]}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which an image of ours is known on the engine."""
        return {"harness.image": self.name, "harness.digest": self.digest}

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs of ours that this image holds."""
        if self.program:
            return (self.program,)
        return ("gate", "clock") if self.target else ()


def sandboxes_dir() -> Path:
    """The folder of the image folders: beside the package in a checkout, or inside it where it is installed so.

    Raises HarnessError where neither exists.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package.parent / "sandboxes", package / "sandboxes"):
        if folder.is_dir():
            return folder
    raise HarnessError("the folder sandboxes/ is missing", remedy="run harness from a checkout")


def program_sources(name: str) -> dict[str, bytes]:
    """The sources of a static program (a key of PROGRAMS) by file name."""
    folder = sandboxes_dir() / name
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != "image.toml"}


def program_builder(name: str) -> str:
    """The image in which a static program is compiled."""
    return RECORDER_BUILDER if name == "recorder" else BUILDER


def image_specs() -> tuple[ImageSpec, ...]:
    """All image folders, sorted by name. Raises HarnessError for one that can't be read."""
    return tuple(_read(path.parent) for path in sorted(sandboxes_dir().glob("*/image.toml")))


def image_spec(name: str) -> ImageSpec:
    """The image folder of that name. Raises UsageError when there is none, HarnessError when it can't be read."""
    folder = sandboxes_dir() / name
    if Path(name).name != name or not (folder / "image.toml").is_file():
        known = ", ".join(path.parent.name for path in sorted(sandboxes_dir().glob("*/image.toml")))
        raise UsageError(f"there is no sandbox image {name}", remedy=f"known are {known}")
    return _read(folder)


def _read(folder: Path) -> ImageSpec:
    try:
        data = tomllib.loads((folder / "image.toml").read_text())
        spec = ImageSpec.model_validate({**data, "name": folder.name, "digest": ""})
        return spec.model_copy(update={"digest": _digest(folder, spec)})
    except (OSError, ValueError, ValidationError) as error:
        reason = " ".join(str(error).split())
        raise HarnessError(
            f"{folder.name}/image.toml can't be used: {reason}", remedy="mend the image folder"
        ) from error


def folder_files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their path in it, without what Python and its tools leave there."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _LEFT_BY_TOOLS & set(path.relative_to(folder).parts)
    }


def _digest(folder: Path, spec: ImageSpec) -> str:
    files = {f"{folder.name}/{name}": path for name, path in folder_files(folder).items()}
    contents = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    for program in spec.programs:
        for name, source in program_sources(program).items():
            contents[f"{program}/{name}"] = hashlib.sha256(source).hexdigest()
    return sha256_hex(canonical_json([RECIPE, platform.machine(), contents]))
